"""Everything that reads scenarios. Fixed numbers of queries (pinned in tests/scenarios)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import msgspec
from django.conf import settings
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from playground.clusters.access import clusters_of
from playground.clusters.errors import found
from playground.clusters.models import Cluster, Cycle
from playground.scenarios import models
from playground.scenarios.choices import Visibility
from playground.scenarios.services.audience import visible
from playground.scenarios.services.gallery import FOUR_WAYS
from playground.scenarios.services.proof import readable
from scheduler_core.sim.timeline import Timeline

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations


def visible_scenarios(user: Any = None) -> QuerySet[models.Scenario]:
    """The shares a user may read (`services.audience.visible`)."""
    return visible(models.Scenario.objects.all(), user)


def visible_comparisons(user: Any = None) -> QuerySet[models.Comparison]:
    """As `visible_scenarios`, by what each comparison says of itself; `get_comparison` looks at its sides, too."""
    return visible(models.Comparison.objects.all(), user)


def get_scenario(public_id: str, user: Any = None) -> models.Scenario:
    """One share, its document not read yet. One query.

    Raises
    ------
    NotFound
        There is none, it has expired, or it is another team's: the three look the same.
    """
    scenario = visible_scenarios(user).filter(public_id=public_id).defer("document", "timeline").first()
    return found(scenario, f'scenario "{public_id}"', kind="Scenario", name=public_id)


def get_verdict(public_id: str, user: Any = None) -> models.Verdict:
    """A shared answer, as far as it is there for who asks. One query.

    Raises
    ------
    NotFound
        There is none, it has ended or expired, or it is another's: all look the same.
    """
    verdict: models.Verdict | None = (
        visible(models.Verdict.objects.all(), user).filter(public_id=public_id).first()
    )
    return found(verdict, f'verdict "{public_id}"', kind="Verdict", name=public_id)


def visible_parent(scenario: models.Scenario, user: Any = None) -> models.Scenario | None:
    """The share it was forked from, as far as the user may read that. One query, none for an original."""
    if scenario.parent_id is None:
        return None
    return visible_scenarios(user).filter(pk=scenario.parent_id).defer("document", "timeline").first()


def forked_from(rows: Sequence[models.Scenario], user: Any = None) -> dict[int, str]:
    """Public id of the share each was forked from, by key, as far as the user may read that or it was deleted.

    One query, none for originals.
    """
    parents = {row.parent_id for row in rows if row.parent_id is not None}
    seen = set(visible_scenarios(user).filter(pk__in=parents).values_list("pk", flat=True)) if parents else ()
    return {row.pk: row.forked_from for row in rows if row.parent_id is None or row.parent_id in seen}


def get_comparison(public_id: str, user: Any = None) -> models.Comparison:
    """One comparison, as far as it is there for who asks. Two to four queries.

    Raises
    ------
    NotFound
        There is none, it has expired, it is another's, a share it compares was deleted, has expired or is
        another's, or its maker may not see a cluster any more that only he was shown: all look the same.
    """
    rows = _with_open_sides(list(visible_comparisons(user).filter(public_id=public_id)), user)
    return found(rows[0] if rows else None, f'comparison "{public_id}"', kind="Comparison", name=public_id)


def _with_open_sides(comparisons: list[models.Comparison], user: Any) -> list[models.Comparison]:
    """Those of which the user may see every side."""
    sides = [side for comparison in comparisons for side in comparison.sides]
    shares, clusters = (
        {side["id"] for side in sides if side["kind"] == kind} for kind in ("scenario", "cluster")
    )
    seen = visible_scenarios(user).filter(public_id__in=shares).values_list("public_id", flat=True)
    hidden = shares.difference(seen) if shares else set()
    left = [one for one in comparisons if not any(side["id"] in hidden for side in one.sides)]
    if settings.EMBEDDED or not clusters:
        return left
    # A cluster that is gone is no secret of those who have it.
    there = Cluster.objects.filter(public_id__in=clusters).exclude(pk__in=clusters_of(user).values("pk"))
    others = set(there.values_list("public_id", flat=True))
    return [
        one
        for one in left
        if not (any(side["id"] in others for side in one.sides) and _is_seen_by_maker_alone(one, user))
    ]


def _is_seen_by_maker_alone(comparison: models.Comparison, user: Any) -> bool:
    """Whether the person sees it for having made it, and for nothing else."""
    if comparison.visibility == Visibility.TEAM:
        return not user.memberships.filter(team=comparison.team_id).exists()
    return bool(comparison.visibility == Visibility.PRIVATE)


def my_comparisons(user: Any = None, *, limit: int = 20) -> list[models.Comparison]:
    """The comparisons a person asked for, newest first, without what was found. Three queries."""
    owner = user if user is not None and getattr(user, "is_authenticated", False) else None
    rows = visible_comparisons(user).filter(owner=owner).select_related("team").defer("result")
    return _with_open_sides(list(rows.order_by("-created")[:limit]), user)


def my_scenarios(user: Any = None, *, limit: int = 60) -> list[models.Scenario]:
    """The shares a user made, newest first, without their documents. One query."""
    owner = user if user is not None and getattr(user, "is_authenticated", False) else None
    rows = visible_scenarios(user).filter(owner=owner, gallery_name="")
    return list(rows.defer("document", "timeline").order_by("-created")[:limit])


def proofs_of(scenario: models.Scenario) -> tuple[models.Verification | None, models.Verification | None]:
    """The newest verification, and the newest one that is finished. One query."""
    proofs = list(scenario.verifications.defer("recorded", "fresh").order_by("-pk")[:5])
    finished = next((one for one in proofs if one.state == models.Verification.State.DONE), None)
    return proofs[0] if proofs else None, finished


def ticks_of(rows: Any) -> list[models.RecordedCycle]:
    """Every cycle of a share for a timeline. One query."""
    told = ("scenario", "number", "at_ns", "pod_namespace", "pod_name", "outcome", "node", "sentence")
    return list(rows.only(*told).order_by("number"))


def cluster_ticks(cluster: Cluster) -> list[Cycle]:
    """Every cycle of a cluster for a timeline. One query."""
    return list(cluster.cycles.only("cluster", "number", "at_ns", *Cycle.TOLD).order_by("number"))


def moment(
    *, cycle: int, cluster: Cluster | None = None, scenario: models.Scenario | None = None
) -> tuple[Mapping[str, Any] | None, str]:
    """The state after a cycle if it is known, its brief if it is a large one; and why it will not be. One query."""
    if cluster is not None:
        rows = models.Moment.objects.filter(cluster=cluster, generation=cluster.generation, cycle=cycle)
    else:
        rows = models.Moment.objects.filter(scenario=scenario, cycle=cycle)
    return rows.values_list(Coalesce("brief", "data"), "note").first() or (None, "")


def timeline_of(scenario: models.Scenario) -> tuple[Timeline, Mapping[str, Any]]:
    """What its first run here recorded of time, and the state at its end; both empty before that. One query."""
    if scenario.timeline is None:
        return Timeline(scenario.start_ns, scenario.start_ns), {}
    state, _ = moment(cycle=scenario.n_cycles, scenario=scenario)
    return msgspec.convert(scenario.timeline, Timeline), state or {}


def sentences_of(scenario: models.Scenario, numbers: Iterable[int]) -> dict[int, str]:
    """How cycles ended, by number. One query."""
    return dict(scenario.cycles.filter(number__in=[*numbers]).values_list("number", "sentence"))


def recorded_cycle(
    scenario: models.Scenario, number: int
) -> tuple[models.RecordedCycle, Mapping[str, Any] | None]:
    """One cycle of a share with its explanation, if this engine can read it. One query.

    Raises
    ------
    NotFound
    """
    row = found(
        scenario.cycles.filter(number=number).first(), f"cycle {number}", kind="Cycle", name=str(number)
    )
    return row, readable(bytes(row.trace) if row.trace is not None else None)


def four_ways() -> models.Comparison | None:
    """The comparison of the GPU use case in four ways, once it was made. One query."""
    return models.Comparison.objects.filter(public_id=FOUR_WAYS).first()


def differing_proof(scenario: models.Scenario) -> models.Verification | None:
    """The newest finished proof, with both sides of a difference. One query."""
    return scenario.verifications.filter(state=models.Verification.State.DONE).order_by("-pk").first()


@dataclass(frozen=True, slots=True)
class OriginState:
    """What a cluster has to do with a share.

    Attributes
    ----------
    scenario
        The share, if it is there and the user may read it.
    changed
        People have written to it since it was shared or forked.
    """

    origin: models.Origin
    scenario: models.Scenario | None
    changed: bool
    steps: Sequence[Mapping[str, Any]]

    @property
    def scenario_id(self) -> str:
        """Public id of the share, also of one that was deleted; empty: the user may not read it."""
        hidden = self.scenario is None and self.origin.scenario_id is not None
        return "" if hidden else self.origin.scenario_id_kept

    @property
    def next_words(self) -> str:
        """The next step of the scenario, empty at the end."""
        left = self.steps[self.origin.next_step :]
        return str(left[0]["words"]) if left else ""


def origin_state(cluster: Cluster, user: Any = None) -> OriginState | None:
    """The share a cluster came from or was shared as, as far as the user may read that. Two queries."""
    origin = models.Origin.objects.filter(cluster=cluster).first()
    if origin is None:
        return None
    scenario = None
    if origin.scenario_id is not None:
        scenario = visible_scenarios(user).filter(pk=origin.scenario_id).defer("document", "timeline").first()
    changed = origin.generation != cluster.generation or origin.input_seq != cluster.last_input_seq
    return OriginState(origin, scenario, changed, origin.steps)


class Proof(TypedDict):
    """What `gallery_rows` adds to a share."""

    proof_same: int | None
    proof_recorded: int | None
    proof_differs_at: int | None
    proof_held: int | None
    n_children: int


ProvedScenario: TypeAlias = "WithAnnotations[models.Scenario, Proof]"


def gallery_rows() -> dict[str, ProvedScenario]:
    """Shares of the teaching scenarios by name, with their newest finished proof on them. One query."""
    newest = models.Verification.objects.filter(
        scenario=OuterRef("pk"), state=models.Verification.State.DONE
    ).order_by("-pk")
    rows = (
        models.Scenario.objects.exclude(gallery_name="")
        .defer("document", "timeline")
        .annotate(
            proof_same=Subquery(newest.values("n_same")[:1]),
            proof_recorded=Subquery(newest.values("n_recorded")[:1]),
            proof_differs_at=Subquery(newest.values("differs_at")[:1]),
            proof_held=Subquery(newest.values("n_held")[:1]),
            n_children=Count("children"),
        )
    )
    return {row.gallery_name: row for row in rows}
