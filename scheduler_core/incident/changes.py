"""Changes of the objects of a live cluster, and decisions of its schedulers, by any source.

A source (an audit log, watches, events) is read by a `Reading`, which knows what is there at a moment and finds the
decisions: binds, nominations with their victims, pods without a node. What a source leaves out is counted.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.objects.kinds import READ, SHAPING
from scheduler_core.objects.reading import group_of
from scheduler_core.whatif.judge import BIND, NO_NODE, PREEMPT, Asked, Key, Manifest

WRITE, DELETE = "write", "delete"
LAG_NS: Final = 5_000_000_000
"""A scheduler's cache is at most so old in the states that are tried (`judge.LAG_STATES` changes)."""
LONGEST_BURST: Final = 64

NO_PREEMPTOR: Final = "evictions by a scheduler for a pod that the log does not name"
NO_POD: Final = "the log does not have the pod, nor does a dump"
NO_NODE_OBJECT: Final = "the log does not have the node, nor does a dump"


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """An object is now the `manifest` of its payload, or is gone: an entry as `whatif.judge.judged` takes it.

    Attributes
    ----------
    payload
        As in a cluster's log; a pod that ends is deleted and not `gone`.
    by
        The scheduler that caused it; empty for an input of a replay.
    """

    seq: int
    kind: str
    payload: Mapping[str, Any]
    at_ns: int
    by: str = ""


@dataclass(slots=True)
class LoggedDecision:
    """What a scheduler decided, just before the change `seq`.

    Attributes
    ----------
    author
        The client's program, of its User-Agent, or the scheduler's name.
    message
        What it said of a pod without a node.
    unknown
        Why it cannot be judged; empty where it can.
    earlier
        Changes that may not have reached its cache.
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

    def asked(self, key: int) -> Asked:
        """This decision as a question about the state of its moment."""
        about = (self.kind, self.namespace, self.name, self.uid, self.node, tuple(self.victims))
        return Asked(self.judged_seq, key, self.burst, self.at_ns, *about, self.earlier, self.author)


@dataclass(slots=True)
class Incident:
    """What a source says.

    Attributes
    ----------
    again
        Begins a reading of it, with an incident to fill and the objects that are known before.
    before
        Objects that were there before it begins, as they were first seen.
    levels
        What it is made of -> how much of that.
    missing
        What it leaves out -> how often.
    """

    again: Callable[[Incident, dict[Key, Manifest]], Iterator[LoggedChange]]
    before: dict[Key, Manifest] = field(default_factory=dict)
    decisions: list[LoggedDecision] = field(default_factory=list)
    levels: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    n_events: int = 0
    begins_ns: int = 0
    ends_ns: int = 0

    def changes(self) -> Iterator[LoggedChange]:
        """All of it once more, change by change."""
        return self.again(Incident(self.again), dict(self.before))

    def happens(self, at_ns: int, what: str) -> int:
        """Count something that happened; its time, which never goes back."""
        self.n_events += 1
        self.levels[what] += 1
        self.begins_ns = self.begins_ns or at_ns
        self.ends_ns = max(self.ends_ns, at_ns)
        return self.ends_ns


def number_bursts(decisions: Sequence[LoggedDecision], last: LoggedDecision | None = None) -> None:
    """Decisions of one author soon after one another are one burst: their order may be another than their entries'."""
    length = 1
    for one in decisions:
        follows = (
            last is not None
            and last.author == one.author
            and PREEMPT not in (last.kind, one.kind)
            and one.at_ns - last.at_ns <= LAG_NS
        )
        length = length + 1 if follows and length < LONGEST_BURST else 1
        one.burst = last.burst if last is not None and length > 1 else one.seq
        last = one


class Reading:
    """One reading of a source: what is there by now, and what was learnt of before."""

    def __init__(self, incident: Incident, known: Mapping[Key, Manifest]) -> None:
        self.incident = incident
        self.before: dict[Key, Manifest] = {}
        self.made: set[Key] = set()
        self.bound: set[Key] = set()
        self.pods = {key: item for key, item in known.items() if key[0] == "Pod"}
        self.known = set(known)
        self._evicted: deque[LoggedDecision] = deque(maxlen=500)
        self._recent: deque[tuple[int, int, str]] = deque(maxlen=2 * LONGEST_BURST)
        self._seq = 0

    @property
    def next_seq(self) -> int:
        """Of the next change."""
        return self._seq + 1

    # ---- changes

    def first_seen(self, key: Key, manifest: Manifest) -> None:
        """An object that nothing made was there before."""
        if key not in self.known and key not in self.made:
            self.before[key] = unbound(manifest) if key in self.bound else manifest

    def now(self, manifest: Manifest, key: Key, at_ns: int, by: str = "") -> LoggedChange:
        """An object is now this; `by` a scheduler, whose cache has it before."""
        self.known.add(key)
        if key[0] == "Pod":
            self.pods[key] = manifest
        return self._change(WRITE, {"manifest": manifest}, at_ns, by, by)

    def ending(self, manifest: Manifest, key: Key, at_ns: int, by: str = "") -> LoggedChange:
        """A pod is deleted, and there until its grace period is over."""
        self.pods[key] = manifest
        return self._change(DELETE, {**place_of(key), "gone": False, "manifest": manifest}, at_ns, by, "")

    def gone(self, key: Key, at_ns: int) -> LoggedChange:
        """An object is gone."""
        self.known.discard(key)
        self.pods.pop(key, None)
        return self._change(DELETE, place_of(key), at_ns, "", "")

    def _change(
        self, kind: str, payload: Mapping[str, Any], at_ns: int, by: str, assumed_by: str
    ) -> LoggedChange:
        self._seq += 1
        self._recent.append((self._seq, at_ns, assumed_by))
        return LoggedChange(self._seq, kind, payload, at_ns, by)

    # ---- what schedulers decide

    def decide(self, author: str, at_ns: int, kind: str, key: Key, node: str, **more: Any) -> LoggedDecision:
        """A scheduler decided this, just before the next change."""
        pod = self.pods.get(key) or {"metadata": {}}
        uid, seq = str(pod["metadata"].get("uid") or ""), self._seq + 1
        one = LoggedDecision(seq, at_ns, kind, key[1], key[2], uid, node, author, **more)
        one.judged_seq = seq
        one.earlier = tuple(at for at, when, by in self._recent if at_ns - when <= LAG_NS and by != author)
        self.incident.decisions.append(one)
        return one

    def bind(
        self, author: str, key: Key, node: str, at_ns: int, unknown: str = "", after: Manifest | None = None
    ) -> Iterator[LoggedChange]:
        """A pod is bound to a node, and is `after` now; without that what was known of it, if anything was."""
        pod = self.pods.get(key)
        if key not in self.made:
            self.bound.add(key)
        if pod is not None and after is None:
            after = {**pod, "spec": {**pod.get("spec", {}), "nodeName": node}}
        self.decide(author, at_ns, BIND, key, node, unknown=unknown or ("" if pod else NO_POD))
        if after is not None and node:
            yield self.now(after, key, at_ns, author)

    def status(self, author: str, key: Key, said: Manifest, at_ns: int, unknown: str = "") -> bool:
        """Whether what a status says of a pod is a decision: it is nominated, or has no node."""
        pod, status = self.pods.get(key), said.get("status") or {}
        before = (pod or {}).get("status") or {}
        if pod is not None and pod["spec"].get("nodeName"):
            return False
        node = str(status.get("nominatedNodeName") or "")
        failed, failed_before = unscheduled(status), unscheduled(before)
        unknown = unknown or ("" if pod is not None else NO_POD)
        if node and node != before.get("nominatedNodeName"):
            one = self.decide(author, at_ns, PREEMPT, key, node, unknown=unknown, message=failed or "")
            for other in [*self._evicted]:
                if (other.node, other.author) != (node, one.author) or at_ns - other.at_ns > LAG_NS:
                    continue
                self._evicted.remove(other)
                self.incident.missing[NO_PREEMPTOR] -= 1
                one.victims.append(f"{other.namespace}/{other.name}")
                one.judged_seq = min(one.judged_seq, other.seq)
            return True
        if failed is not None and failed != failed_before and not node:  # else it waits for its victims
            self.decide(author, at_ns, NO_NODE, key, "", unknown=unknown, message=failed)
            return True
        return False

    def evict(self, author: str, key: Key, pod: Manifest, at_ns: int) -> None:
        """A pod is about to be deleted by a scheduler: for the one nominated to its node, or that will be."""
        node = str(pod["spec"]["nodeName"])
        for one in reversed(self.incident.decisions[-LONGEST_BURST:]):
            if (one.kind, one.node, one.author) == (PREEMPT, node, author) and at_ns - one.at_ns <= LAG_NS:
                one.victims.append(f"{key[1]}/{key[2]}")
                return
        self.incident.missing[NO_PREEMPTOR] += 1
        self._evicted.append(LoggedDecision(self._seq + 1, at_ns, "evict", key[1], key[2], "", node, author))


def whole(reading: Reading, given: Mapping[Key, Manifest]) -> Incident:
    """The incident of a source that was read to its end, with what is given beside it."""
    incident = reading.incident
    incident.before = reading.before | {
        key: unbound(item) if key in reading.bound else item
        for key, item in given.items()
        if key not in reading.made and key not in reading.before
    }
    for one in incident.decisions:
        node = ("Node", "", one.node)
        if one.node and not one.unknown and node not in reading.made and node not in incident.before:
            one.unknown = NO_NODE_OBJECT
    number_bursts(incident.decisions)
    return incident


def is_followed(manifest: Manifest) -> bool:
    """Whether an object is of a kind that a scheduler or admission goes by."""
    kind = SHAPING.get(str(manifest.get("kind")))
    version = str(manifest.get("apiVersion") or "")
    return kind is not None and kind.role == READ and (not version or kind.group == group_of(version))


def key_of(manifest: Manifest) -> Key:
    """Kind, namespace and name of an object."""
    meta = manifest["metadata"]
    return str(manifest["kind"]), str(meta.get("namespace") or ""), str(meta["name"])


def place_of(key: Key) -> dict[str, str]:
    """A key by its parts' names."""
    return {"kind": key[0], "namespace": key[1], "name": key[2]}


def unbound(pod: Manifest) -> Manifest:
    """A pod without its node and its status."""
    spec = {name: value for name, value in pod["spec"].items() if name != "nodeName"}
    return {**pod, "spec": spec, "status": {"phase": "Pending"}}


def unscheduled(status: Mapping[str, Any]) -> str | None:
    """What a status says of a pod without a node; None where it does not say so."""
    for item in status.get("conditions") or ():
        if item.get("type") == "PodScheduled" and item.get("status") == "False":
            return str(item.get("message") or "") if item.get("reason") == "Unschedulable" else None
    return None
