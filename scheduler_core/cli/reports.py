"""How commands answer: why a file cannot be used, JUnit XML, Markdown, annotations of a GitHub workflow."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from scheduler_core.errors import InvalidObject
from scheduler_core.scenario import ScenarioError

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML document may hold, not even escaped; an extender may say it all the same."""
_PODS_OF_A_REASON = 5
UNUSABLE = 2
"""The exit status of a command whose file or option cannot be used."""
MAX_ANNOTATIONS = 10
"""GitHub shows so many of a step."""


class Unusable(Exception):
    """What the command line names cannot be used; the message says why."""


def show(
    options: argparse.Namespace,
    document: Mapping[str, Any],
    lines: Iterable[str],
    *,
    indent: int | None = None,
) -> None:
    """Print an answer: the document with `--json`, else its lines."""
    if options.json:
        print(json.dumps(document, ensure_ascii=False, indent=indent))
    else:
        print("\n".join(lines))


def first(lines: Iterable[str], limit: int, number: int, what: str = "") -> Iterator[str]:
    """The first lines, indented, and how many of `number` are not shown."""
    yield from (f"  {line}" for line in islice(lines, limit))
    if number > limit:
        yield f"  and {number - limit:,} {what}more"


def waiting_lines(waiting: Mapping[str, str]) -> list[str]:
    """Pending pods under what they wait for, the reason of most pods first."""
    by_reason: dict[str, list[str]] = {}
    for pod, reason in waiting.items():
        by_reason.setdefault(reason, []).append(pod)
    lines = []
    for reason, pods in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0])):
        more = f" and {len(pods) - _PODS_OF_A_REASON:,} more" if len(pods) > _PODS_OF_A_REASON else ""
        lines += [f"  {len(pods):,} wait{'s' if len(pods) == 1 else ''}: {reason}"]
        lines += [f"    {', '.join(pods[:_PODS_OF_A_REASON])}{more}"]
    return lines


@dataclass(frozen=True, slots=True)
class Case:
    """Something that holds or fails.

    Attributes
    ----------
    name : str
    said : str
        How it came out, in words.
    cycle : int or None
        The decision to look at.
    known : bool
        It fails, as it did before: named, but no failure of this change.
    before : str
        How it came out before; empty where nothing is compared.
    """

    name: str
    holds: bool
    said: str
    cycle: int | None = None
    known: bool = False
    before: str = ""

    @property
    def fails(self) -> bool:
        return not self.holds and not self.known

    @property
    def result(self) -> str:
        return "holds" if self.holds else "fails, as before" if self.known else "fails"


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a command.

    Attributes
    ----------
    headline : str
        One sentence without its period.
    suite : str
        What the cases are filed under.
    file : str
        The file that was checked.
    markdown : sequence of str
        Lines of the summary between the table of the cases and the last line.
    ground : str
        What decided, and on what.
    """

    headline: str
    suite: str
    file: str
    cases: Sequence[Case]
    markdown: Sequence[str] = ()
    ground: str = ""
    took_s: float = 0.0


def write(options: argparse.Namespace, report: Report) -> None:
    """Write what the options ask for.

    Raises
    ------
    OSError
    """
    if options.junit:
        _write_junit(Path(options.junit), report)
    if options.markdown:
        _append(Path(options.markdown), markdown_of(report))
    if options.annotations:
        for line in workflow_commands(report):
            print(line)


def unusable(options: argparse.Namespace, error: Exception, name: str = "") -> int:
    """Print why a command cannot be run, in every form its options ask for; returns the exit status.

    Parameters
    ----------
    name : str
        The file, for errors that do not name one; by default the one that the options name.
    """
    given = [getattr(options, key, "") for key in ("scenario", "file")] + getattr(options, "scenarios", [])
    # What a dump or manifests are made of names its file itself.
    name = name or next(filter(None, given), "") or (options.files[-1] if "at_most" in options else "")
    match error:
        case ScenarioError(problems=problems):
            said = "\n".join(
                str(one if one.file else dataclasses.replace(one, file=name)) for one in problems[:20]
            )
        case OSError(strerror=str(words)):
            said = f"{error.filename or name}: {words}"
        case Unusable() | LookupError() | InvalidObject():
            said = str(error)
        case _:
            said = f"{name[:80]}: {error}"
    if getattr(options, "json", False):
        print(json.dumps({"status": "unusable", "error": said}, ensure_ascii=False))
    print(said, file=sys.stderr)
    if "junit" in options:
        _write_unusable(options, name, said)
    return UNUSABLE


def _write_unusable(options: argparse.Namespace, name: str, said: str) -> None:
    if options.junit:
        suite = ElementTree.Element("testsuite", name=name, tests="1", failures="0", errors="1")
        case = ElementTree.SubElement(suite, "testcase", classname="scenario", name="load")
        _say(case, "error", said)
        ElementTree.ElementTree(suite).write(options.junit, encoding="utf-8", xml_declaration=True)
    if options.markdown:
        _append(Path(options.markdown), f"## Scheduling: {cell(name)} cannot be used\n\n{code(said)}\n")
    if options.annotations:
        print(_command("error", name, "cannot be used", said))


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def markdown_of(report: Report) -> str:
    """The summary: plain, so that any forge shows it."""
    lines = [f"## Scheduling: {cell(report.headline)}.", ""]
    if report.cases:
        compared = any(case.before for case in report.cases)
        lines += [
            f"| Expectation | Result | It came out |{' Before |' if compared else ''}",
            f"|---|---|---|{'---|' if compared else ''}",
        ]
        for case in report.cases:
            result = case.result if case.holds else f"**{case.result}**"
            told = f"{case.said} (cycle {case.cycle})" if case.cycle and not case.holds else case.said
            before = f" {cell(case.before)} |" if compared else ""
            lines.append(f"| {cell(case.name)} | {result} | {cell(told)} |{before}")
        lines.append("")
    lines += report.markdown
    if report.ground:
        lines += [f"> {report.ground}.", ""]
    return "\n".join(lines)


def cell(text: str) -> str:
    """Words inside a line of Markdown: nothing of them is markup."""
    flat = " ".join(text.split())
    return re.sub(r"([\\`*_\[\]|#~])", r"\\\1", flat).replace("<", "&lt;")


def code(text: str) -> str:
    """Words as a block of code, whatever they hold."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    return f"{fence}text\n{text}\n{fence}"


def workflow_commands(report: Report) -> list[str]:
    """Commands of a GitHub workflow: one for each case that fails, or is known to."""
    failing = [case for case in report.cases if not case.holds]
    return [
        _command("error" if case.fails else "warning", report.file, f"{case.name} {case.result}", case.said)
        for case in sorted(failing, key=lambda case: case.known)[:MAX_ANNOTATIONS]
    ]


def _command(level: str, file: str, title: str, said: str) -> str:
    def data(text: str) -> str:
        return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")

    def value(text: str) -> str:
        return data(text).replace(":", "%3A").replace(",", "%2C")

    place = f"file={value(file)}," if Path(file).is_file() else ""
    return f"::{level} {place}title={value(title)}::{data(said)}"


def _write_junit(path: Path, report: Report) -> None:
    failures = sum(case.fails for case in report.cases)
    known = sum(case.known for case in report.cases)
    suite = ElementTree.Element(
        "testsuite", name=report.suite or report.file, tests=str(len(report.cases)), failures=str(failures),
        errors="0", skipped=str(known), time=f"{report.took_s:.3f}",
    )  # fmt: skip
    for one in report.cases:
        case = ElementTree.SubElement(suite, "testcase", classname=report.suite or "scenario", name=one.name)
        if one.fails:
            _say(case, "failure", one.said)
        elif one.known:
            _say(case, "skipped", one.said)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def _say(case: ElementTree.Element, outcome: str, said: str) -> None:
    """Why a case did not pass."""
    told = _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", said)
    ElementTree.SubElement(case, outcome, message=told.split("\n")[0]).text = told


def table(heads: Sequence[str], figures: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """Figures by name, a column for each head; those that are nothing everywhere are left out."""
    widths = [max(10, len(head)) for head in heads]
    first = max(len(name) for name in figures)
    yield f"{'':{first}}  " + "  ".join(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True))
    for name, values in figures.items():
        if any(values):
            cells = (f"{round(value, 3):>{width}g}" for value, width in zip(values, widths, strict=True))
            yield f"{name:{first}}  " + "  ".join(cells)
