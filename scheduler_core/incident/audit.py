"""A Kubernetes audit log: changes of objects, and decisions of schedulers (binds, pods without a node, evictions).

The log is `audit.k8s.io/v1` Events, one JSON object a line, also packed by gzip. It is read line by line; of objects
what is there at a moment is in memory. Level RequestResponse says all; what the other levels leave out is counted.

Source: staging/src/k8s.io/apiserver/pkg/apis/audit/v1/types.go, v1.34
"""

from __future__ import annotations

import gzip
import heapq
import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.objects.kinds import is_read
from scheduler_core.schema.tables import kinds
from scheduler_core.whatif.judge import BIND, NO_NODE, PREEMPT, Asked

Manifest = Mapping[str, Any]
Key = tuple[str, str, str]
"""Kind, namespace and name."""

WRITE, DELETE = "write", "delete"
_READS: Final = frozenset({"get", "list", "watch", "proxy", "connect"})
_KUBE_SCHEDULER: Final = "system:kube-scheduler"
_GZIP: Final = b"\x1f\x8b"
LAG_NS: Final = 5_000_000_000
"""A scheduler's cache is at most so old in the states that are tried,"""
LAG_STATES: Final = 12
"""and at most so many changes behind."""
LONGEST_BURST: Final = 64

NO_OBJECTS: Final = "writes without their objects (level Metadata)"
NO_ANSWERS: Final = "changes without the object that came of them (level Request)"
NO_PREEMPTOR: Final = "evictions by a scheduler for a pod that the log does not name"
COLLECTIONS: Final = "deletions of many objects at once that do not say which"


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """An object is now the `manifest` of its payload, or is gone: an entry as `whatif.judge.judged` takes it."""

    seq: int
    kind: str
    payload: Mapping[str, Any]
    at_ns: int
    is_decided: bool = False
    """Whether a scheduler caused it: no input of a replay."""


@dataclass(slots=True)
class LoggedDecision:
    """What a scheduler decided, just before the change `seq`.

    Attributes
    ----------
    author
        The client's program, of its User-Agent.
    message
        What it said of a pod without a node.
    unknown
        Why it cannot be judged; empty where it can.
    earlier
        Entries before which its cache may have been.
    """

    seq: int
    at_ns: int
    kind: str
    namespace: str
    name: str
    uid: str
    node: str
    author: str
    message: str = ""
    unknown: str = ""
    victims: list[str] = field(default_factory=list)
    judged_seq: int = 0
    burst: int = 0
    earlier: tuple[int, ...] = ()

    def asked(self, seq: int, key: int, burst: int) -> Asked:
        """This decision as a question about the state before the entry `seq`."""
        about = (self.kind, self.namespace, self.name, self.uid, self.node, tuple(self.victims))
        return Asked(seq, key, burst, self.at_ns, *about)


@dataclass(slots=True)
class Incident:
    """What a log says.

    Attributes
    ----------
    levels
        Level -> number of events.
    before
        Objects that were there before the log begins, as they were first seen.
    missing
        What the log leaves out -> how often.
    """

    paths: Sequence[Path]
    before: dict[Key, Manifest] = field(default_factory=dict)
    decisions: list[LoggedDecision] = field(default_factory=list)
    levels: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    n_events: int = 0
    begins_ns: int = 0
    ends_ns: int = 0

    def changes(self) -> Iterator[LoggedChange]:
        """The log once more, change by change."""
        return _Reading(self.paths, Incident(self.paths), dict(self.before)).changes()


def read_incident(paths: Sequence[Path], dump: Sequence[Manifest] = ()) -> Incident:
    """Read audit logs.

    Parameters
    ----------
    paths
        Logs of one cluster, of several API servers or one after another.
    dump
        Objects as they were at some time: what the log neither makes nor changes is taken from it.

    Raises
    ------
    InvalidObject
        A line is no Event of an audit log. What a log that is still written breaks off in is passed over.
    OSError
    """
    incident = Incident(paths)
    given = {_key(item): item for item in dump if is_read(item)}
    reading = _Reading(paths, incident, given)
    for _ in reading.changes():
        pass
    incident.before = reading.before | {
        key: _unbound(item) if key in reading.bound else item
        for key, item in given.items()
        if key not in reading.made and key not in reading.before
    }
    for one in incident.decisions:
        node = ("Node", "", one.node)
        if one.node and not one.unknown and node not in reading.made and node not in incident.before:
            one.unknown = "the log does not have the node, nor does a dump"
    _number_bursts(incident.decisions)
    return incident


def _number_bursts(decisions: Sequence[LoggedDecision]) -> None:
    """Decisions of one author that follow one another are one burst: their order may be another than their entries'."""
    last, length = None, 0
    for number, one in enumerate(decisions):
        follows = last is not None and last.author == one.author and PREEMPT not in (last.kind, one.kind)
        length = length + 1 if follows and length < LONGEST_BURST else 1
        one.burst = last.burst if last is not None and length > 1 else number
        last = one


class _Reading:
    """One reading of logs: what is there by now, and what was learnt of before."""

    def __init__(self, paths: Sequence[Path], incident: Incident, known: dict[Key, Manifest]) -> None:
        self._paths, self._incident = paths, incident
        self.before: dict[Key, Manifest] = {}
        self.made: set[Key] = set()
        self.bound: set[Key] = set()
        self._pods = {key: item for key, item in known.items() if key[0] == "Pod"}
        self._known = set(known)
        self._authors: set[str] = set()
        self._evicted: deque[LoggedDecision] = deque(maxlen=500)
        self._recent: deque[tuple[int, int]] = deque(maxlen=LAG_STATES)
        self._seq = 0

    def changes(self) -> Iterator[LoggedChange]:
        logs = [_events(path) for path in self._paths]
        merged = logs[0] if len(logs) == 1 else heapq.merge(*logs, key=lambda pair: pair[0])
        incident = self._incident
        for at_ns, event in merged:
            incident.n_events += 1
            incident.levels[str(event.get("level"))] += 1
            incident.begins_ns = incident.begins_ns or at_ns
            incident.ends_ns = at_ns = max(incident.ends_ns, at_ns)
            if event.get("verb") in _READS or "dryRun=All" in str(event.get("requestURI")):
                continue
            code = (event.get("responseStatus") or {}).get("code") or 0
            if event.get("objectRef") and 200 <= code < 300:
                for change in self._read(event, at_ns):
                    self._recent.append((change.seq, at_ns))
                    yield change

    # ---- one event

    def _read(self, event: Mapping[str, Any], at_ns: int) -> Iterator[LoggedChange]:
        ref, verb = event["objectRef"], str(event.get("verb"))
        sub = ref.get("subresource") or ""
        answer = event.get("responseObject") or {}
        if ref.get("resource") == "bindings" or sub == "binding":
            yield from self._bind(event, at_ns)
            return
        kind = _kind_of(str(ref.get("apiGroup") or ""), str(ref.get("resource")))
        if not kind:
            return
        if verb == "deletecollection":
            items = answer.get("items") or ()
            self._incident.missing[COLLECTIONS] += not items
            for item in items:
                yield from self._delete(event, _key({"kind": kind, **item}), {}, at_ns)
            return
        namespace = str(ref.get("namespace") or "") if kind != "Node" else ""
        key = (kind, namespace, str(ref.get("name") or (answer.get("metadata") or {}).get("name") or ""))
        if verb == "delete" or sub == "eviction":
            yield from self._delete(event, key, answer, at_ns)
        elif sub in ("", "status", "resize", "ephemeralcontainers") and verb in ("create", "update", "patch"):
            yield from self._write(event, key, answer, at_ns)

    def _bind(self, event: Mapping[str, Any], at_ns: int) -> Iterator[LoggedChange]:
        ref, asked = event["objectRef"], event.get("requestObject") or {}
        key = ("Pod", str(ref.get("namespace") or ""), str(ref.get("name") or ""))
        node = str((asked.get("target") or {}).get("name") or "")
        pod = self._pods.get(key)
        author = _program(event)
        self._authors.add(author)
        if key not in self.made:
            self.bound.add(key)
        unknown = "" if node else "the log does not say to which node (level Metadata)"
        if pod is None and not unknown:
            unknown = "the log does not have the pod, nor does a dump"
        self._decide(event, at_ns, BIND, key, node, unknown=unknown)
        if pod is not None and node:
            yield self._now(
                {**pod, "spec": {**pod.get("spec", {}), "nodeName": node}}, key, at_ns, decided=True
            )

    def _write(
        self, event: Mapping[str, Any], key: Key, answer: Manifest, at_ns: int
    ) -> Iterator[LoggedChange]:
        verb, asked = event.get("verb"), event.get("requestObject") or {}
        if (
            key[0] == "Pod"
            and event["objectRef"].get("subresource") == "status"
            and self._is_scheduler(event)
        ):
            self._status(event, key, answer or asked, at_ns)
        whole = answer if (answer.get("metadata") or {}).get("name") else {}
        if not whole and verb in ("create", "update") and (asked.get("metadata") or {}).get("name"):
            whole = asked
        if not whole:
            self._incident.missing[NO_ANSWERS if asked else NO_OBJECTS] += 1
            return
        manifest = {"kind": key[0], **whole, "metadata": _meta(whole["metadata"])}
        if not is_read(manifest):
            return
        if verb == "create":
            self.made.add(key)
        elif key not in self._known and key not in self.made:
            self.before[key] = _unbound(manifest) if key in self.bound else manifest
        yield self._now(manifest, key, at_ns)

    def _now(self, manifest: Manifest, key: Key, at_ns: int, *, decided: bool = False) -> LoggedChange:
        self._seq += 1
        self._known.add(key)
        if key[0] == "Pod":
            self._pods[key] = manifest
        return LoggedChange(self._seq, WRITE, {"manifest": manifest}, at_ns, decided)

    def _delete(
        self, event: Mapping[str, Any], key: Key, answer: Manifest, at_ns: int
    ) -> Iterator[LoggedChange]:
        pod = self._pods.get(key) if key[0] == "Pod" else None
        by_scheduler = False
        if pod is not None and pod["spec"].get("nodeName"):
            by_scheduler = self._is_scheduler(event)
            if by_scheduler:
                self._evict(event, key, pod, at_ns)
            if not _is_final(event):
                ends = (answer.get("metadata") or {}).get("deletionTimestamp") or event.get("stageTimestamp")
                meta = {**pod["metadata"], "deletionTimestamp": ends}
                yield self._now({**pod, "metadata": meta}, key, at_ns, decided=by_scheduler)
                return
        self._seq += 1
        self._known.discard(key)
        self._pods.pop(key, None)
        payload = {"kind": key[0], "namespace": key[1], "name": key[2]}
        yield LoggedChange(self._seq, DELETE, payload, at_ns)

    # ---- what schedulers decide

    def _is_scheduler(self, event: Mapping[str, Any]) -> bool:
        program = _program(event)
        by_name = "scheduler" in program.partition("/")[0].casefold()
        return (
            by_name
            or program in self._authors
            or (event.get("user") or {}).get("username") == _KUBE_SCHEDULER
        )

    def _decide(
        self, event: Mapping[str, Any], at_ns: int, kind: str, key: Key, node: str, **more: Any
    ) -> LoggedDecision:
        pod = self._pods.get(key) or {"metadata": {}}
        uid, seq = str(pod["metadata"].get("uid") or ""), self._seq + 1
        earlier = tuple(at for at, when in self._recent if at_ns - when <= LAG_NS)
        one = LoggedDecision(seq, at_ns, kind, key[1], key[2], uid, node, _program(event), **more)
        one.judged_seq, one.earlier = seq, earlier
        self._incident.decisions.append(one)
        return one

    def _status(self, event: Mapping[str, Any], key: Key, said: Manifest, at_ns: int) -> None:
        pod, status = self._pods.get(key), said.get("status") or {}
        before = (pod or {}).get("status") or {}
        if pod is not None and pod["spec"].get("nodeName"):
            return
        node = str(status.get("nominatedNodeName") or "")
        failed, failed_before = _unscheduled(status), _unscheduled(before)
        unknown = "" if pod is not None else "the log does not have the pod, nor does a dump"
        if node and node != before.get("nominatedNodeName"):
            one = self._decide(event, at_ns, PREEMPT, key, node, unknown=unknown, message=failed or "")
            for other in [*self._evicted]:
                if (other.node, other.author) != (node, one.author) or at_ns - other.at_ns > LAG_NS:
                    continue
                self._evicted.remove(other)
                self._incident.missing[NO_PREEMPTOR] -= 1
                one.victims.append(f"{other.namespace}/{other.name}")
                one.judged_seq = min(one.judged_seq, other.seq)
        elif failed is not None and failed != failed_before and not node:  # else it waits for its victims
            self._decide(event, at_ns, NO_NODE, key, "", unknown=unknown, message=failed)

    def _evict(self, event: Mapping[str, Any], key: Key, pod: Manifest, at_ns: int) -> None:
        node, author = str(pod["spec"]["nodeName"]), _program(event)
        nominated = next(
            (
                one
                for one in reversed(self._incident.decisions[-LONGEST_BURST:])
                if (one.kind, one.node, one.author) == (PREEMPT, node, author) and at_ns - one.at_ns <= LAG_NS
            ),
            None,
        )
        if nominated is not None:
            nominated.victims.append(f"{key[1]}/{key[2]}")
            return
        self._incident.missing[NO_PREEMPTOR] += 1
        self._evicted.append(LoggedDecision(self._seq + 1, at_ns, "evict", key[1], key[2], "", node, author))


def _events(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Completed Events of a log with their times."""
    with path.open("rb") as raw:
        is_packed = raw.read(2) == _GZIP
        raw.seek(0)
        lines: Any = gzip.GzipFile(fileobj=raw) if is_packed else raw
        number = 0
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                event = json.loads(line)
                if event["kind"] != "Event" or not str(event["apiVersion"]).startswith("audit.k8s.io/"):
                    raise ValueError("is not an Event of audit.k8s.io")
                if event["stage"] == "ResponseComplete":
                    yield parse_time_ns(str(event["stageTimestamp"])), event
            except (ValueError, KeyError, TypeError) as error:
                if not line.endswith(b"\n"):
                    return  # it is still being written
                words = f"has no {error}" if isinstance(error, KeyError) else str(error)
                raise InvalidObject(
                    f"{path}: line {number}", line[:80].decode(errors="replace").rstrip(), words
                ) from None


@cache
def _kinds() -> Mapping[tuple[str, str], str]:
    found = {}
    for row in kinds():
        group, slash, _ = row["apiVersion"].partition("/")
        found[group if slash else "", row["plural"]] = str(row["kind"])
    return found


def _kind_of(group: str, plural: str) -> str:
    return _kinds().get((group, plural), "")


def _key(manifest: Manifest) -> Key:
    meta = manifest["metadata"]
    return str(manifest["kind"]), str(meta.get("namespace") or ""), str(meta["name"])


def _meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in meta.items() if name != "managedFields"}


def _unbound(pod: Manifest) -> Manifest:
    """A pod without its node and its status."""
    spec = {name: value for name, value in pod["spec"].items() if name != "nodeName"}
    return {**pod, "spec": spec, "status": {"phase": "Pending"}}


def _program(event: Mapping[str, Any]) -> str:
    return str(event.get("userAgent") or "unknown").partition(" ")[0]


def _is_final(event: Mapping[str, Any]) -> bool:
    """Whether a deletion takes the object away at once, as a kubelet's does."""
    user = str((event.get("user") or {}).get("username") or "")
    options = event.get("requestObject") or {}
    return user.startswith("system:node:") or options.get("gracePeriodSeconds") == 0


def _unscheduled(status: Mapping[str, Any]) -> str | None:
    """What a status says of a pod without a node; None where it does not say so."""
    for item in status.get("conditions") or ():
        if item.get("type") == "PodScheduled" and item.get("status") == "False":
            return str(item.get("message") or "") if item.get("reason") == "Unschedulable" else None
    return None
