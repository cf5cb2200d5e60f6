"""Every URL with what is really there, without a login and as a stranger who has things of their own.

Each route of the URLconf has a rule, by its parameters or by itself; a new one without a rule fails, and so does a
parameter for which `world` has nothing.
"""

import re
from typing import Any, Final

import pytest
from django.urls import get_resolver

from playground.accounts import teams
from playground.accounts.models import User
from playground.clusters.lifecycle import create_cluster
from playground.clusters.objects.apply import apply_documents
from playground.scenarios.models import Scenario
from playground.scenarios.services import shares
from tests.accounts.world import SECRET, asked, client_of, contents, methods
from tests.clusters.builders import make_node
from tests.scenarios.documents import small_text
from tests.tables import table

pytestmark = pytest.mark.any_database

# Parameters that name what belongs to a person or a team: to others it is not there.
OWNED: Final = frozenset(
    (
        *("cluster_id", "share_id", "scenario_id", "comparison_id", "verdict_id", "draft_id"),
        *("team", "team_id", "token_id", "invitation_id", "user_id", "session"),
    )
)
# Parameters whose holder has been given a secret, or that name nothing of anybody's.
OPEN_PARAMETERS: Final = frozenset(("secret", "uidb64", "reason", "rest", "public_id"))

RULES: Final = {rule: frozenset(paths) for rule, paths in table(__file__, "RULES").items()}
"""Rule -> routes that have it by themselves."""


def parameters_of(route: str) -> set[str]:
    return set(re.findall(r"<(?:\w+:)?(\w+)>", route))


def rule_of(route: str) -> str:
    """Which rule a route has.

    Raises
    ------
    LookupError
        None: a new route says here who may see it.
    """
    bare, parameters = route.removesuffix("$").rstrip("/"), parameters_of(route)
    for rule, routes in RULES.items():
        if bare in routes:
            return rule
    if parameters & OWNED:
        return "owned"
    if parameters & OPEN_PARAMETERS:
        return "open"
    raise LookupError(f'no rule says who may see "{route}": add one to the YAML beside this file')


METHODS_OF: Final = dict(sorted(methods(get_resolver().url_patterns)))
ROUTES: Final = tuple(METHODS_OF)


def path_of(route: str, names: dict[str, str]) -> str:
    """The route with its parameters' values.

    Raises
    ------
    KeyError
        A parameter that names nothing in this world: add what it names to `world`.
    """
    route = re.sub(r"\(\?P<(\w+)>[^)]*\)", r"<\1>", route.removesuffix("$").removesuffix(r"\Z"))
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda match: names[match[1]], route)


def test_every_route_has_a_rule() -> None:
    rules = [rule_of(route) for route in ROUTES]
    assert set(rules) == {"owned", "open", "own", "administrators"}
    assert sum("cluster_id" in route for route in ROUTES) > 100
    for route in ("new-thing/", "things/<slug:thing_id>/", "api/v1/things/<str:thing_id>/"):
        with pytest.raises(LookupError, match="no rule"):
            rule_of(route)


@pytest.fixture
def people(monkeypatch: pytest.MonkeyPatch, world: dict[str, str]) -> dict[str, User]:
    monkeypatch.setattr("playground.web.accounts.views.MAILS_PER_HOUR", 10_000)
    for where in ("playground.web.scenarios", "playground.scenarios.services"):
        monkeypatch.setattr(
            f"{where}.gallery.share_lookalike", lambda: shares.share(document=small_text(seed=7)).scenario
        )
    return {user.username: user for user in User.objects.all()}


@pytest.fixture
def names(world: dict[str, str]) -> dict[str, str]:
    """The values of the parameters: what ada and her team have."""
    return world


def told(answer: Any) -> str:
    """All that an answer says, but for the path that was asked for."""
    headers = "".join(f"{name}: {value}\n" for name, value in answer.items())
    return headers + ("" if answer.streaming else answer.content.decode())


def check_unchanged(before: dict[str, list[Any]]) -> None:
    """What was there is as it was; what a stranger made of their own is added."""
    now = contents()
    for model, rows in before.items():
        gone = [row for row in rows if row not in now[model]]
        assert not gone, (model, gone)


# What a route answers. A path that never has the method says so to everybody alike; 286 stops a poll of what is gone;
# a page may lead to the login page; the stream of ticks says 501 where no ASGI server is.
WITHOUT_LOGIN: Final = {"owned": {302, 401, 404, 405}, "own": {302, 401, 405}, "administrators": {302, 401}}
TO_A_STRANGER: Final = {"owned": {404, 405, 286}, "administrators": {404, 405}}


@pytest.mark.slow
@pytest.mark.parametrize("who", ["", "eve"])
def test_no_url_shows_a_stranger_what_is_not_theirs_or_changes_it(
    people: dict[str, User], names: dict[str, str], who: str
) -> None:
    before = contents()
    client = client_of(people.get(who))
    wanted = TO_A_STRANGER if who else WITHOUT_LOGIN
    missing = names | {key: "999999" if names[key].isdecimal() else "nosuchthing" for key in OWNED}
    for route in ROUTES:
        rule, path = rule_of(route), path_of(route, names)
        for method in METHODS_OF[route]:
            answer = asked(client, method, path)
            where = (who, method, path, answer.status_code)
            assert answer.status_code < 500 or route.startswith("readyz") or path.endswith("/ticks/"), where
            assert rule not in wanted or answer.status_code in wanted[rule] | {501}, where
            assert SECRET not in told(answer), where
            if who and rule == "owned" and method == "GET" and not path.endswith("/ticks/"):
                # It reads like what never was.
                nowhere = asked(client, "GET", path_of(route, missing))
                assert answer.status_code == nowhere.status_code, where
            if path.rstrip("/").endswith("logout"):
                client = client_of(people.get(who))
    check_unchanged(before)


@pytest.mark.slow
def test_what_is_anothers_is_not_reached_through_what_is_ones_own(
    people: dict[str, User], names: dict[str, str]
) -> None:
    """eve asks her own cluster, share and team for what ada's are made of, by the ids it really has."""
    eve = people["eve"]
    own = create_cluster(name="own", owner=eve)
    apply_documents(cluster=own, objects=[make_node("n1")])
    team = teams.create_team(name="own", owner=eve)
    share = shares.share(document=small_text(seed=3), owner=eve, visibility="private").scenario
    mine = {
        "cluster_id": own.public_id,
        "share_id": share.public_id,
        "scenario_id": share.public_id,
        "team": team.name,
        "team_id": str(team.pk),
    }
    before = contents()
    changing = {own._meta.model.__name__, "LogEntry", "Node", "Scenario", "Team", "Membership", "Question"}
    client = client_of(eve)
    for route in ROUTES:
        parameters = parameters_of(route)
        if not parameters & mine.keys() or not parameters - mine.keys():
            continue
        path = path_of(route, names | mine)
        for method in METHODS_OF[route]:
            answer = asked(client, method, path)
            where = (method, path, answer.status_code)
            assert answer.status_code < 500, where
            assert SECRET not in told(answer), where
            if parameters & {"question_id", "run_id", "extender_id", "invitation_id"}:
                assert answer.status_code in (404, 405, 286), where
    for model in changing:
        before[model] = [row for row in before[model] if own.pk not in row and SECRET in str(row)]
    check_unchanged(before)


def test_what_a_body_or_a_query_names_must_be_ones_own(
    people: dict[str, User], names: dict[str, str]
) -> None:
    before = contents()
    eve = client_of(people["eve"])
    own = create_cluster(name="own", owner=people["eve"]).public_id
    hers = [
        {"kind": "cluster", "id": names["cluster_id"], "cycle": None},
        {"kind": "scenario", "id": names["share_id"], "cycle": None},
    ]
    mine = {"kind": "cluster", "id": own, "cycle": None}
    posts: list[tuple[str, dict[str, Any]]] = [
        *(("/api/v1/comparisons/", {"a": mine, "b": side}) for side in hers),
        *(("/api/v1/comparisons/", {"a": side, "b": mine}) for side in hers),
        ("/api/v1/tokens/", {"name": "t", "cluster": names["cluster_id"]}),
        ("/api/v1/clusters/", {"name": "c", "team": names["team"]}),
        (f"/api/v1/clusters/{own}/clone", {"name": "c", "team": names["team"]}),
    ]
    for path, body in posts:
        answer = eve.post(path, body, content_type="application/json")
        assert answer.status_code in (400, 403, 404), (path, body, answer.status_code)
        assert SECRET not in told(answer), path
    side = f"cluster/{names['cluster_id']}"
    forms: list[tuple[str, dict[str, Any]]] = [
        ("/compare/", {"a": side, "b": f"cluster/{own}"}),
        ("/compare/", {"a": f"scenario/{names['share_id']}", "b": f"cluster/{own}"}),
        ("/account/", {"name": "t", "scope": "read", "cluster": names["cluster_id"], "days": "30"}),
        ("/new/", {"name": "c", "owner": f"team/{names['team_id']}", "team": names["team_id"]}),
        ("/s/new/", {"text": small_text(seed=9), "visibility": f"team/{names['team']}"}),
        (f"/c/{own}/cluster/clone/", {"name": "c", "team": names["team_id"]}),
    ]
    for path, form in forms:
        answer = eve.post(path, form, follow=True)
        assert SECRET not in told(answer), path
    for path in (
        f"/compare/?a={side}&b={side}",
        f"/c/{own}/config/rules/?tried={names['question_id']}",
        f"/api/v1/comparisons/?cluster={names['cluster_id']}",
        f"/api/v1/audit/?team={names['team']}",
        "/account/audit/?q=cluster",
        "/?q=x",
    ):
        answer = eve.get(path, follow=True)
        assert answer.status_code < 500 and SECRET not in told(answer).replace(f"?q={SECRET}", ""), path
    check_unchanged(before)
    team = people["ada"].memberships.get().team
    assert team.clusters.count() == 1 and not Scenario.objects.filter(team=team).exists()
