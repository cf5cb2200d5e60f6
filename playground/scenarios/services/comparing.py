"""Comparisons: asked for, made once by a worker, shown for ever."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from playground.accounts import audit
from playground.accounts.choices import Role
from playground.accounts.models import Team
from playground.clusters import wake
from playground.clusters.access import check_role, get_cluster
from playground.clusters.errors import ClusterError, Forbidden, InvalidInput, NotFound
from playground.clusters.log import quotas
from playground.clusters.models import Cluster, Cycle
from playground.engine.moments import violations_of
from playground.engine.scenarios import RunStopped, ScenarioError, states_of
from playground.scenarios.choices import Visibility
from playground.scenarios.comparing import LETTERS, Side, compare_sides
from playground.scenarios.models import Comparison, Moment, Scenario
from playground.scenarios.services.audience import checked_audience, visible
from playground.scenarios.services.moments import cluster_moments, cluster_now, scenario_moments
from playground.scenarios.services.proof import readable
from playground.scenarios.services.storage import count_stored


def request_comparison(
    *,
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    more: Sequence[Mapping[str, Any]] = (),
    owner: Any = None,
    title: str = "",
    visibility: str = "",
    team: Team | str | None = None,
    expires: datetime | None = None,
) -> Comparison:
    """Compare two sides or more; who asks must be able to see all of them.

    Parameters
    ----------
    a, b, more
        Each ``{"kind": "scenario" | "cluster", "id": public id, "cycle": number or None}``.
    visibility
        As of a share. Empty: as visible as the least visible side. More of a cluster than that is an editor's to
        show; a scenario is never shown to who may not read it (`selectors.get_comparison`).
    team
        Of a team's comparison, or its name.
    expires
        From then on it is gone.

    Raises
    ------
    NotFound, InvalidInput, Forbidden, QuotaExceeded
    """
    asked = (a, b, *more)
    if len(asked) > len(LETTERS):
        raise InvalidInput(f"at most {len(LETTERS)} runs are compared", field="more", value=len(asked))
    sides = [_checked(side, letter, owner) for side, letter in zip(asked, LETTERS, strict=False)]
    least, its_team = _least_visible(sides)
    if visibility:
        its_team = checked_audience(visibility, team or its_team, owner, expires)
        if visibility != Visibility.PRIVATE:
            _check_may_show(sides, visibility, its_team, owner)
    else:
        visibility = least
        checked_audience(Visibility.PRIVATE, None, owner, expires)
    quotas.check_bytes(owner)
    with transaction.atomic():
        comparison = Comparison.objects.create(
            owner=owner,
            a=sides[0],
            b=sides[1],
            more=sides[2:],
            title=title[:300],
            visibility=visibility,
            team=its_team,
            expires=expires,
        )
        audit.record(
            "comparison-made",
            by=owner,
            team=its_team,
            target=comparison.public_id,
            detail=f"seen by: {visibility}",
        )
        wake.on_commit("compare", comparison_id=comparison.pk)
    return comparison


def delete_comparison(*, comparison: Comparison, user: Any = None) -> None:
    """Its link leads nowhere then. Who asked for it may, and an owner of the team that sees it.

    Raises
    ------
    Forbidden
    """
    if not may_delete(comparison, user):
        raise Forbidden(
            "only who asked for a comparison, or an owner of its team, can delete it",
            kind="Comparison",
            name=comparison.public_id,
        )
    with transaction.atomic():
        audit.record(
            "comparison-deleted",
            by=user,
            about=comparison.owner,
            team=comparison.team,
            target=comparison.public_id,
        )
        comparison.delete()
        count_stored(comparison.owner_id)


def may_delete(comparison: Comparison, user: Any) -> bool:
    """Whether it is the person's to delete; the local user's is what belongs to no account. At most one query."""
    if user is None:
        return settings.EMBEDDED and comparison.owner_id is None
    if comparison.owner_id == user.pk:
        return True
    team = comparison.team_id
    return team is not None and user.memberships.filter(team=team, role=Role.OWNER).exists()


def _least_visible(sides: Sequence[Mapping[str, Any]]) -> tuple[str, Team | None]:
    """Of all sides the visibility of the one fewest people see; private if these are two teams."""
    seen: list[tuple[str, Team | None]] = []
    for side in sides:
        if side["kind"] == "cluster":
            team = Cluster.objects.select_related("team").get(public_id=side["id"]).team
            seen.append((Visibility.TEAM, team) if team else (Visibility.PRIVATE, None))
        else:
            scenario = (
                Scenario.objects.select_related("team")
                .defer("document", "timeline")
                .get(public_id=side["id"])
            )
            # A comparison is listed nowhere until that is asked for.
            public = scenario.visibility == Visibility.PUBLIC
            seen.append((Visibility.UNLISTED if public else scenario.visibility, scenario.team))
    if len({team.pk for _, team in seen if team}) > 1:
        return Visibility.PRIVATE, None
    return max(seen, key=lambda item: Visibility.values.index(item[0]))


def _check_may_show(
    sides: Sequence[Mapping[str, Any]], visibility: str, team: Team | None, owner: Any
) -> None:
    """Refuse to show others what of a cluster they could not see, unless an editor of it does.

    Raises
    ------
    Forbidden
    """
    for side in sides:
        if side["kind"] == "cluster":
            cluster = Cluster.objects.get(public_id=side["id"])
            if visibility != Visibility.TEAM or team is None or cluster.team_id != team.pk:
                check_role(cluster, owner, Role.EDITOR)


def _checked(side: Mapping[str, Any], field: str, person: Any) -> dict[str, Any]:
    """The side, which the person may see, with its end pinned: a comparison shows the same for ever."""
    cycle = side.get("cycle")
    if side.get("kind") == "scenario":
        rows = visible(Scenario.objects.defer("document", "timeline"), person)
        scenario = rows.filter(public_id=side.get("id")).first()
        if scenario is None:
            raise NotFound(f'there is no scenario "{side.get("id")}"', kind="Scenario")
        last = scenario.n_cycles if scenario.state == Scenario.State.RECORDED else None
    elif side.get("kind") == "cluster":
        cluster = get_cluster(str(side.get("id")), person)
        last = cluster.next_cycle - 1
    else:
        raise InvalidInput(
            "a side is a scenario or a cluster", field=f"{field}.kind", value=str(side.get("kind"))
        )
    if cycle is not None and (isinstance(cycle, bool) or not isinstance(cycle, int) or cycle < 1):
        raise InvalidInput("a cycle is a number from 1", field=f"{field}.cycle", value=str(cycle))
    if cycle is not None and last is not None and cycle > last:
        raise InvalidInput(f"there were {last} cycles only", field=f"{field}.cycle", value=cycle)
    return {"kind": side["kind"], "id": side["id"], "cycle": cycle}


def compare_now(*, comparison_id: int) -> None:
    """Compare and keep what was found. Twice is once."""
    comparison = Comparison.objects.filter(pk=comparison_id, state=Comparison.State.QUEUED).first()
    if comparison is None:
        return
    try:
        found = compare_sides(_parted([_side(side) for side in comparison.sides], comparison.sides))
    except (ClusterError, ScenarioError, RunStopped, ValueError) as error:
        comparison.state = Comparison.State.FAILED
        comparison.problem = str(error)
    else:
        comparison.state = Comparison.State.DONE
        comparison.title = (
            comparison.title or " against ".join(side["words"] for side in found["sides"])[:300]
        )
        comparison.figures = found["figures"]
        comparison.result = found
    news = {name: getattr(comparison, name) for name in ("state", "problem", "title", "figures", "result")}
    Comparison.objects.filter(pk=comparison.pk, state=Comparison.State.QUEUED).update(**news)
    count_stored(comparison.owner_id)


def _parted(sides: Sequence[Side], asked: Sequence[Mapping[str, Any]]) -> list[Side]:
    """The sides, each knowing after which of its cycles another one branched off."""
    ids = [side["id"] for side in asked if side["kind"] == "cluster"]
    since: dict[tuple[str, str], int] = {}
    for branch in Cluster.objects.filter(public_id__in=ids).select_related("parent"):
        of = ("cluster", branch.parent.public_id) if branch.parent else ("scenario", branch.parent_share)
        since[of] = max(since.get(of, 0), branch.parent_cycle or 0)
    return [
        replace(side, since=since.get((where["kind"], where["id"]), 0))
        for side, where in zip(sides, asked, strict=True)
    ]


def _side(side: Mapping[str, Any]) -> Side:
    return _scenario_side(side) if side["kind"] == "scenario" else _cluster_side(side)


def _scenario_side(side: Mapping[str, Any]) -> Side:
    scenario = Scenario.objects.filter(public_id=side["id"]).first()
    if scenario is None:
        raise NotFound("a scenario of this comparison was deleted", kind="Scenario")
    if scenario.state != Scenario.State.RECORDED:
        from playground.scenarios.services.proof import record_now

        record_now(scenario_id=scenario.pk)
        scenario.refresh_from_db()
        if scenario.state != Scenario.State.RECORDED:
            raise NotFound(f"{scenario.words} could not be run: {scenario.problem}", kind="Scenario")
    cycle = side["cycle"] or scenario.n_cycles
    moments = Moment.objects.filter(scenario=scenario, cycle=cycle)
    if not moments.exists():
        scenario_moments(scenario, cycle)
    state = _state(moments.first())
    rows = scenario.cycles.filter(number__lte=cycle)
    if "figures" not in state:
        # States of a stretch come without figures.
        state = dict(states_of(bytes(scenario.document), cycle, cycle)[cycle])
    detail = f"scenario {scenario.public_id}" + (f", after cycle {cycle}" if side["cycle"] else "")
    return _side_of(rows, scenario.words, detail, state, scenario.start_ns)


def _cluster_side(side: Mapping[str, Any]) -> Side:
    cluster = Cluster.objects.filter(public_id=side["id"]).first()
    if cluster is None:
        raise NotFound("a cluster of this comparison was deleted", kind="Cluster")
    cycle = side["cycle"]
    if cycle is None:
        state = cluster_now(cluster)
    else:
        cluster_moments(cluster, cycle)
        state = _state(
            Moment.objects.filter(cluster=cluster, generation=cluster.generation, cycle=cycle).first()
        )
    rows = Cycle.objects.filter(cluster=cluster)
    if cycle is not None:
        rows = rows.filter(number__lte=cycle)
    return _side_of(rows, cluster.name, f"after cycle {cycle}" if cycle else "now", state, cluster.start_ns)


def _side_of(rows: QuerySet[Any], words: str, detail: str, state: Mapping[str, Any], start_ns: int) -> Side:
    def explain(number: int) -> Mapping[str, Any] | None:
        trace = rows.filter(number=number).values_list("trace", flat=True).first()
        return readable(bytes(trace)) if trace is not None else None

    return Side(
        words=words,
        detail=detail,
        decisions=list(rows.order_by("number").defer("trace")),
        state=state,
        explain=explain,
        start_ns=start_ns,
        violations=_violations(rows.filter(outcome="preempting").values_list("trace", flat=True)),
    )


def _state(moment: Moment | None) -> dict[str, Any]:
    if moment is None or moment.data is None:
        raise NotFound(moment.note if moment else "there was no such cycle", kind="Cycle")
    found: dict[str, Any] = moment.data
    return found


def _violations(traces: Any) -> int:
    total = 0
    for trace in traces:
        try:
            total += violations_of(bytes(trace)) if trace is not None else 0
        except (ValueError, KeyError, json.JSONDecodeError):
            continue
    return total
