"""A question about a cluster as a value: read from JSON, and written in one normal form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_core.errors import InvalidObject
from scheduler_core.plan.node_groups import ZONE
from scheduler_core.plan.prices import PriceList, price_list_from, shipped_prices

DRAIN, LOSE, ANY_NODE, ANY_DOMAIN, HEADROOM, BACKLOG, CONSOLIDATE = ASKS = (
    "drain",
    "lose",
    "any-node",
    "any-domain",
    "headroom",
    "backlog",
    "consolidate",
)
_FIELDS = {
    DRAIN: ("nodes", "label"),
    LOSE: ("nodes", "label"),
    ANY_NODE: (),
    ANY_DOMAIN: ("label",),
    HEADROOM: ("workload", "pod"),
    BACKLOG: ("workload", "prices"),
    CONSOLIDATE: ("prices",),
}
MAX_NODES = 5_000
"""Nodes that one question names."""


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """What is asked.

    Attributes
    ----------
    ask : str
        One of `ASKS`.
    nodes : tuple of str
        Of `drain` and `lose`: names.
    label : str
        Of `drain` and `lose`: `KEY=VALUE`, all nodes that carry it; of `any-domain`: `KEY`.
    workload : str
        Of `headroom` and `backlog`: `Kind namespace/name`; without it, and without a pod, every workload.
    pod : mapping or None
        Of `headroom`: a manifest.
    prices : PriceList or None
        Of `backlog` and `consolidate`: in place of the list that is shipped.
    """

    ask: str
    nodes: tuple[str, ...] = ()
    label: str = ""
    workload: str = ""
    pod: Mapping[str, Any] | None = None
    prices: PriceList | None = None

    def document(self) -> dict[str, Any]:
        """The normal form, JSON-able: what is not asked is left out."""
        found: dict[str, Any] = {"ask": self.ask}
        if self.nodes:
            found["nodes"] = list(self.nodes)
        for name in ("label", "workload"):
            if getattr(self, name):
                found[name] = getattr(self, name)
        if self.pod is not None:
            found["pod"] = dict(self.pod)
        if self.prices is not None:
            found["prices"] = self.prices.document()
        return found

    @property
    def price_list(self) -> PriceList:
        """That of the question, else the one that is shipped."""
        return self.prices or shipped_prices()


def question_from(document: Mapping[str, Any]) -> PlanQuestion:
    """Read a question.

    Raises
    ------
    InvalidObject
        Names the field and its value.
    """
    ask = document.get("ask")
    if ask not in ASKS:
        raise InvalidObject("ask", ask, f"must be one of {', '.join(ASKS)}")
    known = _FIELDS[ask]
    for name in document:
        if name != "ask" and name not in known:
            takes = ", ".join(known) or "nothing else"
            raise InvalidObject(str(name), None, f"says nothing about {ask}, which takes {takes}")
    nodes = document.get("nodes") or []
    if not isinstance(nodes, list | tuple) or not all(isinstance(name, str) and name for name in nodes):
        raise InvalidObject("nodes", nodes, "must be a list of names")
    if len(nodes) > MAX_NODES:
        raise InvalidObject("nodes", None, f"names {len(nodes):,} nodes; {MAX_NODES:,} are the most")
    label, workload = (_text(document, name) for name in ("label", "workload"))
    pod = document.get("pod")
    if pod is not None and not isinstance(pod, Mapping):
        raise InvalidObject("pod", None, "must be a manifest of kind Pod")
    if ask in (DRAIN, LOSE):
        if label and "=" not in label:
            raise InvalidObject("label", label, "must be KEY=VALUE")
        if not label and not nodes:
            raise InvalidObject("nodes", None, "name a node, or give a label")
    if ask == ANY_DOMAIN:
        label = label or ZONE
        if "=" in label:
            raise InvalidObject("label", label, "must be the KEY alone: each of its values is lost in turn")
    if workload and pod is not None:
        raise InvalidObject("pod", None, "give a workload or a pod, not both")
    if workload and (workload.count(" ") != 1 or workload.count("/") != 1):
        raise InvalidObject("workload", workload, "must be KIND NAMESPACE/NAME")
    prices = document.get("prices")
    listed = None if prices is None else price_list_from(prices, "prices")
    return PlanQuestion(ask, tuple(dict.fromkeys(nodes)), label, workload, pod, listed)


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name) or ""
    if not isinstance(value, str):
        raise InvalidObject(name, value, "must be text")
    if len(value) > 700:
        raise InvalidObject(name, None, "is longer than 700 characters")
    return value.strip()
