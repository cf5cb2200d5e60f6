"""How viable a feasible node is, asked for one node at a time: the points of plugins that are quickly told.

Source: the Score functions under pkg/scheduler/framework/plugins, v1.34 to v1.36
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler_core.model.moment import Place
from scheduler_core.objects.node_selector import preferred_terms_from
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.resources import is_scalar_resource
from scheduler_core.releases import Release

_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
EVALUATED = frozenset(
    ("TaintToleration", "NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation")
)
"""Score plugins the model evaluates by itself; points of others are taken as recorded."""


def points(
    plugin: str, pod: Pod, places: Sequence[Place], args: Any, release: Release
) -> dict[str, int] | None:
    """Normalized points of a plugin by node, 0 to 100; None where the model does not evaluate it.

    Parameters
    ----------
    places : sequence of Place
        The feasible ones: normalizing looks at all of them.
    args
        The plugin's arguments.
    release : Release
        Whose rules hold.
    """
    match plugin:
        case "TaintToleration":
            found = {place.node.name: _intolerable(pod, place) for place in places}
            return _normalized(found, reverse=True)
        case "NodeAffinity":
            added = (getattr(args, "added_affinity", None) or {}).get(_PREFERRED) or []
            terms = (*pod.preferred_node_affinity.terms, *preferred_terms_from(added).terms)
            return _normalized(
                {
                    place.node.name: sum(
                        weight for weight, term in terms if term.matches(place.node.labels, place.node.name)
                    )
                    for place in places
                }
            )
        case "NodeResourcesFit":
            strategy = args.scoring_strategy
            if strategy.type not in ("LeastAllocated", "MostAllocated"):
                return None
            return {place.node.name: _allocated(pod, place, strategy) for place in places}
        case "NodeResourcesBalancedAllocation":
            names = [item.name for item in args.resources or ()]
            if sorted(names) != ["cpu", "memory"]:
                return None
            after = {place.node.name: _balanced(pod, place, names) for place in places}
            if not release.has("BalancedAllocationByChange"):
                return after
            before = {place.node.name: _balanced(None, place, names) for place in places}
            return {name: 50 + (50 + after[name] - before[name]) // 2 for name in after}
    return None


def _intolerable(pod: Pod, place: Place) -> int:
    concerned = [item for item in pod.tolerations if item.effect in ("", "PreferNoSchedule")]
    return sum(
        taint.effect == "PreferNoSchedule" and not any(item.tolerates(taint) for item in concerned)
        for taint in place.node.taints
    )


def _normalized(found: Mapping[str, int], *, reverse: bool = False) -> dict[str, int]:
    top = max(found.values(), default=0)
    if not top:
        return dict.fromkeys(found, 100 if reverse else 0) if reverse else dict(found)
    scaled = {name: 100 * value // top for name, value in found.items()}
    return {name: 100 - value for name, value in scaled.items()} if reverse else scaled


def _allocated(pod: Pod, place: Place, strategy: Any) -> int:
    total = weights = 0
    for item in strategy.resources or ():
        match item.name:
            case "cpu":
                asked, used = pod.scoring[0], sum(other.non_zero[0] for other in place.pods)
            case "memory":
                asked, used = pod.scoring[1], sum(other.non_zero[1] for other in place.pods)
            case _:
                asked = pod.requests.get(item.name, 0)
                used = sum(other.requests.get(item.name, 0) for other in place.pods)
        have = place.node.allocatable.get(item.name, 0)
        if not have or (not asked and is_scalar_resource(item.name)):
            continue
        requested = asked + used
        if strategy.type == "LeastAllocated":
            share = max(have - requested, 0) * 100 // have
        else:
            share = min(requested, have) * 100 // have
        total += item.weight * share
        weights += item.weight
    return total // weights if weights else 0


def _balanced(pod: Pod | None, place: Place, names: Sequence[str]) -> int:
    shares = []
    for name in names:
        have = place.node.allocatable.get(name, 0)
        if have:
            asked = 0 if pod is None else pod.requests.get(name, 0)
            requested = asked + sum(other.requests.get(name, 0) for other in place.pods)
            shares.append(min(float(requested) / float(have), 1.0))
    deviation = abs((shares[0] - shares[1]) / 2) if len(shares) == 2 else 0.0
    return int((1 - deviation) * 100.0)
