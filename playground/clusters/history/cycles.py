"""Scheduling cycles: the feed and the explanation of one."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from playground.clusters.errors import found
from playground.clusters.log.rows import PageOfRows
from playground.clusters.models import Cluster, Cycle, LogEntry, Pod
from playground.engine.entries import explain_trace
from scheduler_core.schema.tables import table_beside


def cycle_explanation(
    cluster: Cluster, number: int, *, full: bool = False
) -> tuple[Cycle, dict[str, Any] | None]:
    """One cycle with everything that was recorded. One query.

    Parameters
    ----------
    number
        Of the cycle.
    full
        With the reason matrix of every filter plugin (`filterByPlugin`).

    Returns
    -------
    tuple
        Its row, and the whole explanation (keys: `CycleTrace.explain`), or None while the trace is not stored.

    Raises
    ------
    NotFound
    """
    cycle = get_cycle(cluster, number, with_trace=True)
    return cycle, None if cycle.trace is None else explain_trace(bytes(cycle.trace), full=full)


def neighbours(cluster: Cluster, number: int) -> tuple[int | None, int | None]:
    """Numbers of the cycles before and after. Two queries."""
    numbers = Cycle.objects.filter(cluster=cluster).values_list("number", flat=True)
    return (
        numbers.filter(number__lt=number).order_by("-number").first(),
        numbers.filter(number__gt=number).order_by("number").first(),
    )


def get_cycle(cluster: Cluster, number: int, *, with_trace: bool = False) -> Cycle:
    """One cycle. One query.

    Raises
    ------
    NotFound
    """
    rows = Cycle.objects.filter(cluster=cluster, number=number)
    row = (rows if with_trace else rows.defer("trace")).first()
    return found(row, f"cycle {number}", kind="Cycle", name=str(number))


def last_cycle_named(cluster: Cluster, namespace: str, name: str) -> Cycle | None:
    """The last cycle about a pod of that name, an earlier one of the name included; without its trace. One query."""
    found = Cycle.objects.filter(cluster=cluster, pod_namespace=namespace, pod_name=name)
    return found.defer("trace").order_by("-number").first()


def count_ties(cluster: Cluster) -> int:
    """Cycles in which several nodes shared the best total. One query."""
    return Cycle.objects.filter(cluster=cluster, n_viable__gt=1).count()


# ---- Cycles for the feed, the list and the page of one cycle

PAGE_SIZE = 25
FEED_SIZE = 400
SORTS: Final[Mapping[str, Sequence[str]]] = table_beside(__package__, "tables.yaml")["sorts"]


@dataclass(frozen=True)
class CycleSearch:
    """Which cycles, and in which order; an empty text asks nothing.

    Attributes
    ----------
    pod
        ``namespace/name`` for exactly that pod, otherwise words, each a part of the pod's name.
    outcome
        One of `Cycle.Outcome`; anything else asks nothing.
    node
        Exact name of the node it was placed on, or that was nominated for it.
    plugin
        The plugin that ended it.
    sort
        One of `SORTS`, ``-`` before it for descending; else the newest first.
    """

    pod: str = ""
    outcome: str = ""
    node: str = ""
    plugin: str = ""
    sort: str = ""


EVERY: Final = CycleSearch()


def cycles(
    cluster: Cluster,
    search: CycleSearch = EVERY,
    *,
    before: int | None = None,
    after: int | None = None,
    limit: int = FEED_SIZE,
) -> list[Cycle]:
    """What is looked for, newest first, without traces. One query.

    Parameters
    ----------
    before, after
        Only cycles with a smaller / greater number.
    """
    rows = _found(cluster, search).defer("trace").order_by("-number")
    if before is not None:
        rows = rows.filter(number__lt=before)
    if after is not None:
        rows = rows.filter(number__gt=after)
    return [*rows[:limit]]


def sentences_of(cluster: Cluster, numbers: Iterable[int]) -> dict[int, str]:
    """How cycles ended, by number. One query."""
    rows = Cycle.objects.filter(cluster=cluster, number__in=[*numbers]).only("cluster", "number", *Cycle.TOLD)
    return {row.number: row.sentence for row in rows}


def cycle_page(
    cluster: Cluster, search: CycleSearch, *, page: int = 1, limit: int = PAGE_SIZE
) -> PageOfRows[Cycle]:
    """One page of what is looked for, without traces. Three queries."""
    found = _found(cluster, search)

    def read(part: slice) -> list[Cycle]:
        # Keys first: a database that sorts whole rows carries their messages and traces along.
        ids = [*found.order_by(*_order(search)).values_list("pk", flat=True)[part]]
        by_id = Cycle.objects.defer("trace").in_bulk(ids)
        return [by_id[pk] for pk in ids if pk in by_id]

    return PageOfRows.of(found.count(), page, limit, read)


def plugins_that_ended(cluster: Cluster) -> list[str]:
    """Names of the plugins that ended a cycle, by name. Cycles that bound their pod are not looked at."""
    rows = (
        Cycle.objects.filter(cluster=cluster).exclude(outcome=Cycle.Outcome.BOUND).exclude(failed_plugin="")
    )
    return sorted(set(rows.order_by().values_list("failed_plugin", flat=True).distinct()))


def _found(cluster: Cluster, search: CycleSearch) -> QuerySet[Cycle]:
    found = Cycle.objects.filter(cluster=cluster)
    if search.outcome in Cycle.Outcome.values:
        found = found.filter(outcome=search.outcome)
    namespace, slash, name = search.pod.partition("/")
    if slash:
        found = found.filter(pod_namespace=namespace, pod_name=name)
    else:
        for word in search.pod.split():
            found = found.filter(pod_name__contains=word)
    if search.node:
        found = found.filter(Q(node=search.node) | Q(nominated_node=search.node))
    if search.plugin:
        # Said twice so that the few are found by their outcome, and not by looking at all.
        found = found.exclude(outcome=Cycle.Outcome.BOUND).filter(failed_plugin=search.plugin)
    return found


def _order(search: CycleSearch) -> list[Any]:
    """By the column, and of equals the newest first."""
    column = search.sort.removeprefix("-")
    columns = SORTS.get(column)
    if not columns:
        return ["number" if search.sort == "number" else "-number"]
    # Where more is asked, as an expression: for the columns SQLite would walk the index of all cycles by pod.
    walks = column != "pod" or not (search.outcome or search.node or search.plugin)
    by = [F(name) if walks else Coalesce(name, Value("")) for name in columns]
    return [*(one.desc() if search.sort.startswith("-") else one.asc() for one in by), "-number"]


def last_cycle_of(pod: Pod) -> Cycle | None:
    """The last cycle about a pod (not about an earlier one of its name), without its trace."""
    found = Cycle.objects.filter(
        cluster=pod.cluster_id, pod_namespace=pod.namespace, pod_name=pod.name, pod_uid=pod.uid
    )
    return found.defer("trace").order_by("-number").first()


def placed_by(cluster: Cluster, node: str, pods: Collection[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Return the cycle that put each of these pods (namespace, name) on the node, as far as there was one."""
    found = Cycle.objects.filter(
        cluster=cluster,
        node=node,
        pod_namespace__in={namespace for namespace, _ in pods},
        pod_name__in={name for _, name in pods},
    )
    rows = found.order_by("number").values_list("pod_namespace", "pod_name", "number")
    return {(namespace, name): number for namespace, name, number in rows}


# ---- What became of a preemption: the victims' ends and the pod's next cycle

MOST_VICTIMS = 40
NS = 1_000_000_000


@dataclass(frozen=True)
class VictimEnd:
    """One victim; `gone_ns` is None while it still terminates, `until_ns` None when it was never asked to go."""

    pod: str
    asked_ns: int | None
    until_ns: int | None
    gone_ns: int | None


@dataclass(frozen=True)
class Aftermath:
    """What happened after a cycle that evicted pods."""

    victims: tuple[VictimEnd, ...]
    next_cycle: Cycle | None


def aftermath(cycle: Cycle, victims: list[str]) -> Aftermath:
    """Follow the victims (`namespace/name`) and the pod. Two queries."""
    asked: dict[str, int] = {}
    until: dict[str, int] = {}
    gone: dict[str, int] = {}
    for entry in _entries(cycle, victims[:MOST_VICTIMS]):
        pod = f"{entry.object_namespace}/{entry.object_name}"
        if pod in gone:
            continue
        ends = _ends_ns(entry.payload.get("manifest") or {})
        if entry.kind == LogEntry.Kind.DELETE and entry.payload.get("gone", True):
            gone[pod] = entry.at_ns
            asked.setdefault(pod, entry.at_ns)
        elif ends is not None:
            asked.setdefault(pod, entry.at_ns)
            until.setdefault(pod, ends)
    again = Cycle.objects.filter(
        cluster_id=cycle.cluster_id,
        pod_namespace=cycle.pod_namespace,
        pod_name=cycle.pod_name,
        number__gt=cycle.number,
    )
    return Aftermath(
        tuple(VictimEnd(pod, asked.get(pod), until.get(pod), gone.get(pod)) for pod in victims),
        again.order_by("number").defer("trace").first(),
    )


def _entries(cycle: Cycle, victims: list[str]) -> list[LogEntry]:
    wanted = Q(pk__in=[])
    for victim in victims:
        namespace, _, name = victim.partition("/")
        # Each pod is looked up in the index of objects; asked for in order, SQLite would read the whole log instead.
        wanted |= Q(cluster=cycle.cluster_id, object_kind="Pod", object_namespace=namespace, object_name=name)
    found = LogEntry.objects.filter(wanted, at_ns__gte=cycle.at_ns).order_by()
    return sorted(found[: 64 * MOST_VICTIMS], key=lambda entry: entry.seq)


def _ends_ns(manifest: dict[str, Any]) -> int | None:
    written = (manifest.get("metadata") or {}).get("deletionTimestamp")
    if not written:
        return None
    return round(datetime.fromisoformat(str(written).replace("Z", "+00:00")).timestamp()) * NS


# ---- What pod groups have been through, from the cycles of their members

SHOWN = 30


def attempts_of(cluster: Cluster, namespace: str, uids: Sequence[str]) -> list[Cycle]:
    """The newest cycles of the members, newest first. One query; none for no members."""
    if not uids:
        return []
    cycles = Cycle.objects.filter(cluster=cluster, pod_namespace=namespace, pod_uid__in=list(uids)[:500])
    return list(cycles.defer("trace").order_by("-number")[:SHOWN])
