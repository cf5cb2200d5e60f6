"""Files that say what happened in a cluster, and the incident that they are: audit logs, or recorded watches.

Files may be packed by gzip. They are read line by line, once to learn what was there before, and again for each use.
"""

from __future__ import annotations

import gzip
import heapq
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from scheduler_core.errors import InvalidObject
from scheduler_core.incident.audit import AuditReading, completed
from scheduler_core.incident.changes import Incident, LoggedChange, is_followed, key_of, whole
from scheduler_core.incident.watched import WatchReading, timed
from scheduler_core.whatif.judge import Key, Manifest

_GZIP: Final = b"\x1f\x8b"
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
    kind, read = (WatchReading, timed) if _is_of_watches(paths[0]) else (AuditReading, completed)

    def merged() -> Iterator[_Timed]:
        files = [_lines(path, read) for path in paths]
        return files[0] if len(files) == 1 else heapq.merge(*files, key=lambda pair: pair[0])

    def again(incident: Incident, known: dict[Key, Manifest]) -> Iterator[LoggedChange]:
        return kind(incident, known).changes(merged())

    reading = kind(Incident(again), given)
    for _ in reading.changes(merged()):
        pass
    return whole(reading, given)


def _is_of_watches(path: Path) -> bool:
    with opened(path) as lines:
        first = next(lines, b"")
    with suppress(ValueError):
        return "type" in json.loads(first)
    return False


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
                words = f"has no {error}" if isinstance(error, KeyError) else str(error)
                raise InvalidObject(
                    f"{path}: line {number}", line[:80].decode(errors="replace").rstrip(), words
                ) from None


@contextmanager
def opened(path: Path) -> Iterator[Iterator[bytes]]:
    """The lines of a file, which may be packed."""
    with path.open("rb") as raw:
        is_packed = raw.read(2) == _GZIP
        raw.seek(0)
        yield iter(gzip.GzipFile(fileobj=raw) if is_packed else raw)
