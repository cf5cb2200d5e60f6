"""Karpenter beside the cluster: nodes for pods that wait, and nodes that go or make way for cheaper ones.

It looks every ten seconds; what is to be disrupted is judged again fifteen seconds later, and goes if it still may.

Source: pkg/controllers/{provisioning,disruption,node/termination} of kubernetes-sigs/karpenter 2266468
Differs: a model whose decisions are not proved against recorded ones; machines register ready a minute after the
request, always; pods of one loop are one batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from scheduler_core.clock import SECOND_NS
from scheduler_core.errors import InvalidObject
from scheduler_core.fork import homeless
from scheduler_core.karpenter.disruption import (
    Disruption,
    DisruptionCandidate,
    blocked_by,
    candidate_of,
    consolidation,
    is_rescheduled,
    judge,
)
from scheduler_core.karpenter.node_pools import EMPTY, POOL, NodePool, Offering, offerings, read_node_pools
from scheduler_core.karpenter.provisioning import PlannedNode, Provisioner, Provisioning, capacity_of
from scheduler_core.objects.fields import format_seconds
from scheduler_core.objects.node import LABEL_ZONE, Node, node_from
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.policy import EvictionBudget
from scheduler_core.objects.prices import shipped_prices
from scheduler_core.sim.changes import Act, Mention
from scheduler_core.sim.controllers.base import ControllerContext
from scheduler_core.sim.controllers.programs import BY_KARPENTER, KARPENTER, ClusterProgram
from scheduler_core.sim.kubelet import delete_pod, remove_pod

LOOPS, LAUNCHES, VALIDATES, DRAINS = (
    "karpenter-loops", "karpenter-launches", "karpenter-validates", "karpenter-drains",
)  # fmt: skip
INTERVAL_NS: Final = 10 * SECOND_NS
VALIDATION_NS: Final = 15 * SECOND_NS
LAUNCH_NS: Final = 60 * SECOND_NS
NOMINATION_NS: Final = 20 * SECOND_NS
"""So long a node is not disrupted after a pod was found a place there."""
DISRUPTED: Final = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
_STORAGE: Final = ("Namespace", "PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode")


@dataclass
class _View:
    """The cluster as one loop sees it."""

    nodes: dict[str, Node]
    starting: dict[str, Node]
    pods_on: dict[str, list[Pod]]
    pending: list[Pod]
    offered: dict[str, list[Offering]]
    provisioner: Provisioner


class Karpenter(ClusterProgram):
    """Launches nodes for pods that wait, and consolidates."""

    timer_names: ClassVar[tuple[str, ...]] = (LOOPS, LAUNCHES, VALIDATES, DRAINS)
    annotation: ClassVar[str] = KARPENTER
    component = "karpenter"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.stop()

    def stop(self) -> None:
        self._pools: dict[str, NodePool] | None = None
        self._launching: dict[str, dict[str, Any]] = {}
        self._going: dict[str, str] = {}
        """Node -> the one that is to be there first, or empty."""
        self._proposed: dict[str, Any] = {}
        self._pod_events: dict[str, tuple[str, int]] = {}
        """Node -> its pods as they last were, and since when."""
        self._nominated: dict[str, int] = {}
        self._n_launched, self._seen, self._wake_ns = 0, -1, 0

    def act(self, key: tuple[str, ...]) -> None:
        now_ns, what = self.world.clock.now_ns, key[0]
        if self._pools is None:
            try:
                self._pools = {pool.name: pool for pool in read_node_pools(self.text or "")}
            except InvalidObject as error:
                self.refused(error)
                return
        if what == LAUNCHES:
            self._register(key[1])
        elif what == DRAINS:
            self._drain(now_ns)
        elif what == VALIDATES:
            self._validate(now_ns)
        else:
            self.timers.add(now_ns + INTERVAL_NS, LOOPS)
            scheduled = any(one.schedule for pool in self._pools.values() for one in pool.budgets)
            if self.world.changes != self._seen or self._wake_ns <= now_ns or scheduled:
                self._loop(now_ns)

    # ---- the cluster

    def _look(self, now_ns: int) -> _View:
        assert self._pools is not None
        world = self.world
        nodes = {node.name: node for node in sorted(_typed(world.all("Node")), key=lambda node: node.name)}
        self._going = {name: after for name, after in self._going.items() if name in nodes}
        starting = {name: node_from(manifest) for name, manifest in self._launching.items()}
        pods_on: dict[str, list[Pod]] = {}
        pending = []
        for pod in sorted(_typed(world.all("Pod")), key=lambda pod: pod.key):
            if pod.node_name:
                pods_on.setdefault(pod.node_name, []).append(pod)
            elif _is_provisioned_for(pod):
                pending.append(pod)
        for name in nodes:
            said = " ".join(
                f"{pod.uid}{pod.is_terminating or pod.is_terminal}" for pod in pods_on.get(name, ())
            )
            if self._pod_events.get(name, ("", 0))[0] != said or name not in self._pod_events:
                self._pod_events[name] = said, now_ns
        staying = [node for name, node in nodes.items() if name not in self._going]
        used: dict[str, Counter[str]] = {}
        for node in (*nodes.values(), *starting.values()):
            used.setdefault(node.labels.get(POOL, ""), Counter()).update(capacity_of(node))
        zones = {node.labels.get(LABEL_ZONE, "") for node in nodes.values()} - {""}
        offered = offerings([*self._pools.values()], shipped_prices(), sorted(zones))
        provisioner = Provisioner(
            self.context.release,
            [*staying, *starting.values()],
            [pod for node in staying for pod in pods_on.get(node.name, ()) if not pod.is_terminal],
            [one for kind in _STORAGE for one in _typed(world.all(kind))],
            [stored.manifest for stored in world.all("DaemonSet")],
            offered,
            used,
        )
        leaving = [
            homeless(pod) for name in self._going for pod in pods_on.get(name, ()) if is_rescheduled(pod)
        ]
        return _View(nodes, starting, pods_on, [*pending, *leaving], offered, provisioner)

    def _candidates(self, view: _View, now_ns: int) -> tuple[list[DisruptionCandidate], dict[str, str]]:
        """Nodes that may be judged, and why others may not."""
        assert self._pools is not None
        budgets = {
            "/".join(stored.key): EvictionBudget(stored.manifest)
            for stored in self.world.all("PodDisruptionBudget")
        }
        allows = {
            name: lambda pod, budget=budget: budget.left if budget.selects(pod) else None
            for name, budget in budgets.items()
        }
        found, stays = list[DisruptionCandidate](), dict[str, str]()
        self._wake_ns = 2**63
        for name, node in view.nodes.items():
            pool = self._pools.get(node.labels.get(POOL, ""))
            if pool is None or name in self._going:
                continue
            pods = view.pods_on.get(name, [])
            until_ns = self._pod_events[name][1] + (pool.consolidate_after_ns or 0)
            waits_ns = max(until_ns, self._nominated.get(name, 0))
            if not _is_ready(node):
                stays[name] = "node isn't initialized"
            elif self._nominated.get(name, 0) > now_ns:
                stays[name] = "node is nominated for a pending pod"
            elif why := blocked_by(node, pods, allows):
                stays[name] = why
            elif until_ns > now_ns:
                stays[name] = (
                    f"its pods changed less than consolidateAfter ago, {format_seconds(until_ns)} ends it"
                )
            else:
                found.append(candidate_of(node, pool, view.offered[pool.name], pods))
            if waits_ns > now_ns:
                self._wake_ns = min(self._wake_ns, waits_ns)
        return found, stays

    def _allowed(self, view: _View, reason: str, now_ns: int) -> Counter[str]:
        """NodePool -> how many of its nodes may go now."""
        assert self._pools is not None
        there, going = Counter[str](), Counter[str]()
        for name, node in view.nodes.items():
            pool = node.labels.get(POOL, "")
            there[pool] += 1
            going[pool] += name in self._going or not _is_ready(node)
        return Counter({
            name: max(pool.may_go(there[name], reason, now_ns) - going[name], 0)
            for name, pool in self._pools.items()
        })  # fmt: skip

    def _simulate(self, view: _View, candidates: Sequence[DisruptionCandidate], now_ns: int) -> Provisioning:
        assert self._pools is not None
        closed = {*view.starting}
        for name, (_, at_ns) in self._pod_events.items():
            node = view.nodes.get(name)
            pool = None if node is None else self._pools.get(node.labels.get(POOL, ""))
            if pool is not None and at_ns + (pool.consolidate_after_ns or 0) > now_ns:
                closed.add(name)
        return view.provisioner.provision(
            view.pending,
            without=[one.node for one in candidates],
            moving=[pod for one in candidates for pod in one.pods],
            closed=closed,
        )

    # ---- what it does

    def _loop(self, now_ns: int) -> None:
        view, did = self._look(now_ns), list[Act]()
        result = view.provisioner.provision(view.pending)
        for planned in result.planned:
            did.append(self._launch(planned, f"for {_pods_words(planned.pods)}"))
        for name in result.on_nodes.values():
            self._nominated[name] = now_ns + NOMINATION_NS
        self._nominated = {name: at_ns for name, at_ns in self._nominated.items() if at_ns > now_ns}
        why_not: dict[str, Mapping[str, Any]] = {
            f"Pod {key}": {"text": why} for key, why in result.refused.items()
        }
        before = self.reasons.get("", {})
        for pod in view.pending:
            why = result.refused.get(pod.key)
            if why and before.get(f"Pod {pod.key}") != {"text": why}:
                self.warn(pod.manifest, "FailedScheduling", f"Failed to schedule pod, {why}")
        candidates, stays = self._candidates(view, now_ns)
        if not self._proposed:
            judged = judge(
                candidates,
                lambda reason: self._allowed(view, reason, now_ns),
                lambda some: self._simulate(view, some, now_ns),
                view.offered,
            )
            stays |= judged.stays
            if judged.command is not None:
                command = judged.command
                self._proposed = {"reason": command.reason, "nodes": [*command.nodes]}
                self.timers.add(now_ns + VALIDATION_NS, VALIDATES)
        else:
            judged_before = {one.name: before.get(f"Node {one.name}") for one in candidates}
            stays |= {name: str(why["text"]) for name, why in judged_before.items() if why}
        why_not |= {f"Node {name}": {"text": why} for name, why in stays.items()}
        self._seen = self.world.changes
        self.ran(did, why_not)

    def _validate(self, now_ns: int) -> None:
        """Disrupt what was proposed, where it still may go."""
        proposed, self._proposed = self._proposed, {}
        view = self._look(now_ns)
        candidates, _ = self._candidates(view, now_ns)
        mine = [one for one in candidates if one.name in proposed["nodes"]]
        allowed = self._allowed(view, proposed["reason"], now_ns)
        self._wake_ns = now_ns
        if len(mine) < len(proposed["nodes"]) or Counter(one.pool.name for one in mine) - allowed:
            return
        if proposed["reason"] == EMPTY:
            command = (
                Disruption(EMPTY, tuple(proposed["nodes"])) if all(one.is_empty for one in mine) else None
            )
        else:
            command, _ = consolidation(mine, lambda some: self._simulate(view, some, now_ns), view.offered)
        if command is None:
            return
        did, after = list[Act](), ""
        if command.replacement is not None:
            did.append(self._launch(command.replacement, "in place of the nodes that go"))
            after = [*self._launching][-1]
        for name in command.nodes:
            node = view.nodes[name]
            did.append(Act(("disrupts ", Mention("Node", name)), why=command.reason, effect="takes"))
            self.tell(node.manifest, "DisruptionTerminating", f"Disrupting Node: {command.reason}")
            spec = node.manifest.get("spec") or {}
            taints = [*(spec.get("taints") or ()), DISRUPTED]
            self.world.put({**node.manifest, "spec": {**spec, "taints": taints}}, "tainted by Karpenter")
            self._going[name] = after
        self.timers.add(now_ns, DRAINS)
        self.ran(did, self.reasons.get("", {}))

    def _launch(self, planned: PlannedNode, why: str) -> Act:
        while True:
            self._n_launched += 1
            name = f"{planned.offering.pool.name}-new-{self._n_launched}".lower()
            if self.world.node(name) is None:
                break
        one = planned.offering
        self._launching[name] = one.manifest(name)
        self.timers.add(self.world.clock.now_ns + LAUNCH_NS, LAUNCHES, name)
        place = f" in {one.zone}" if one.zone else ""
        facts = {"group": one.pool.name, "delta": 1}
        return Act((f"launches {one.type}{place} of NodePool {one.pool.name}",), why=why, facts=facts)

    def _pool_of(self, name: str) -> str:
        node = self.world.node(name)
        return "" if node is None else node.labels.get(POOL, "")

    def _register(self, name: str) -> None:
        manifest = self._launching.pop(name, None)
        if manifest is None:
            return
        ready = {
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": format_seconds(self.world.clock.now_ns),
        }
        status = {**manifest["status"], "conditions": [ready]}
        self.world.create({**manifest, "status": status}, "launched by Karpenter")
        if name in self._going.values():
            self.timers.add(self.world.clock.now_ns, DRAINS)

    def _drain(self, now_ns: int) -> None:
        """Evict what is on nodes that go, as their budgets allow, and remove those that are empty."""
        world, did = self.world, list[Act]()
        budgets = [EvictionBudget(stored.manifest) for stored in world.all("PodDisruptionBudget")]
        pods: dict[str, list[Pod]] = {name: [] for name in self._going}
        for pod in sorted(_typed(world.all("Pod")), key=lambda pod: pod.key):
            if pod.node_name in pods:
                pods[pod.node_name].append(pod)
        for name, after in sorted(self._going.items()):
            if after and world.node(after) is None:
                continue
            left = [
                pod for pod in pods[name] if not (pod.is_terminal or pod.is_of_daemon_set or pod.is_mirror)
            ]
            for pod in left:
                mine = [budget for budget in budgets if budget.selects(pod)]
                if pod.is_terminating or len(mine) > 1 or any(budget.left <= 0 for budget in mine):
                    continue
                for budget in mine:
                    budget.left -= 1
                self.tell(pod.manifest, "Evicted", "Evicted pod")
                delete_pod(world, pod, None, BY_KARPENTER)
                what = ("evicts ", Mention("Pod", pod.key), " from ", Mention("Node", name))
                did.append(Act(what, effect="takes"))
            if all(world.live(pod) is None for pod in left):
                for pod in pods[name]:
                    if world.live(pod) is not None:
                        remove_pod(world, pod, "its node was removed")
                facts = {"group": self._pool_of(name), "delta": -1}
                world.remove("Node", "", name, "removed by Karpenter")
                del self._going[name]
                did.append(Act(("removes ", Mention("Node", name)), effect="takes", facts=facts))
        if self._going:
            self.timers.add(now_ns + INTERVAL_NS, DRAINS)
        self.ran(did, self.reasons.get("", {}))

    # ---- checkpoints

    def state(self) -> dict[str, Any]:
        if self._pools is None:
            return super().state()
        return {
            **super().state(),
            "launching": self._launching,
            "going": self._going,
            "proposed": self._proposed,
            "podEvents": {name: [*said] for name, said in self._pod_events.items()},
            "nominated": self._nominated,
            "launched": self._n_launched,
            "seen": self._seen,
            "wake": self._wake_ns,
        }

    def restore_state(self, state: Mapping[str, Any]) -> None:
        super().restore_state(state)
        if self.text is None or "launching" not in state:
            return
        self._pools = {pool.name: pool for pool in read_node_pools(self.text)}
        self._launching, self._going = dict(state["launching"]), dict(state["going"])
        self._proposed, self._nominated = dict(state["proposed"]), dict(state["nominated"])
        self._pod_events = {name: (said, at_ns) for name, (said, at_ns) in state["podEvents"].items()}
        self._n_launched, self._seen, self._wake_ns = state["launched"], state["seen"], state["wake"]


def _typed(stored: Any) -> list[Any]:
    return [one.typed for one in stored]


def _is_ready(node: Node) -> bool:
    return ("Ready", "True") in node.conditions


def _is_provisioned_for(pod: Pod) -> bool:
    """Whether a pod waits because the scheduler found no node."""
    if pod.is_terminal or pod.is_terminating or pod.nominated_node_name or pod.is_of_daemon_set:
        return False
    conditions = (pod.manifest.get("status") or {}).get("conditions") or ()
    return any(
        one.get("type") == "PodScheduled" and one.get("reason") == "Unschedulable" for one in conditions
    )


def _pods_words(pods: Sequence[Pod]) -> str:
    return f"{len(pods)} pods, {pods[0].key} first" if len(pods) > 1 else pods[0].key
