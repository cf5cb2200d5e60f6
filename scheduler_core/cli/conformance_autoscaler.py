"""Compare loops of the cluster autoscaler with what the real one did."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from scheduler_core.autoscaler.cluster import LiveCluster
from scheduler_core.autoscaler.cluster_state import MachineGroup
from scheduler_core.autoscaler.expand import describe
from scheduler_core.autoscaler.loop import Autoscaler, Loop
from scheduler_core.autoscaler.scale_up import ScaleUp
from scheduler_core.autoscaler.templates import daemon_pod, runs_on
from scheduler_core.cli.conformance import Difference, differences
from scheduler_core.objects.duration import parse_duration_ns
from scheduler_core.objects.fields import format_seconds, parse_time_ns
from scheduler_core.objects.node import node_from

_AFTER_NS = 3 * 3600 * 10**9
"""How long the recorder watched what was still going on after the last loop."""


def run_autoscaler_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the cluster autoscaler: its loops one after the other.

    Between them the cluster lives on as recorded: machines come, pods are made again and bound.

    Returns
    -------
    list of Difference
        Empty when every key agrees.
    """
    given = case["input"]
    groups = [
        MachineGroup(
            group["name"],
            group["minSize"],
            group["maxSize"],
            group["targetSize"],
            group["template"],
            group.get("templatePods") or (),
            group.get("options") or {},
        )
        for group in given["nodeGroups"]
    ]
    cluster = LiveCluster(given["objects"], given["nodeGroupOf"])
    autoscaler = Autoscaler(given["options"], groups, cluster, given.get("prices") or {})
    start_ns = now_ns = parse_time_ns(given["now"])
    steps: list[dict[str, Any]] = []
    n_told = 0
    for step, expected in zip(given["steps"], case["expect"]["steps"], strict=True):
        now_ns = start_ns + parse_duration_ns(step["at"])
        autoscaler.advance(now_ns)
        for document in step.get("apply") or ():
            cluster.put(document)
        for key in step.get("delete") or ():
            kind, _, name = key.partition(" ")
            cluster.delete(kind, *(name.split("/") if "/" in name else ("", name)))
        cluster.group_of |= step.get("nodeGroupOf") or {}
        cluster.blocked = set(step.get("blockEviction") or ())
        if given.get("auto"):
            _let_live(cluster, groups, expected.get("world") or {}, now_ns)
        loop = autoscaler.run_once(now_ns, refused=step.get("failScaleUp") or ())
        log, n_told = cluster.log[n_told:], len(cluster.log)
        steps.append({"at": step["at"], **_told(loop), "log": _log(log, start_ns)})
        if "world" in expected:
            steps[-1]["world"] = expected["world"]
    autoscaler.advance(now_ns + _AFTER_NS)
    got = {"steps": steps, "logAfter": _log(cluster.log[n_told:], start_ns)}
    return list(differences(_present(case["expect"]), _present(got)))


def _let_live(
    cluster: LiveCluster, groups: Sequence[MachineGroup], world: Mapping[str, Any], now_ns: int
) -> None:
    by_name = {group.name: group for group in groups}
    now = format_seconds(now_ns)
    for name in world.get("nodesAdded") or ():
        group = name.rpartition("-new-")[0]
        template = by_name[group].template
        metadata = {**template["metadata"], "name": name, "uid": f"Node:{name}", "creationTimestamp": now}
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/hostname": name}
        status = dict(template.get("status") or {})
        status["conditions"] = [{**one, "lastTransitionTime": now} for one in status.get("conditions") or ()]
        cluster.put({**template, "metadata": metadata, "status": status})
        cluster.group_of[name] = group
        _add_daemons(cluster, name)
    evicted = {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod for pod in cluster.evicted}
    for key in world.get("podsRecreated") or ():
        pod, name = evicted[key.rpartition("--")[0]], key.partition("/")[2]
        metadata = {**pod["metadata"], "name": name, "uid": f"Pod:{key}", "creationTimestamp": now}
        spec = {field: value for field, value in pod["spec"].items() if field != "nodeName"}
        cluster.put({**pod, "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})
    bound = world.get("podsBound") or {}
    for document in cluster.objects():
        spec, metadata = document.get("spec") or {}, document["metadata"]
        if document["kind"] != "Pod" or spec.get("nodeName"):
            continue
        status = document.get("status") or {}
        node = bound.get(f"{metadata['namespace']}/{metadata['name']}")
        if node:
            cluster.put({**document, "spec": {**spec, "nodeName": node}, "status": {"phase": "Running"}})
        elif status.get("phase") == "Pending":
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            cluster.put({**document, "status": {**status, "conditions": [condition]}})


def _add_daemons(cluster: LiveCluster, node: str) -> None:
    """A DaemonSet's pod comes with each node that it may be on."""
    machine = node_from(cluster.get("Node", "", node) or {})
    for document in cluster.objects():
        if document["kind"] == "DaemonSet" and runs_on(pod := daemon_pod(document), machine):
            metadata = {
                **pod.manifest["metadata"],
                "name": f"{document['metadata']['name']}-{node}",
                "uid": f"Pod:{pod.namespace}/{document['metadata']['name']}-{node}",
            }
            spec = {**pod.manifest["spec"], "nodeName": node}
            cluster.put({**pod.manifest, "metadata": metadata, "spec": spec, "status": {"phase": "Running"}})


def _log(entries: Sequence[tuple[int, Mapping[str, Any]]], start_ns: int) -> list[dict[str, Any]]:
    told = [{**entry, "t": (at_ns - start_ns) // 10**9} for at_ns, entry in entries]
    return sorted(told, key=lambda entry: (entry["t"], json.dumps(entry, sort_keys=True)))


def _told(loop: Loop) -> dict[str, Any]:
    """A loop in the form of `expect`."""
    first, down = loop.scale_ups[0], loop.scale_down
    return {
        "podList": loop.pod_list,
        "schedulableOn": loop.schedulable_on,
        "predicates": {
            name: {
                pod: None if one is None else {"plugin": one.plugin, "reasons": list(one.reasons)}
                for pod, one in pods.items()
            }
            for name, pods in first.predicates.items()
        },
        "packing": {
            name: {pod: node for pod, node in packing.placed.items() if "-fake-" not in node}
            for name, packing in first.packing.items()
        },
        "expander": describe(first.choice, first.options) if first.choice is not None else None,
        "scaleUp": [_scale_up(one) for one in loop.scale_ups],
        "upcomingAfter": loop.upcoming_after,
        "candidates": down.candidates,
        "scaleDown": {
            "result": down.result,
            "simulations": down.simulations,
            "unneeded": down.unneeded,
            "unremovable": down.unremovable,
            "utilization": down.utilization,
            "deleting": down.deleting,
            "deleteResults": down.delete_results,
        },
        "targetSizes": loop.target_sizes,
        "events": list(map(str, loop.events)),
    }


def _scale_up(found: ScaleUp) -> dict[str, Any]:
    return {
        "result": found.result,
        "error": found.error,
        "infos": [
            {"group": one.group, "from": one.start, "to": one.end, "max": one.most} for one in found.resizes
        ],
        "triggered": [pod.key for pod in found.triggered],
        "awaiting": sorted(pod.key for pod in found.awaiting),
        "remaining": {
            key: {
                "rejected": {name: sorted(reasons) for name, reasons in rejected.items()},
                "skipped": {name: [why] for name, why in skipped.items()},
            }
            for key, (rejected, skipped) in found.remaining.items()
        },
        "failedGroups": found.failed,
    }


def _present(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {key: _present(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in ("", [], {})}
    return [_present(item) for item in value] if isinstance(value, list) else value
