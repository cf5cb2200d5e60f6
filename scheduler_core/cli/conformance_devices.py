"""Compare the allocation of devices with what the real scheduler recorded (families dra, dra-cycle, dra-sequence)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from scheduler_core.cli import conformance_cycles
from scheduler_core.cli.conformance import Difference, expected_differences
from scheduler_core.config.types import API_VERSION, KIND
from scheduler_core.framework.interface import PreBindPlugin
from scheduler_core.framework.runtime import Framework
from scheduler_core.framework.status import Code, Status
from scheduler_core.objects.defaults import prepare
from scheduler_core.objects.fields import Document
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.pod import Pod
from scheduler_core.schedule_one import Decision

DRIVER_FAILS = "example.com/binding"
_ENABLED = [{"name": name} for name in ("PrioritySort", "DynamicResources", "DefaultBinder")]
_ONLY = {"plugins": {"multiPoint": {"enabled": _ENABLED, "disabled": [{"name": "*"}]}}}
ALONE: Final = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [_ONLY]}
"""A configuration that runs the plugin, and what no scheduler is made without."""


class DeviceCluster(conformance_cycles.CaseCluster):
    """A cluster whose scheduler writes claims, and whose drivers answer at once."""

    def reserve_and_pre_bind_all(self, pod: Pod, node_name: str) -> dict[str, Any]:
        """Reserve and PreBind of all plugins; the step that failed, if one did, after Unreserve."""
        framework = self.framework_for(pod)
        status = framework.run_reserve(pod, node_name)
        step = "reserve"
        if status.is_success:
            step, status = "preBind", self._pre_bind_all(framework, pod, node_name)
        if status.is_success:
            return {}
        framework.run_unreserve(pod, node_name)
        self.write(framework, pod)
        reasons = [status.message]
        plugin = status.plugin if status.is_rejection or step == "reserve" else ""
        return {step: {"plugin": plugin, "code": status.code.name, "reasons": reasons}}

    def _pre_bind_all(self, framework: Framework, pod: Pod, node_name: str) -> Status:
        for _ in range(10):
            status = framework.run_pre_bind(pod, node_name)
            if status.code is not Code.Wait or not self.write(framework, pod):
                return status
        return status

    def write(self, framework: Framework, pod: Pod) -> bool:
        """Give the API server what plugins want written; whether there was anything."""
        wrote = False
        for plugin in framework.plugins.values():
            if isinstance(plugin, PreBindPlugin):
                for manifest in plugin.take_writes(pod):
                    self.put(manifest)
                    wrote = True
        return wrote

    def put(self, manifest: Document) -> None:
        if manifest["kind"] == "Pod":
            self.extended_status = manifest["status"].get("extendedResourceClaimStatus")
            return
        kind, namespace, name, typed = parse(prepare(_as_its_driver(manifest)))
        self.cache.listers.set(kind, namespace, name, typed)

    extended_status: Any = None

    def claims(self) -> dict[str, Any]:
        return {
            f"{item.meta.namespace}/{item.meta.name}": claim_body(item.manifest)
            for item in self.cache.listers.all("ResourceClaim")
        }


def _as_its_driver(manifest: Document) -> Document:
    """What the driver of the recordings does to an allocated claim: sets its binding conditions."""
    status = manifest.get("status") or {}
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    waiting = [item for item in results if item.get("bindingConditions")]
    if not waiting or status.get("devices"):
        return manifest
    fails = (manifest["metadata"].get("annotations") or {}).get(DRIVER_FAILS) == "fail"
    devices = []
    for item in waiting:
        names = item["bindingFailureConditions"][:1] if fails else item["bindingConditions"]
        told = {"reason": "Scripted", "message": "as scripted"}
        conditions = [{"type": name, "status": "True", **told} for name in names]
        place = {key: item[key] for key in ("driver", "pool", "device")}
        devices.append({**place, "conditions": conditions})
    return {**manifest, "status": {**status, "devices": devices}}


def claim_body(manifest: Document) -> dict[str, Any]:
    """A claim in the recorded form."""
    status = manifest.get("status") or {}
    allocation = status.get("allocation")
    body: dict[str, Any] = {"allocated": allocation is not None}
    if allocation is not None:
        devices = []
        for item in (allocation.get("devices") or {}).get("results") or ():
            device = {key: value for key, value in item.items() if key != "shareID"}
            if item.get("shareID") is not None:
                device["shared"] = True
            devices.append(device)
        body["devices"] = devices
        if allocation.get("nodeSelector") is not None:
            body["nodeSelector"] = allocation["nodeSelector"]
        config = (allocation.get("devices") or {}).get("config")
        if config:
            body["config"] = config
    if status.get("reservedFor"):
        body["reservedFor"] = [entry["name"] for entry in status["reservedFor"]]
    if "-extended-resources-" in manifest["metadata"]["name"]:
        body["extendedResourceSpec"] = manifest.get("spec")
    return body


def run_cycle_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the family `dra-cycle`."""
    return expected_differences(case["expect"], _cycle(case))


def run_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the family `dra`: the plugin alone, which the recording does not name."""
    got = _cycle({**case, "config": ALONE})
    got["filter"] = {
        node: verdict and _unnamed(verdict) for node, verdict in (got.get("filter") or {}).items()
    }
    for key in ("preEnqueue", "preFilter"):
        got[key] = _unnamed(got.get(key) or {})
    for steps in (got.get("onNode") or {}).values():
        steps |= {step: _unnamed(steps[step]) for step in ("reserve", "preBind") if step in steps}
    return expected_differences(case["expect"], got)


def _unnamed(status: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in status.items() if key != "plugin"}


def _cycle(case: Mapping[str, Any]) -> dict[str, Any]:
    """Everything a recording says of one pod's cycle, and of each node that it could be on."""
    cluster = DeviceCluster.of(case)
    pod = cluster.pending_pod(case["pod"])
    gate = cluster.framework_for(pod).run_pre_enqueue(pod)
    if not gate.is_success:
        return conformance_cycles.explain(cluster, pod)
    decision = cluster.schedule(pod)
    result = decision.post_filter
    if decision.error is not None and result is None:
        if "error" in case["expect"]:
            # A cycle that ended in an error before PostFilter was recorded without its verdicts.
            return {"error": decision.error, "feasible": []}
        alone: Any = decision.attempt.framework.plugins["DynamicResources"]
        result = alone.post_filter(decision.attempt)
    got = conformance_cycles.decision_body(decision)
    if result is not None:
        got["postFilter"] = {"code": result.status.code.name, "reasons": sorted(result.status.reasons)}
        for manifest in result.writes:
            cluster.put(manifest)
    if "claims" in case["expect"]:
        got["claims"] = cluster.claims()
    if "onNode" in case["expect"]:
        got["onNode"] = {node: _on_node(case, node) for node in got.get("feasible") or ()}
    return got


def _on_node(case: Mapping[str, Any], node_name: str) -> dict[str, Any]:
    cluster = DeviceCluster.of(case)
    pod = cluster.pending_pod(case["pod"])
    cluster.schedule(pod)
    failed = cluster.reserve_and_pre_bind_all(pod, node_name)
    body = {"claims": cluster.claims(), **failed}
    if cluster.extended_status is not None:
        body["extendedResourceClaimStatus"] = cluster.extended_status
    return body


def run_sequence_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the family `dra-sequence`."""
    return conformance_cycles.compare_cycles(
        case, DeviceSequence(case, DeviceCluster.of(case)), conformance_cycles.sequence_cycle
    )


class DeviceSequence(conformance_cycles.CaseSequence):
    """A sequence whose pods bind with Reserve and PreBind, and whose victims give their devices back."""

    def __init__(self, case: Mapping[str, Any], cluster: DeviceCluster) -> None:
        super().__init__(case, cluster)
        self.devices = cluster
        self._told: dict[str, Any] = {}
        """Claims as they were when the cycle before was over; none before the first."""

    def ends(self) -> dict[str, Any]:
        return {**super().ends(), "claims": self.devices.claims()}

    def _act(self, pod: Pod, decision: Decision, number: int) -> dict[str, Any]:
        result = decision.post_filter
        if result is not None and result.victims:
            # What victims give back counts as a change of the next cycle.
            self._told = self.devices.claims()
        more = self._bound(pod, decision, number) if decision.node_name else self._not_placed(pod, decision)
        if decision.error is None and not (result is not None and result.victims):
            self._told = self.devices.claims()
        return more

    def _bound(self, pod: Pod, decision: Decision, number: int) -> dict[str, Any]:
        assert decision.node_name is not None
        self.devices.extended_status = None
        failed = self.devices.reserve_and_pre_bind_all(pod, decision.node_name)
        changed = {key: body for key, body in self.devices.claims().items() if self._told.get(key) != body}
        if failed:
            # PreBind may have written some claims before it failed.
            self._unschedulable.append(pod)
            return {**failed, "node": None, **({"claims": changed} if changed else {})}
        super()._act(pod, decision, number)
        more: dict[str, Any] = {"claims": changed}
        if self.devices.extended_status is not None:
            more["extendedResourceClaimStatus"] = self.devices.extended_status
        return more

    def _not_placed(self, pod: Pod, decision: Decision) -> dict[str, Any]:
        result = decision.post_filter
        more: dict[str, Any] = {}
        if result is not None and result.writes:
            for manifest in result.writes:
                self.devices.put(manifest)
            keys = (f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in result.writes)
            # The recorder sees what it saw allocated before.
            more["deallocated"] = sorted(key for key in keys if key in self._told)
            self._deleted_since_refill |= bool(more["deallocated"])
        self._find_no_place(pod, decision)
        if result is not None and result.victims:
            more["freedClaims"] = sorted(key for victim in result.victims for key in self._free(victim))
        return more

    def _free(self, victim: Pod) -> list[str]:
        """Take a pod that is gone off its claims; those that no pod holds any more are given up."""
        listers = self.devices.cache.listers
        freed = []
        for item in listers.all("ResourceClaim"):
            manifest, key = item.manifest, (item.meta.namespace, item.meta.name)
            status = manifest.get("status") or {}
            held = status.get("reservedFor") or ()
            left = [entry for entry in held if entry.get("uid") != victim.uid]
            if any(owner.uid == victim.uid for owner in item.meta.owners):
                listers.remove("ResourceClaim", *key)
                freed.append("/".join(key))
            elif len(left) != len(held):
                kept = {name: value for name, value in status.items() if name != "reservedFor"}
                if left:
                    kept["reservedFor"] = left
                else:
                    freed.append("/".join(key))
                    kept = {
                        name: value for name, value in kept.items() if name not in ("allocation", "devices")
                    }
                self.devices.put({**manifest, "status": kept})
        return freed
