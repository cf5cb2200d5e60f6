"""What a person and their team have, one of each kind and all of it real, with a word in it no one else may read."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import yaml
from django.apps import apps
from django.contrib.auth import login
from django.test import Client, RequestFactory
from django.urls import URLPattern, URLResolver

from playground.accounts import audit, invitations, teams, tokens
from playground.accounts.choices import Role
from playground.accounts.models import Session, Team, User
from playground.accounts.sessions import SessionStore
from playground.clusters import drafts, questions
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.extenders.mock import create_mock_extender
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster, Question
from playground.clusters.objects.apply import apply_documents
from playground.scenarios.services import comparing, proof, shares
from playground.scenarios.services.verdicts import share_verdict
from tests.clusters.builders import make_node, make_pod, run
from tests.manifests import budget, priority_class
from tests.scenarios.documents import small_text
from tests.tables import table

SECRET: Final = "xyzzy"
RIGHT: Final = "correct horse battery"
"""The password of ada."""
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
# What the parameters name that are no ids.
NAMES: Final = table(__file__, "NAMES")
# Rows of the site's own, which come and go.
NOT_CONTENT: Final = frozenset(("Tally", "LanePulse", "Job", "Turn"))


def methods(
    patterns: list[URLPattern | URLResolver], prefix: str = ""
) -> Iterator[tuple[str, Sequence[str]]]:
    """Every route with the methods that its view has; a function is given all.

    Of two that differ by a slash at their end, and have the same view, the first.
    """
    seen = set()
    for pattern in patterns:
        here = prefix + str(pattern.pattern).lstrip("^")
        if isinstance(pattern, URLResolver):
            yield from methods(pattern.url_patterns, here)
        elif (pattern.callback, here.rstrip("/")) not in seen:
            seen.add((pattern.callback, here.rstrip("/")))
            view = getattr(pattern.callback, "cls", None)
            yield here, [name for name in METHODS if view is None or hasattr(view, name.lower())]


def asked(client: Any, method: str, path: str, body: bytes = b"{}") -> Any:
    data = body if method != "GET" else b""
    return client.generic(method, path, data, content_type="application/json")


def client_of(person: User | None) -> Client:
    client = Client()
    if person is not None:
        client.force_login(person)
    return client


def bearer(user: User, **how: Any) -> Client:
    """A program with a token of a user, which it has used once."""
    _, text = tokens.create_token(user=user, name="t", **how)
    client = Client(headers={"Authorization": f"Bearer {text}"})
    client.get("/api/v1/version")
    return client


def make_people() -> dict[str, User]:
    """ada owns the team; vic looks, ed edits; eve is a stranger."""
    people = {name: User.objects.create_user(name) for name in ("ada", "vic", "ed", "eve")}
    people["ada"].email = f"{SECRET}@example.org"
    people["ada"].save()
    team = teams.create_team(name="platform", owner=people["ada"])
    teams.set_member(team=team, username="vic", role=Role.VIEWER)
    teams.set_member(team=team, username="ed", role=Role.EDITOR)
    return people


def make_world(people: dict[str, User]) -> dict[str, str]:
    """Everything ada has; the values of the parameters of all routes, by name."""
    ada, team = people["ada"], Team.objects.get()
    cluster = _cluster(team)
    extender = create_mock_extender(cluster=cluster, name=SECRET, rules=[{"deny": {"nodes": ["n1"]}}])
    question = questions.ask(cluster=cluster, kind="fix", params={"pod": "default/big"})
    questions.answer(question_id=question.pk, memory=EngineMemory())
    assert Question.objects.get().state == "done" and SECRET in str(Question.objects.get().answer)
    plan = questions.ask(cluster=cluster, kind="plan", params={"ask": "any-node"})
    questions.answer(question_id=plan.pk, memory=EngineMemory())
    plan.refresh_from_db()
    verdict = share_verdict(question=plan, owner=ada, visibility="private")
    scenario = shares.share(document=small_text(title=SECRET), owner=ada, visibility="private").scenario
    proof.record_now(scenario_id=scenario.pk)
    scenario.refresh_from_db()
    assert scenario.state == "recorded"
    for of in ({"cluster": cluster}, {"share": scenario}):
        questions.ask(kind="upgrade", params={"name": "1.35"}, **of)
        questions.ask(kind="model", params={}, **of)
        questions.ask(kind="optimum", params={"time_limit_s": 1}, **of)
    questions.ask(kind="luck", params={"seeds": 2}, share=scenario)
    side = {"kind": "cluster", "id": cluster.public_id, "cycle": None}
    comparison = comparing.request_comparison(a=side, b=side, owner=ada, title=SECRET)
    comparing.compare_now(comparison_id=comparison.pk)
    draft = drafts.start_preview(text=yaml.safe_dump(make_node(SECRET)), owner=ada, keep=True)
    token, _ = tokens.create_token(user=ada, name=SECRET)
    invitation, _ = invitations.create_invitation(by=ada, team=team, email=f"{SECRET}@example.org")
    audit.record("cluster-deleted", by=ada, team=team, target=SECRET)
    return NAMES | {
        "cluster_id": cluster.public_id,
        "question_id": question.public_id,
        "run_id": cluster.runs.get().public_id,
        "extender_id": extender.public_id,
        "share_id": scenario.public_id,
        "scenario_id": scenario.public_id,
        "comparison_id": comparison.public_id,
        "verdict_id": verdict.public_id,
        "draft_id": draft.public_id,
        "team": team.name,
        "team_id": str(team.pk),
        "token_id": str(token.pk),
        "invitation_id": str(invitation.pk),
        "user_id": str(ada.pk),
        "session": _session(ada).handle,
    }


def _session(person: User) -> Session:
    request = RequestFactory().get("/", headers={"user-agent": SECRET})
    request.session = SessionStore()
    login(request, person, "django.contrib.auth.backends.ModelBackend")
    request.session.save()
    return person.sessions.get()


def _cluster(team: Team) -> Cluster:
    cluster = create_cluster(name=SECRET, team=team)
    marked = {"annotations": {"note": SECRET}}
    pods = [make_pod("p1"), make_pod("big", cpu="90", nodeSelector={SECRET: SECRET})]
    node = make_node("n1")
    important = priority_class("important", 7)
    keep = budget("keep", minAvailable=0, selector={"matchLabels": {"app": SECRET}})
    for manifest in (*pods, node, important, keep):
        manifest["metadata"] |= marked
    apply_documents(cluster=cluster, objects=[node, important, keep, *pods])
    run(cluster)
    assert cluster.cycles.count() == 2
    return cluster


def contents() -> dict[str, list[tuple[Any, ...]]]:
    """Every row there is, by model; but for eve herself, who makes things of her own."""
    found = {
        model.__name__: list(model.objects.order_by("pk").values_list())
        for model in apps.get_models()
        if model.__name__ not in NOT_CONTENT and not model.__module__.startswith("django.")
    }
    found["Session"] = list(Session.objects.filter(user__username="ada").values_list())
    found["User"] = list(User.objects.exclude(username="eve").order_by("pk").values_list())
    return found
