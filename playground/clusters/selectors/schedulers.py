"""Which schedulers a cluster has seen: whom its pods name, which programs decided, who holds a scheduler's Lease."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Count, Max, Q

from playground.clusters.models import Cluster, ForeignDecision, Manifest, Pod
from playground.engine.columns import profile_names
from playground.engine.times import parse_time_ns, wall_now_ns

MOST: Final = 200
"""Rows of each kind, at most."""
_OF_KUBELETS: Final = "kube-node-lease"
_UNBOUND: Final = Q(node_name="", phase="Pending")

Kind = ForeignDecision.Kind


@dataclass(frozen=True, slots=True)
class SchedulerName:
    """A spec.schedulerName.

    Attributes
    ----------
    is_profile
        Whether a profile of the cluster's configuration has the name: then the playground serves it too.
    n_decisions, last_ns
        Of other programs about pods of that name; virtual nanoseconds of the last one, None without any.
    programs
        Which those were, by User-Agent without the platform.
    is_held
        Whether a Lease of that name is held now.
    """

    name: str
    is_profile: bool
    n_pods: int
    n_bound: int
    n_pending: int
    n_decisions: int
    last_ns: int | None
    programs: tuple[str, ...]
    is_held: bool

    @property
    def is_here(self) -> bool:
        """Whether a scheduler of the name is known: a profile, a program that decided, or a Lease that is held."""
        return self.is_profile or self.n_decisions > 0 or self.is_held


@dataclass(frozen=True, slots=True)
class Program:
    """A client that binds, evicts for a pod, or finds no node; `author` is its User-Agent, `last_ns` virtual."""

    author: str
    names: tuple[str, ...]
    n_binds: int
    n_preemptions: int
    n_no_node: int
    last_ns: int


@dataclass(frozen=True, slots=True)
class Held:
    """A scheduler's Lease: `holder` is empty when it was given back; `renewed` is the client's own time, as written."""

    namespace: str
    name: str
    holder: str
    renewed: str
    is_held: bool


@dataclass(frozen=True, slots=True)
class Schedulers:
    """Names by their pods, programs by their decisions, the most first; Leases by name.

    Attributes
    ----------
    n_waiting
        Pending pods that name a scheduler which is not here.
    """

    named: tuple[SchedulerName, ...]
    programs: tuple[Program, ...]
    leases: tuple[Held, ...]
    n_waiting: int


def schedulers_of(cluster: Cluster) -> Schedulers:
    """Look who schedules here, or should. Three queries.

    Decisions are counted among those that are kept, the newest 5,000.
    """
    profiles = profile_names(cluster.config)
    pods = {
        name: (n, bound, pending)
        for name, n, bound, pending in Pod.objects.filter(cluster=cluster)
        .values_list("scheduler_name")
        .annotate(
            n=Count("pk"), bound=Count("pk", filter=~Q(node_name="")), pending=Count("pk", filter=_UNBOUND)
        )
        .order_by("scheduler_name")
    }
    decided = list(
        ForeignDecision.objects.filter(cluster=cluster, kind__in=ForeignDecision.JUDGED)
        .values("author", "scheduler", "kind")
        .annotate(n=Count("pk"), last_ns=Max("at_ns"))
        .order_by("author", "scheduler", "kind")
    )
    names = dict.fromkeys([*profiles, *pods, *(row["scheduler"] for row in decided if row["scheduler"])])
    leases = _leases(cluster, {*names, *(_program(row["author"]).partition("/")[0] for row in decided)})
    held = {lease.name for lease in leases if lease.is_held}
    named = []
    for name in names:
        about = [row for row in decided if row["scheduler"] == name]
        named.append(
            SchedulerName(
                name,
                name in profiles,
                *pods.get(name, (0, 0, 0)),
                sum(row["n"] for row in about),
                _last(about),
                tuple(dict.fromkeys(_program(row["author"]) for row in about)),
                name in held,
            )
        )
    named.sort(key=lambda row: (-row.n_pods, row.name))
    return Schedulers(
        tuple(named[:MOST]),
        _programs(decided)[:MOST],
        leases[:MOST],
        sum(row.n_pending for row in named if not row.is_here),
    )


def _program(author: str) -> str:
    return author.partition(" ")[0] or "unknown"


def _last(rows: Iterable[Mapping[str, Any]]) -> int | None:
    return max((row["last_ns"] for row in rows), default=None)


def _programs(decided: Sequence[Mapping[str, Any]]) -> tuple[Program, ...]:
    found = []
    for author in dict.fromkeys(row["author"] for row in decided):
        own = [row for row in decided if row["author"] == author]
        counts = dict.fromkeys(ForeignDecision.JUDGED, 0)
        for row in own:
            counts[Kind(row["kind"])] += row["n"]
        names = tuple(dict.fromkeys(row["scheduler"] for row in own if row["scheduler"]))
        found.append(
            Program(
                author, names, counts[Kind.BIND], counts[Kind.PREEMPT], counts[Kind.NO_NODE], _last(own) or 0
            )
        )
    found.sort(key=lambda row: (-(row.n_binds + row.n_preemptions + row.n_no_node), row.author))
    return tuple(found)


def _leases(cluster: Cluster, names: set[str]) -> tuple[Held, ...]:
    """Leases called after a scheduler: what is known by that name, or has "scheduler" in its own."""
    rows = Manifest.objects.filter(cluster=cluster, kind="Lease").exclude(namespace=_OF_KUBELETS)
    wanted = rows.filter(Q(name__icontains="scheduler") | Q(name__in=names))
    return tuple(_held(row) for row in wanted.order_by("name", "namespace"))


def _held(row: Manifest) -> Held:
    spec = row.manifest.get("spec") or {}
    holder, renewed = str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or "")
    try:
        until_ns = parse_time_ns(renewed) + int(spec.get("leaseDurationSeconds") or 0) * 1_000_000_000
    except ValueError:
        until_ns = 0
    return Held(row.namespace, row.name, holder, renewed, bool(holder) and until_ns > wall_now_ns())
