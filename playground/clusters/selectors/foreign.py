"""Other schedulers' decisions beside ours, for pages and for the API."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.db.models import Count, Q

from playground.clusters.errors import InvalidInput, NotFound
from playground.clusters.models import Cluster, ForeignDecision

Verdict = ForeignDecision.Verdict

PAGE_SIZE: Final = 50
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


@dataclass(frozen=True, slots=True)
class DecisionPage:
    """Newest first; `next_before` asks for the older ones."""

    decisions: list[ForeignDecision]
    next_before: int | None


def decisions(
    cluster: Cluster, *, verdict: str = "", before: int | None = None, limit: int = PAGE_SIZE
) -> DecisionPage:
    """A page of foreign decisions, newest first, without traces.

    Parameters
    ----------
    verdict
        One of the verdicts, or ``disagree`` for those that differ or do not fit; empty for all.
    before
        Only decisions that were written before this entry of the log.

    Raises
    ------
    InvalidInput
    """
    rows = ForeignDecision.objects.filter(cluster=cluster, kind__in=ForeignDecision.JUDGED).defer("trace")
    if verdict == "disagree":
        rows = rows.filter(verdict__in=DISAGREE)
    elif verdict in Verdict.values:
        rows = rows.filter(verdict=verdict)
    elif verdict:
        known = ", ".join((*Verdict.values, "disagree"))
        raise InvalidInput(f"a verdict is one of {known}", field="verdict", value=verdict)
    if before is not None:
        rows = rows.filter(seq__lt=before)
    # Two decisions of one entry (it made room, and bound) stay on one page.
    found = list(rows.order_by("-seq", "-pk")[: limit + 2])
    more = len(found) > limit
    if more and found[limit].seq == found[limit - 1].seq:
        limit += 1
    page = found[:limit]
    return DecisionPage(page, page[-1].seq if len(found) > len(page) else None)


def decision(cluster: Cluster, seq: int, kind: str) -> ForeignDecision:
    """One decision with our cycle's trace.

    Raises
    ------
    NotFound
    """
    rows = ForeignDecision.objects.filter(cluster=cluster, seq=seq, kind=kind)
    found = rows.filter(kind__in=ForeignDecision.JUDGED).first()
    if found is None:
        raise NotFound(
            f"there is no {kind} of another scheduler at entry {seq}", kind="Decision", name=str(seq)
        )
    return found


def decisions_about(cluster: Cluster, namespace: str, name: str) -> list[ForeignDecision]:
    """What other schedulers decided about pods of a name, oldest first, evictions included; no traces."""
    own = Q(pod_namespace=namespace, pod_name=name)
    rows = ForeignDecision.objects.filter(own, cluster=cluster).defer("trace")
    return list(rows.order_by("seq", "pk")[:500])


def n_foreign_decisions(cluster: Cluster) -> int:
    """How often other schedulers have decided something here."""
    return ForeignDecision.objects.filter(cluster=cluster, kind__in=ForeignDecision.JUDGED).count()
