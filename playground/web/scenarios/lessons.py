"""A lesson asks before it shows: which node a pod gets, or whose pods go for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import yaml
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from playground.engine.scenarios import Prediction, gallery_documents, load, questions
from playground.web.amounts import requested
from playground.web.cycles.preemption import CRITERIA
from playground.web.looks import View
from playground.web.requests import positive_int
from playground.web.scenarios.past_board import view_past

NO_NODE: Final = "no node"
"""The choice that is always there; no node is called so."""
MOST_CHOICES: Final = 6
ASKS: Final = (
    "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "priority", "preemptionPolicy",
    "schedulerName", "schedulingGroup", "resourceClaims", "volumes",
)  # fmt: skip
"""Fields of a pod's spec that decide beside its requests."""


def lesson(request: HttpRequest, name: str) -> HttpResponse:
    """One question of a lesson; with ``?choice=`` what the scheduler decided."""
    number = positive_int(request.GET.get("q")) or 1
    try:
        asked = questions(name)[number - 1]
    except (KeyError, IndexError):
        raise Http404(f'The lesson "{name}" is not here, or has no question {number}.') from None
    scenario = load(gallery_documents()[name])
    context = {
        "name": name,
        "title": scenario.title or name,
        "lesson": scenario.lesson,
        "asked": asked,
        "steps": range(1, asked.of + 1),
        **view_question(asked, request.GET.get("choice", "")),
    }
    return render(request, "scenarios/lesson.html", context)


def view_question(asked: Prediction, chosen: str = "") -> View:
    """What a question shows, and once something is chosen what was decided and why.

    Returns
    -------
    dict
        `choices`: name, `nodes`: it as on a board, `labels` that matter for the pod, and `words` and
        `mark` (right, wrong or empty) once something is chosen. `verdict` is None before.
    """
    cycle, state = asked.cycle, asked.state
    right = rights(cycle)
    pod = next(one for one in state["pods"] if f"{one['namespace']}/{one['name']}" == cycle["pod"])
    cells = (cell for pool in view_past(state)["look"]["pools"] for cell in pool["cells"])
    cards = {node["name"]: node for cell in cells for node in cell["nodes"]}
    facts = {node["name"]: node for node in state["nodes"]}
    names = chosen_few(cycle, [node for node in cycle.get("nodes") or cards if node in cards])
    rules = {key: value for key in ASKS if (value := _written(key, asked.spec.get(key)))}
    written = json.dumps(rules)
    preempts = cycle["outcome"] == "preempting"
    return {
        "pod": pod["name"],
        "preempts": preempts,
        "priority": pod["priority"],
        "asks": requested(pod["cpu_milli"], pod["memory_bytes"], pod["extended"]),
        "rule_names": list(rules),
        "rules": yaml.safe_dump(rules, sort_keys=False) if rules else "",
        "hint": _hint(cycle),
        "chosen": chosen,
        "no_node": NO_NODE,
        "choices": [
            {
                "name": node,
                "nodes": [cards[node]],
                "labels": [
                    f"{key}={value}" for key, value in facts[node]["labels"].items() if f'"{key}"' in written
                ],
                "pods": [one for one in state["pods"] if one["node_name"] == node] if preempts else [],
                "words": node_words(cycle, node) if chosen else "",
                "mark": _mark(node, chosen, right),
            }
            for node in names
        ],
        "none_mark": _mark(NO_NODE, chosen, right),
        "n_left_out": len(cards) - len(names),
        "verdict": _verdict(cycle, pod["name"], chosen, right) if chosen else None,
    }


def rights(cycle: Mapping[str, Any]) -> list[str]:
    """The right answers of a cycle, the scheduler's own first; nodes with equal points are all right."""
    if cycle["outcome"] == "preempting":
        taken, equal = cycle["nominatedNode"], (cycle["preemption"] or {}).get("tied")
    elif cycle["outcome"] in ("bound", "waiting", "binding"):
        taken, equal = cycle["node"], cycle["best"] if cycle["tie"] else ()
    else:
        taken, equal = NO_NODE, ()
    return [taken, *(node for node in equal or () if node != taken)]


def chosen_few(cycle: Mapping[str, Any], nodes: Sequence[str]) -> list[str]:
    """At most `MOST_CHOICES` of the nodes, in their order: the right one, and one of each fate before a second one."""
    total: Mapping[str, int] = cycle.get("total") or {}
    fates: dict[str, list[str]] = {}
    for node in sorted(nodes, key=lambda one: (one != rights(cycle)[0], -total.get(one, -1))):
        fates.setdefault(node_words(cycle, node), []).append(node)
    by_turn = (alike[turn] for turn in range(len(nodes)) for alike in fates.values() if turn < len(alike))
    few = {node for node, _ in zip(by_turn, range(MOST_CHOICES), strict=False)}
    return [node for node in nodes if node in few]


def node_words(cycle: Mapping[str, Any], node: str) -> str:
    """What a cycle found out about a node."""
    preemption = cycle.get("preemption") or {}
    for candidate in preemption.get("candidates") or ():
        if candidate["node"] == node:
            victims = ", ".join(victim.rpartition("/")[2] for victim in candidate["victims"])
            lost = _criterion(candidate.get("eliminatedAt"))
            return f"Evicts {victims}" + (f". Another node has the {lost}." if lost else ".")
    verdict = (cycle.get("filter") or {}).get(node)
    if verdict:
        amounts = ((cycle.get("amounts") or {}).get(verdict["plugin"]) or {}).get(node)
        by = f"{verdict['plugin']}: " if verdict["plugin"] else ""
        return f"{by}{'; '.join(amounts or verdict['reasons'])}."
    total = (cycle.get("total") or {}).get(node)
    if total is not None:
        parts = [f"{points:,} {plugin}" for plugin, points in points_of(cycle, node) if points]
        return f"{total:,} points: {', '.join(parts)}" if parts else f"{total:,} points"
    if node in (cycle.get("feasible") or ()):
        return "The only node that fits: nothing is scored."
    return "Not looked at."


def points_of(cycle: Mapping[str, Any], node: str) -> Iterable[tuple[str, int]]:
    """(plugin, its points times its weight) of a scored node."""
    for plugin in cycle["scorePlugins"]:
        points = (cycle["scores"].get(plugin) or {}).get(node)
        if points is not None:
            yield plugin, points * cycle["weights"][plugin]


def _written(field: str, value: Any) -> Any:
    """A field as a person wrote it: without what admission adds."""
    if field == "tolerations":
        return [
            one
            for one in value or ()
            if not str(one.get("key")).startswith("node.kubernetes.io/") or "tolerationSeconds" not in one
        ]
    return None if value in ("default-scheduler", "PreemptLowerPriority", 0) else value


def _criterion(key: str | None) -> str:
    name = CRITERIA.get(key or "", "")
    return f"{name[:1].lower()}{name[1:]}"


def _mark(choice: str, chosen: str, right: Sequence[str]) -> str:
    if not chosen:
        return ""
    return "right" if choice == right[0] else "wrong" if choice == chosen and chosen not in right else ""


def _hint(cycle: Mapping[str, Any]) -> str:
    by_plugin: dict[str, int] = {}
    for verdict in (cycle.get("filter") or {}).values():
        if verdict:
            plugin = verdict["plugin"] or "Something other than a filter"
            by_plugin[plugin] = by_plugin.get(plugin, 0) + 1
    if not by_plugin:
        return "No filter rejects a node. Think of the points of each."
    n_nodes = len(cycle["filter"])
    words = [f"{plugin} rejects {number} of {n_nodes} nodes" for plugin, number in by_plugin.items()]
    return f"{'; '.join(words)}."


def _verdict(cycle: Mapping[str, Any], pod: str, chosen: str, right: Sequence[str]) -> View:
    taken, total = right[0], cycle.get("total") or {}
    if taken == NO_NODE:
        words = f"{pod} gets no node: {cycle['message'] or cycle['sentence']}"
    elif cycle["outcome"] == "preempting":
        victims = ", ".join(victim.rpartition("/")[2] for victim in cycle["victims"])
        decided = _criterion((cycle.get("preemption") or {}).get("decidedBy"))
        by = (
            ", and another node would have done as well"
            if len(right) > 1
            else f": the {decided}"
            if decided
            else ""
        )
        words = f"{pod} evicts {victims} from {taken}{by}."
    elif len(right) > 1:
        words = f"{len(right):,} nodes lead with {total[taken]:,} points, and the draw took {taken}."
    else:
        others = sorted((points for node, points in total.items() if node != taken), reverse=True)
        margin = total[taken] - others[0] if others else 0
        by = f", by {margin:,} {'point' if margin == 1 else 'points'}" if margin else ""
        words = f"{pod} lands on {taken}{by}."
    return {"is_right": chosen in right, "words": words}
