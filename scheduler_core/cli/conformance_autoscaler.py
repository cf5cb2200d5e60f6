"""Compare loops of the cluster autoscaler with what the real one did."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scheduler_core.autoscaler.cluster_state import MachineGroup
from scheduler_core.autoscaler.expand import describe
from scheduler_core.autoscaler.loop import Autoscaler, Loop
from scheduler_core.autoscaler.scale_up import ScaleUp
from scheduler_core.cli.conformance import Difference, differences
from scheduler_core.objects.duration import parse_duration_ns
from scheduler_core.objects.fields import parse_time_ns


def run_autoscaler_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the cluster autoscaler: its loops one after the other.

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
    autoscaler = Autoscaler(given["options"], groups, given.get("prices") or {})
    objects = {_key(document): document for document in given["objects"]}
    group_of = dict(given["nodeGroupOf"])
    start_ns = parse_time_ns(given["now"])
    steps = []
    for step in given["steps"]:
        for document in step.get("apply") or ():
            objects[_key(document)] = document
        for key in step.get("delete") or ():
            kind, _, name = key.partition(" ")
            objects.pop((kind, *(name.split("/") if "/" in name else ("", name))), None)
        group_of |= step.get("nodeGroupOf") or {}
        after_ns = parse_duration_ns(step["at"])
        loop = autoscaler.run_once(
            start_ns + after_ns, objects.values(), group_of, refused=step.get("failScaleUp") or ()
        )
        steps.append({"at": step["at"], **_told(loop, after_ns)})
    expect = [_present(step) for step in case["expect"]["steps"]]
    return list(differences({"steps": expect}, {"steps": [_present(step) for step in steps]}))


def _key(document: Mapping[str, Any]) -> tuple[str, ...]:
    metadata = document["metadata"]
    namespace = "" if document["kind"] == "Node" else metadata.get("namespace", "default")
    return document["kind"], namespace, metadata["name"]


def _told(loop: Loop, after_ns: int) -> dict[str, Any]:
    """A loop in the form of `expect`."""
    first = loop.scale_ups[0]
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
        "scaleDown": {"result": loop.scale_down},
        "targetSizes": loop.target_sizes,
        "events": loop.events,
        "log": sorted(
            ({**entry, "t": after_ns // 10**9} for entry in loop.log),
            key=lambda entry: json.dumps(entry, sort_keys=True),
        ),
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
