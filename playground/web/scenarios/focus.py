"""One place in a cycle: a node, a plugin, or what a plugin said of a node. Links lead here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fact:
    """What is known of the place."""

    term: str
    words: str


@dataclass(frozen=True)
class Focus:
    """The place and its facts; none if the cycle knows no such node or plugin."""

    node: str
    plugin: str
    facts: tuple[Fact, ...]


def view_focus(document: Mapping[str, Any], node: str, plugin: str) -> Focus:
    """Collect what the cycle says of a node, of a plugin, or of both."""
    facts: list[Fact] = []
    rejected = document.get("filter") or {}
    scores, weights = document.get("scores") or {}, document.get("weights") or {}
    totals = document.get("total") or {}
    if node:
        verdict = rejected.get(node)
        if verdict is not None:
            facts.append(Fact("Filter", f"{verdict['plugin']}: {'; '.join(verdict['reasons'])}"))
        elif node in (document.get("feasible") or ()):
            facts.append(Fact("Filter", "feasible"))
        if node in totals:
            chosen = " It was chosen." if document.get("node") == node else ""
            facts.append(Fact("Total", f"{totals[node]:,} points.{chosen}"))
    elif plugin:
        names = [name for name, verdict in rejected.items() if verdict.get("plugin") == plugin]
        if names:
            facts.append(Fact("Rejected", _names(names)))
        elif plugin in (document.get("filterPlugins") or ()):
            facts.append(Fact("Filter", "rejected no node first"))
    for name, by_node in scores.items():
        if plugin and name != plugin:
            continue
        weight = weights.get(name, 1)
        if node and node in by_node:
            facts.append(Fact(name, f"{by_node[node]} × {weight} = {by_node[node] * weight:,}"))
        elif not node and plugin:
            best = max(by_node.values(), default=0)
            top = [one for one, score in by_node.items() if score == best]
            facts.append(Fact("Score", f"weight {weight}; the highest is {best}, of {_names(top)}"))
    if node and plugin:
        by_plugin = (document.get("filterByPlugin") or {}).get(plugin) or {}
        if node in by_plugin:
            verdict = by_plugin[node]
            reasons = verdict.get("reasons") if isinstance(verdict, Mapping) else verdict
            facts.append(Fact(plugin, "; ".join(map(str, reasons or ("rejects",)))))
    return Focus(node, plugin, tuple(facts))


def _names(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
