"""Placement: the node taken is feasible, and none of the feasible scores higher; where none is, no pod is placed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.model import filters, scores
from scheduler_core.model.filters import Feasibility
from scheduler_core.model.moment import Moment, Place
from scheduler_core.model.verdict import FAILS, HOLDS, LEAVES, NOT_COMPUTED, PLACEMENT, PropertyVerdict
from scheduler_core.releases import Release


def check_placement(
    told: Mapping[str, Any], moment: Moment, asked: Feasibility, args: Mapping[str, Any]
) -> PropertyVerdict:
    """Check what a cycle decided.

    Parameters
    ----------
    told : mapping
        The cycle's whole explanation (`framework.record.CycleTrace.explain`).
    args : mapping
        Arguments of the profile's plugins by name.
    """
    if told["error"] and not told["node"]:
        return PropertyVerdict(PLACEMENT, NOT_COMPUTED, f"The cycle ended in an error: {told['error']}")
    if told["filter"] is None and told["preFilter"]["plugin"] not in (None, *filters.EVALUATED):
        said = f"{told['preFilter']['plugin']} rejected all nodes; the model takes its word."
        return PropertyVerdict(PLACEMENT, NOT_COMPUTED, said)
    recorded: Mapping[str, Any] = told["filter"] or {}
    others = _taken_as_recorded(told, recorded)
    wrong = _disagreement(told, recorded, asked)
    if wrong is not None:
        return wrong
    chosen, feasible = told["node"], list(told["feasible"])
    if not chosen and feasible:
        return PropertyVerdict(
            PLACEMENT, FAILS, f"{feasible[0]} is feasible, and the pod was placed nowhere.",
            counterexample={"node": feasible[0]},
        )  # fmt: skip
    if chosen and chosen not in feasible:
        return PropertyVerdict(PLACEMENT, FAILS, f"The pod was placed on {chosen}, which is not feasible.")
    if len(feasible) > 1:
        wrong = _not_viable(told, asked, args, moment.release)
        if wrong is not None:
            return wrong
    return _left(told, recorded, asked) or PropertyVerdict(PLACEMENT, HOLDS, _words(told, others))


def _words(told: Mapping[str, Any], others: str) -> str:
    counts = f"{told['nNodes']} possible, {len(told['feasible'])} feasible, {told['nViable']} viable"
    if not told["node"]:
        return f"No node is feasible ({counts}).{others}"
    why = "none of the feasible scores higher" if len(told["feasible"]) > 1 else "it is the only feasible one"
    return f"{told['node']} is feasible, and {why} ({counts}).{others}"


def _taken_as_recorded(told: Mapping[str, Any], recorded: Mapping[str, Any]) -> str:
    skipped = set(told["skippedFilter"])
    names = [name for name in told["filterPlugins"] if name not in filters.EVALUATED and name not in skipped]
    said = {verdict["plugin"] for verdict in recorded.values() if verdict}
    names = [name for name in names if name in said]
    return f" What {', '.join(names)} said is taken as recorded." if names else ""


def _judged_elsewhere(told: Mapping[str, Any], name: str, verdict: Mapping[str, Any] | None) -> bool:
    """Whether a node's verdict came from an extender or from a plugin the model does not evaluate."""
    if verdict is None:
        return bool(told["extenders"]) and name not in told["feasible"]
    if verdict["plugin"] is None:
        # An extender's word, or a node that PreFilter left out.
        return bool(told["extenders"]) or "VolumeBinding" not in told["skippedFilter"]
    return verdict["plugin"] not in filters.EVALUATED


def _is_nominated(told: Mapping[str, Any]) -> bool:
    """Whether the pod took the node it was nominated to, without a look at any other."""
    return bool(told["node"]) and told["nodesEvaluated"] == 1 and told["nNodes"] > 1


def _disagreement(
    told: Mapping[str, Any], recorded: Mapping[str, Any], asked: Feasibility
) -> PropertyVerdict | None:
    """A node the model judges otherwise than the cycle did."""
    for place in asked.places:
        name = place.node.name
        if told["filter"] is None:
            passes, by = False, told["preFilter"]["plugin"] or "PreFilter"
        elif name in recorded and not _judged_elsewhere(told, name, recorded[name]):
            verdict = recorded[name]
            passes, by = verdict is None, (verdict or {}).get("plugin") or "PreFilter"
        else:
            continue
        if _is_nominated(told) and name != told["node"]:
            continue
        refusal = asked.verdict(place)
        if passes == (refusal is None):
            continue
        said = (
            f"{name} is feasible, and {by} rejected it."
            if refusal is None
            else f"{name} is not feasible ({refusal.plugin}), and passed every filter."
        )
        right = "feasible" if refusal is None else refusal.plugin
        return PropertyVerdict(PLACEMENT, FAILS, said, counterexample={"node": name, "model": right})
    return None


def _not_viable(
    told: Mapping[str, Any], asked: Feasibility, args: Mapping[str, Any], release: Release
) -> PropertyVerdict | None:
    """A feasible node that scores higher than the chosen one, or points that were not summed or given rightly."""
    total: Mapping[str, int] | None = told["total"]
    if not total:
        # Neither a score plugin nor an extender: all nodes are equal.
        return None
    feasible = set(told["feasible"])
    places = [place for place in asked.places if place.node.name in feasible]
    given: Mapping[str, Mapping[str, int]] = told["scores"]
    for plugin, by_node in given.items():
        right = (
            scores.points(plugin, asked.pod, places, args.get(plugin), release)
            if len(places) == len(feasible)
            else None
        )
        for name in sorted(right or ()):
            if right is not None and by_node.get(name) != right[name]:
                said = f"{plugin} gave {name} {by_node.get(name)} points; they are {right[name]}."
                return PropertyVerdict(
                    PLACEMENT, FAILS, said, counterexample={"node": name, "points": right[name]}
                )
    if not told["extenders"]:
        weights = told["weights"]
        for name in sorted(total):
            summed = sum(by_node[name] * weights[plugin] for plugin, by_node in given.items())
            if summed != total[name]:
                said = f"The points of {name} sum up to {summed}, not {total[name]}."
                return PropertyVerdict(PLACEMENT, FAILS, said, counterexample={"node": name, "total": summed})
    best = max(total.values())
    if total[told["node"]] != best:
        name = min(name for name in total if total[name] == best)
        return PropertyVerdict(
            PLACEMENT, FAILS,
            f"{told['node']} ({total[told['node']]} points) was taken, and {name} ({best}) is viable.",
            counterexample={"node": name, "total": best},
        )  # fmt: skip
    return None


def _left(told: Mapping[str, Any], recorded: Mapping[str, Any], asked: Feasibility) -> PropertyVerdict | None:
    """Where Kubernetes left the model on purpose: a feasible node that was out of the question."""
    for place in asked.places:
        name = place.node.name
        if name in told["feasible"] or told["filter"] is None or asked.refusal(place) is not None:
            continue
        if _is_nominated(told):
            return _leaves("nominated", place, f"and only {told['node']}, where room was made, was asked")
        if name not in recorded:
            return _leaves("sampling", place, f"and only {told['nodesEvaluated']} nodes were looked at")
        if _judged_elsewhere(told, name, recorded[name]):
            if told["extenders"]:
                return _leaves("extender", place, "and an extender left it out")
            continue
        if asked.verdict(place) is not None:
            return _leaves("nominatedRoom", place, "and its room counts as a nominated pod's")
    if told["extenders"] and told["node"] and len(told["feasible"]) > 1:
        said = "Extenders had a say about the nodes and their points."
        return PropertyVerdict(PLACEMENT, LEAVES, said, "extender")
    return None


def _leaves(why: str, place: Place, words: str) -> PropertyVerdict:
    name = place.node.name
    return PropertyVerdict(PLACEMENT, LEAVES, f"{name} is feasible, {words}.", why, {"node": name})
