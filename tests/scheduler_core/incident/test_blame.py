"""Who is blamed: no scheduler whose informers are late, each in its own way; and each that decides by other rules."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from scheduler_core.incident.changes import LAG_NS
from scheduler_core.incident.suspects import LEAST, words_of
from scheduler_core.incident.verdicts import UNLIKE, JudgedDecision, LiveIncident, cause_document, cause_of
from scheduler_core.objects.defaults import PriorityClasses, prepare
from scheduler_core.objects.fields import format_time_ns
from scheduler_core.releases import DEFAULT
from scheduler_core.whatif import judge
from scheduler_core.whatif.judge import (
    BIND,
    NO_NODE,
    NOT_TRIED,
    PREEMPT,
    CauseOfDifference,
    ForeignDecision,
    Judge,
)
from tests.scheduler_core.whatif.random_clusters import CLASSES, node, pod

BEGINS_NS = 1_767_225_600_000_000_000
STEP_NS, MS = 150_000_000, 1_000_000
N_PODS, LONG, ROLLS = 100, 2_000, 25
PRESENT: Mapping[str, tuple[int, int]] = {"Node": (0, 0), "Pod": (0, 0)}
by_night = pytest.mark.nightly("scheduler_core/incident/", "scheduler_core/whatif/judge.py")


@dataclass(frozen=True)
class Fault:
    """What a scheduler has of its own, and which plugin and cause are to be named.

    Attributes
    ----------
    causes
        The kinds of cause that say so.
    late
        By kind, from how many milliseconds to how many its informer is late.
    """

    plugin: str = ""
    profile: Mapping[str, Any] = field(default_factory=dict)
    late: Mapping[str, tuple[int, int]] = field(default_factory=lambda: PRESENT)
    causes: tuple[str, ...] = ()


def _score(name: str, weight: int) -> dict[str, Any]:
    return {
        "plugins": {"score": {"disabled": [{"name": name}], "enabled": [{"name": name, "weight": weight}]}}
    }


_LATE = Fault(late={"Node": (0, 1_500), "Pod": (0, 1_500)})
_PACKING = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
FAULTS = {
    "a filter left out": Fault(
        "NodeAffinity", {"plugins": {"filter": {"disabled": [{"name": "NodeAffinity"}]}}}, causes=("filter",)
    ),
    "a weight changed": Fault(
        "NodeResourcesBalancedAllocation", _score("NodeResourcesBalancedAllocation", 20), causes=("weight",)
    ),
    "stale nodes": Fault("NodeUnschedulable", late={**PRESENT, "Node": (20_000, 20_000)}, causes=("nodes",)),
    "another score": Fault("NodeResourcesFit", {"pluginConfig": [_PACKING]}, causes=("weight", "score")),
}


class Cache:
    """What a scheduler knows: of each kind what its informer has brought, and of its own bindings all."""

    def __init__(self, config: Any, late: Mapping[str, tuple[int, int]], seed: int) -> None:
        self.judge, self._late, self._draw = Judge(config, release=DEFAULT), late, Random(seed)
        self._informers: dict[str, deque[Any]] = {"Node": deque(), "Pod": deque()}

    def watched(self, now_ns: int, what: str, manifest: Any) -> None:
        """A change that an informer will bring."""
        waiting = self._informers[manifest["kind"]]
        due_ns = now_ns + self._draw.randint(*self._late[manifest["kind"]]) * MS
        waiting.append((max(due_ns, waiting[-1][0] if waiting else 0), what, manifest))

    def waits(self, now_ns: int) -> None:
        """Informers bring what is due."""
        for waiting in self._informers.values():
            while waiting and waiting[0][0] <= now_ns:
                self.bring(*waiting.popleft()[1:])

    def bring(self, what: str, manifest: Any) -> None:
        """A change is known now."""
        if what == "DELETED":
            meta = manifest["metadata"]
            self.judge.delete(manifest["kind"], meta.get("namespace", ""), meta["name"])
        else:
            self.judge.write(manifest)


class Live:
    """A cluster with churn that is followed, its scheduler, and those that decide beside it without its fault: one that
    knows the same; where it is its informer that is at fault, one that knows all and one as late as is no fault."""

    def __init__(self, n_nodes: int, fault: Fault, seed: int) -> None:
        self.draw = draw = Random(seed)
        self.now_ns, self.there = BEGINS_NS, dict[str, Any]()
        self.followed, self.verdicts, self.faulty = (
            LiveIncident(release=DEFAULT),
            list[JudgedDecision](),
            set[str](),
        )
        profile = {"schedulerName": "default-scheduler", **fault.profile}
        config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        is_stale = any(most * MS > LAG_NS for _, most in fault.late.values())
        rights = (PRESENT, {**PRESENT, "Node": (LAG_NS // MS,) * 2}) if is_stale else (fault.late,)
        self._own, *self._rights = self._caches = [
            Cache({**config, "profiles": [profile]}, fault.late, seed), *(Cache(None, late, seed) for late in rights)
        ]  # fmt: skip
        self.nodes = []
        for number in range(n_nodes):
            labels = {"disk": draw.choice(("ssd", "hdd"))}
            cpu = str(draw.choice((8, 16)))
            self.nodes.append(prepare(node(f"n{number}", cpu=cpu, memory="64Gi", pods="110", labels=labels)))
            self.happens("ADDED", self.nodes[-1], own=True)
        self.room = sum(1000 * int(item["status"]["allocatable"]["cpu"]) for item in self.nodes)

    def happens(self, what: str, manifest: Any, *, own: bool = False) -> None:
        """A change; of its own ones a scheduler knows at once."""
        self.now_ns += STEP_NS
        self.followed.take({"at": format_time_ns(self.now_ns), "type": what, "object": manifest})
        for cache in self._caches:
            cache.bring(what, manifest) if own else cache.watched(self.now_ns, what, manifest)
            cache.waits(self.now_ns)

    def churns(self, fill: float) -> None:
        """Pods go, nodes are closed and opened; never more of the room is taken than `fill`."""
        while self.draw.random() < 0.4 or self.used() > fill * self.room:
            if self.there and (self.draw.random() < 0.5 or self.used() > fill * self.room):
                self.happens("DELETED", self.there.pop(self.draw.choice(sorted(self.there))))
            else:
                which = self.draw.randrange(len(self.nodes))
                spec = {**self.nodes[which]["spec"], "unschedulable": self.draw.random() < 0.3}
                self.nodes[which] = {**self.nodes[which], "spec": spec}
                self.happens("MODIFIED", self.nodes[which])

    def used(self) -> int:
        """Millicores."""
        return sum(
            int(item["spec"]["containers"][0]["resources"]["requests"]["cpu"][:-1])
            for item in self.there.values()
        )

    def decides(self, made: dict[str, Any], number: int) -> None:
        """Its scheduler binds a pod, at once or after others were evicted; or finds no node, and its owner gives up."""
        name = made["metadata"]["name"]
        for cache in self._caches:
            cache.waits(self.now_ns)
        trace: Any = self._own.judge.judge(made, ForeignDecision(BIND), number=number).trace
        bound = trace.node if trace.outcome == "bound" else ""
        kind = BIND if bound else PREEMPT if trace.nominated_node else NO_NODE
        decision = ForeignDecision(kind, bound or trace.nominated_node or "", tuple(trace.victims))
        if not any(right.judge.judge(made, decision, number=number).agrees for right in self._rights):
            self.faulty.add(name)
        if bound:
            self.there[name] = {**made, "spec": {**made["spec"], "nodeName": bound}}
            self.happens("MODIFIED", self.there[name], own=True)
        else:
            said = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": str(number),
            }
            status = {
                "phase": "Pending",
                "conditions": [said],
                "nominatedNodeName": trace.nominated_node or "",
            }
            made = {**made, "status": status}
            self.happens("MODIFIED", made, own=True)
        for victim in (key.partition("/")[2] for key in decision.victims):
            if victim in self.there:  # else its cache does not know that it is gone
                self.evicts(self.there.pop(victim))
        self.verdicts += self.followed.judge(self.now_ns)
        if kind == PREEMPT:
            self.now_ns += 3_000 * MS  # until its informer has brought that they are gone
            self.decides(made, number)
        elif kind == NO_NODE:
            self.happens("DELETED", made, own=True)

    def evicts(self, victim: dict[str, Any]) -> None:
        """A victim of its scheduler goes."""
        why = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        meta = {**victim["metadata"], "deletionTimestamp": format_time_ns(self.now_ns)}
        victim = {**victim, "metadata": meta, "status": {**victim["status"], "conditions": [why]}}
        self.happens("MODIFIED", victim)
        self.happens("DELETED", victim)

    def rolls_out(self, number: int) -> None:
        """Pods of a workload are replaced, one after another."""
        for place in range(4):
            old = self.there.pop(f"web{place}-{number - ROLLS}", None)
            if old is not None:
                self.happens("DELETED", old)
            name, labels = f"web{place}-{number}", {"app": "web", "revision": f"{number}"}
            made = dict(prepare(pod(name, requests={"cpu": "200m", "memory": "256Mi"}, labels=labels)))
            self.happens("ADDED", made, own=True)
            self.decides(made, -(4 * number + place))


def followed(n_pods: int, fault: Fault, n_nodes: int = 20, fill: float = 0.5, seed: int = 0) -> Live:
    """A cluster that was followed while pods came; with few nodes it is nearly full."""
    live = Live(n_nodes, fault, seed or n_pods)
    for number in range(n_pods):
        asks: dict[str, Any] = {"nodeSelector": {"disk": "ssd"}} if live.draw.random() < 0.3 else {}
        requests = {
            "cpu": f"{live.draw.choice((100, 300, 700, 1500))}m",
            "memory": live.draw.choice(("256Mi", "1Gi")),
        }
        if live.draw.random() < 0.2:
            asks["priority"] = live.draw.choice((100, 200))
        made = dict(prepare(pod(f"p{number}", requests=requests, **asks), PriorityClasses(CLASSES)))
        live.happens("ADDED", made, own=True)  # it decides about what it knows
        live.churns(fill)
        live.decides(made, number)
        if number % ROLLS == 0:
            live.rolls_out(number)
    live.verdicts += live.followed.judge(2**62)
    return live


SIZES = [
    (N_PODS, 20, 0.5),
    pytest.param(LONG, 60, 0.5, marks=by_night, id="long"),
    pytest.param(LONG, 20, 0.97, marks=by_night, id="nearly full"),
]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("n_pods", "n_nodes", "fill"), SIZES)
def test_informers_that_are_late_are_no_fault(n_pods: int, n_nodes: int, fill: float) -> None:
    live = followed(n_pods, _LATE, n_nodes, fill)
    assert not live.faulty and len(live.verdicts) >= n_pods
    blamed = [one.document() for one in live.verdicts if one.found.verdict in UNLIKE]
    assert not blamed, (len(blamed), blamed[:5])
    n_known = sum(one.found.agrees for one in live.verdicts)
    assert n_known > 0.99 * len(live.verdicts)
    assert sum(one.found.cause is not None for one in live.verdicts) > n_pods // 50


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("n_pods", "n_nodes", "fill"), SIZES)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_named(fault: Fault, n_pods: int, n_nodes: int, fill: float) -> None:
    live = followed(n_pods, fault, n_nodes, fill)
    blamed = {one.decision.name: one.found for one in live.verdicts if one.found.verdict in UNLIKE}
    n_right = sum(name in blamed and blamed[name].plugin == fault.plugin for name in live.faulty)
    causes = [found.cause.kind for name, found in blamed.items() if name in live.faulty and found.cause]
    n_named = sum(kind in fault.causes for kind in causes)
    assert n_named + LEAST >= 0.85 * len(live.faulty), (n_named, causes)
    # A cause is known once some decisions say the same.
    n_early = LEAST if n_pods < LONG else 0
    others = [found for name, found in blamed.items() if found.plugin != fault.plugin]
    assert len(live.faulty) > n_pods // 20
    assert n_right + n_early >= 0.95 * len(live.faulty), (len(live.faulty), n_right, others[:5])


def test_what_cannot_be_tried_in_time_cannot_be_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "SAVED", 0.1)
    verdicts = followed(10, FAULTS["another score"]).verdicts
    reasons = [one.found.reasons for one in verdicts if one.found.verdict == "unknown"]
    assert len(reasons) > 5 and set(reasons) == {(NOT_TRIED,)}


A_NODE, A_POD = ("Node", "", "a"), ("Pod", "x", "p")


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("Cause: it leaves A out.", {"kind": "filter"}),
        ("A had a weight of 5 to 7 or B were left out.", {"kind": "weight", "weights": (("A", 5, 7), ("B", 0, 0))}),
        ("it scores A otherwise.", {"kind": "score"}),
        ("1.0 s old, without the last 1 change (of Node a)", {"kind": "nodes", "n_changes": 1, "unseen": (A_NODE,)}),
        ("On the newest state ours is b by A", {"kind": "cache", "n_changes": 2, "unseen": (A_POD,), "node": "b"}),
        ("could be a configuration in which A preferred the opposite.", {"weights": (("A", -9, -1),)}),
        ("Cause not known: neither another weight nor", {}),
    ],
)  # fmt: skip
def test_a_cause_is_a_sentence_and_comes_back_from_its_document(said: str, cause: dict[str, Any]) -> None:
    made = CauseOfDifference(plugin="A", age_ns=10**9, **cause)
    assert said in words_of(made, "different")
    assert cause_of(cause_document(made)) == made


def test_what_is_decided_while_judging_is_paused_is_not_judged() -> None:
    live = LiveIncident(release=DEFAULT)

    def happens(at: int, what: str, made: dict[str, Any]) -> None:
        live.take({"at": format_time_ns(BEGINS_NS + at * 10**9), "type": what, "object": made})

    pods = [dict(prepare(pod(name))) for name in ("p", "q")]
    happens(1, "LISTED", dict(prepare(node("a"))))
    for at, made in enumerate(pods, 2):
        happens(at, "ADDED", made)
    happens(5, "MODIFIED", {**pods[0], "spec": {**pods[0]["spec"], "nodeName": "a"}})
    paused = live.judge(BEGINS_NS + 11 * 10**9, unknown="paused")
    assert [(one.found.verdict, one.found.reasons) for one in paused] == [("unknown", ("paused",))]
    happens(12, "MODIFIED", {**pods[1], "spec": {**pods[1]["spec"], "nodeName": "a"}})
    assert [one.found.verdict for one in live.judge(2**62)] == ["agree"]
