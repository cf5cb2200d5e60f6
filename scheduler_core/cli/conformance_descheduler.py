"""Compare cycles of the descheduler with what the real one did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.cli.conformance import Difference, differences, present
from scheduler_core.descheduler.cycle import DeschedulerCycle, deschedule
from scheduler_core.descheduler.policy import PolicyError, StartError
from scheduler_core.objects.fields import parse_time_ns

_UNKNOWN = ["?"]
_SETS = ("filtered", "preEvictionRejected", "messages")
_ORDERED = ("evicted", "failed", "evictions", "events")


def run_descheduler_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the descheduler.

    Parameters
    ----------
    case : mapping
        `now`, `input` (`policy`, `objects`, `options`) and `expect`.

    Returns
    -------
    list of Difference
        Empty when every key agrees; lists that hang on a random order there are compared as sets.
    """
    is_ordered = case["expect"].get("order") != "set"
    expect, got = _comparable(case["expect"], is_ordered), _comparable(_outcome(case), is_ordered)
    for wanted, found in zip(expect.get("plugins", ()), got.get("plugins", ()), strict=False):
        found |= {key: value for key, value in wanted.items() if value == _UNKNOWN}
    return list(differences(expect, got))


def _outcome(case: Mapping[str, Any]) -> dict[str, Any]:
    given = case["input"]
    options = given["options"]
    try:
        cycle = deschedule(
            given["policy"],
            given["objects"],
            parse_time_ns(case["now"]),
            after_eviction=options["afterEviction"],
            enforces_budgets=options["enforcePDB"],
        )
    except PolicyError as error:
        return {"policyError": str(error), "evictions": []}
    except StartError as error:
        return {"startError": str(error), "evictions": []}
    return _told(cycle)


def _told(cycle: DeschedulerCycle) -> dict[str, Any]:
    """A cycle in the form of `expect`."""
    evictions = cycle.evictions
    if evictions is None:
        return {"nodes": cycle.nodes, "evictability": cycle.evictability}
    accepted = evictions.accepted
    on_nodes = {name: count for name, count in evictions.on_node.items() if name in cycle.nodes}
    return {
        "nodes": cycle.nodes,
        "evictability": cycle.evictability,
        "plugins": [
            {
                "profile": run.profile,
                "point": point,
                "plugin": run.plugin,
                "evicted": run.evicted,
                "failed": run.failed,
                "filtered": sorted(run.filtered),
                "preEvictionRejected": sorted(run.rejected),
                "error": run.error,
                "messages": run.messages,
                "nodeClasses": run.classes,
                "nodeUsagePercentage": run.percentages,
            }
            for point, run in cycle.runs
        ],
        "evictions": accepted,
        "evictionObject": evictions.object_of(accepted[0]) if accepted else None,
        "counters": {"total": len(accepted), "node": on_nodes},
        "events": evictions.events,
    }


def _comparable(outcome: Mapping[str, Any], is_ordered: bool) -> dict[str, Any]:
    """An outcome without what is empty; what hangs on a random order there is sorted."""
    result: dict[str, Any] = _present(outcome)
    for key in ("order", "listOrderFree", "skipped", *(() if is_ordered else ("evictionObject",))):
        result.pop(key, None)
    for verdict in [verdict for verdicts in result.get("evictability", {}).values() for verdict in verdicts]:
        verdict |= {"nodeFit": {name: sorted(why) for name, why in verdict.get("nodeFit", {}).items()}}
    for part in (result, *result.get("plugins", ())):
        part.pop("order", None)
        for key in (*_SETS, *(() if is_ordered else _ORDERED)):
            if key in part:
                part[key] = sorted(part[key], key=str)
    return result


def _present(value: Any) -> Any:
    if isinstance(value, Mapping):
        return present({key: _present(item) for key, item in value.items()})
    return [_present(item) for item in value] if isinstance(value, list) else value
