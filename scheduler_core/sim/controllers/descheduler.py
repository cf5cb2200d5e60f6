"""The descheduler beside the cluster: its cycles by interval, by schedule or once, and evictions as they are posted.

Source: pkg/descheduler/descheduler.go, pkg/descheduler/evictions/evictions.go, 7d2b28bf2b6a (v0.36)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any, ClassVar, Final

from scheduler_core.descheduler.cycle import DeschedulerCycle, deschedule
from scheduler_core.descheduler.policy import Document, PolicyError, StartError
from scheduler_core.descheduler.settings import DeschedulerSettings, read_settings
from scheduler_core.descheduler.view import Parsed
from scheduler_core.errors import InvalidObject
from scheduler_core.sim.changes import Act, Mention
from scheduler_core.sim.controllers.base import ControllerContext
from scheduler_core.sim.controllers.programs import BY_DESCHEDULER, DESCHEDULER, ClusterProgram
from scheduler_core.sim.kubelet import delete_pod

CYCLES: Final = "descheduler-cycles"
KINDS: Final = (
    "Node", "Pod", "Namespace", "PriorityClass", "PodDisruptionBudget", "PersistentVolumeClaim",
)  # fmt: skip
"""What a cycle reads."""


class Descheduler(ClusterProgram):
    """Evicts pods, cycle by cycle."""

    timer_names: ClassVar[tuple[str, ...]] = (CYCLES,)
    annotation: ClassVar[str] = DESCHEDULER
    component = "sigs.k8s.io/descheduler"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._settings: DeschedulerSettings | None = None
        self._parsed = Parsed()
        self._rested_on: list[Document] | None = None
        """What the last cycle read, where the same would give the same: nothing."""

    def stop(self) -> None:
        self._settings = self._rested_on = None

    def act(self, key: tuple[str, ...]) -> None:
        is_first = self._settings is None
        if self._settings is None and not self._begin():
            return
        assert self._settings is not None
        at_ns = self._settings.next_ns(self.world.clock.now_ns)
        if at_ns is not None:
            self.timers.add(at_ns, CYCLES)
        if is_first and self._settings.schedule is not None:
            return
        objects = [stored.manifest for kind in KINDS for stored in self.world.all(kind)]
        rested_on, self._rested_on = self._rested_on, None
        if rested_on is not None and len(rested_on) == len(objects) and all(map(is_, objects, rested_on)):
            self._rested_on = rested_on
            return
        try:
            cycle = deschedule(
                self._settings.policy,
                objects,
                self.world.clock.now_ns,
                after_eviction="terminating",
                parsed=self._parsed,
            )
        except (PolicyError, StartError) as error:
            self.ran((), {"policy": {"text": str(error)}})
            return
        pods = {stored.typed.key: stored.typed.node_name for stored in self.world.all("Pod")}
        did = self._evict(cycle, self._settings)
        self.ran(did, _reasons(cycle, did, pods))
        if not did and not cycle.goes_by_time:
            self._rested_on = objects

    def _begin(self) -> bool:
        try:
            self._settings = read_settings(self.text or "")
        except InvalidObject as error:
            self.refused(error)
        return self._settings is not None

    def _evict(self, cycle: DeschedulerCycle, settings: DeschedulerSettings) -> list[Act]:
        did, is_dry, policy = list[Act](), settings.dry_run, settings.policy
        for eviction in cycle.evictions.accepted if cycle.evictions is not None else ():
            namespace, _, name = eviction["pod"].partition("/")
            pod = self.world.pod(namespace, name)
            if pod is None:
                continue
            words = "would evict" if is_dry else "evicts"
            what = (f"{words} ", Mention("Pod", pod.key), " from ", Mention("Node", pod.node_name))
            effect = "looks" if is_dry else "takes"
            did.append(Act(what, plugin=eviction["plugin"], effect=effect))
            if is_dry:
                continue
            note = f"pod eviction from {pod.node_name} node by {self.component}"
            self.tell(pod.manifest, eviction["plugin"], note, action="Descheduled")
            delete_pod(self.world, pod, policy.get("gracePeriodSeconds"), BY_DESCHEDULER)
        return did

    def restore_state(self, state: Any) -> None:
        super().restore_state(state)
        self._settings = read_settings(self.text or "") if state.get("started") else None

    def state(self) -> dict[str, Any]:
        return {**super().state(), **({"started": True} if self._settings is not None else {})}


def _reasons(
    cycle: DeschedulerCycle, did: Sequence[Act], node_of: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Why pods stay: what protects them, or what refused the eviction; of plugins that evict none; of each node."""
    if cycle.evictions is None:
        return {"nodes": {"text": f"two ready nodes are needed, and there are {len(cycle.nodes)}"}}
    found: dict[str, dict[str, Any]] = {}
    for verdicts in cycle.evictability.values():
        for verdict in verdicts:
            text = "; ".join(verdict.get("checks") or ()) or verdict.get("text", "")
            if text:
                found[f"Pod {verdict['pod']}"] = {"text": text}
    for _, run in cycle.runs:
        for failure in run.failed:
            found[f"Pod {failure['pod']}"] = {"text": failure["error"]}
        notes = [*run.messages, *([run.error] if run.error else [])]
        if notes and not run.evicted:
            found[run.plugin] = {"text": "; ".join(dict.fromkeys(notes))}
    return found | _of_nodes(cycle, did, node_of, found)


def _of_nodes(
    cycle: DeschedulerCycle,
    did: Sequence[Act],
    node_of: Mapping[str, str],
    reasons: Mapping[str, Mapping[str, Any]],
) -> dict[str, dict[str, Any]]:
    """Of each node how many pods left it by which plugins, or what keeps the most of them."""
    left: dict[str, list[Act]] = {}
    for act in did:
        left.setdefault(act.about[-1].key, []).append(act)
    pods: dict[str, list[str]] = {}
    for key, node in node_of.items():
        pods.setdefault(node, []).append(key)
    found: dict[str, dict[str, Any]] = {}
    for node in cycle.nodes:
        acts = left.get(node, ())
        if acts:
            plugins = ", ".join(dict.fromkeys(act.plugin for act in acts))
            reason = "Evicted" if acts[0].effect == "takes" else "WouldEvict"
            found[f"Node {node}"] = {"reason": reason, "n": len(acts), "plugin": plugins}
            continue
        here = pods.get(node, ())
        kept = Counter(reasons[f"Pod {key}"]["text"] for key in here if f"Pod {key}" in reasons)
        why = "; ".join(f"{number} of them: {text}" for text, number in kept.most_common(1))
        why = f"; {why}" if why else ""
        found[f"Node {node}"] = {"reason": "NothingEvicted", "n": len(here), "why": why}
    return found
