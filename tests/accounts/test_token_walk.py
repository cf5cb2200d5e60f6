"""Every operation with a token of one cluster, one that only reads and one that has expired, over pairs of objects: a
path may name one's own cluster while its body, a row it leads to or a list names another's.

Routes come from the URLconf and bodies from the operations' own examples, with the ids that this world really has: a
new operation is walked without a line here.
"""

import datetime
import json
from collections.abc import Iterator
from itertools import cycle
from typing import Any, Final

import pytest
from django.test import Client, RequestFactory
from django.utils import timezone

from playground.accounts import tokens
from playground.accounts.models import AccessToken, User
from playground.api.documentation import document
from playground.clusters import drafts, kinds
from playground.clusters.access import cluster_now, get_cluster
from playground.clusters.errors import Forbidden
from playground.clusters.lifecycle import clone_cluster, create_cluster
from playground.clusters.models import Cluster
from playground.clusters.objects.apply import apply_documents
from playground.kube_api.requests import Target
from playground.kube_api.watch import watch_of
from playground.scenarios.models import Origin, Scenario
from playground.scenarios.services import comparing, gallery
from tests.accounts.test_every_url import METHODS_OF, ROUTES, check_unchanged, parameters_of, path_of, told
from tests.accounts.world import METHODS, NAMES, SECRET, asked, bearer, client_of, contents
from tests.clusters.builders import make_node, make_pod
from tests.scenarios.documents import small_text

pytestmark = pytest.mark.any_database

# Of these rows a token of one cluster makes none, whatever it asks of its cluster.
ELSEWHERE: Final = (
    *("Cluster", "Scenario", "Verdict", "Comparison", "Team", "Membership", "Invitation", "AccessToken"),
    *("Verification", "MockExtender"),
)
SURFACES: Final = [route for route in ROUTES if route.startswith(("api/v1/", "k8s/"))]
OPEN: Final = {"api/v1/docs", "api/v1"}


@pytest.fixture
def people(monkeypatch: pytest.MonkeyPatch, world: dict[str, str]) -> dict[str, User]:
    # When a token was last used is written once here, before the rows are counted.
    monkeypatch.setattr(tokens, "USED_STEP", datetime.timedelta(days=1))
    # What is made for anybody to see is of a production's size; who may ask for it does not depend on that.
    monkeypatch.setattr(gallery, "asked", lambda *_, **__: small_text())
    return {user.username: user for user in User.objects.all()}


@pytest.fixture
def theirs(world: dict[str, str]) -> dict[str, str]:
    """What ada and her team have besides the cluster that the token is for."""
    return world


@pytest.fixture
def branch(people: dict[str, User], theirs: dict[str, str]) -> Cluster:
    """ada's branch of that cluster, forked from her private share; nothing in it has the word."""
    return branch_for(people["ada"], theirs)


def branch_for(owner: User, theirs: dict[str, str]) -> Cluster:
    made = create_cluster(name="own", owner=owner)
    apply_documents(cluster=made, objects=[make_node("n1"), make_pod("p1")])
    parent = Cluster.objects.get(public_id=theirs["cluster_id"])
    share = Scenario.objects.get(public_id=theirs["share_id"])
    Origin.objects.create(
        cluster=made,
        scenario=share,
        scenario_id_kept=share.public_id,
        shared=False,
        generation=made.generation,
        input_seq=made.last_input_seq,
        steps=[],
    )
    Cluster.objects.filter(pk=made.pk).update(
        parent=parent, parent_cycle=1, parent_seq=1, parent_share=share.public_id
    )
    made.refresh_from_db()
    return made


def named(body: Any, theirs: dict[str, str]) -> Any:
    """An example's body with ids and names that exist."""
    if isinstance(body, list):
        return [named(item, theirs) for item in body]
    if not isinstance(body, dict):
        return body
    known = {key: theirs[name] for key, name in (("team", "team"), ("cluster", "cluster_id")) if key in body}
    if {"kind", "id"} <= body.keys():
        known["id"] = theirs["cluster_id" if body["kind"] == "cluster" else "share_id"]
    return {key: known.get(key) or named(item, theirs) for key, item in body.items()}


def requests(theirs: dict[str, str]) -> Iterator[tuple[str, str, str, bytes, str]]:
    """(route, method, path with ``CLUSTER`` in it, body, media type) of all that the HTTP surfaces have.

    Each operation with its example's body, then what other methods the routes have with an empty object.
    """
    names = theirs | {"cluster_id": "CLUSTER"}
    asked_already = set()
    for route, item in document()["paths"].items():
        pattern = route.lstrip("/").replace("{", "<").replace("}", ">")
        path = path_of(pattern, names)
        for method in (name for name in METHODS if name.lower() in item):
            content = item[method.lower()].get("requestBody", {}).get("content", {})
            for media, found in content.items():
                for example in (found.get("examples") or {}).values():
                    value = named(example["value"], theirs)
                    text = value if isinstance(value, str) else json.dumps(value)
                    yield pattern, method, path, text.encode(), media
                    asked_already.add((method, path.rstrip("/")))
    for pattern in SURFACES:
        path = path_of(pattern, names)
        for method in METHODS_OF[pattern]:
            if (method, path.rstrip("/")) not in asked_already:
                yield pattern, method, path, b"{}", "application/json"


def sent(client: Client, method: str, path: str, body: bytes, media: str) -> Any:
    if media == "application/json":
        return asked(client, method, path, body)
    return client.generic(method, path, body, content_type=media)


def leaked(answer: Any, path: str, theirs: dict[str, str]) -> list[str]:
    """Words of what is not in the token's cluster, but for those that the request named itself."""
    ids = {
        name: value
        for name, value in theirs.items()
        if name.endswith("_id") and name not in NAMES and len(value) > 6
    }
    said = told(answer).replace(path, "")
    return [word for word in (SECRET, *ids.values()) if word in said and word not in path]


def test_the_walk_has_bodies_for_the_operations_that_make_things(theirs: dict[str, str]) -> None:
    walked = [(method, route) for route, method, _, body, _ in requests(theirs) if body != b"{}"]
    assert len(walked) > 40
    for route in ("clone", "scenario", "branch", "apply", "mock-extenders/"):
        assert ("POST", f"api/v1/clusters/<cluster_id>/{route}") in walked
    assert {route.removesuffix("/") for route in SURFACES} >= {
        route.removesuffix("/") for route in ("api/v1/comparisons/", "api/v1/tokens/", "api/v1/drafts/")
    }


@pytest.mark.slow
def test_a_token_of_one_cluster_reaches_nothing_else(
    people: dict[str, User], theirs: dict[str, str], branch: Cluster
) -> None:
    client = bearer(people["ada"], scope="write", cluster=branch.public_id)
    before = contents()
    n_elsewhere = {model: len(before[model]) for model in ELSEWHERE}
    for route, method, path, body, media in requests(theirs):
        for cluster_id in (branch.public_id, theirs["cluster_id"]):
            here = path.replace("CLUSTER", cluster_id)
            if method == "DELETE" and here.rstrip("/") == f"/api/v1/clusters/{branch.public_id}":
                continue
            answer = sent(client, method, here, body, media)
            where = (method, here, body, answer.status_code)
            assert answer.status_code < 500, where
            assert not leaked(answer, here + body.decode(), theirs), where
            if "cluster_id" in parameters_of(route) and cluster_id != branch.public_id:
                assert answer.status_code in (403, 405), where
            if "CLUSTER" not in path:
                break
    own = {model: [row for row in rows if branch.pk not in row] for model, rows in before.items()}
    check_unchanged(own | {"Cluster": [row for row in own["Cluster"] if row[0] != branch.pk]})
    now = contents()
    made = {model: len(now[model]) - n for model, n in n_elsewhere.items()}
    # Mock extenders are the cluster's own.
    assert {model for model, n in made.items() if n > 0} <= {"MockExtender"}, made


@pytest.mark.slow
def test_a_token_to_read_changes_nothing_anywhere(
    people: dict[str, User], theirs: dict[str, str], branch: Cluster
) -> None:
    client = bearer(people["ada"], scope="read")
    before = contents()
    for _, method, path, body, media in requests(theirs):
        here = path.replace("CLUSTER", branch.public_id)
        answer = sent(client, method, here, body, media)
        where = (method, here, answer.status_code)
        assert answer.status_code < 500, where
        if method == "GET":
            assert answer.status_code not in (401, 403), where
        else:
            assert answer.status_code in (403, 404, 405), where
    assert contents() == before


@pytest.mark.slow
def test_a_token_that_has_expired_or_was_deleted_reaches_nothing(
    people: dict[str, User], theirs: dict[str, str]
) -> None:
    client = bearer(people["ada"])
    AccessToken.objects.filter(name="t").update(expires=timezone.now() - datetime.timedelta(seconds=1))
    deleted = bearer(people["ada"], days=None)
    AccessToken.objects.filter(name="t", expires=None).delete()
    before = contents()
    # By turns: that it is over is found before it is known what is asked.
    for (route, method, path, body, media), one in zip(requests(theirs), cycle((client, deleted))):
        here = path.replace("CLUSTER", theirs["cluster_id"])
        answer = sent(one, method, here, body, media)
        where = (method, here, answer.status_code)
        if route.removesuffix("/") in OPEN:
            assert answer.status_code < 500, where
        else:
            assert answer.status_code == 401, where
        assert not leaked(answer, here, theirs), where
    assert contents() == before


@pytest.mark.slow
def test_a_stranger_reaches_nothing_through_bodies_and_rows_of_their_own(
    people: dict[str, User], theirs: dict[str, str]
) -> None:
    """eve's cluster was a branch of ada's, forked from a share that is private by now."""
    own = branch_for(people["eve"], theirs)
    before = contents()
    client = client_of(people["eve"])
    for _, method, path, body, media in requests(theirs):
        here = path.replace("CLUSTER", own.public_id)
        if method == "DELETE" and here.rstrip("/") == f"/api/v1/clusters/{own.public_id}":
            continue
        answer = sent(client, method, here, body, media)
        assert answer.status_code < 500, (method, here, body)
        assert not leaked(answer, here + body.decode(), theirs), (method, here, body)
    own_rows = {model: [row for row in rows if own.pk not in row] for model, rows in before.items()}
    check_unchanged(own_rows | {"Cluster": [row for row in own_rows["Cluster"] if row[0] != own.pk]})


def test_a_branchs_token_does_not_reach_its_parent(
    people: dict[str, User], theirs: dict[str, str], branch: Cluster
) -> None:
    client = bearer(people["ada"], cluster=branch.public_id)
    here = f"/api/v1/clusters/{branch.public_id}"
    seq = Cluster.objects.get(public_id=theirs["cluster_id"]).next_seq
    for answer in (
        client.get(f"{here}/difference"),
        client.post(f"{here}/apply-to-parent", {}, content_type="application/json"),
        client.get(f"/api/v1/clusters/{theirs['cluster_id']}/"),
        client.get(f"/api/v1/clusters/?before={theirs['cluster_id']}"),
        client.get("/api/v1/clusters/?before=nothing"),
    ):
        assert answer.status_code == 403
        assert answer.json()["detail"] == f'This token is for cluster "{branch.public_id}" and nothing else.'
    assert Cluster.objects.get(public_id=theirs["cluster_id"]).next_seq == seq
    assert client.get(f"{here}/steps/").json()["scenario"] is None
    parents = bearer(people["ada"], cluster=theirs["cluster_id"])
    assert parents.get(f"/api/v1/clusters/{theirs['cluster_id']}/branch").json()["items"] == []
    whole = bearer(people["ada"])
    assert whole.get(f"{here}/difference").status_code == 200
    assert whole.get(f"{here}/steps/").json()["scenario"] == theirs["share_id"]


def test_an_answer_is_not_shared_with_a_token_of_one_cluster(
    people: dict[str, User], theirs: dict[str, str]
) -> None:
    client = bearer(people["ada"], cluster=theirs["cluster_id"])
    plan = Cluster.objects.get(public_id=theirs["cluster_id"]).questions.get(kind="plan")
    path = f"/api/v1/clusters/{theirs['cluster_id']}/questions/{plan.public_id}/share"
    refused = client.post(path, {}, content_type="application/json")
    assert refused.status_code == 403
    assert theirs["verdict_id"] not in refused.content.decode()


def test_a_large_apply_is_followed_with_the_token_that_began_it(
    people: dict[str, User], theirs: dict[str, str], branch: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "READ_AT_ONCE_BYTES", 10)
    client = bearer(people["ada"], cluster=branch.public_id)
    here = f"/api/v1/clusters/{branch.public_id}/apply"
    begun = client.post(here, make_pod("p2"), content_type="application/json")
    assert begun.status_code == 202
    assert client.get(begun.headers["Location"]).status_code == 200
    assert client.get(f"/api/v1/drafts/{theirs['draft_id']}/").status_code == 404
    other = bearer(people["ada"], cluster=theirs["cluster_id"])
    assert other.get(begun.headers["Location"]).status_code == 404


def test_a_draft_goes_into_a_cluster_by_who_may_still_change_it(
    people: dict[str, User], theirs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "READ_AT_ONCE_BYTES", 10)
    cluster = Cluster.objects.get(public_id=theirs["cluster_id"])
    text = json.dumps(make_pod("late"))
    draft = drafts.import_into(
        cluster=cluster, text=text, owner=people["ed"], content_type="application/json"
    )
    people["ed"].memberships.update(role="viewer")
    drafts.work_on(draft_id=draft.pk)
    draft.refresh_from_db()
    assert draft.state == "failed" and "editor" in str(draft.problems)
    people["ed"].memberships.all().delete()
    assert client_of(people["ed"]).get(f"/api/v1/drafts/{draft.public_id}/").status_code == 404


def test_a_comparison_of_what_is_no_longer_seen_is_listed_no_more(
    people: dict[str, User], theirs: dict[str, str]
) -> None:
    side = {"kind": "cluster", "id": theirs["cluster_id"], "cycle": None}
    made = comparing.request_comparison(a=side, b=side, owner=people["ed"], visibility="private")
    client = client_of(people["ed"])
    assert made.public_id in client.get("/api/v1/comparisons/").content.decode()
    people["ed"].memberships.all().delete()
    assert client.get("/api/v1/comparisons/").json()["items"] == []


def test_a_watch_ends_with_the_right_to_it(people: dict[str, User], branch: Cluster) -> None:
    pods = kinds.by_kind("Pod")
    assert pods is not None
    for ends in ("deleted", "expired", "closed", "other team"):
        token, text = tokens.create_token(user=people["ada"], name="w", cluster=branch.public_id)
        request = RequestFactory().get("/", {"watch": "1"})
        found = tokens.token_of(text)
        assert found is not None
        request.user = found.user
        watch = watch_of(request, branch, Target(pods, "default", ""))
        assert len(watch.read()) >= 1
        assert get_cluster(branch.public_id, request.user) == branch
        if ends == "deleted":
            token.delete()
        elif ends == "expired":
            AccessToken.objects.filter(pk=token.pk).update(expires=timezone.now())
        elif ends == "closed":
            User.objects.filter(pk=people["ada"].pk).update(is_active=False)
        else:
            Cluster.objects.filter(pk=branch.pk).update(owner=people["eve"])
        apply_documents(cluster=branch, objects=[make_pod(f"after-{ends.replace(' ', '-')}")])
        assert (watch.read(), watch.over) == ([], True), ends
        assert cluster_now(branch.pk, request.user) is None
        User.objects.filter(pk=people["ada"].pk).update(is_active=True)


def test_a_row_of_another_cluster_is_handed_to_nobody_with_a_token_of_one(
    people: dict[str, User], theirs: dict[str, str], branch: Cluster
) -> None:
    """The selectors themselves, without a view before them."""
    _, text = tokens.create_token(user=people["ada"], name="t", cluster=branch.public_id)
    found = tokens.token_of(text)
    assert found is not None
    with pytest.raises(Forbidden, match="and nothing else"):
        get_cluster(theirs["cluster_id"], found.user)
    with pytest.raises(Forbidden, match="and nothing else"):
        create_cluster(name="x", owner=found.user)
    with pytest.raises(Forbidden, match="and nothing else"):
        clone_cluster(cluster=branch, name="x", owner=found.user)
