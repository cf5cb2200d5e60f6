"""DaemonSet: one pod on every node it may run on, placed there by the scheduler.

Source: pkg/controller/daemon/{daemon_controller,update}.go, pkg/controller/daemon/util/daemonset_util.go, v1.34
Differs: maxSurge is not heeded; pods that fail are replaced without backoff.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scheduler_core.errors import InvalidObject
from scheduler_core.objects import fields
from scheduler_core.objects.node import Node
from scheduler_core.objects.node_selector import RequiredNodeAffinity, required_node_affinity_from
from scheduler_core.objects.pod import Pod, tolerations_from
from scheduler_core.randomness import template_hash
from scheduler_core.sim.controllers import base
from scheduler_core.sim.world import Noticed, generation_of, is_active, is_ready, owner_of

REVISION_LABEL = "controller-revision-hash"
GENERATION_LABEL = "pod-template-generation"
NAME_FIELD = "metadata.name"

_TAINTS = {
    "NoExecute": ("not-ready", "unreachable"),
    "NoSchedule": ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"),
}
STANDARD_TOLERATIONS = tuple(
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
    for effect, names in _TAINTS.items()
    for name in names
)
HOST_NETWORK_TOLERATION = {**STANDARD_TOLERATIONS[-1], "key": "node.kubernetes.io/network-unavailable"}


class DaemonSetController(base.WorkloadController):
    """Looks at a DaemonSet on the nodes that changed, and on all of them when it changed itself."""

    kind: ClassVar[str] = "DaemonSet"
    watches: ClassVar[tuple[str, ...]] = ("Node", "DaemonSet", "PriorityClass")
    watches_pods_of: ClassVar[tuple[str, ...]] = ("DaemonSet",)

    def __init__(self, context: base.ControllerContext) -> None:
        super().__init__(context)
        self._everywhere: dict[base.Key, None] = {}
        self._nodes: dict[base.Key, dict[str, None]] = {}
        self._pods_at: dict[base.Key, dict[str, dict[str, None]]] = {}
        """DaemonSet -> node -> names of its pods for that node."""
        self._eligible: dict[base.Key, dict[str, None]] = {}
        """Nodes on which the DaemonSet should run."""

    # ---- what happens

    def noticed(self, change: Noticed) -> None:
        super().noticed(change)
        if change.kind == "PriorityClass":
            self._everywhere.update(dict.fromkeys(self.workloads))

    def _pod_noticed(self, change: Noticed) -> None:
        super()._pod_noticed(change)
        for stored, is_new in change.versions:
            pod: Pod = stored.typed
            key = self.key_of_owner(owner_of(pod))
            if key is None:
                continue
            name = target_node(pod)
            at = self._pods_at.setdefault(key, {}).setdefault(name, {})
            if is_new:
                at[pod.name] = None
            else:
                at.pop(pod.name, None)
            self._nodes.setdefault(key, {})[name] = None

    def other_noticed(self, change: Noticed) -> None:
        if change.kind != "Node":
            return
        old, new = (None if item is None else item.typed for item in (change.old, change.new))
        if old is not None and new is not None and old.labels == new.labels and old.taints == new.taints:
            return
        for key in self.workloads:
            self._nodes.setdefault(key, {})[change.newest.typed.name] = None
            self.look_at(key)

    def _workload_noticed(self, change: Noticed) -> None:
        super()._workload_noticed(change)
        key = change.newest.key
        workload = self.workloads.get(key)
        if workload is None:
            for kept in (self._everywhere, self._nodes, self._pods_at, self._eligible):
                kept.pop(key, None)
        elif key in self._to_sync:
            self._everywhere[key] = None
            if key not in self._pods_at:
                places = self._pods_at[key] = {}
                for pod in self.pods.of_owner(workload.owner).pods.values():
                    places.setdefault(target_node(pod), {})[pod.name] = None

    def restored(self) -> None:
        super().restored()
        self._nodes.clear()
        self._everywhere.clear()
        for key, workload in self.workloads.items():
            try:
                rule = PlacementRule(workload)
            except InvalidObject:
                continue
            nodes = [stored.typed for stored in self.world.all("Node")]
            self._eligible[key] = {node.name: None for node in nodes if rule.should_run(node)[0]}

    # ---- bringing it in order

    def sync_one(self, workload: base.Workload) -> None:
        key = workload.place
        rule = PlacementRule(workload)
        self.record_template(workload, rule.revision)
        names = self._nodes.pop(key, {})
        if key in self._everywhere:
            del self._everywhere[key]
            places = self._pods_at.get(key, {})
            names = dict.fromkeys(
                [*(str(item.manifest["metadata"]["name"]) for item in self.world.all("Node")), *places]
            )
        for name in names:
            self._sync_node(workload, key, rule, name)
        self._update(workload, key, rule)

    def _sync_node(self, workload: base.Workload, key: base.Key, rule: PlacementRule, node_name: str) -> None:
        stored = self.world.get("Node", "", node_name)
        eligible = self._eligible.setdefault(key, {})
        pods = self._daemon_pods(workload, key, node_name)
        if stored is None:
            # Pods bound to a node that is gone are the pod garbage collector's; waiting ones are ours.
            eligible.pop(node_name, None)
            for pod in pods:
                if not pod.node_name:
                    self.delete_pod(pod, "node gone")
            return
        node: Node = stored.typed
        should_run, may_stay = rule.should_run(node)
        if should_run:
            eligible[node_name] = None
        else:
            eligible.pop(node_name, None)
        if not may_stay:
            for pod in pods:
                self.delete_pod(pod, "node not eligible")
            return
        finished = [pod for pod in pods if pod.is_terminal and not pod.is_terminating]
        for pod in finished:
            self.delete_pod(pod, "finished, to be made anew")
        living = [pod for pod in pods if is_active(pod)]
        # The oldest stays.
        for pod in sorted(living, key=lambda pod: (not pod.node_name, pod.meta.creation_ns or 0, pod.name))[
            1:
        ]:
            self.delete_pod(pod, "more than one on its node")
        if should_run and not living and not any(pod.is_terminating for pod in pods):
            self._make(workload, rule, node_name)

    def _daemon_pods(self, workload: base.Workload, key: base.Key, node_name: str) -> list[Pod]:
        owned = self.pods.of_owner(workload.owner).pods
        names = self._pods_at.get(key, {}).get(node_name, {})
        return [owned[name] for name in sorted(names) if name in owned]

    def _make(self, workload: base.Workload, rule: PlacementRule, node_name: str) -> None:
        spec = {**rule.spec, "affinity": _pinned(rule.affinity, node_name)}
        labels = {REVISION_LABEL: rule.revision, GENERATION_LABEL: str(generation_of(workload.manifest))}
        name = self.context.factory.free_name(workload.namespace, f"{workload.name}-")
        self.make_pod(workload, labels, name=name, spec=spec)

    def _update(self, workload: base.Workload, key: base.Key, rule: PlacementRule) -> None:
        """Delete pods of older templates, as many as may be away at once. Source: update.go rollingUpdate."""
        owned = self.pods.of_owner(workload.owner)
        outdated = [
            pod
            for pod in owned.pods.values()
            if is_active(pod) and pod.labels.get(REVISION_LABEL, rule.revision) != rule.revision
        ]
        if not outdated:
            return
        strategy = fields.mapping(workload.spec, "updateStrategy", "spec")
        if fields.string(strategy, "type", "spec.updateStrategy") == "OnDelete":
            return
        path = "spec.updateStrategy.rollingUpdate"
        document = fields.mapping(strategy, "rollingUpdate", "spec.updateStrategy")
        wanted = len(self._eligible.get(key, {}))
        allowed = max(base.resolve_amount(document, "maxUnavailable", path, wanted, 1, round_up=True), 1)
        unavailable = wanted - min(owned.n_ready, wanted)
        for pod in sorted(outdated, key=lambda pod: (is_ready(pod), pod.name)):
            if is_ready(pod):
                if unavailable >= allowed:
                    return
                unavailable += 1
            self.delete_pod(pod, "updated")

    # ---- status

    def status_of(self, workload: base.Workload) -> dict[str, Any] | None:
        group = self.pods.of_owner(workload.owner)
        wanted = self._eligible.get(workload.place, {})
        revision = template_hash(workload.template)
        ready = scheduled = updated = misplaced = 0
        nodes: dict[str, None] = {}
        for pod in group.pods.values():
            name = target_node(pod)
            if not is_active(pod):
                continue
            if name not in wanted:
                misplaced += 1
            elif name not in nodes:
                nodes[name] = None
                scheduled += 1
                ready += is_ready(pod)
                updated += pod.labels.get(REVISION_LABEL, revision) == revision
        numbers = {
            "updatedNumberScheduled": updated,
            "numberAvailable": ready,
            "numberUnavailable": len(wanted) - ready,
        }
        return workload.status_with(numbers) | {
            "currentNumberScheduled": scheduled,
            "desiredNumberScheduled": len(wanted),
            "numberMisscheduled": misplaced,
            "numberReady": ready,
        }


class PlacementRule:
    """Where a DaemonSet's pods may be, and what they are made of."""

    def __init__(self, workload: base.Workload) -> None:
        spec = dict(fields.mapping(workload.template, "spec", "spec.template"))
        tolerations = [dict(item) for item in fields.sequence(spec, "tolerations", "spec.template.spec")]
        standard = list(STANDARD_TOLERATIONS)
        if fields.boolean(spec, "hostNetwork", "spec.template.spec"):
            standard.append(HOST_NETWORK_TOLERATION)
        known = [
            (item.get("key"), item.get("effect"), item.get("operator"), item.get("value"))
            for item in tolerations
        ]
        tolerations += [
            dict(item)
            for item in standard
            if (item["key"], item["effect"], item["operator"], None) not in known
        ]
        self.spec = {**spec, "tolerations": tolerations}
        self.affinity = fields.mapping(spec, "affinity", "spec.template.spec")
        self.revision = template_hash(workload.template)
        self.tolerations = tolerations_from(self.spec, "spec.template.spec")
        self.node_name = fields.string(spec, "nodeName", "spec.template.spec")
        try:
            self.required: RequiredNodeAffinity = required_node_affinity_from(spec)
        except InvalidObject as error:
            raise InvalidObject("spec.template.spec.affinity", None, str(error)) from error

    def should_run(self, node: Node) -> tuple[bool, bool]:
        """Whether a pod is to be made there, and whether one may stay. Source: NodeShouldRunDaemonPod."""
        if self.node_name and self.node_name != node.name:
            return False, False
        if not self.required.match(node.labels, node.name):
            return False, False
        untolerated = [
            taint for taint in node.taints if not any(item.tolerates(taint) for item in self.tolerations)
        ]
        if any(taint.effect == "NoExecute" for taint in untolerated):
            return False, False
        fits = all(taint.effect != "NoSchedule" for taint in untolerated)
        return fits, True


def target_node(pod: Pod) -> str:
    """The node a daemon pod is on, or is made for. Source: daemonset_util.go GetTargetNodeName."""
    return pod.node_name or pinned_node(pod.manifest["spec"])


def pinned_node(spec: fields.Document) -> str:
    """The one node a daemon pod's affinity names; empty if it names none."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for item in term.get("matchFields") or ():
            values = item.get("values") or ()
            if item.get("key") == NAME_FIELD and item.get("operator") == "In" and len(values) == 1:
                return str(next(iter(values)))
    return ""


def _pinned(affinity: Any, node_name: str) -> dict[str, Any]:
    """The affinity with required terms replaced by the node's name. Source: ReplaceDaemonSetPodNodeNameNodeAffinity."""
    field = {"key": NAME_FIELD, "operator": "In", "values": [node_name]}
    node = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }
    return {**affinity, "nodeAffinity": node}
