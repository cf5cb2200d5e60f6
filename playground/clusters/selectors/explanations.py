"""The explanation of a cycle: from its trace, or what the summary row alone can say."""

from dataclasses import dataclass
from typing import Any

from playground.clusters.models import Cycle
from playground.engine.times import format_seconds


@dataclass(frozen=True)
class Explanation:
    """`document` has the shape of the API's; `missing` says in words what is not in it, empty = all is."""

    document: dict[str, Any]
    missing: str = ""


def explain(trace: bytes) -> dict[str, Any]:
    """Render a stored trace as the explanation dictionary."""
    from playground.engine.traces import explain_trace

    return explain_trace(trace)


def explanation_of(cycle: Cycle) -> Explanation:
    """The explanation of a cycle that was read with its trace."""
    if cycle.trace is None:
        words = "Filter results and scores are not stored for bulk runs and are not recomputed yet."
        return Explanation(summary_of(cycle), words)
    try:
        return Explanation(explain(bytes(cycle.trace)))
    except (ImportError, ValueError) as error:
        return Explanation(summary_of(cycle), f"Its trace cannot be read by this engine: {error}")


def summary_of(cycle: Cycle) -> dict[str, Any]:
    """What the row says, under the explanation's own keys."""
    return {
        "cycle": cycle.number,
        "pod": cycle.pod,
        "uid": cycle.pod_uid,
        "profile": cycle.profile,
        "attempt": cycle.attempt,
        "at": format_seconds(cycle.at_ns),
        "outcome": cycle.outcome,
        "sentence": cycle.sentence,
        "node": cycle.node or None,
        "nNodes": cycle.n_nodes,
        "nFeasible": cycle.n_feasible,
        "message": cycle.message or None,
        "engine": cycle.engine_version,
        "digest": cycle.digest,
    }
