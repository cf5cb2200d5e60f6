"""`release`: what releases change, how each difference is known, and the draft of a new one."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from scheduler_core.cli import reports
from scheduler_core.cli.release_options import named
from scheduler_core.errors import InvalidObject
from scheduler_core.releases import DEFAULT, KNOWN, OLDEST, RELEASES, Release, ReleaseDifference, differences

REFUSED = (InvalidObject,)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.action == "list":
        return _list(options)
    if options.action == "show":
        return _show(options)
    return _draft(options)


def _list(options: argparse.Namespace) -> int:
    found = {
        release.name: {
            "emulates": release.patch,
            "follows": release.follows,
            "default": release is DEFAULT,
            "agreedDecisions": release.n_agreed,
            "known": dict(Counter(one.known for one in _own(release))),
        }
        for release in RELEASES.values()
    }
    reports.show(options, found, [_head(release) for release in RELEASES.values()])
    return 0


def _show(options: argparse.Namespace) -> int:
    release = named(options.name, None, DEFAULT)
    since = named(options.since, None, RELEASES.get(release.follows, OLDEST))
    found = differences(since, release)
    document = {
        "name": release.name,
        "since": since.name,
        "differences": [dataclasses.asdict(one) for one in found],
    }
    reports.show(options, document, [f"{release.name} and {since.name} differ in", *difference_lines(found)])
    return 0


def _own(release: Release) -> list[ReleaseDifference]:
    return differences(RELEASES[release.follows], release) if release.follows else []


def _head(release: Release) -> str:
    counts = Counter(one.known for one in _own(release))
    known = "; ".join(f"{counts[word]} {word}" for word in KNOWN.values() if counts[word])
    said = [f"{release.n_agreed:,} recorded decisions agree" if release.n_agreed else "no recorded decisions"]
    said += [f"changes of {release.follows}: {known}"] if known else []
    said += ["decides where none is named"] if release is DEFAULT else []
    return f"{release.name} ({release.patch}): {', '.join(said)}"


def release_lines(release: Release) -> Iterator[str]:
    """A release, and under it what it changes of the one it follows."""
    yield _head(release)
    yield from difference_lines(_own(release))


def difference_lines(found: list[ReleaseDifference]) -> Iterator[str]:
    """One line a difference."""
    return (f"  {one.known}: {one.name}: {one.text}" for one in found)


def _draft(options: argparse.Namespace) -> int:
    from scheduler_core.releases.draft import draft

    follows = named(options.follows, None, DEFAULT) if options.follows else None
    made = draft(
        options.name, _text(options.gates), _text(options.notes), follows=follows, patch=options.patch or ""
    )
    lines = [f"{options.name} follows {made.table['follows']}"]
    for words, names in (
        ("new gates, not modelled", made.new),
        ("gates that change their state, as known before", made.changed),
        ("gates that are gone", made.gone),
        ("other gates that come or change, left out", made.others),
        ("notes that are known", made.known_notes),
        ("notes that are not modelled", made.new_notes),
    ):
        lines += [f"{words}: {len(names)}", *(f"  {name}{_state(made.table, name)}" for name in names)]
    if options.output:
        Path(options.output).write_text(made.text, encoding="utf-8")
        lines.append(f"written to {options.output}: read it, name the changes, say what each gate does")
    reports.show(options, dataclasses.asdict(made), lines)
    return 0


def _state(table: object, name: str) -> str:
    rows = [table[key] for key in KNOWN if key in table] if isinstance(table, dict) else []
    return next((f": {row[name]}" for row in rows if name in row), "")


def _text(path: str | None) -> str:
    if not path:
        return ""
    return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
