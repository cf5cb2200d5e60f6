"""Files that say what happened in a cluster, and the incident that they are.

They are audit logs or recorded watches, which are read line by line, once to learn what was there before, and again for
each use; or what a scheduler reports, as Events or as lines of its log. All may be packed by gzip.
"""

from __future__ import annotations

import gzip
import heapq
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from scheduler_core.errors import InvalidObject
from scheduler_core.incident.audit import AuditReading, completed
from scheduler_core.incident.changes import Incident, LoggedChange, is_followed, key_of, whole
from scheduler_core.incident.reported import Reported, ReportReading, events_of, is_logged, logged
from scheduler_core.incident.watched import WatchReading, timed
from scheduler_core.whatif.judge import Key, Manifest

_GZIP: Final = b"\x1f\x8b"
_AUDIT, _WATCHES, _EVENTS, _LOG = "audit", "watches", "events", "log"
_SORTS: Final = {"type": _WATCHES, "items": _EVENTS, "msg": _LOG}
"""Fields of the first JSON object that no other sort has."""
_Timed = tuple[int, Mapping[str, Any]]


def read_incident(paths: Sequence[Path], dump: Sequence[Manifest] = ()) -> Incident:
    """Read files of one sort.

    Parameters
    ----------
    paths
        Of one cluster: of several API servers, or one after another.
    dump
        Objects as they were at some time: what the files neither make nor change is taken from it.

    Raises
    ------
    InvalidObject
        A line is of another sort. What a file that is still written breaks off in is passed over.
    OSError
    """
    given = {key_of(item): item for item in dump if is_followed(item)}
    sort = _sort_of(paths[0])
    if sort in (_EVENTS, _LOG):
        return _of_reports(paths, given)
    kind, read = (WatchReading, timed) if sort == _WATCHES else (AuditReading, completed)

    def merged() -> Iterator[_Timed]:
        files = [_lines(path, read) for path in paths]
        return files[0] if len(files) == 1 else heapq.merge(*files, key=lambda pair: pair[0])

    def again(incident: Incident, known: dict[Key, Manifest]) -> Iterator[LoggedChange]:
        return kind(incident, known).changes(merged())

    reading = kind(Incident(again), given)
    for _ in reading.changes(merged()):
        pass
    return whole(reading, given)


def _of_reports(paths: Sequence[Path], given: Mapping[Key, Manifest]) -> Incident:
    reports: list[Reported] = []
    for path in paths:
        if _sort_of(path) == _EVENTS:
            with opened(path) as lines:
                text = b"".join(lines)
            try:
                reports += events_of(json.loads(text))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise InvalidObject(str(path), text[:80].decode(errors="replace"), _words(error)) from None
            continue
        year = datetime.fromtimestamp(path.stat().st_mtime, UTC).year
        with opened(path) as lines:
            for line in lines:
                with suppress(ValueError, KeyError):  # another line, or one that is cut off
                    found = logged(line.decode(errors="replace"), year)
                    if found is not None:
                        reports.append(found)

    def again(incident: Incident, known: dict[Key, Manifest]) -> Iterator[LoggedChange]:
        return ReportReading(incident, known, given).changes(reports)

    reading = ReportReading(Incident(again), given, given)
    for _ in reading.changes(reports):
        pass
    return whole(reading, given)


def _sort_of(path: Path) -> str:
    """What a file is, by its first line."""
    with opened(path) as lines:
        first = next(lines, b"").decode(errors="replace").strip()
    try:
        said = json.loads(first)
    except ValueError:
        is_begun = first == "{" or (first.startswith("{") and '"items"' in first)
        return _EVENTS if is_begun else _LOG if is_logged(first) else _AUDIT
    if not isinstance(said, dict):
        return _AUDIT
    return next((sort for word, sort in _SORTS.items() if word in said), _AUDIT)


def _words(error: Exception) -> str:
    return f"has no {error}" if isinstance(error, KeyError) else str(error)


def _lines(path: Path, read: Callable[[Any], _Timed | None]) -> Iterator[_Timed]:
    """What the lines of a file say, with their times."""
    with opened(path) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                found = read(json.loads(line))
                if found is not None:
                    yield found
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                if not line.endswith(b"\n"):
                    return  # it is still being written
                said = line[:80].decode(errors="replace").rstrip()
                raise InvalidObject(f"{path}: line {number}", said, _words(error)) from None


@contextmanager
def opened(path: Path) -> Iterator[Iterator[bytes]]:
    """The lines of a file, which may be packed."""
    with path.open("rb") as raw:
        is_packed = raw.read(2) == _GZIP
        raw.seek(0)
        yield iter(gzip.GzipFile(fileobj=raw) if is_packed else raw)
