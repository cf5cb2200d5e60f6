"""Comparisons belong to who asked for them, and are seen by whom that person says."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from playground.accounts import teams
from playground.accounts.choices import Role
from playground.accounts.models import User
from playground.clusters.errors import Forbidden, InvalidInput
from playground.clusters.lifecycle import create_cluster
from playground.scenarios.models import Comparison
from playground.scenarios.services.comparing import request_comparison
from playground.scenarios.services.shares import share
from playground.scenarios.services.storage import tidy
from tests.accounts.world import client_of
from tests.scenarios.documents import small_text


@pytest.fixture
def people(settings: Any, db: None, wakes: Any) -> dict[str, User]:
    settings.EMBEDDED = False
    found = {name: User.objects.create_user(name) for name in ("ada", "bob", "vic", "eve")}
    team = teams.create_team(name="platform", owner=found["ada"])
    teams.set_member(team=team, username="bob", role=Role.EDITOR)
    teams.set_member(team=team, username="vic", role=Role.VIEWER)
    return found


def of_cluster(owner: User | None = None, team: Any = None) -> dict[str, Any]:
    return {
        "kind": "cluster",
        "id": create_cluster(name="xyzzy", owner=owner, team=team).public_id,
        "cycle": None,
    }


def of_share(owner: User | None, visibility: str) -> dict[str, Any]:
    scenario = share(document=small_text(), owner=owner, visibility=visibility).scenario
    return {"kind": "scenario", "id": scenario.public_id, "cycle": None}


def answers(comparison: Comparison, person: User | None) -> list[int]:
    client = client_of(person)
    paths = (f"/compare/{comparison.public_id}/", f"/api/v1/comparisons/{comparison.public_id}/")
    return [client.get(path).status_code for path in paths]


SEEN, HIDDEN = [200, 200], [404, 404]


def test_a_comparison_of_private_clusters_is_not_there_for_strangers(people: dict[str, User]) -> None:
    ada = people["ada"]
    comparison = request_comparison(a=of_cluster(ada), b=of_cluster(ada), owner=ada)
    assert comparison.visibility == "private"
    assert answers(comparison, ada) == SEEN
    for stranger in (None, people["bob"], people["eve"]):
        assert answers(comparison, stranger) == HIDDEN
        client = client_of(stranger)
        gone = client.delete(f"/api/v1/comparisons/{comparison.public_id}/").status_code
        assert gone == (401 if stranger is None else 404)
        page = client.post(f"/compare/{comparison.public_id}/delete/").status_code
        assert page == (302 if stranger is None else 404)
    assert Comparison.objects.filter(pk=comparison.pk).exists()


def test_it_is_as_visible_as_the_less_visible_side_unless_one_says_otherwise(people: dict[str, User]) -> None:
    ada, team = people["ada"], people["ada"].memberships.get().team
    unlisted, public = of_share(ada, "unlisted"), of_share(ada, "public")
    teams_own = of_cluster(team=team)
    other = of_cluster(team=teams.create_team(name="other", owner=ada))
    for a, b, wanted in (
        (public, public, "unlisted"),
        (public, unlisted, "unlisted"),
        (unlisted, teams_own, "team"),
        (teams_own, of_cluster(ada), "private"),
        (teams_own, other, "private"),
        (of_share(ada, "private"), public, "private"),
    ):
        made = request_comparison(a=a, b=b, owner=ada)
        assert (made.visibility, made.team) == (wanted, team if wanted == "team" else None)
    of_team = request_comparison(a=unlisted, b=teams_own, owner=ada)
    seen_by = {name: answers(of_team, person) == SEEN for name, person in people.items()}
    assert seen_by == {"ada": True, "bob": True, "vic": True, "eve": False}
    assert answers(of_team, None) == HIDDEN


def test_an_editor_may_show_a_clusters_comparison_and_a_viewer_may_not(people: dict[str, User]) -> None:
    team = people["ada"].memberships.get().team
    sides = {"a": of_cluster(team=team), "b": of_cluster(team=team)}
    shown = request_comparison(**sides, owner=people["bob"], visibility="unlisted")
    assert answers(shown, None) == SEEN
    with pytest.raises(Forbidden):
        request_comparison(**sides, owner=people["vic"], visibility="unlisted")
    assert request_comparison(**sides, owner=people["vic"], visibility="private").visibility == "private"
    with pytest.raises(InvalidInput, match="public, unlisted, team, private"):
        request_comparison(**sides, owner=people["bob"], visibility="all")
    # What a side hides stays hidden, whatever a comparison of it says.
    hidden = of_share(people["bob"], "private")
    leaky = request_comparison(a=hidden, b=hidden, owner=people["bob"], visibility="public")
    assert answers(leaky, None) == HIDDEN
    assert answers(leaky, people["bob"]) == SEEN


def test_who_leaves_a_team_loses_comparisons_of_its_clusters(people: dict[str, User]) -> None:
    team = people["ada"].memberships.get().team
    sides = {"a": of_cluster(team=team), "b": of_cluster(team=team)}
    made = [request_comparison(**sides, owner=people["bob"], visibility=how) for how in ("", "private")]
    assert [answers(one, people["bob"]) for one in made] == [SEEN, SEEN]
    teams.remove_member(team=team, username="bob")
    assert [answers(one, people["bob"]) for one in made] == [HIDDEN, HIDDEN]


def test_it_is_deleted_by_page_and_api_by_who_made_it_or_the_teams_owner(people: dict[str, User]) -> None:
    team = people["ada"].memberships.get().team
    sides = {"a": of_cluster(team=team), "b": of_cluster(team=team)}
    by_page, by_api, by_owner = (request_comparison(**sides, owner=people["bob"]) for _ in range(3))
    vic = client_of(people["vic"])
    assert vic.post(f"/compare/{by_page.public_id}/delete/").status_code == 403
    assert vic.delete(f"/api/v1/comparisons/{by_page.public_id}/").status_code == 403
    bob = client_of(people["bob"])
    listed = bob.get("/api/v1/comparisons/").json()["items"]
    assert [item["id"] for item in listed] == [one.public_id for one in (by_owner, by_api, by_page)]
    assert bob.get(f"/compare/{by_page.public_id}/delete/").status_code == 200
    assert bob.post(f"/compare/{by_page.public_id}/delete/").status_code == 302
    assert bob.delete(f"/api/v1/comparisons/{by_api.public_id}/").status_code == 204
    ada = client_of(people["ada"])
    assert ada.delete(f"/api/v1/comparisons/{by_owner.public_id}/").status_code == 204
    assert not Comparison.objects.exists()


def test_forms_and_api_say_who_sees_it_and_until_when(people: dict[str, User]) -> None:
    ada = people["ada"]
    side = of_cluster(ada)
    body = {"a": side, "b": side, "visibility": "team", "team": "platform", "expiresInDays": 2}
    client = client_of(ada)
    made = client.post("/api/v1/comparisons/", body, content_type="application/json").json()
    assert (made["visibility"], made["team"]) == ("team", "platform")
    assert made["expiresAt"] is not None
    form = {"a": f"cluster/{side['id']}", "b": f"cluster/{side['id']}", "visibility": "unlisted", "days": ""}
    client.post("/compare/", form)
    assert Comparison.objects.get(visibility="unlisted").owner == ada
    row = Comparison.objects.get(public_id=made["id"])
    Comparison.objects.filter(pk=row.pk).update(expires=timezone.now() - timedelta(seconds=1))
    assert answers(row, ada) == HIDDEN
    assert tidy()["comparisons"] == 1


def test_a_private_share_is_its_owners_alone(people: dict[str, User]) -> None:
    side = of_share(people["ada"], "private")
    for path in (f"/s/{side['id']}/", f"/s/{side['id']}.yaml", f"/api/v1/scenarios/{side['id']}/"):
        assert client_of(people["bob"]).get(path).status_code == 404, path
        answer = client_of(people["ada"]).get(path)
        assert answer.status_code == 200, path
    assert "Access-Control-Allow-Origin" not in client_of(people["ada"]).get(f"/s/{side['id']}.yaml")
