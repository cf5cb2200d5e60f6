"""Scheduling cycles: the feed and the explanation of one."""

from dataclasses import dataclass
from typing import Any

from playground.clusters.errors import InvalidInput, NotFound
from playground.clusters.models import Cluster, Cycle
from playground.engine.explain import explain_trace


@dataclass(frozen=True, slots=True)
class CyclePage:
    """Cycles newest first.

    Attributes
    ----------
    cycles
        Rows without their traces.
    before
        Pass it as `before` for the next page; None at the end.
    """

    cycles: list[Cycle]
    before: int | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """One cycle opened up.

    Attributes
    ----------
    cycle
        Its summary row.
    document
        The whole explanation (keys: `CycleTrace.explain`), or None while the trace is not stored.
    """

    cycle: Cycle
    document: dict[str, Any] | None


def cycles(
    cluster: Cluster,
    *,
    outcome: str = "",
    pod: str = "",
    before: int | None = None,
    after: int | None = None,
    limit: int = 50,
) -> CyclePage:
    """A page of cycles. One query.

    Parameters
    ----------
    outcome
        bound, unschedulable, preempting, waiting or error; empty = all.
    pod
        ``namespace/name`` or a bare name (in namespace default); empty = all.
    before, after
        Only cycles with a smaller / greater number.
    limit
        1 to 500.

    Raises
    ------
    InvalidInput
        An unknown outcome.
    """
    if outcome and outcome not in Cycle.Outcome.values:
        raise InvalidInput(
            f"an outcome is one of {', '.join(Cycle.Outcome.values)}", field="outcome", value=outcome
        )
    limit = max(1, min(limit, 500))
    rows = Cycle.objects.filter(cluster=cluster).defer("trace")
    if outcome:
        rows = rows.filter(outcome=outcome)
    if pod:
        namespace, slash, name = pod.partition("/")
        rows = rows.filter(
            pod_namespace=namespace if slash else "default", pod_name=name if slash else namespace
        )
    if before is not None:
        rows = rows.filter(number__lt=before)
    if after is not None:
        rows = rows.filter(number__gt=after)
    found = list(rows.order_by("-number")[: limit + 1])
    more = len(found) > limit
    found = found[:limit]
    return CyclePage(found, found[-1].number if more else None)


def cycle_explanation(cluster: Cluster, number: int, *, full: bool = False) -> Explanation:
    """One cycle with everything that was recorded. One query.

    Parameters
    ----------
    number
        Of the cycle.
    full
        With the reason matrix of every filter plugin (`filterByPlugin`).

    Raises
    ------
    NotFound
    """
    cycle = Cycle.objects.filter(cluster=cluster, number=number).first()
    if cycle is None:
        raise NotFound(f"cycle {number} not found", kind="Cycle", name=str(number))
    if cycle.trace is None:
        return Explanation(cycle, None)
    document = explain_trace(bytes(cycle.trace), full=full)
    return Explanation(cycle, document)


def neighbours(cluster: Cluster, number: int) -> tuple[int | None, int | None]:
    """Numbers of the cycles before and after. Two queries."""
    numbers = Cycle.objects.filter(cluster=cluster).values_list("number", flat=True)
    return (
        numbers.filter(number__lt=number).order_by("-number").first(),
        numbers.filter(number__gt=number).order_by("number").first(),
    )


def get_cycle(cluster: Cluster, number: int) -> Cycle:
    """One cycle without its trace. One query.

    Raises
    ------
    NotFound
    """
    found = Cycle.objects.filter(cluster=cluster, number=number).defer("trace").first()
    if found is None:
        raise NotFound(f"cycle {number} not found", kind="Cycle", name=str(number))
    return found


def last_cycle_named(cluster: Cluster, namespace: str, name: str) -> Cycle | None:
    """The last cycle about a pod of that name, an earlier one of the name included; without its trace. One query."""
    found = Cycle.objects.filter(cluster=cluster, pod_namespace=namespace, pod_name=name)
    return found.defer("trace").order_by("-number").first()


def count_ties(cluster: Cluster) -> int:
    """Cycles in which several nodes shared the best total. One query."""
    return Cycle.objects.filter(cluster=cluster, n_viable__gt=1).count()
