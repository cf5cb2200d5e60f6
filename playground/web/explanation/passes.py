"""The two Filter passes over nodes that other pods were nominated to, side by side."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PODS_NAMED = 3


@dataclass(frozen=True)
class Pass:
    """One pass over one node; `plugin` empty = it holds."""

    plugin: str
    reason: str


@dataclass(frozen=True)
class PassesRow:
    """A node with nominated pods; `verdict` says what the two passes come to, `one_only` that they differ."""

    node: str
    pods: tuple[str, ...]
    n_more: int
    beside: Pass
    without: Pass
    verdict: str
    one_only: bool


@dataclass(frozen=True)
class PassesView:
    """The panel; `n_nodes` may be more than are listed."""

    rows: tuple[PassesRow, ...]
    n_nodes: int
    n_one_only: int


_VERDICTS = {
    None: "both hold",
    "with": "fails only with them: {with_}",
    "without": "fails only without them: {without}",
    "both": "fails in both: {with_} with them, {without} without",
}


def view_passes(explanation: Mapping[str, Any]) -> PassesView | None:
    """Build the panel, or None where no node had nominated pods that count.

    Parameters
    ----------
    explanation : mapping
        Reads ``nominatedPasses`` (`scheduler_core.framework.two_passes`).
    """
    found: Mapping[str, Any] | None = explanation.get("nominatedPasses")
    if not found:
        return None
    rows = tuple(_row(node) for node in found["nodes"])
    return PassesView(rows, int(found["count"]), sum(row.one_only for row in rows))


def _row(node: Mapping[str, Any]) -> PassesRow:
    beside, without = _pass(node["with"]), _pass(node["without"])
    fails_in = node["failsIn"]
    pods = tuple(node["pods"])
    return PassesRow(
        node=node["node"],
        pods=pods[:PODS_NAMED],
        n_more=len(pods[PODS_NAMED:]),
        beside=beside,
        without=without,
        verdict=_VERDICTS[fails_in].format(with_=beside.plugin, without=without.plugin),
        one_only=fails_in in ("with", "without"),
    )


def _pass(verdict: Mapping[str, Any] | None) -> Pass:
    if verdict is None:
        return Pass("", "")
    return Pass(str(verdict.get("plugin") or "Filter"), ", ".join(verdict.get("reasons") or ()))
