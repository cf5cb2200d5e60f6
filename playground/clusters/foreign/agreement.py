"""Other schedulers beside ours: how far their decisions agree, and which ones a cluster has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Count, Max, Q

from playground.clusters.clock import wall_now_ns
from playground.clusters.errors import InvalidInput, found
from playground.clusters.models import Cluster, ForeignDecision, Manifest, Pod
from playground.engine.columns import profile_names
from scheduler_core.objects.fields import parse_time_ns

Verdict = ForeignDecision.Verdict

PAGE_SIZE: Final = 50
MOST_NEW: Final = 1_000
MOST_NAMED: Final = 20
COUNTED: Final = (Verdict.AGREE, Verdict.TIE, Verdict.DIFFERENT, Verdict.INFEASIBLE)
DISAGREE: Final = (Verdict.DIFFERENT, Verdict.INFEASIBLE)


@dataclass(frozen=True, slots=True)
class KindCount:
    """Decisions of a kind, and how many of them agree or tie."""

    total: int
    agreed: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far other schedulers decide as our engine does.

    Attributes
    ----------
    counts
        By verdict, judged ones only; every verdict is a key.
    left
        Decisions that wait for their verdict.
    kinds
        By kind: bind, no-node, preempt.
    authors
        User-Agents, the one with the most decisions first.
    schedulers
        By spec.schedulerName, judged ones only, the one with the most decisions first.
    common
        Plugin or criterion, verdict and number of those that disagree, the most first.
    """

    counts: Mapping[str, int]
    left: int
    kinds: Mapping[str, KindCount]
    authors: tuple[str, ...]
    schedulers: Mapping[str, KindCount]
    common: tuple[tuple[str, str, int], ...]

    @property
    def total(self) -> int:
        """Decisions with a verdict that counts."""
        return sum(self.counts.values()) - self.counts["unknown"]

    @property
    def agreed(self) -> int:
        """Those that agree or tie."""
        return self.counts["agree"] + self.counts["tie"]

    @property
    def per_cent(self) -> float | None:
        """Share of those that agree or tie; None without any."""
        return 100 * self.agreed / self.total if self.total else None


def agreement(cluster: Cluster) -> Agreement:
    """Count a cluster's foreign decisions. Four queries."""
    rows = ForeignDecision.objects.filter(cluster=cluster, kind__in=ForeignDecision.JUDGED)
    counts = dict.fromkeys(Verdict.values, 0)
    kinds = {str(kind): [0, 0] for kind in ForeignDecision.JUDGED}
    left = 0
    grouped = rows.values_list("kind", "verdict").annotate(n=Count("pk")).order_by("kind", "verdict")
    for kind, verdict, n in grouped:
        if not verdict:
            left += n
            continue
        counts[verdict] += n
        kinds[kind][0] += n
        kinds[kind][1] += n if verdict in (Verdict.AGREE, Verdict.TIE) else 0
    authors = rows.values_list("author").annotate(n=Count("pk")).order_by("-n", "author")
    named = (
        rows.values_list("scheduler")
        .annotate(
            n=Count("pk"),
            judged=Count("pk", filter=Q(verdict__in=COUNTED)),
            agreed=Count("pk", filter=Q(verdict__in=(Verdict.AGREE, Verdict.TIE))),
        )
        .order_by("-n", "scheduler")
    )
    common = (
        rows.filter(verdict__in=DISAGREE)
        .values_list("plugin", "verdict")
        .annotate(n=Count("pk"))
        .order_by("-n", "plugin")
    )
    return Agreement(
        counts,
        left,
        {kind: KindCount(*pair) for kind, pair in kinds.items()},
        tuple(name for name, _ in authors[:5]),
        {name: KindCount(judged, agreed) for name, _, judged, agreed in named[:MOST_NAMED]},
        tuple(common[:8]),
    )


def decisions(
    cluster: Cluster, *, verdict: str = "", before: int | None = None, limit: int = PAGE_SIZE
) -> tuple[list[ForeignDecision], int | None]:
    """A page of foreign decisions, newest first, without traces, and what asks for the older ones as `before`.

    Parameters
    ----------
    verdict
        One of the verdicts, ``disagree`` for those that differ or do not fit, ``unexplained`` for those of them
        without a known cause; empty for all.
    before
        Only decisions that were written before this entry of the log.

    Raises
    ------
    InvalidInput
    """
    rows = _of_verdict(cluster, verdict).defer("trace")
    if before is not None:
        rows = rows.filter(seq__lt=before)
    # Two decisions of one entry (it made room, and bound) stay on one page.
    listed = list(rows.order_by("-seq", "-pk")[: limit + 2])
    if len(listed) > limit and listed[limit].seq == listed[limit - 1].seq:
        limit += 1
    page = listed[:limit]
    return page, page[-1].seq if len(listed) > len(page) else None


def n_newer(cluster: Cluster, seq: int, *, verdict: str = "") -> int:
    """How many decisions were written after an entry of the log, at most 1,000."""
    newer: int = _of_verdict(cluster, verdict).filter(seq__gt=seq).order_by()[:MOST_NEW].count()
    return newer


def _of_verdict(cluster: Cluster, verdict: str) -> Any:
    rows = ForeignDecision.objects.filter(cluster=cluster, kind__in=ForeignDecision.JUDGED)
    if verdict in ("disagree", "unexplained"):
        rows = rows.filter(verdict__in=DISAGREE, **({"cause": ""} if verdict == "unexplained" else {}))
    elif verdict in Verdict.values:
        rows = rows.filter(verdict=verdict)
    elif verdict:
        known = ", ".join((*Verdict.values, "disagree", "unexplained"))
        raise InvalidInput(f"a verdict is one of {known}", field="verdict", value=verdict)
    return rows


def decision(cluster: Cluster, seq: int, kind: str) -> ForeignDecision:
    """One decision with our cycle's trace.

    Raises
    ------
    NotFound
    """
    rows = ForeignDecision.objects.filter(cluster=cluster, seq=seq, kind=kind)
    row = rows.filter(kind__in=ForeignDecision.JUDGED).first()
    return found(row, f"{kind} of another scheduler at entry {seq}", kind="Decision", name=str(seq))


def decisions_about(cluster: Cluster, namespace: str, name: str) -> list[ForeignDecision]:
    """What other schedulers decided about pods of a name, oldest first, evictions included; no traces."""
    own = Q(pod_namespace=namespace, pod_name=name)
    rows = ForeignDecision.objects.filter(own, cluster=cluster).defer("trace")
    return list(rows.order_by("seq", "pk")[:500])


def n_foreign_decisions(cluster: Cluster) -> int:
    """How often other schedulers have decided something here."""
    return ForeignDecision.objects.filter(cluster=cluster, kind__in=ForeignDecision.JUDGED).count()


# ---- Which schedulers a cluster has seen: whom its pods name, which programs decided, who holds a scheduler's Lease

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
    """Schedulers by lease: what is known by that name, or has "scheduler" in its own."""
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
