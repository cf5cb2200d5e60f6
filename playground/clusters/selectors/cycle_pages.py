"""Cycles for the feed, the list and the page of one cycle."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from playground.clusters.models import Cluster, Cycle, Pod

PAGE_SIZE = 50
FEED_SIZE = 30
SORTS: Final[Mapping[str, tuple[str, ...]]] = {
    "number": (),
    "pod": ("pod_namespace", "pod_name"),
    "outcome": ("outcome",),
    "node": ("node",),
    "feasible": ("n_feasible",),
    "victims": ("n_victims",),
}


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


@dataclass(frozen=True)
class FoundCycles:
    """A page of cycles, from 1, without their traces, and how many were found."""

    cycles: list[Cycle]
    n_found: int
    page: int
    n_pages: int


def recent_cycles(cluster: Cluster, *, limit: int = FEED_SIZE) -> list[Cycle]:
    """The newest cycles, newest first, without their traces."""
    return [*Cycle.objects.filter(cluster=cluster).defer("trace").order_by("-number")[:limit]]


def cycle_page(
    cluster: Cluster, search: CycleSearch, *, page: int = 1, limit: int = PAGE_SIZE
) -> FoundCycles:
    """One page of what is looked for. Three queries."""
    found = _found(cluster, search)
    n_found = found.count()
    n_pages = max(1, -(-n_found // limit))
    page = min(max(1, page), n_pages)
    # Keys first: a database that sorts whole rows carries their messages and traces along.
    ids = [*found.order_by(*_order(search)).values_list("pk", flat=True)[(page - 1) * limit : page * limit]]
    by_id = Cycle.objects.defer("trace").in_bulk(ids)
    return FoundCycles([by_id[pk] for pk in ids if pk in by_id], n_found, page, n_pages)


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
