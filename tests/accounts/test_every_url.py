"""Every URL that names no cluster, without a login and as a stranger; those of clusters: `test_stranger_walk`.

Each route of the URLconf has a rule, by its parameters or by itself; a new one without a rule fails.
"""

from __future__ import annotations

import re
from typing import Any, Final

import pytest
from django.test import Client
from django.urls import get_resolver

from playground.accounts import invitations, teams, tokens
from playground.accounts.models import AccessToken, Invitation, Membership, Team, User
from playground.clusters import services as clusters
from playground.scenarios import services
from playground.scenarios.models import Comparison, Scenario
from tests.accounts.test_stranger_walk import METHODS, asked, routes
from tests.api.conftest import wakes
from tests.scenarios.documents import small_text

__all__ = ["wakes"]

SECRET: Final = "xyzzy"

# Parameters that name what belongs to a person or a team: to others it is not there.
OWNED: Final = frozenset(
    ("share_id", "scenario_id", "comparison_id", "team", "team_id", "token_id", "invitation_id", "user_id")
)
# Parameters whose holder has been given a secret, or that name nothing of anybody's.
OPEN_PARAMETERS: Final = frozenset(("secret", "uidb64", "reason", "rest", "public_id"))

# Paths without parameters: of the site, for everybody.
OPEN: Final = frozenset(
    [
        "healthz",
        "readyz",
        "metrics",
        "api/v1",
        "api/v1/version",
        "api/v1/problems",
        "api/v1/openapi.json",
        "api/v1/openapi.yaml",
        "api/v1/docs",
        "account/login",
        "account/reset",
        "account/reset/sent",
        "gallery",
        "gallery/gpu/four-ways",
    ]
)
# One's own; a login is asked for.
OWN: Final = frozenset(
    [
        "api/v1/tokens",
        "api/v1/teams",
        "api/v1/quota",
        "api/v1/releases",
        "api/v1/audit",
        "api/v1/clusters",
        "api/v1/scenarios",
        "api/v1/comparisons",
        "account",
        "account/logout",
        "account/password",
        "account/email",
        "account/teams",
        "account/audit",
        "s",
        "s/new",
        "gallery/at-scale/make",
        "compare",
        "differs",
        "about",
        "new",
        "new/pools",
        "new/import",
    ]
) | {""}
# For administrators; to others they do not exist.
ADMINISTRATORS: Final = frozenset(("account/people", "account/people/invite"))
# Teaching scenarios are public.
GALLERY: Final = frozenset(("gallery/<slug:name>", "gallery/<slug:name>/open"))


def rule_of(route: str) -> str:
    """Which rule a route has.

    Raises
    ------
    LookupError
        None: a new route says here who may see it.
    """
    parameters = set(re.findall(r"<(?:\w+:)?(\w+)>", route))
    bare = route.removesuffix("$").rstrip("/")
    if "cluster_id" in parameters:
        return "cluster"
    if parameters & OWNED:
        return "owned"
    if bare in GALLERY or (parameters and parameters & OPEN_PARAMETERS):
        return "open"
    for name, paths in (("open", OPEN), ("own", OWN), ("administrators", ADMINISTRATORS)):
        if bare in paths:
            return name
    raise LookupError(f'no rule says who may see "{route}": add one to this file')


ROUTES: Final = sorted(set(routes(get_resolver().url_patterns)))


def test_every_route_has_a_rule() -> None:
    rules = [rule_of(route) for route in ROUTES]
    assert set(rules) == {"cluster", "owned", "open", "own", "administrators"}
    for route in ("new-thing/", "things/<slug:thing_id>/", "api/v1/things/<str:thing_id>/"):
        with pytest.raises(LookupError, match="no rule"):
            rule_of(route)


@pytest.fixture
def names(settings: Any, db: None, wakes: list[Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Things of a person that carry a word that no one else may read, by the parameter that names each."""
    settings.EMBEDDED = False
    settings.PLAYGROUND_WRITE_RATE = settings.PLAYGROUND_REQUEST_RATE = "100000/day"
    monkeypatch.setattr("playground.web.accounts.passwords.MAILS_PER_HOUR", 10_000)
    ada = User.objects.create_user("ada", email=f"{SECRET}@example.org")
    User.objects.create_user("eve")
    team = teams.create_team(name="platform", owner=ada)
    Membership.objects.create(team=team, user=User.objects.create_user(f"{SECRET}-member"), role="viewer")
    token, _ = tokens.create_token(user=ada, name=SECRET)
    invitation, _ = invitations.create_invitation(by=ada, team=team, email=f"{SECRET}@example.org")
    scenario = services.share(document=small_text(title=SECRET), owner=ada, visibility="private").scenario
    side = {"kind": "cluster", "id": clusters.create_cluster(name=SECRET, owner=ada).public_id, "cycle": None}
    comparison = services.request_comparison(a=side, b=side, owner=ada, title=SECRET)
    monkeypatch.setattr(
        services, "share_lookalike", lambda: services.share(document=small_text(seed=7)).scenario
    )
    return {
        "share_id": scenario.public_id,
        "scenario_id": scenario.public_id,
        "comparison_id": comparison.public_id,
        "team": team.name,
        "team_id": str(team.pk),
        "token_id": str(token.pk),
        "invitation_id": str(invitation.pk),
        "user_id": str(ada.pk),
        "user": "stranger",
        "number": "1",
        "deed": "close",
        "reason": "NotFound",
        "public_id": "nothing",
        "verb": "filter",
        "uidb64": "MQ",
        "token": "set-password",
        "secret": "nothing",
        "name": "nothing",
        "rest": "nothing",
    }


def path_of(route: str, names: dict[str, str]) -> str:
    route = re.sub(r"\(\?P<(\w+)>[^)]*\)", r"<\1>", route.removesuffix("$"))
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda match: names[match[1]], route)


def everything() -> list[int]:
    """How many things of hers there are; none may go."""
    models = (Scenario, Comparison, Team, Membership, AccessToken, Invitation)
    mine = {"owner__username": "ada"}
    return [
        Scenario.objects.filter(**mine).count(),
        Comparison.objects.filter(**mine).count(),
        *(model.objects.count() for model in models[2:]),
        User.objects.filter(is_active=True).count(),
    ]


# What a route answers: without a login, and to a person it does not concern. A page may lead to the login page.
WITHOUT_LOGIN: Final = {"owned": {302, 401, 404, 405}, "own": {302, 401, 405}, "administrators": {302}}
TO_A_STRANGER: Final = {"owned": {404, 405, 286}, "administrators": {404}}


@pytest.mark.slow
def test_no_url_shows_a_stranger_what_is_not_theirs_or_changes_it(names: dict[str, str]) -> None:
    before = everything()
    eve = User.objects.get(username="eve")
    for route in ROUTES:
        rule = rule_of(route)
        if rule == "cluster":
            continue
        path = path_of(route, names)
        for who, wanted in (("no one", WITHOUT_LOGIN), ("eve", TO_A_STRANGER)):
            client = Client()
            if who == "eve":
                client.force_login(eve)
            for method in METHODS:
                answer = asked(client, method, path)
                where = (who, method, path, answer.status_code)
                assert answer.status_code < 500 or route.startswith("readyz"), where
                assert rule not in wanted or answer.status_code in wanted[rule], where
                shown = answer.content.decode() if not answer.streaming else ""
                shown = shown.replace(names["user"], "").replace(names["share_id"], "")
                assert SECRET not in shown, where
                if path.rstrip("/").endswith("logout"):
                    break
    assert [now >= then for now, then in zip(everything(), before, strict=True)] == [True] * len(before)


def test_what_is_not_theirs_reads_like_what_never_was(names: dict[str, str]) -> None:
    eve = Client()
    eve.force_login(User.objects.get(username="eve"))
    missing = names | {key: "999999" if names[key].isdecimal() else "nosuchthing" for key in OWNED}
    for route in ROUTES:
        if rule_of(route) != "owned":
            continue
        there, nowhere = (asked(eve, "GET", path_of(route, these)) for these in (names, missing))
        assert there.status_code == nowhere.status_code, route
