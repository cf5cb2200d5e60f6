"""`conformance`: run recorded cases of the real scheduler and say where this one differs."""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from scheduler_core.cli.release import release_lines
from scheduler_core.cli.reports import Unusable
from scheduler_core.clock import SECOND_NS, measure_ns
from scheduler_core.releases import OLDEST, RELEASES, Release, release_named


class Difference(NamedTuple):
    """A key of a case's expectations whose recorded value is not what was computed.

    Attributes
    ----------
    key : str
        Path of the key inside `expect`, e.g. `nodes[2].error`.
    expected, got : object
        The recorded and the computed value.
    """

    key: str
    expected: object
    got: object


def _program_of(case: Mapping[str, Any]) -> str:
    """The program that decided a case, where it is not the scheduler; empty where it is."""
    program, _, commit = str(case.get("version", "")).partition(" ")
    return program if commit else ""


def release_of(case: Mapping[str, Any]) -> Release:
    """The release of a case's `version`, its `features` or `gates` switched; without one, the oldest release.

    Gates that a recording names for its own sake are left at what they are where the release has them locked.
    """
    release = release_named(case["version"], "version") if "version" in case else OLDEST
    return release.with_gates(case.get("features") or case.get("gates") or {})


def differences(expect: Any, got: Any, path: str = "", absent: object = None) -> Iterator[Difference]:
    """Every place below `path` where the computed value is not the recorded one.

    Parameters
    ----------
    absent : object
        What a key counts as that only the other side has.
    """
    if isinstance(expect, Mapping) and isinstance(got, Mapping):
        for key in dict.fromkeys([*expect, *got]):
            where = f"{path}.{key}" if path else str(key)
            yield from differences(expect.get(key, absent), got.get(key, absent), where, absent)
    elif isinstance(expect, list) and isinstance(got, list) and len(expect) == len(got):
        for index, (wanted, found) in enumerate(zip(expect, got, strict=True)):
            yield from differences(wanted, found, f"{path}[{index}]", absent)
    elif expect != got or isinstance(expect, bool) != isinstance(got, bool):
        yield Difference(path, expect, got)


def expected_differences(expect: Mapping[str, Any], got: Mapping[str, Any]) -> list[Difference]:
    """The differences of the keys of `expect`; keys that only `got` has do not count at the top."""
    return list(differences(expect, {key: got.get(key) for key in expect}))


def present(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document without what is null or empty: it may be left out."""
    return {key: value for key, value in document.items() if value not in (None, "", [], {}, False)}


Runner = Callable[[Mapping[str, Any]], list[Difference]]

_SCHEDULING = "conformance_cycles:run_case"
RUNNERS: dict[str, str] = {
    "quantities": "conformance_values:run_quantity_case",
    "selectors": "conformance_values:run_selector_case",
    "config-validation": "conformance_values:run_config_case",
    "queue": "conformance_queue:run_queue_case",
    "queueing-hints": "conformance_queue:run_hint_case",
    "extender-wire": "conformance_cycles:run_wire_case",
    "sequence": "conformance_cycles:run_sequence_case",
    "dra": "conformance_devices:run_case",
    "dra-cycle": "conformance_devices:run_cycle_case",
    "dra-sequence": "conformance_devices:run_sequence_case",
    "gang": "conformance_gang:run_case",
    "capacity": "conformance_values:run_capacity_case",
    "trace": "conformance_cycles:run_trace_case",
}
"""Family -> what runs its cases; any other family holds ordinary scheduling cases."""
CONTROLLERS: dict[str, str] = {
    "cluster-autoscaler": "conformance_autoscaler:run_autoscaler_case",
    "descheduler": "conformance_descheduler:run_descheduler_case",
}
"""The same for cases of other programs than the scheduler, by the first word of their version."""


def run(options: argparse.Namespace) -> int:
    """Run the command; the exit status is 1 when a case failed, 2 when a file is none of cases."""
    keys = tuple(options.keys.split(",")) if options.keys else ()
    excluded = set(filter(None, options.excluded.split(",")))
    if not options.paths and not options.versions:
        raise Unusable("name files of cases, or --versions")
    counts: Counter[tuple[str, bool]] = Counter()
    by_release: Counter[tuple[str, bool]] = Counter()
    started_ns = measure_ns()
    for path in [file for given in options.paths for file in _files(Path(given))]:
        for case in read_cases(path):
            if case["family"] in excluded or (options.explain and case["name"] != options.explain):
                continue
            differences = run_case(case, keys)
            counts[path.name, not differences] += 1
            title = case["version"] if _program_of(case) else release_of(case).title
            by_release[title, not differences] += 1
            if differences and (options.explain or options.list):
                _show(case["name"], differences, every=bool(options.explain))
        if counts[path.name, True] + counts[path.name, False]:
            print(f"{path.name}: {_counted(counts, path.name)}")
    if options.versions:
        print("\n".join(_versions(by_release)))
    if options.paths:
        print(f"took {(measure_ns() - started_ns) / SECOND_NS:.1f} s", file=sys.stderr)
        print(f"{sum(n for (_, passed), n in counts.items() if passed)} passed, ", end="")
        print(f"{sum(n for (_, passed), n in counts.items() if not passed)} failed")
    return 1 if any(not passed for _, passed in counts) else 0


def _counted(counts: Counter[tuple[str, bool]], name: str) -> str:
    return f"{counts[name, True]} passed, {counts[name, False]} failed"


def _versions(by_release: Counter[tuple[str, bool]]) -> Iterator[str]:
    """What is known of every release: its recorded decisions, and how each thing it changes is known."""
    for title in dict.fromkeys(title for title, _ in by_release):
        yield f"as {title}: {_counted(by_release, title)}"
    for release in RELEASES.values():
        yield from release_lines(release)


def _files(path: Path) -> list[Path]:
    """The file itself, or all files of cases below a folder, by name."""
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.rglob("*.jsonl*") if file.name.endswith((".jsonl", ".jsonl.gz")))
    if not found:
        raise Unusable(f"{path}: there is no file of cases (.jsonl, .jsonl.gz) in this folder")
    return found


def read_cases(path: Path) -> Iterator[dict[str, Any]]:
    """The cases of a file, one a line.

    Raises
    ------
    OSError
    Unusable
        With the file and the line.
    """
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        try:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                case = json.loads(line)
                if isinstance(case, dict) and "id" in case:
                    case["name"] = case["id"]
                if not (isinstance(case, dict) and {"name", "family"} <= case.keys()):
                    raise Unusable(f"{path}: line {number}: a case is an object with a name and a family")
                yield case
        except (gzip.BadGzipFile, UnicodeDecodeError) as error:
            raise Unusable(f"{path}: {error}") from None
        except json.JSONDecodeError as error:
            raise Unusable(f"{path}: line {number}: not JSON: {error.msg}") from None


def run_case(case: Mapping[str, Any], keys: Sequence[str] = ()) -> list[Difference]:
    """Differences of one case; what it raises is a difference too, so that a case never counts as passed unrun."""
    program = _program_of(case)
    known = CONTROLLERS.get(program) if program else RUNNERS.get(case["family"], _SCHEDULING)
    if known is None:
        return [Difference("(run)", f"decisions of the {program}", "it is not modelled")]
    module, _, function = known.partition(":")
    try:
        runner: Runner = getattr(import_module(f"scheduler_core.cli.{module}"), function)
        found = runner(case)
    except Exception as error:
        return [Difference("(run)", "no exception", f"{type(error).__name__}: {error}")]
    if not keys:
        return found
    return [
        item
        for item in found
        if any(item.key == key or item.key.startswith((f"{key}.", f"{key}[")) for key in keys)
    ]


def _show(name: str, differences: Sequence[Difference], *, every: bool) -> None:
    for difference in differences if every else differences[:1]:
        print(f"{name}: {difference.key}")
        print(f"  expected {json.dumps(difference.expected, default=str)[:2000]}")
        print(f"  got      {json.dumps(difference.got, default=str)[:2000]}")
