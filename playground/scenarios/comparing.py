"""Two runs side by side: where they part, what each plugin said there, who landed elsewhere, how nodes are packed.

Pure: two `Side`s in, JSON-able data out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

MOVED_LIMIT: Final = 2000
PACKING_LIMIT: Final = 400
SCORE_ROWS: Final = 12

Explain = Callable[[int], Mapping[str, Any] | None]


@dataclass(frozen=True, slots=True)
class Decision:
    """What a cycle decided, without its explanation."""

    number: int
    at_ns: int
    pod: str
    outcome: str
    node: str
    message: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two.

    Attributes
    ----------
    decisions
        Cycles from the first, in order.
    state
        What it looked like then (`engine.moments`), figures included.
    explain
        The explanation of a cycle, None where none is kept.
    """

    words: str
    detail: str
    decisions: Sequence[Decision]
    state: Mapping[str, Any]
    explain: Explain
    start_ns: int
    violations: int


def compare_sides(a: Side, b: Side) -> dict[str, Any]:
    """Compare.

    Returns
    -------
    dict
        ``sides``, ``figures`` (name -> [a, b]), ``nSame``, ``divergence`` (None if the decisions are the same),
        ``moved``, ``nMoved``, ``packing`` (nodes in order, each with its pods on either side), ``nNodes``.
    """
    n_same = 0
    for one, other in zip(a.decisions, b.decisions, strict=False):
        if (one.pod, one.outcome, one.node) != (other.pod, other.outcome, other.node):
            break
        n_same += 1
    parted = None
    if n_same < max(len(a.decisions), len(b.decisions)):
        parted = _divergence(a, b, n_same)
    moved = _moved(a, b)
    packing = _packing(a.state, b.state)
    return {
        "sides": [_about(a), _about(b)],
        "figures": _figures(a, b),
        "nSame": n_same,
        "divergence": parted,
        "moved": moved[:MOVED_LIMIT],
        "nMoved": len(moved),
        "packing": packing[:PACKING_LIMIT],
        "nNodes": len(packing),
        "classes": max((a.state["classes"], b.state["classes"]), key=len),
    }


def _about(side: Side) -> dict[str, Any]:
    return {
        "words": side.words,
        "detail": side.detail,
        "cycles": len(side.decisions),
        "elapsedNs": side.state["clock_ns"] - side.start_ns,
    }


def _figures(a: Side, b: Side) -> dict[str, list[float]]:
    first, second = _numbers(a), _numbers(b)
    return {name: [first.get(name, 0), second.get(name, 0)] for name in {**first, **second}}


def _numbers(side: Side) -> dict[str, float]:
    figures = dict(side.state.get("figures") or {})
    alive = [pod for pod in side.state["pods"] if pod["phase"] not in ("Succeeded", "Failed")]
    return {
        "pods": len(alive),
        "cycles": len(side.decisions),
        "preemptions": sum(one.outcome == "preempting" for one in side.decisions),
        "budgetViolations": side.violations,
        **figures,
    }


def _divergence(a: Side, b: Side, place: int) -> dict[str, Any]:
    one = a.decisions[place] if place < len(a.decisions) else None
    other = b.decisions[place] if place < len(b.decisions) else None
    told = [side.explain(cycle.number) if cycle else None for side, cycle in ((a, one), (b, other))]
    present = one or other
    assert present is not None
    same_pod = one is not None and other is not None and one.pod == other.pod
    return {
        "cycle": present.number,
        "pod": present.pod,
        "samePod": same_pod,
        "a": _said(one),
        "b": _said(other),
        "plugins": _plugins(told),
        "rows": _score_rows(told, (one, other)),
        "reasons": _reasons(told),
        "ties": [len(((document or {}).get("tie") or {}).get("nodes") or ()) for document in told],
    }


def _said(cycle: Decision | None) -> dict[str, Any] | None:
    if cycle is None:
        return None
    return {
        "number": cycle.number,
        "pod": cycle.pod,
        "outcome": cycle.outcome,
        "node": cycle.node,
        "sentence": cycle.sentence,
        "message": cycle.message,
    }


def _plugins(told: Sequence[Mapping[str, Any] | None]) -> list[list[dict[str, Any]]]:
    """Score plugins of either side with their weights, those that scored."""
    return [
        [
            {"name": name, "weight": (document.get("weights") or {}).get(name, 1)}
            for name in (document.get("scores") or {})
        ]
        if document
        else []
        for document in told
    ]


def _points(document: Mapping[str, Any], node: str) -> dict[str, int] | None:
    if node not in (document.get("total") or {}):
        return None
    weights = document.get("weights") or {}
    return {
        plugin: by_node[node] * weights.get(plugin, 1)
        for plugin, by_node in (document.get("scores") or {}).items()
        if node in by_node
    }


def _score_rows(
    told: Sequence[Mapping[str, Any] | None], cycles: Sequence[Decision | None]
) -> list[dict[str, Any]]:
    """Both winners first, then the nodes whose totals differ most."""
    totals = [dict((document or {}).get("total") or {}) for document in told]
    winners = [cycle.node for cycle in cycles if cycle is not None and cycle.node]
    others = sorted(
        {*totals[0], *totals[1]} - set(winners),
        key=lambda node: (-abs(totals[0].get(node, 0) - totals[1].get(node, 0)), node),
    )
    rows = []
    for node in list(dict.fromkeys((*winners, *others)))[:SCORE_ROWS]:
        points = [None if document is None else _points(document, node) for document in told]
        rows.append(
            {
                "node": node,
                "points": points,
                "totals": [found.get(node) for found in totals],
                "chosen": [cycle is not None and cycle.node == node for cycle in cycles],
            }
        )
    return rows


def _reasons(told: Sequence[Mapping[str, Any] | None]) -> list[dict[str, Any]]:
    """Nodes that only one side rejected, with its reason."""
    verdicts = [dict((document or {}).get("filter") or {}) for document in told]
    if not all(told):
        return []
    rows = []
    for node in sorted({*verdicts[0], *verdicts[1]}):
        pair = [_reason(found.get(node)) for found in verdicts]
        if bool(pair[0]) != bool(pair[1]):
            rows.append({"node": node, "reasons": pair})
    return rows[:SCORE_ROWS]


def _reason(verdict: Mapping[str, Any] | None) -> str:
    if verdict is None:
        return ""
    return f"{verdict.get('plugin')}: {'; '.join(verdict.get('reasons') or ())}"


def _moved(a: Side, b: Side) -> list[dict[str, Any]]:
    """Pods that are elsewhere; those that have a node on one side only come first."""
    here, there = _places(a), _places(b)
    pods = {f"{pod['namespace']}/{pod['name']}": pod for side in (b, a) for pod in side.state["pods"]}
    last_cycle = {one.pod: one.number for side in (b, a) for one in side.decisions}
    moved = []
    for pod in sorted({*here, *there}):
        first, second = here.get(pod) or _absent(a, pod), there.get(pod) or _absent(b, pod)
        if first == second:
            continue
        facts = pods.get(pod, {})
        moved.append(
            {
                "pod": pod,
                "cycle": last_cycle.get(pod),
                "cpuMilli": facts.get("cpu_milli", 0),
                "priority": facts.get("priority", 0),
                "priorityClass": facts.get("priority_class", ""),
                "a": first,
                "b": second,
            }
        )
    moved.sort(
        key=lambda item: (bool(item["a"]["node"]) == bool(item["b"]["node"]), item["cycle"] or 0, item["pod"])
    )
    return moved


def _absent(side: Side, pod: str) -> dict[str, str]:
    """A pod that had its turn and is gone was evicted or deleted."""
    was_there = any(one.pod == pod for one in side.decisions)
    return {"node": "", "state": "gone" if was_there else "not there"}


def _places(side: Side) -> dict[str, dict[str, str]]:
    lanes = {item["pod"]: lane for lane, items in (side.state.get("queue") or {}).items() for item in items}
    words = {
        "unschedulable": "unschedulable",
        "permit": "waiting at Permit",
        "gated": "gated",
        "backoff": "backing off",
    }
    found = {}
    for pod in side.state["pods"]:
        key = f"{pod['namespace']}/{pod['name']}"
        node = pod["node_name"]
        state = "" if node else words.get(lanes.get(key, ""), "pending")
        found[key] = {"node": node, "state": state}
    return found


def _packing(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every node with its pods on either side; those that differ first in a large cluster."""
    sides = [_by_node(state) for state in (a, b)]
    nodes = [{node["name"]: node for node in state["nodes"]} for state in (a, b)]
    rows = []
    for name in dict.fromkeys((*nodes[0], *nodes[1])):
        rows.append(
            {
                "node": name,
                "cpuMilli": [found.get(name, {}).get("cpu_milli", 0) for found in nodes],
                "memoryBytes": [found.get(name, {}).get("memory_bytes", 0) for found in nodes],
                "there": [name in found for found in nodes],
                "pods": [found.get(name, []) for found in sides],
            }
        )
    if len(rows) > PACKING_LIMIT:
        rows.sort(
            key=lambda row: [pod["name"] for pod in row["pods"][0]] == [pod["name"] for pod in row["pods"][1]]
        )
    return rows


def _by_node(state: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for pod in sorted(state["pods"], key=lambda pod: (-pod["priority"], pod["namespace"], pod["name"])):
        if pod["node_name"] and pod["phase"] not in ("Succeeded", "Failed"):
            found.setdefault(pod["node_name"], []).append(
                {
                    key: pod[key]
                    for key in (
                        "namespace", "name", "priority", "priority_class", "cpu_milli", "memory_bytes", "terminating",
                    )
                }
            )  # fmt: skip
    return found
