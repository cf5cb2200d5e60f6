"""Who is blamed: no scheduler whose informers are late, each in its own way; and each that decides by other rules."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from scheduler_core.incident.verdicts import UNLIKE, JudgedDecision, LiveIncident
from scheduler_core.objects.defaults import PriorityClasses, prepare
from scheduler_core.objects.fields import format_time_ns
from scheduler_core.releases import DEFAULT
from scheduler_core.whatif.judge import BIND, ForeignDecision, Judge
from tests.scheduler_core.whatif.random_clusters import CLASSES, node, pod

BEGINS_NS = 1_767_225_600_000_000_000
STEP_NS = 150_000_000
N_PODS = 100
_NO_AFFINITY = {"plugins": {"filter": {"disabled": [{"name": "NodeAffinity"}]}}}
_PACKING = {"pluginConfig": [
    {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
]}  # fmt: skip


class Scheduler:
    """One that knows of each kind what its informer has brought, and of its own bindings all; and one beside it
    that knows the same and has no fault. `late`: kind -> milliseconds."""

    def __init__(self, profile: Mapping[str, Any], late: Mapping[str, int], draw: Random) -> None:
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "default-scheduler", **profile}],
        }  # fmt: skip
        self._caches = (Judge(config, release=DEFAULT), Judge(release=DEFAULT))
        self._late, self._draw = late, draw
        self._informers: dict[str, deque[Any]] = {"Node": deque(), "Pod": deque()}

    def watched(self, now_ns: int, what: str, manifest: Any) -> None:
        """A change that an informer will bring."""
        waiting = self._informers[manifest["kind"]]
        due_ns = now_ns + self._draw.randint(0, self._late[manifest["kind"]]) * 1_000_000
        waiting.append((max(due_ns, waiting[-1][0] if waiting else 0), what, manifest))

    def waits(self, now_ns: int) -> None:
        """Informers bring what is due."""
        for waiting in self._informers.values():
            while waiting and waiting[0][0] <= now_ns:
                self.bring(*waiting.popleft()[1:])

    def bring(self, what: str, manifest: Any) -> None:
        """A change is known now."""
        meta = manifest["metadata"]
        for cache in self._caches:
            if what == "DELETED":
                cache.delete(manifest["kind"], meta.get("namespace", ""), meta["name"])
            else:
                cache.write(manifest)

    def place(self, manifest: Any, number: int) -> tuple[str, bool]:
        """The node that it chooses, and whether that is a fault."""
        theirs, right = self._caches
        name = theirs.judge(manifest, ForeignDecision(BIND), number=number).node
        is_fault = bool(name) and not right.judge(manifest, ForeignDecision(BIND, name), number=number).agrees
        if name:
            self.bring("MODIFIED", {**manifest, "spec": {**manifest["spec"], "nodeName": name}})
        return name, is_fault


def followed(
    n_pods: int, profile: Mapping[str, Any], late: Mapping[str, int]
) -> tuple[list[JudgedDecision], set[str]]:
    """Verdicts on a scheduler of a cluster with churn, and the pods that it placed by fault."""
    draw = Random(n_pods)
    scheduler, live = Scheduler(profile, late, draw), LiveIncident(release=DEFAULT)
    now_ns, faulty, verdicts = BEGINS_NS, set[str](), list[JudgedDecision]()
    there: dict[str, Any] = {}

    def happens(what: str, manifest: Any, *, own: bool = False) -> None:
        nonlocal now_ns
        now_ns += STEP_NS
        live.take({"at": format_time_ns(now_ns), "type": what, "object": manifest})
        if not own:
            scheduler.watched(now_ns, what, manifest)
        elif what == "ADDED":
            scheduler.bring(what, manifest)
        scheduler.waits(now_ns)

    nodes = {}
    for number in range(20):
        labels = {"disk": draw.choice(("ssd", "hdd"))}
        nodes[number] = prepare(
            node(f"n{number}", cpu=str(draw.choice((8, 16))), memory="64Gi", pods="110", labels=labels)
        )
        happens("ADDED", nodes[number], own=True)
    for number in range(n_pods):
        asks: dict[str, Any] = {"nodeSelector": {"disk": "ssd"}} if draw.random() < 0.3 else {}
        requests = {"cpu": f"{draw.choice((100, 300, 700))}m", "memory": "256Mi"}
        made = dict(prepare(pod(f"p{number}", requests=requests, **asks), PriorityClasses(CLASSES)))
        happens("ADDED", made, own=True)  # it decides about what it knows
        while draw.random() < 0.4:
            if draw.random() < 0.5 and len(there) > 60:
                happens("DELETED", there.pop(draw.choice(sorted(there))))
            else:
                which = draw.randrange(20)
                spec = {**nodes[which]["spec"], "unschedulable": draw.random() < 0.3}
                nodes[which] = {**nodes[which], "spec": spec}
                happens("MODIFIED", nodes[which])
        name, is_fault = scheduler.place(made, number)
        if name:
            there[f"p{number}"] = {**made, "spec": {**made["spec"], "nodeName": name}}
            happens("MODIFIED", there[f"p{number}"], own=True)
            faulty |= {f"p{number}"} if is_fault else set()
        verdicts += live.judge(now_ns)
    return verdicts + live.judge(2**62), faulty


def test_informers_that_are_late_are_no_fault() -> None:
    verdicts, faulty = followed(N_PODS, {}, {"Node": 1_500, "Pod": 1_500})
    assert not faulty and len(verdicts) > N_PODS * 0.9
    blamed = [one.document() for one in verdicts if one.found.verdict in UNLIKE]
    assert len(blamed) <= len(verdicts) // 100, blamed
    assert sum(one.found.behind > 0 for one in verdicts) > N_PODS // 50


@pytest.mark.parametrize(
    ("profile", "late", "plugins"),
    [
        (_NO_AFFINITY, {"Node": 0, "Pod": 0}, {"NodeAffinity"}),
        (_PACKING, {"Node": 0, "Pod": 0}, {"NodeResourcesFit"}),
        ({}, {"Node": 60_000, "Pod": 0}, {"NodeUnschedulable"}),
    ],
    ids=["a filter left out", "another score", "stale nodes"],
)
def test_a_fault_is_named(profile: Mapping[str, Any], late: Mapping[str, int], plugins: set[str]) -> None:
    verdicts, faulty = followed(N_PODS, profile, late)
    blamed = {one.decision.name: one.found for one in verdicts if one.found.verdict in UNLIKE}
    if profile:
        found = Counter(blamed[name].plugin for name in faulty if name in blamed)
        assert faulty and sum(found[plugin] for plugin in plugins) >= 0.95 * len(faulty), (len(faulty), found)
    else:
        assert len(blamed) > N_PODS // 20
        assert Counter(one.plugin for one in blamed.values()).most_common(1)[0][0] in plugins
