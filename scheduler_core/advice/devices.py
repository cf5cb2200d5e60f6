"""How devices were looked for: the claims of a pod on every node, and one node opened up."""

from __future__ import annotations

from typing import Any

from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.advice.why_not import UnknownNode
from scheduler_core.framework.interface import PreFilterPlugin
from scheduler_core.objects.pod import Pod

MAX_NODES = 200
"""Nodes that are told one by one."""
_BRIEF = ("node", "verdict", "reason", "refusals", "nDevices")


def devices_of(sandbox: Sandbox, pod: Pod, node_name: str = "") -> dict[str, Any] | None:
    """The search for a pod's devices, were its cycle now; None for a pod that wants none.

    Parameters
    ----------
    node_name : str
        The node to open up; empty = the one the pod would go to, else one with the most devices.

    Returns
    -------
    dict
        `pod`, `plugin`; `refused`: what PreFilter said before any node was looked at, or empty; `nodes`: verdict,
        reason and refusals by check of up to 200 nodes, in evaluation order; `nNodes`, `nAllocated`; `open`: one
        node (`dynamic_resources.story`), or None.

    Raises
    ------
    UnknownNode
    """
    snapshot = sandbox.snapshot
    rows = snapshot.order.tolist()
    row_of = {snapshot.nodes.name(row): row for row in rows}
    if node_name and node_name not in row_of:
        raise UnknownNode(node_name)
    for plugin in sandbox.framework(pod).filter:
        if not isinstance(plugin, PreFilterPlugin) or not plugin.gives_devices:
            continue
        found = plugin.pre_filter(pod, snapshot)
        if found.status.is_skip:
            return None
        told: dict[str, Any] = {
            "pod": pod.key, "plugin": plugin.name, "refused": "", "nodes": [], "nNodes": len(rows),
            "nAllocated": 0, "open": None,
        }  # fmt: skip
        if not found.status.is_success:
            return {**told, "refused": found.status.message}
        for row in rows[:MAX_NODES]:
            on_node = plugin.devices(found.state, pod, snapshot.nodes.node(row))
            if on_node is not None:
                told["nodes"].append({key: on_node[key] for key in _BRIEF})
        told["nAllocated"] = sum(item["verdict"] == "allocated" for item in told["nodes"])
        chosen = node_name or sandbox.decide(pod).node_name or ""
        if not chosen and told["nodes"]:
            chosen = max(told["nodes"], key=lambda item: item["nDevices"])["node"]
        if chosen:
            told["open"] = plugin.devices(found.state, pod, snapshot.nodes.node(row_of[chosen]))
        return told
    return None
