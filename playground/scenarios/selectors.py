"""Everything that reads scenarios. Fixed numbers of queries (pinned in tests/scenarios)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict

from django.conf import settings
from django.db.models import Case, Count, Model, OuterRef, Q, QuerySet, Subquery, When
from django.utils import timezone

from playground.clusters.errors import NotFound
from playground.clusters.models import Cluster, Cycle
from playground.clusters.selectors.overview import clusters_of
from playground.scenarios.choices import Visibility
from playground.scenarios.models import (
    Comparison,
    Luck,
    ModelCheck,
    Moment,
    Optimum,
    Origin,
    RecordedCycle,
    Scenario,
    Upgrade,
    Verdict,
    Verification,
)
from playground.scenarios.services.four_ways import FOUR_WAYS
from playground.scenarios.services.proof import readable
from playground.scenarios.services.recording import unpacked

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

FEED_AROUND = 3


@dataclass(frozen=True, slots=True)
class Tick:
    """One cycle on a timeline."""

    number: int
    at_ns: int
    pod: str
    outcome: str
    node: str
    sentence: str


@dataclass(frozen=True, slots=True)
class ScenarioPage:
    """What the page of a share shows besides a moment of it, and the API.

    Attributes
    ----------
    proof
        The newest verification, None before the first.
    last_proof
        The newest one that is finished.
    """

    scenario: Scenario
    proof: Verification | None
    last_proof: Verification | None


def visible_scenarios(user: Any = None) -> QuerySet[Scenario]:
    """Shares who has their link may read: public, unlisted, one's own, one's teams'. Expired ones are gone."""
    return _visible(Scenario.objects.all(), user)


def visible_comparisons(user: Any = None) -> QuerySet[Comparison]:
    """As `visible_scenarios`, by what each comparison says of itself; `get_comparison` looks at its sides, too."""
    return _visible(Comparison.objects.all(), user)


def _visible(rows: QuerySet[Any], user: Any) -> QuerySet[Any]:
    live = rows.filter(Q(expires__isnull=True) | Q(expires__gt=timezone.now()))
    if settings.EMBEDDED:
        return live
    may = Q(visibility__in=[Visibility.PUBLIC, Visibility.UNLISTED])
    if user is not None and user.is_authenticated:
        may |= Q(owner=user) | Q(team__memberships__user=user)
    return live.filter(may).distinct()


def get_scenario(public_id: str, user: Any = None) -> Scenario:
    """One share, its document not read yet. One query.

    Raises
    ------
    NotFound
        There is none, it has expired, or it is another team's: the three look the same.
    """
    scenario = visible_scenarios(user).filter(public_id=public_id).defer("document").first()
    if scenario is None:
        raise NotFound(f'there is no scenario "{public_id}"', kind="Scenario", name=public_id)
    return scenario


def get_verdict(public_id: str, user: Any = None) -> Verdict:
    """A shared answer, as far as it is there for who asks. One query.

    Raises
    ------
    NotFound
        There is none, it has ended or expired, or it is another's: all look the same.
    """
    found = _visible(Verdict.objects.all(), user).filter(public_id=public_id).first()
    if found is None:
        raise NotFound(f'there is no verdict "{public_id}"', kind="Verdict", name=public_id)
    verdict: Verdict = found
    return verdict


def visible_parent(scenario: Scenario, user: Any = None) -> Scenario | None:
    """The share it was forked from, as far as the user may read that. One query, none for an original."""
    if scenario.parent_id is None:
        return None
    return visible_scenarios(user).filter(pk=scenario.parent_id).defer("document").first()


def get_comparison(public_id: str, user: Any = None) -> Comparison:
    """One comparison, as far as it is there for who asks. Two to four queries.

    Raises
    ------
    NotFound
        There is none, it has expired, it is another's, a share it compares was deleted, has expired or is
        another's, or its maker may not see a cluster any more that only he was shown: all look the same.
    """
    comparison = visible_comparisons(user).filter(public_id=public_id).first()
    if comparison is None or not _sides_are_open(comparison, user):
        raise NotFound(f'there is no comparison "{public_id}"', kind="Comparison", name=public_id)
    return comparison


def _sides_are_open(comparison: Comparison, user: Any) -> bool:
    sides = comparison.sides
    wanted = {side["id"] for side in sides if side["kind"] == "scenario"}
    seen = set(visible_scenarios(user).filter(public_id__in=wanted).values_list("public_id", flat=True))
    if seen != wanted:
        return False
    clusters = {side["id"] for side in sides if side["kind"] == "cluster"}
    if settings.EMBEDDED or not clusters or not _is_seen_by_maker_alone(comparison, user):
        return True
    # A cluster that is gone is no secret of those who have it.
    there = Cluster.objects.filter(public_id__in=clusters)
    return there.count() == clusters_of(user).filter(public_id__in=clusters).distinct().count()


def _is_seen_by_maker_alone(comparison: Comparison, user: Any) -> bool:
    """Whether the person sees it for having made it, and for nothing else."""
    if comparison.visibility == Visibility.TEAM:
        return not user.memberships.filter(team=comparison.team_id).exists()
    return bool(comparison.visibility == Visibility.PRIVATE)


def my_comparisons(user: Any = None, *, limit: int = 20) -> list[Comparison]:
    """The comparisons a person asked for, newest first, without what was found. One query."""
    owner = user if user is not None and getattr(user, "is_authenticated", False) else None
    rows = visible_comparisons(user).filter(owner=owner).select_related("team").defer("result")
    return list(rows.order_by("-created")[:limit])


def my_scenarios(user: Any = None, *, limit: int = 60) -> list[Scenario]:
    """The shares a user made, newest first, without their documents. One query."""
    owner = user if user is not None and getattr(user, "is_authenticated", False) else None
    rows = visible_scenarios(user).filter(owner=owner, gallery_name="")
    return list(rows.defer("document").order_by("-created")[:limit])


def scenario_page(scenario: Scenario) -> ScenarioPage:
    """How its proofs went. One query."""
    proofs = list(scenario.verifications.defer("recorded", "fresh").order_by("-pk")[:5])
    finished = next((one for one in proofs if one.state == Verification.State.DONE), None)
    return ScenarioPage(scenario, proofs[0] if proofs else None, finished)


def ticks_of(rows: Any) -> list[Tick]:
    """Every cycle for a timeline. One query."""
    columns = ("number", "at_ns", "pod_namespace", "pod_name", "outcome", "node", "sentence")
    return [
        Tick(number, at_ns, f"{namespace}/{name}", outcome, node, sentence)
        for number, at_ns, namespace, name, outcome, node, sentence in rows.order_by("number").values_list(
            *columns
        )
    ]


def cluster_ticks(cluster: Cluster) -> list[Tick]:
    """Every cycle of a cluster for a timeline. One query."""
    rows = cluster.cycles.only("cluster", "number", "at_ns", *Cycle.TOLD).order_by("number")
    return [Tick(row.number, row.at_ns, row.pod, row.outcome, row.node, row.sentence) for row in rows]


def moment(
    *, cycle: int, cluster: Cluster | None = None, scenario: Scenario | None = None
) -> tuple[Mapping[str, Any] | None, str]:
    """The state after a cycle if it is known, its brief if it is a large one; and why it will not be. One query."""
    if cluster is not None:
        rows = Moment.objects.filter(cluster=cluster, generation=cluster.generation, cycle=cycle)
    else:
        rows = Moment.objects.filter(scenario=scenario, cycle=cycle)
    shown = Case(When(brief=b"", then="data"), default="brief")
    found = rows.values_list(shown, "note").first()
    if found is None:
        return None, ""
    return (unpacked(found[0]) if found[0] else None), found[1]


def recorded_cycle(scenario: Scenario, number: int) -> tuple[RecordedCycle, Mapping[str, Any] | None]:
    """One cycle of a share with its explanation, if this engine can read it. One query.

    Raises
    ------
    NotFound
    """
    row = scenario.cycles.filter(number=number).first()
    if row is None:
        raise NotFound(f"cycle {number} not found", kind="Cycle", name=str(number))
    return row, readable(bytes(row.trace) if row.trace is not None else None)


ASKED: Final[Mapping[str, type[Model]]] = {
    "luck": Luck,
    "model": ModelCheck,
    "optimum": Optimum,
    "upgrade": Upgrade,
}
"""What is asked for once and looked at later."""


def asked_for(
    name: str, *, cluster: Cluster | None = None, scenario: Scenario | None = None
) -> QuerySet[Any]:
    """All that was asked for by a name of `ASKED`: of a share, or of a cluster since its last reset."""
    rows: QuerySet[Any] = ASKED[name]._default_manager.all()
    if cluster is not None:
        return rows.filter(cluster=cluster, generation=cluster.generation)
    return rows.filter(scenario=scenario)


def newest_upgrade(scenario: Scenario, release: str) -> Upgrade | None:
    """The newest preview of a share on a release with the gates of that release, of the newest five. One query."""
    rows = Upgrade.objects.filter(scenario=scenario, after__name=release).order_by("-pk")
    return next((row for row in rows[:5] if not row.after.get("switched")), None)


def four_ways() -> Comparison | None:
    """The comparison of the GPU use case in four ways, once it was made. One query."""
    return Comparison.objects.filter(public_id=FOUR_WAYS).first()


def differing_proof(scenario: Scenario) -> Verification | None:
    """The newest finished proof, with both sides of a difference. One query."""
    return scenario.verifications.filter(state=Verification.State.DONE).order_by("-pk").first()


@dataclass(frozen=True, slots=True)
class OriginState:
    """What a cluster has to do with a share.

    Attributes
    ----------
    changed
        People have written to it since it was shared or forked.
    """

    origin: Origin
    changed: bool
    steps: Sequence[Mapping[str, Any]]

    @property
    def next_words(self) -> str:
        """The next step of the scenario, empty at the end."""
        left = self.steps[self.origin.next_step :]
        return str(left[0]["words"]) if left else ""


def origin_state(cluster: Cluster) -> OriginState | None:
    """The share a cluster came from or was shared as. One query."""
    origin = (
        Origin.objects.filter(cluster=cluster).select_related("scenario").defer("scenario__document").first()
    )
    if origin is None:
        return None
    changed = origin.generation != cluster.generation or origin.input_seq != cluster.last_input_seq
    return OriginState(origin, changed, origin.steps)


class Proof(TypedDict):
    """What `gallery_rows` adds to a share."""

    proof_same: int | None
    proof_recorded: int | None
    proof_differs_at: int | None
    proof_held: int | None
    n_children: int


ProvedScenario: TypeAlias = "WithAnnotations[Scenario, Proof]"


def gallery_rows() -> dict[str, ProvedScenario]:
    """Shares of the teaching scenarios by name, with their newest finished proof on them. One query."""
    newest = Verification.objects.filter(scenario=OuterRef("pk"), state=Verification.State.DONE).order_by(
        "-pk"
    )
    rows = (
        Scenario.objects.exclude(gallery_name="")
        .defer("document")
        .annotate(
            proof_same=Subquery(newest.values("n_same")[:1]),
            proof_recorded=Subquery(newest.values("n_recorded")[:1]),
            proof_differs_at=Subquery(newest.values("differs_at")[:1]),
            proof_held=Subquery(newest.values("n_held")[:1]),
            n_children=Count("children"),
        )
    )
    return {row.gallery_name: row for row in rows}
