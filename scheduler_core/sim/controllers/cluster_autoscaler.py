"""The cluster autoscaler beside the cluster: its loops, nodes that come a minute after the request, and drains.

A loop that would see what the last one saw, while no delay of the flags is over, is not run: it decides the same.

Source: cluster-autoscaler/core/static_autoscaler.go, k8s 1.36
Differs: machines register ready a minute after the request, always; no machine fails to come.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Final

from scheduler_core.autoscaler.cluster import LiveCluster
from scheduler_core.autoscaler.cluster_state import DEFAULTS, Flags, MachineGroup
from scheduler_core.autoscaler.estimate import equal_pods
from scheduler_core.autoscaler.groups import Groups, groups_of, new_node, priced
from scheduler_core.autoscaler.loop import Autoscaler, Loop
from scheduler_core.autoscaler.pasted import PRIORITIES, Given
from scheduler_core.autoscaler.scale_up import NOT_TRIGGERED, ScaleUp
from scheduler_core.clock import SECOND_NS
from scheduler_core.errors import InvalidObject
from scheduler_core.fork import INSTANCE_TYPE
from scheduler_core.objects.duration import parse_duration_ns
from scheduler_core.objects.fields import format_seconds
from scheduler_core.objects.meta import object_of
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.policy import EvictionBudget
from scheduler_core.objects.prices import PriceList, shipped_prices
from scheduler_core.sim.changes import Act, Mention
from scheduler_core.sim.controllers.base import ControllerContext
from scheduler_core.sim.controllers.programs import (
    BY_AUTOSCALER,
    CLUSTER_AUTOSCALER,
    NAMESPACE,
    ClusterProgram,
    given_from,
)
from scheduler_core.sim.kubelet import delete_pod, remove_pod
from scheduler_core.sim.world import Noticed, World

Document = Mapping[str, Any]
LOOPS, DRAINS, ARRIVES = "cluster-autoscaler-loops", "cluster-autoscaler-drains", "machine-arrives"
PROVISION_NS: Final = 60 * SECOND_NS
"""From the request for a node to the node."""
_KINDS: Final = (
    "Node", "Pod", "PodDisruptionBudget", "DaemonSet", "ReplicaSet", "StatefulSet", "Job", "ReplicationController",
)  # fmt: skip
NEW_NODE: Final = "-new-"
"""Between the group and the number in the name of a node that was added."""
WAITS: Final = (
    "scale-down-unneeded-time",
    "scale-down-unready-time",
    "scale-down-delay-after-add",
    "scale-down-delay-after-delete",
    "scale-down-delay-after-failure",
    "unremovable-node-recheck-timeout",
)
"""Flags after whose time a loop may decide otherwise although nothing else has changed."""


MOST_NAMED: Final = 200
"""Pods that a record of a scale-up names."""
AT_MOST: Final = "max node group size reached"


def groups_for(
    found: ScaleUp, keys: Sequence[str], sizes: Mapping[str, int], most: Mapping[str, int]
) -> tuple[list[str], dict[str, list[str]]]:
    """Groups that take pods that are alike; why -> the groups that do not.

    Parameters
    ----------
    keys : sequence of str
        All of them, or those of which `found` says why they are left.
    sizes, most : mapping of str to int
        Group -> its size now, and at most.
    """
    helps: list[str] = []
    others: dict[str, list[str]] = {}
    for name in sorted(most):
        verdicts = [said[key] for key in keys if key in (said := found.predicates.get(name, {}))]
        rejected, skipped = next((found.remaining[key] for key in keys if key in found.remaining), ({}, {}))
        if verdicts and verdicts[0] is None:
            helps.append(name)
        elif verdicts and verdicts[0] is not None:
            others.setdefault(", ".join(verdicts[0].reasons), []).append(name)
        elif name in rejected:
            others.setdefault(", ".join(rejected[name]), []).append(name)
        elif name in skipped:
            others.setdefault(skipped[name], []).append(name)
        else:
            full = sizes.get(name, 0) >= most[name]
            others.setdefault(AT_MOST if full else "not asked", []).append(name)
    return helps, others


class _Hands(LiveCluster):
    """The cluster as the autoscaler lists it; what it writes is written into the world.

    Attributes
    ----------
    evicting : dict of str to str
        Pods whose eviction was accepted -> their uids: a later pod of the name is another one.
    """

    def __init__(self, world: World, group_of: Mapping[str, str], more: Iterable[Document]) -> None:
        super().__init__(more, group_of)
        self._world = world
        self.changed: dict[tuple[str, str, str], None] = {
            (kind, *stored.key): None for kind in _KINDS for stored in world.all(kind)
        }
        """Kind, namespace and name of objects to list again."""
        self._budgets: list[EvictionBudget] | None = None
        self.evicting: dict[str, str] = {}
        self.on_evicted: Callable[[Pod], None] | None = None

    def look(self) -> None:
        """List the objects as they are now; evictions of this moment go by its budgets."""
        for change in self._world.noticed:  # what was written in this moment was not told yet
            if change.kind in _KINDS:
                self.changed[change.kind, *change.newest.key] = None
        for kind, namespace, name in self.changed:
            stored = self._world.get(kind, namespace, name)
            if stored is None:
                self.delete(kind, namespace, name)
            elif kind == "Pod":
                self.put(stored.manifest, stored.typed)
            else:
                self.put(priced(stored.manifest) if kind == "Node" else stored.manifest)
        self.changed.clear()
        self._budgets = None

    def set_taints(self, name: str, taints: list[Document], unschedulable: bool, now_ns: int) -> None:
        super().set_taints(name, taints, unschedulable, now_ns)
        stored = self._world.get("Node", "", name)
        if stored is not None:
            spec = {**(stored.manifest.get("spec") or {}), "taints": taints, "unschedulable": unschedulable}
            kept = {key: value for key, value in spec.items() if value}
            self._world.put({**stored.manifest, "spec": kept}, "tainted by the cluster autoscaler")

    def evict(self, key: str, now_ns: int) -> bool:
        """Evict a pod; whether it is gone."""
        namespace, _, name = key.partition("/")
        pod = self._world.pod(namespace, name)
        if pod is None or pod.uid != self.evicting.get(key, pod.uid):
            self.evicting.pop(key, None)
            return True
        if key in self.evicting or pod.is_terminating:
            return False
        if self._budgets is None:
            listed = self._world.all("PodDisruptionBudget")
            self._budgets = [EvictionBudget(stored.manifest) for stored in listed]
        budgets = [budget for budget in self._budgets if budget.selects(pod)]
        if len(budgets) > 1 or any(budget.left <= 0 for budget in budgets):
            self.log.append((now_ns, {"evictRefused": key}))
            return False
        for budget in budgets:
            budget.left -= 1
        self.log.append((now_ns, {"evict": key}))
        self.evicting[key] = pod.uid
        delete_pod(self._world, pod, None, BY_AUTOSCALER)
        if self.on_evicted is not None:
            self.on_evicted(pod)
        return self._world.live(pod) is None

    def is_ending(self, key: str) -> bool:
        namespace, _, name = key.partition("/")
        pod = self._world.pod(namespace, name)
        return pod is None or pod.is_terminating

    def delete_node(self, name: str, group: str, now_ns: int) -> None:
        super().delete_node(name, group, now_ns)
        for stored in self._world.all("Pod"):
            if stored.typed.node_name == name:
                remove_pod(self._world, stored.typed, "its node was removed")
        self._world.remove("Node", "", name, "removed by the cluster autoscaler")


class ClusterAutoscaler(ClusterProgram):
    """Adds nodes for pods that wait, and removes nodes that are not needed.

    Attributes
    ----------
    groups : Groups or None
        None while it is off.
    prices : PriceList
        By which it chooses when it starts.
    on_loop : callable, optional
        Looks at each loop, with the entries of its log; changes nothing.
    """

    watches: ClassVar[tuple[str, ...]] = ("Namespace", *_KINDS)
    timer_names: ClassVar[tuple[str, ...]] = (LOOPS, DRAINS, ARRIVES)
    annotation: ClassVar[str] = CLUSTER_AUTOSCALER
    component = "cluster-autoscaler"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.groups: Groups | None = None
        self.prices = shipped_prices()
        self.on_loop: Callable[[Loop, Sequence[tuple[int, Mapping[str, Any]]]], None] | None = None
        self._reset()

    def concerns(self, change: Noticed) -> bool:
        return super().concerns(change) if change.kind == "Namespace" else self.groups is not None

    def noticed(self, change: Noticed) -> None:
        if change.kind == "Namespace":
            super().noticed(change)
        else:
            self.hands.changed[change.kind, *change.newest.key] = None

    def _reset(self) -> None:
        self._seen, self._n_born, self._last = -1, 0, ""
        self._last_loop: tuple[Any, ...] | None = None
        self._wakes: set[int] = set()
        self.looks_at_pods = False

    def stop(self) -> None:
        self.groups = None
        self._reset()

    def start(self, given: Given, prices: PriceList, more: Iterable[Document] = ()) -> None:
        """Start with a first loop now.

        Parameters
        ----------
        more : iterable of mapping
            Objects that are taken to be there besides the cluster's own.

        Raises
        ------
        InvalidObject
            A group cannot be used.
        """
        nodes: list[Node] = sorted(
            (stored.typed for stored in self.world.all("Node")), key=lambda node: node.name
        )
        groups = groups_of(nodes, given, prices)
        under_way = Counter(timer.subject[0] for timer in self.timers.all() if timer.what == ARRIVES)
        for machine in groups.machines:
            machine.target_size += under_way[machine.name]
        self._build(given, prices, groups, more)
        self.timers.add(self.world.clock.now_ns, LOOPS)

    def _build(self, given: Given, prices: PriceList, groups: Groups, more: Iterable[Document]) -> None:
        self.remembers, self.given, self._prices = True, given, prices
        self.looks_at_pods = True
        options = {**DEFAULTS, **given.options}
        self.interval_ns = parse_duration_ns(str(options["scan-interval"]))
        self.waits_ns = sorted(parse_duration_ns(str(options[flag])) for flag in WAITS)
        objects = [*more]
        if given.priorities:
            meta = {"name": PRIORITIES, "namespace": NAMESPACE}
            objects.append(object_of("v1", "ConfigMap", meta, data={"priorities": given.priorities}))
        self.groups = groups
        self.hands = _Hands(self.world, groups.group_of, objects)
        groups.group_of = self.hands.group_of
        costs = {kind.name: kind.price for kind in prices.types}
        self.autoscaler = Autoscaler(given.options, groups.machines, self.hands, costs)

    def act(self, key: tuple[str, ...]) -> None:
        now_ns, what = self.world.clock.now_ns, key[0]
        if self.groups is None:
            try:
                if what == LOOPS:
                    self.start(given_from(self.text or ""), self.prices)
            except InvalidObject as error:
                self.refused(error)
            return
        if what == ARRIVES:
            self._bear(key[1], key[2])
            return
        if what == DRAINS:
            self.hands.look()
            self.autoscaler.advance(now_ns)
        else:
            self.timers.add(now_ns + self.interval_ns, LOOPS)
            due = {at_ns for at_ns in self._wakes if at_ns <= now_ns}
            self._wakes -= due
            if self.world.changes == self._seen and not due and not self.autoscaler.deletions.in_progress:
                return
            self._loop(now_ns)
        leaving = [one.next_ns for one in self.autoscaler.deletions.in_progress.values()]
        if leaving:
            self.timers.add(max(min(leaving), now_ns), DRAINS)

    def _bear(self, group: str, name: str) -> None:
        assert self.groups is not None
        machine = next((one for one in self.groups.machines if one.name == group), None)
        if machine is not None:
            now = format_seconds(self.world.clock.now_ns)
            self.world.create(new_node(machine.template, name, now), "added by the cluster autoscaler")
            self.hands.group_of[name] = group

    def _loop(self, now_ns: int) -> None:
        self.hands.look()
        self.autoscaler.advance(now_ns)
        self.hands.look()
        assert self.groups is not None
        self.groups.adopt(stored.typed for stored in self.world.all("Node"))
        loop = self.autoscaler.run_once(now_ns)
        log, self.hands.log = self.hands.log, []
        for _, entry in log:
            for _ in range(entry.get("delta", 0) if "resize" in entry else 0):
                self.timers.add(
                    now_ns + PROVISION_NS, ARRIVES, entry["resize"], self._new_name(entry["resize"])
                )
        if not self._is_as_last(loop):
            step_ns = self.interval_ns
            for wait_ns in (0, *self.waits_ns):
                due_ns = now_ns + -(-wait_ns // step_ns) * step_ns
                self._wakes |= {due_ns, due_ns + step_ns}
        self._record(loop, log)
        self._seen = self.world.changes
        if self.on_loop is not None:
            self.on_loop(loop, log)

    def _is_as_last(self, loop: Loop) -> bool:
        """Whether it found what the loop before did, of which a checkpoint has only a digest."""
        before, self._last_loop = (
            self._last_loop,
            (loop.scale_ups[0].result, loop.scale_down, loop.target_sizes),
        )
        return self._last == _digest(self._last_loop) if before is None else before == self._last_loop

    def _new_name(self, group: str) -> str:
        while True:
            self._n_born += 1
            name = f"{group}{NEW_NODE}{self._n_born}".lower()
            if self.world.node(name) is None:
                return name

    def _record(self, loop: Loop, log: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
        before = self.reasons.get("", {})
        nodes = self.node_reasons(loop, {name.partition(" ")[2]: one for name, one in before.items()})
        why_not: dict[str, Mapping[str, Any]] = {f"Node {name}": one for name, one in nodes.items()}
        for key, one in self._pod_reasons(loop).items():
            stored = self.world.pod(*key.split("/", 1))
            if stored is not None and not stored.node_name:
                why_not[f"Pod {key}"] = one
        for event in loop.events:
            kind, key, type_, reason, message = event
            if kind == "ConfigMap":  # the cluster has none: its settings hold the priorities
                continue
            if reason == NOT_TRIGGERED:
                told = why_not.setdefault(f"Pod {key}", {})
                why_not[f"Pod {key}"] = {**told, "reason": reason, "text": message}
                if before.get(f"Pod {key}", {}).get("text") == message:
                    continue
            namespace, _, name = key.rpartition("/")
            found = self.world.get(kind, namespace, name)
            about = found.manifest if found is not None else {"kind": kind, "metadata": {"name": name}}
            self.tell(about, reason, message, type_=type_)
        self.ran(self._acts(loop, log), why_not)

    def _acts(self, loop: Loop, log: Sequence[tuple[int, Mapping[str, Any]]]) -> Iterator[Act]:
        for _, entry in log:
            if "resize" in entry:
                group, delta = entry["resize"], entry["delta"]
                ups = (one for one in loop.scale_ups if any(grown.group == group for grown in one.resizes))
                what = (f"{group} is resized by {delta:+}",)
                facts = {"group": group, "delta": delta, **self._options(next(ups, None))}
                yield Act(what, effect="acts" if delta > 0 else "takes", facts=facts)
            elif "evict" in entry:
                yield Act(("evicts ", Mention("Pod", entry["evict"])), effect="takes")
            elif "evictRefused" in entry:
                yield Act(("may not evict ", Mention("Pod", entry["evictRefused"]), " now"), effect="looks")
            elif "deleteNode" in entry:
                node = Mention("Node", entry["deleteNode"])
                removed = ("removes ", node, f" of {entry['group']}")
                yield Act(removed, effect="takes", facts={"group": entry["group"], "delta": -1})
        for one in loop.scale_down.deleting:
            used = f", {100 * one['utilization']:.0f}% used"
            yield Act(("begins to remove ", Mention("Node", one["node"]), used), effect="takes")

    def _options(self, found: ScaleUp | None) -> dict[str, Any]:
        """The groups that could grow, and by which expander one was chosen; JSON-able."""
        if found is None or found.choice is None or found.expander is None:
            return {}
        assert self.groups is not None
        machines = {one.name: one for one in self.groups.machines}
        options = []
        for option in found.options:
            labels = (machines[option.group].template.get("metadata") or {}).get("labels") or {}
            price = self._prices.price_of(labels)
            options.append({
                "group": option.group, "type": labels.get(INSTANCE_TYPE, ""), "nodes": option.n_nodes,
                "pods": len(option.pods), "price": None if price is None else price * option.n_nodes,
                "leftOver": found.expander.left_over(option),
                "priority": found.expander.priority_of(option.group),
            })  # fmt: skip
        return {
            "pods": [pod.key for pod in found.triggered[:MOST_NAMED]],
            "expander": str(self.given.options.get("expander", DEFAULTS["expander"])),
            "options": options,
            "byExpander": found.expander.by_each(found.options),
            "filters": [[name, list(left)] for name, left in found.choice.filters],
            "refused": {group: why for group, why in self._refusals(found).items() if why},
        }

    def _refusals(self, found: ScaleUp) -> dict[str, str]:
        """Group -> why it takes none of the pods of a scale-up; empty where it takes some."""
        assert self.groups is not None
        why: dict[str, str] = {}
        for machine in self.groups.machines:
            verdicts = list(found.predicates.get(machine.name, {}).values())
            if any(one is None for one in verdicts):
                why[machine.name] = ""
            elif verdicts:
                texts = dict.fromkeys(text for one in verdicts if one is not None for text in one.reasons)
                why[machine.name] = ", ".join(texts)
            else:
                why[machine.name] = AT_MOST if machine.target_size >= machine.max_size else "not asked"
        return why

    def _pod_reasons(self, loop: Loop) -> dict[str, dict[str, Any]]:
        """Pending pod -> groups that help, and what keeps the others from it."""
        assert self.groups is not None
        most = {one.name: one.max_size for one in self.groups.machines}
        found: dict[str, dict[str, Any]] = {}
        for up in loop.scale_ups:
            for alike in equal_pods([*up.awaiting, *up.triggered]):
                keys = [pod.key for pod in alike.pods]
                helps, others = groups_for(up, keys, loop.target_sizes, most)
                reason = "TriggeredScaleUp" if alike.pods[0] in up.triggered else "AwaitsNode"
                one = {"reason": reason, "helps": helps, "refused": others}
                found |= dict.fromkeys(keys, one)
            for key in up.remaining:
                helps, others = groups_for(up, [key], loop.target_sizes, most)
                found[key] = {"reason": NOT_TRIGGERED, "helps": helps, "refused": others}
        return found

    def node_reasons(self, loop: Loop, before: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Why each node is there after a loop.

        Parameters
        ----------
        before : mapping of str to mapping
            What this said after the loop before, by node: a node that was judged then is not judged each time.
        """
        assert self.groups is not None
        down, flags = loop.scale_down, Flags(self.given.options, self.autoscaler.groups)
        unneeded, now_ns, group_of = set(down.unneeded), self.world.clock.now_ns, self.hands.group_of
        found: dict[str, dict[str, Any]] = {}
        for stored in self.world.all("Node"):
            name = stored.typed.name
            group, last = group_of.get(name, ""), dict(before.get(name, {}))
            said = down.unremovable.get(name)
            if not flags("scale-down-enabled"):
                one: dict[str, Any] = {"reason": "ScaleDownDisabled"}
            elif said is not None and said["reason"] != "RecentlyUnremovable":
                one = dict(said)
            elif name in unneeded:
                one = {"reason": down.result if down.result == "ScaleDownInCooldown" else "NoRoomForMore"}
            elif said is None and down.candidates is not None and name not in down.candidates:
                one = {"reason": "NodeGroupMinSizeReached" if group else "NotAutoscaled"}
            else:
                one = last or {"reason": "NotLookedAt"}
            if one["reason"] == "NotUnderutilized" and name in down.utilization:
                used = down.utilization[name]
                flag = f"scale-down-{'gpu-' if '/' in str(used['resource']) else ''}utilization-threshold"
                one |= {"resource": str(used["resource"]), "share": f"{100 * used['utilization']:.0f}"}
                one["threshold"] = f"{100 * float(flags(flag, group)):.0f}"
            if group:
                one |= {"group": group, "least": self.autoscaler.groups[group].min_size}
            one.pop("leavesNs", None)
            if name not in unneeded:
                one.pop("sinceNs", None)
            else:
                one["sinceNs"] = last.get("sinceNs", now_ns)
                if one["reason"] == "NotUnneededLongEnough":
                    one["leavesNs"] = one["sinceNs"] + flags.ns("scale-down-unneeded-time", group)
            found[name] = one
        return found

    # ---- checkpoints

    def state(self) -> dict[str, Any]:
        if self.groups is None:
            return super().state()
        return {
            **super().state(),
            "machines": [asdict(one) for one in self.groups.machines],
            "groupOf": self.hands.group_of,
            "guessed": self.groups.guessed,
            "evicting": self.hands.evicting,
            "log": self.hands.log,
            "autoscaler": self.autoscaler.state(),
            "seen": self._seen,
            "born": self._n_born,
            "last": self._last if self._last_loop is None else _digest(self._last_loop),
            "wakes": sorted(self._wakes),
        }

    def restore_state(self, state: Mapping[str, Any]) -> None:
        super().restore_state(state)
        self.groups = None
        if self.text is None or "machines" not in state:
            return
        machines = [MachineGroup(**one) for one in state["machines"]]
        groups = Groups(machines, dict(state["groupOf"]), state["guessed"])
        self._build(given_from(self.text), self.prices, groups, ())
        self.hands.evicting = dict(state["evicting"])
        self.hands.log = [(at_ns, entry) for at_ns, entry in state["log"]]
        self.autoscaler.restore(state["autoscaler"])
        self._seen, self._n_born, self._last = state["seen"], state["born"], state["last"]
        self._wakes = set(state["wakes"])


def _digest(seen: object) -> str:
    return hashlib.sha256(repr(seen).encode()).hexdigest()
