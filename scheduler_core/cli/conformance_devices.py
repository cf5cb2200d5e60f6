"""Compare the allocation of devices with what the real scheduler recorded (families dra, dra-cycle, dra-sequence)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from scheduler_core.cli.conformance import Difference, expected_differences, release_of
from scheduler_core.cli.conformance_cycles import (
    CaseCluster,
    CaseSequence,
    compare_cycles,
    decision_body,
    explain,
    sequence_cycle,
)
from scheduler_core.framework.interface import FilterPlugin, PreBindPlugin, PreFilterPlugin
from scheduler_core.framework.runtime import Framework
from scheduler_core.framework.status import Code, Status
from scheduler_core.objects.defaults import prepare
from scheduler_core.objects.fields import Document
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.pod import Pod
from scheduler_core.schedule_one import Decision

DRIVER_FAILS = "example.com/binding"
NAME = "DynamicResources"


class DeviceCluster(CaseCluster):
    """A cluster whose scheduler writes claims, and whose drivers answer at once."""

    @classmethod
    def of(cls, case: Mapping[str, Any]) -> DeviceCluster:
        return cls(case["objects"], case.get("config"), release=release_of(case))

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
    cluster = DeviceCluster.of(case)
    pod = cluster.pending_pod(case["pod"])
    expect = case["expect"]
    gate = cluster.framework_for(pod).run_pre_enqueue(pod)
    if not gate.is_success:
        return expected_differences(expect, explain(cluster, pod))
    decision = cluster.schedule(pod)
    if decision.error is not None and decision.post_filter is None:
        # A cycle that ended in an error before PostFilter was recorded without its verdicts.
        return expected_differences(expect, {"error": decision.error, "feasible": []})
    got = decision_body(decision)
    if decision.post_filter is not None:
        for manifest in decision.post_filter.writes:
            cluster.put(manifest)
    if "claims" in expect:
        got["claims"] = cluster.claims()
    if "onNode" in expect:
        got["onNode"] = {node: _on_node(case, node) for node in got.get("feasible") or ()}
    return expected_differences(expect, got)


def _on_node(case: Mapping[str, Any], node_name: str) -> dict[str, Any]:
    cluster = DeviceCluster.of(case)
    pod = cluster.pending_pod(case["pod"])
    cluster.schedule(pod)
    failed = cluster.reserve_and_pre_bind_all(pod, node_name)
    body = {"claims": cluster.claims(), **failed}
    if cluster.extended_status is not None:
        body["extendedResourceClaimStatus"] = cluster.extended_status
    return body


def run_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the family `dra`: the plugin alone."""
    cluster = DeviceCluster.of(case)
    pod = cluster.pending_pod(case["pod"])
    got: dict[str, Any] = {}
    plugin: Any = cluster.framework_for(pod).plugins[NAME]
    gate = plugin.pre_enqueue(pod)
    if not gate.is_success:
        return expected_differences(case["expect"], {"preEnqueue": _said(gate)})
    got["preFilter"] = _said(_pre_filter(cluster, plugin, pod)[0])
    verdicts = _verdicts(cluster, plugin, pod)
    if verdicts is not None:
        got["filter"] = verdicts
        got["feasible"] = sorted(name for name, verdict in verdicts.items() if verdict is None)
        if got["feasible"]:
            got["onNode"] = {name: _alone_on_node(case, name) for name in got["feasible"]}
        else:
            result = plugin.post_filter(_Filtered(pod))
            got["postFilter"] = _said(result.status)
            for manifest in result.writes:
                cluster.put(manifest)
            got["claims"] = cluster.claims()
    return expected_differences(case["expect"], got)


class _Filtered:
    """What PostFilter of this plugin looks at."""

    def __init__(self, pod: Pod) -> None:
        self.pod = pod

    def pre_filter_ran(self, plugin: str) -> bool:
        return True


def _said(status: Status) -> dict[str, Any]:
    return {"code": status.code.name, "reasons": sorted(status.reasons)}


def _pre_filter(cluster: CaseCluster, plugin: PreFilterPlugin[Any], pod: Pod) -> tuple[Status, Any]:
    result = plugin.pre_filter(pod, cluster.cache.snapshot())
    return result.status, result.state


def _verdicts(cluster: CaseCluster, plugin: Any, pod: Pod) -> dict[str, Any] | None:
    status, state = _pre_filter(cluster, plugin, pod)
    if status.code is Code.Skip:
        return None
    if not status.is_success:
        return None
    assert isinstance(plugin, FilterPlugin)
    snapshot = cluster.cache.snapshot()
    rows = np.array(snapshot.rows)
    found = plugin.filter(state, pod, snapshot.nodes, rows)
    verdicts: dict[str, Any] = {}
    for place, row in enumerate(rows.tolist()):
        code = Code(int(found.codes[place]))
        detail = 0 if found.details is None else int(found.details[place])
        name = snapshot.nodes.name(row)
        verdicts[name] = None
        if code is not Code.Success:
            reasons = sorted(plugin.reasons(state, pod, snapshot.nodes, row, code, detail))
            verdicts[name] = {"code": code.name, "reasons": reasons}
    return verdicts


def _alone_on_node(case: Mapping[str, Any], node_name: str) -> dict[str, Any]:
    cluster = DeviceCluster.of(case)
    pod = cluster.pending_pod(case["pod"])
    plugin: Any = cluster.framework_for(pod).plugins[NAME]
    _verdicts(cluster, plugin, pod)
    status = plugin.reserve(pod, node_name)
    if not status.is_success:
        return {"reserve": _said(status), "claims": cluster.claims()}
    for _ in range(10):
        status = plugin.pre_bind(pod, node_name)
        if status.code is not Code.Wait:
            break
        for manifest in plugin.take_writes(pod):
            cluster.put(manifest)
    failed = {} if status.is_success else {"preBind": _said(status)}
    return {"claims": cluster.claims(), **failed}


def run_sequence_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the family `dra-sequence`."""
    sequence = DeviceSequence(case)

    def ends() -> dict[str, Any]:
        return {
            "final": sequence.nodes,
            "deleted": sequence.deleted,
            "claims": sequence.device_cluster.claims(),
        }

    return compare_cycles(case, sequence.bodies(), ends)


class DeviceSequence(CaseSequence):
    """A sequence whose pods bind with Reserve and PreBind, and whose victims give their devices back."""

    def make_cluster(self, case: Mapping[str, Any]) -> CaseCluster:
        self.device_cluster = DeviceCluster.of(case)
        return self.device_cluster

    def bodies(self) -> Iterator[dict[str, Any]]:
        """Each cycle in the recorded form, with what became of the claims."""
        self._told: dict[str, Any] = {}
        """Claims as they were when the cycle before was over; none before the first."""
        self._more: dict[str, Any] = {}
        decisions = self.cycles()
        decision = next(decisions, None)
        while decision is not None:
            body = sequence_cycle(decision)
            self._more = {}
            victims = decision.post_filter is not None and decision.post_filter.victims
            if victims:
                # What victims give back counts as a change of the next cycle.
                self._told = self.device_cluster.claims()
            # What a decision leads to happens when the next one is asked for.
            following = next(decisions, None)
            if not victims and decision.error is None:
                self._told = self.device_cluster.claims()
            yield {**body, **self._more}
            decision = following

    def _bind(self, pod: Pod, node_name: str, number: int) -> None:
        cluster = self.device_cluster
        cluster.extended_status = None
        failed = cluster.reserve_and_pre_bind_all(pod, node_name)
        changed = {key: body for key, body in cluster.claims().items() if self._told.get(key) != body}
        if failed:
            # PreBind may have written some claims before it failed.
            self._more = {**failed, "node": None, **({"claims": changed} if changed else {})}
            self._unschedulable.append(pod)
            return
        self._more = {"claims": changed}
        if cluster.extended_status is not None:
            self._more["extendedResourceClaimStatus"] = cluster.extended_status
        super()._bind(pod, node_name, number)

    def _find_no_place(self, pod: Pod, decision: Decision) -> None:
        result = decision.post_filter
        if result is not None and result.writes:
            for manifest in result.writes:
                self.device_cluster.put(manifest)
            keys = (f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in result.writes)
            # The recorder sees what it saw allocated before.
            freed = sorted(key for key in keys if key in self._told)
            self._more["deallocated"] = freed
            self._deleted_since_refill |= bool(freed)
        super()._find_no_place(pod, decision)
        if result is not None and result.victims:
            given_up = sorted(key for victim in result.victims for key in self._free(victim))
            self._more["freedClaims"] = given_up

    def _free(self, victim: Pod) -> list[str]:
        """Take a pod that is gone off its claims; those that no pod holds any more are given up."""
        listers = self.device_cluster.cache.listers
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
                self.device_cluster.put({**manifest, "status": kept})
        return freed
