"""Spread and affinity of a cycle by topology domain, from its explanation alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from playground.web.looks import View

_NOUNS: Final = {
    "topology.kubernetes.io/zone": "zone",
    "topology.kubernetes.io/region": "region",
    "kubernetes.io/hostname": "host",
}


def view_domains(explanation: Mapping[str, Any]) -> list[View]:
    """Rules that count pods by domain, those that filter first (`scheduler_core.framework.domain_lanes`).

    Returns
    -------
    list of dict
        A rule's `lanes` have a bar in percent of the longest: `pods`, then `this` one where it would count; `limit` is
        where its rule ends. `filters`: it rejects; `refused` domains do. Of a rule without news (it only scores, and
        gives each domain the same) `is_even`.
    """
    return [_rule(told) for told in explanation.get("domains") or () if told["lanes"]]


def _rule(told: Mapping[str, Any]) -> View:
    lanes: Sequence[Mapping[str, Any]] = told["lanes"]
    filters, spreads = "allowed" in lanes[0], told["rule"] == "spread"
    # What only other pods' terms are worth is no number of pods.
    counts_pods = not ("of other pods" in told["rule"] and not filters)
    limit = told["minimum"] + told["maxSkew"] if filters and spreads else None
    adds = lanes[0]["skew"] - lanes[0]["pods"] + told["minimum"] if limit is not None else 1
    longest = max(1, limit or 0, *(lane["pods"] + adds for lane in lanes))
    noun = _NOUNS.get(told["key"], told["key"].rpartition("/")[2])
    shown = [
        {
            **lane,
            "name": lane["names"][0] if lane["domains"] == 1 else "",
            "with_it": lane["pods"] + adds,
            "bar": round(100 * max(0, lane["pods"]) / longest, 1),
            "this": round(100 * adds / longest, 1),
            "excess": max(0, lane.get("skew", 0) - told.get("maxSkew", 0)),
        }
        for lane in lanes
    ]
    return {
        **told,
        "lanes": shown,
        "noun": noun,
        "filters": filters,
        "spreads": spreads,
        "counts_pods": counts_pods,
        "limit": None if limit is None else round(100 * limit / longest, 1),
        "most": limit,
        "refused": sum(lane["domains"] for lane in lanes if not lane.get("allowed", True)),
        "is_even": not filters and len({lane.get("points") for lane in lanes}) == 1,
    }
