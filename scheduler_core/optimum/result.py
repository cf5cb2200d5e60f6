"""What a solution means for a cluster: placed together, against placed one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler_core.optimum.problem import JointProblem
from scheduler_core.optimum.solver import Solution


def optimum_document(
    problem: JointProblem, manifests: Iterable[Mapping[str, Any]], solution: Solution
) -> dict[str, Any]:
    """What was found beside what is, JSON-able.

    Returns
    -------
    dict
        ``levels`` [{priority, pods, now, best, atMost}], highest first; ``placed``, ``score`` [one by one, together];
        ``scoreAtMost``; ``gap`` (of the sum of scores, as a share of its bound; 0 where proved); ``proved``;
        ``pods`` [{pod, priority, now, best}], those that change first; ``nMoved``; ``nRules``; ``coupled``; ``room``.
    """
    now = {
        f"{item['metadata'].get('namespace') or 'default'}/{item['metadata']['name']}": (
            item.get("spec") or {}
        ).get("nodeName")
        or ""
        for item in manifests
        if item["kind"] == "Pod"
    }
    greedy: dict[int, int] = {}
    n_of: dict[int, int] = {}
    score = 0
    pods: list[Mapping[str, Any]] = []
    for pod in problem.pods:
        for name in pod.names:
            n_of[pod.priority] = n_of.get(pod.priority, 0) + 1
            node = now.get(name, "")
            if node:
                greedy[pod.priority] = greedy.get(pod.priority, 0) + 1
                score += pod.scores.get(node, 0)
            best = solution.node_of.get(name, "")
            pods.append({"pod": name, "priority": pod.priority, "now": node, "best": best})
    pods = _without_swaps(problem, pods)
    pods.sort(key=lambda item: (bool(item["now"]) == bool(item["best"]), item["now"] == item["best"],
                                -item["priority"], item["pod"]))  # fmt: skip
    return {
        "levels": [
            {
                "priority": level,
                "pods": n_of[level],
                "now": greedy.get(level, 0),
                "best": solution.placed.get(level, 0),
                "atMost": solution.at_most.get(level, 0),
            }
            for level in sorted(n_of, reverse=True)
        ],
        "placed": [sum(greedy.values()), sum(solution.placed.values())],
        "score": [score, solution.score],
        "scoreAtMost": solution.score_at_most,
        "gap": _gap(solution),
        "proved": solution.proved,
        "pods": list(pods),
        "nMoved": sum(item["now"] != item["best"] for item in pods),
        "nRules": len(problem.rules),
        "coupled": list(problem.coupled),
        "room": {node: dict(room) for node, room in problem.room.items()},
    }


def _gap(solution: Solution) -> float:
    if solution.proved or not solution.score_at_most:
        return 0.0
    return round((solution.score_at_most - solution.score) / solution.score_at_most, 4)


def _without_swaps(problem: JointProblem, pods: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Pods that are alike keep their node where the best placement uses it for one of them anyway."""
    by_name = {item["pod"]: dict(item) for item in pods}
    for group in problem.pods:
        wanted = [by_name[name]["best"] for name in group.names]
        rest = []
        for name in group.names:
            now = by_name[name]["now"]
            if now and now in wanted:
                wanted.remove(now)
                by_name[name]["best"] = now
            else:
                rest.append(name)
        # Those without a node now take one last, so that fewest pods change between having one and not.
        rest.sort(key=lambda name: not by_name[name]["now"])
        wanted.sort(key=lambda node: not node)
        for name, node in zip(rest, wanted, strict=True):
            by_name[name]["best"] = node
    return list(by_name.values())
