"""What a scheduler reports of its decisions: Events as `kubectl get events -o json` lists them, and its own log lines.

Neither has objects: those come from a dump, as they are then. So what came is known from its creation on, and pods are
where they are until it is reported that they are bound. What was deleted or changed before the dump is not known.

Source: pkg/scheduler/schedule_one.go, pkg/scheduler/framework/preemption/preemption.go (logged at level 2), v1.34
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any, Final

from scheduler_core.incident.changes import LAG_NS, NO_POD, Incident, LoggedChange, Reading, unbound
from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.whatif.judge import BIND, NO_NODE, PREEMPT, Key, Manifest

DELETED: Final = "Pod deletions before the dump, and the room those pods took"
CHANGED: Final = "changes of nodes before the dump"
REPEATED: Final = "failed attempts that say only how many they were"
NO_VICTIMS: Final = "its victims are not in the dump"
_BOUND: Final = "Successfully bound pod to node"
_NO_FIT: Final = "Unable to schedule pod; no fit; waiting"
_PREEMPTED: Final = "Preemptor Pod preempted victim Pod"
_KLOG: Final = re.compile(r'[IWEF](\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d+)\s+\d+ [^\]]+\] "((?:[^"\\]|\\.)*)"(.*)')
_KLOG_HEAD: Final = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ ")
_PAIR: Final = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*")')
_ASSIGNED: Final = re.compile(r"Successfully assigned \S+ to (\S+)")
_FOR: Final = re.compile(r"Preempted by (?:a pod|pod (\S+)) on node (\S+)")


@dataclass(frozen=True, slots=True)
class Reported:
    """A decision about a pod: `namespace` and `name`, or of a preemptor the `uid` alone.

    Attributes
    ----------
    victim
        `namespace/name` of one pod that is evicted for it.
    n_more
        How often it was said before.
    """

    at_ns: int
    kind: str
    author: str
    namespace: str
    name: str
    node: str = ""
    uid: str = ""
    message: str = ""
    victim: str = ""
    n_more: int = 0


def logged(line: str, year: int) -> Reported | None:
    """What a line of a scheduler's log reports, as text or JSON; None for nothing of this.

    Parameters
    ----------
    year
        Text names none. Its times are read as UTC.
    """
    if line.startswith("{"):
        said = json.loads(line)
        at_ns, message = int(float(said.get("ts") or 0) * 1_000_000), str(said.get("msg"))
        pairs = {
            key: f"{item.get('namespace')}/{item.get('name')}" if isinstance(item, dict) else str(item)
            for key, item in said.items()
        }
    else:
        found = _KLOG.search(line)
        if found is None:
            return None
        month, day, time, message, rest = found.groups()
        at_ns = parse_time_ns(f"{year}-{month}-{day}T{time}Z")
        pairs = {key: str(json.loads(item)) for key, item in _PAIR.findall(rest)}
    kind = {_BOUND: BIND, _NO_FIT: NO_NODE, _PREEMPTED: PREEMPT}.get(message)
    if kind is None:
        return None
    namespace, _, name = pairs["preemptor" if kind == PREEMPT else "pod"].partition("/")
    node, victim = pairs.get("node", ""), pairs.get("victim", "")
    return Reported(
        at_ns, kind, "kube-scheduler", namespace, name, node, message=pairs.get("err", ""), victim=victim
    )


def is_logged(line: str) -> bool:
    """Whether a line is one of a component's log."""
    return _KLOG_HEAD.search(line) is not None


def of_event(event: Manifest) -> Reported | None:
    """What an Event reports; None for nothing of this."""
    about = event.get("involvedObject") or event.get("regarding") or {}
    message, series = str(event.get("message") or event.get("note") or ""), event.get("series") or {}
    at = (
        series.get("lastObservedTime") or event.get("eventTime") or event.get("lastTimestamp")
        or event.get("deprecatedLastTimestamp") or event["metadata"]["creationTimestamp"]
    )  # fmt: skip
    author = event.get("reportingComponent") or event.get("reportingController")
    author = str(author or (event.get("source") or {}).get("component") or "default-scheduler")
    namespace, name = str(about.get("namespace") or ""), str(about.get("name") or "")
    n_more = int(series.get("count") or event.get("count") or event.get("deprecatedCount") or 1) - 1
    at_ns = parse_time_ns(at)
    if event.get("reason") == "Scheduled" and (found := _ASSIGNED.match(message)):
        return Reported(at_ns, BIND, author, namespace, name, found[1])
    if event.get("reason") == "FailedScheduling":
        return Reported(at_ns, NO_NODE, author, namespace, name, message=message, n_more=n_more)
    if event.get("reason") == "Preempted" and (found := _FOR.match(message)):
        other = event.get("related") or {}
        of = str(other.get("namespace") or ""), str(other.get("name") or "")
        return Reported(at_ns, PREEMPT, author, *of, found[2], found[1] or "", victim=f"{namespace}/{name}")
    return None


class ReportReading(Reading):
    """One reading of reports, beside the objects that a dump has.

    Parameters
    ----------
    given
        Objects of the dump.
    """

    def __init__(
        self, incident: Incident, known: Mapping[Key, Manifest], given: Mapping[Key, Manifest]
    ) -> None:
        super().__init__(incident, known)
        self._given = given
        self._uids = {str(item["metadata"].get("uid")): key for key, item in given.items() if key[0] == "Pod"}

    def changes(self, reports: Iterable[Reported]) -> Iterator[LoggedChange]:
        """Changes by reports in any order."""
        ordered = self._decisions(reports)
        bound = {("Pod", one.namespace, one.name) for one in ordered if one.kind == BIND}
        begins_ns = ordered[0].at_ns if ordered else 0
        came: list[tuple[int, int, Key | Reported]] = []
        for key, item in self._given.items():
            at = item["metadata"].get("creationTimestamp")
            at_ns = parse_time_ns(at) if at else 0
            if at_ns >= begins_ns:
                came.append((at_ns, 0, key))
                self.known.discard(key)
                self.pods.pop(key, None)
                self.made.add(key)
            elif key[0] == "Pod":
                self.pods[key] = unbound(item) if key in bound else item
        came += [(one.at_ns, 1, one) for one in ordered]
        for at_ns, _, what in sorted(came, key=itemgetter(0, 1)):
            if isinstance(what, Reported):
                yield from self._report(what, self.incident.happens(at_ns, what.kind))
            else:
                item = self._given[what]
                yield self.now(unbound(item) if what in bound else item, what, at_ns)
        self.incident.missing[DELETED] = self.incident.missing[CHANGED] = 1

    def _decisions(self, reports: Iterable[Reported]) -> list[Reported]:
        """Reports in order, each decision once: a nomination is a failed attempt, too, and says so."""
        ordered = sorted(reports, key=attrgetter("at_ns"))
        times: dict[Key, list[int]] = {}
        for one in ordered:
            if one.kind == PREEMPT:
                times.setdefault(self._key(one), []).append(one.at_ns)
        found, last = [], dict[tuple[Key, str, str, str], int]()
        for one in ordered:
            key = self._key(one)
            same = (key, one.kind, one.node, one.victim)
            is_twice = same in last and one.at_ns - last[same] <= LAG_NS and one.kind != NO_NODE
            nominates = one.kind == NO_NODE and any(
                abs(at - one.at_ns) <= LAG_NS for at in times.get(key, ())
            )
            if not is_twice and not nominates:
                found.append(one)
            last[same] = one.at_ns
        return found

    def _key(self, one: Reported) -> Key:
        return self._uids.get(one.uid) or ("Pod", one.namespace, one.name)

    def _report(self, one: Reported, at_ns: int) -> Iterator[LoggedChange]:
        key = self._key(one)
        unknown = "" if key in self.pods else NO_POD
        if one.n_more:
            self.incident.missing[REPEATED] += one.n_more
        if one.kind == BIND:
            yield from self.bind(one.author, key, one.node, at_ns)
            return
        if one.kind == NO_NODE:
            self.decide(one.author, at_ns, NO_NODE, key, "", unknown=unknown, message=one.message)
            return
        namespace, _, name = one.victim.partition("/")
        if ("Pod", namespace, name) not in self.pods:
            unknown = unknown or NO_VICTIMS
        for known in reversed(self.incident.decisions):
            if at_ns - known.at_ns > LAG_NS:
                break
            if (known.kind, known.namespace, known.name) == (PREEMPT, *key[1:]):
                known.victims.append(one.victim)
                known.unknown = known.unknown or unknown
                return
        self.decide(one.author, at_ns, PREEMPT, key, one.node, unknown=unknown, victims=[one.victim])


def events_of(document: Mapping[str, Any]) -> Iterator[Reported]:
    """What the Events of a list report.

    Raises
    ------
    ValueError, KeyError
        It is none.
    """
    for item in document["items"]:
        if item.get("kind") not in (None, "Event"):
            raise ValueError(f"lists a {item['kind']}, which is no Event")
        found = of_event(item)
        if found is not None:
            yield found
