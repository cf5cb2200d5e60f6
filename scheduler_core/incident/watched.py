"""What watches of a cluster say: its objects as they come, change and go, and what schedulers decided by that.

A line is ``{"at": TIME, "type": TYPE, "object": MANIFEST}``. Types are those of a watch, `LISTED` for what was there at
the beginning, and `NOT_KNOWN`, whose `what` cannot be read. A line that a list after a cut gave has ``"gap": true``.
A watch does not say who wrote: a decision's author is the scheduler that the pod names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from scheduler_core.errors import InvalidObject
from scheduler_core.incident.changes import (
    LAG_NS,
    LONGEST_BURST,
    Incident,
    LoggedChange,
    Reading,
    is_followed,
    key_of,
)
from scheduler_core.objects.fields import mapping, parse_time_ns
from scheduler_core.objects.meta import condition_of
from scheduler_core.objects.pod import DISRUPTION_TARGET, PREEMPTED_BY_SCHEDULER
from scheduler_core.whatif.judge import NO_NODE, PREEMPT, Key, Manifest

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
LISTED, NOT_KNOWN = "LISTED", "NOT_KNOWN"
IN_A_GAP: Final = "it was decided between two lists, and what was there is not known"
_FAILED: Final = "FailedScheduling"
_HEAD_BYTES: Final = 50
"""A line begins with its time, in at most so many."""

Line = Mapping[str, Any]


def timed(line: Line) -> tuple[int, Line]:
    """A line with its time.

    Raises
    ------
    ValueError
        It is none of a watch.
    """
    if line["type"] not in (ADDED, MODIFIED, DELETED, LISTED, NOT_KNOWN):
        raise ValueError(f'has the type "{line["type"]}", which no watch has')
    return parse_time_ns(line["at"]), line


class WatchReading(Reading):
    """One reading of watches; `take` reads the next line."""

    def __init__(self, incident: Incident, known: Mapping[Key, Manifest]) -> None:
        super().__init__(incident, known)
        self._failed_ns: dict[Key, int] = {}
        self.undecided: dict[Key, str] = {}
        """Pods about which no decision is known yet, and whose it will be."""

    def changes(self, lines: Iterable[tuple[int, Line]]) -> Iterator[LoggedChange]:
        """Changes by lines with their times."""
        for at_ns, line in lines:
            yield from self.take(line, at_ns)

    def take(self, line: Line, at_ns: int) -> Iterator[LoggedChange]:
        """Changes by one line.

        Raises
        ------
        InvalidObject
            A part of its object is none.
        """
        what = str(line["type"])
        if what == NOT_KNOWN:
            self.incident.missing[str(line["what"])] = 1
            return
        manifest = line["object"]
        at_ns = self.incident.happens(at_ns, what)
        gap = IN_A_GAP if line.get("gap") else ""
        if manifest["kind"] == "Event":
            self._event(manifest, at_ns, gap)
            return
        if not is_followed(manifest):
            return
        for part in ("metadata", "spec", "status"):
            mapping(manifest, part, "")
        key = key_of(manifest)
        if what == LISTED:
            self.first_seen(key, manifest)
            self.known.add(key)
            if key[0] == "Pod":
                self.pods[key] = manifest
        elif what == DELETED:
            if key in self.known:
                self._failed_ns.pop(key, None)
                if gap:
                    self._may_be_evicted(key, at_ns)
                yield self.gone(key, at_ns)
        elif key[0] == "Pod":
            yield from self._pod(key, manifest, at_ns, gap)
        else:
            self.made.add(key)
            yield self.now(manifest, key, at_ns)
        if key[0] == "Pod":
            self._decided(key, self.pods.get(key))

    def _decided(self, key: Key, pod: Manifest | None) -> None:
        if pod is None or pod["spec"].get("nodeName") or condition_of(pod, "PodScheduled") is not None:
            self.undecided.pop(key, None)
        else:
            self.undecided[key] = _author_of(pod)

    def _pod(self, key: Key, pod: Manifest, at_ns: int, gap: str) -> Iterator[LoggedChange]:
        old, author = self.pods.get(key), _author_of(pod)
        if old is not None and old["metadata"].get("uid") != pod["metadata"].get("uid"):
            yield self.gone(key, at_ns)
            old = None
        if old is None:
            self.made.add(key)
        node = pod["spec"].get("nodeName")
        # What comes with its node, as a static pod does, is no decision.
        before = old or ({"spec": {}} if gap else pod)
        if node and not before["spec"].get("nodeName"):
            yield from self.bind(author, key, str(node), at_ns, gap, pod)
        elif pod["metadata"].get("deletionTimestamp") and not (old or pod)["metadata"].get(
            "deletionTimestamp"
        ):
            by = _evicted_by(pod) if node else ""
            if by:
                self.evict(by, key, pod, at_ns)
            yield self.ending(pod, key, at_ns, by)
        else:
            decided = self.status(author, key, pod, at_ns, gap)
            if decided:
                self._failed_ns[key] = at_ns
            by = author if decided else _evicted_by(pod) if old and not _evicted_by(old) else ""
            yield self.now(pod, key, at_ns, by)

    def _may_be_evicted(self, key: Key, at_ns: int) -> None:
        """A pod went between two lists: if others were evicted on its node just before, it may have been, too."""
        node = self.pods.get(key, {}).get("spec", {}).get("nodeName")
        for one in self.incident.decisions[-LONGEST_BURST:]:
            recent = one.kind == PREEMPT and at_ns - one.at_ns <= LAG_NS
            if node and recent and one.node == node and f"{key[1]}/{key[2]}" not in one.victims:
                one.unknown = one.unknown or IN_A_GAP

    def _event(self, event: Manifest, at_ns: int, gap: str) -> None:
        """A pod found no node once more, and says the same: its status does not change."""
        about = event.get("involvedObject") or event.get("regarding") or {}
        key = ("Pod", str(about.get("namespace") or ""), str(about.get("name") or ""))
        pod = self.pods.get(key)
        if event.get("reason") != _FAILED or pod is None or pod["spec"].get("nodeName"):
            return
        last_ns = self._failed_ns.get(key)
        if last_ns is None or at_ns - last_ns <= LAG_NS or about.get("uid") != pod["metadata"].get("uid"):
            return
        self._failed_ns[key] = at_ns
        message = str(event.get("message") or event.get("note") or "")
        self.decide(_author_of(pod), at_ns, NO_NODE, key, "", message=message, unknown=gap)


def _author_of(pod: Manifest) -> str:
    return str(pod["spec"].get("schedulerName") or "default-scheduler")


def _evicted_by(pod: Manifest) -> str:
    """The scheduler that evicts a pod for another; empty for none."""
    for item in (pod.get("status") or {}).get("conditions") or ():
        if item.get("type") == DISRUPTION_TARGET and item.get("reason") == PREEMPTED_BY_SCHEDULER:
            return str(item.get("message") or "").partition(":")[0] or "default-scheduler"
    return ""


class WatchRecord:
    """Lines in a file, of which the newest are kept: FILE, and before it FILE.1.

    Each of the two begins with what was there, so that FILE alone is an incident, and both are a longer one.

    Parameters
    ----------
    path
        FILE; what it and FILE.1 held is gone.
    most_bytes
        Of both.

    Raises
    ------
    OSError
    """

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._path, self._most_bytes = path, most_bytes
        self._before = path.with_name(f"{path.name}.1")
        self._before.unlink(missing_ok=True)
        self._there: dict[Key, bytes] = {}
        self._begin()

    @property
    def paths(self) -> list[Path]:
        """The files there are, in order."""
        return [path for path in (self._before, self._path) if path.exists()]

    def write(self, line: Line) -> None:
        """Write the next line.

        Raises
        ------
        InvalidObject
            What is there takes half of the room alone.
        OSError
        """
        written = _packed(line)
        if self._n_bytes + len(written) > self._most_bytes // 2:
            listed = sum(map(len, self._there.values())) + _HEAD_BYTES * len(self._there)
            if listed + len(written) > self._most_bytes // 2:
                said = f"{self._most_bytes / 10**6:g} MB"
                raise InvalidObject(f"{self._path}", said, "is too little: what is there takes half of it")
            self._file.close()
            self._path.replace(self._before)
            self._begin(str(line["at"]))
        self._put(written)
        self._remember(line)

    def flush(self) -> None:
        """What was written is in the file."""
        self._file.flush()

    def close(self) -> None:
        """It is over."""
        self._file.close()

    def _begin(self, at: str = "") -> None:
        self._file = self._path.open("wb")
        self._n_bytes = 0
        for line in self._there.values():
            self._put(b'{"at":%b,%b' % (json.dumps(at).encode(), line))

    def _put(self, written: bytes) -> None:
        self._file.write(written)
        self._n_bytes += len(written)

    def _remember(self, line: Line) -> None:
        """What is there now, and what is not known, as lines of the next file without their time."""
        left = {name: value for name, value in line.items() if name not in ("at", "gap")}
        if line["type"] == NOT_KNOWN:
            self._there[NOT_KNOWN, "", str(line["what"])] = _packed(left)[1:]
        elif line["type"] == DELETED:
            self._there.pop(key_of(line["object"]), None)
        elif is_followed(line["object"]):
            self._there[key_of(line["object"])] = _packed(left | {"type": LISTED})[1:]


def _packed(line: Line) -> bytes:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
