"""What one may do here, who one is, and what a playground's pods do not have."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import websocket

from playground.accounts import teams
from playground.accounts.choices import Role
from playground.accounts.models import User
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster, LogEntry
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.in_thread import served
from tests.kube_api.conftest import PODS, Kube
from tests.tables import table

ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def asked(kube: Kube, verb: str, resource: str, group: str = "", subresource: str = "") -> dict[str, Any]:
    attributes = {"verb": verb, "resource": resource, "group": group, "subresource": subresource}
    answer = kube.post(ACCESS, {"spec": {"resourceAttributes": attributes}})
    assert answer.status_code == 201
    status: dict[str, Any] = answer.json()["status"]
    return status


def test_the_local_user_may_do_what_there_is(kube: Kube) -> None:
    before = LogEntry.objects.count()
    assert asked(kube, "create", "pods") == {"allowed": True}
    assert asked(kube, "patch", "deployments", "apps", "scale") == {"allowed": True}
    assert asked(kube, "*", "*", "*") == {"allowed": True}
    assert asked(kube, "create", "pods", "", "exec")["reason"] == "the playground has no pods/exec"
    assert asked(kube, "create", "pods", "apps") == {"allowed": False, "reason": "the playground has no pods"}
    assert asked(kube, "delete", "events") == {"allowed": True}
    namespaces = {"allowed": False, "reason": "namespaces has no verb deletecollection"}
    assert asked(kube, "deletecollection", "namespaces") == namespaces
    who = kube.post(WHO, {}).json()["status"]["userInfo"]
    assert who == {"username": "local", "groups": ["system:authenticated", "playground:owner"]}
    path = {"spec": {"nonResourceAttributes": {"path": "/apis/apps", "verb": "get"}}}
    assert kube.post(ACCESS, path).json()["status"] == {"allowed": True}
    assert LogEntry.objects.count() == before


@pytest.mark.parametrize(
    "body",
    table(__file__, "a_review_that_asks_nothing_is_a_bad_request"),
)
def test_a_review_that_asks_nothing_is_a_bad_request(kube: Kube, body: dict[str, Any]) -> None:
    answer = kube.post(ACCESS, body)
    assert (answer.status_code, answer.json()["kind"]) == (400, "Status")
    assert kube.get(ACCESS).status_code == 405


def test_a_viewer_may_ask_and_hears_that_he_may_only_look(
    kube: Kube, cluster: Cluster, settings: Any
) -> None:
    settings.EMBEDDED = False
    ada, vic, _ = (User.objects.create_user(name) for name in ("ada", "vic", "eve"))
    team = teams.create_team(name="platform", owner=ada)
    teams.set_member(team=team, username="vic", role=Role.VIEWER)
    kube.prefix = f"/k8s/{create_cluster(name='shared', team=team).public_id}"
    kube.client.force_login(vic)
    assert asked(kube, "list", "pods") == {"allowed": True}
    assert asked(kube, "create", "pods") == {
        "allowed": False,
        "reason": 'your role in this cluster is "viewer"',
    }
    assert not asked(kube, "*", "nodes")["allowed"]
    rules = kube.post(RULES, {"spec": {"namespace": "default"}}).json()["status"]["resourceRules"]
    assert {"verbs": ["get", "list", "watch"], "apiGroups": ["apps"], "resources": ["deployments"]} in rules
    assert all(set(rule["verbs"]) <= {"get", "list", "watch"} for rule in rules)
    assert kube.post(WHO, {}).json()["status"]["userInfo"]["username"] == "vic"
    kube.client.force_login(ada)
    assert asked(kube, "create", "pods") == {"allowed": True}
    kube.client.force_login(User.objects.get(username="eve"))
    assert {kube.post(path, {}).status_code for path in (ACCESS, RULES, WHO)} == {404}


@pytest.mark.parametrize("part", ["log", "exec", "attach", "portforward", "proxy/index.html"])
def test_pods_have_no_containers_and_say_so(kube: Kube, part: str) -> None:
    answer = kube.get(f"{PODS}/p1/{part}")
    assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")
    assert answer.json()["message"].startswith(
        'there are no containers in a playground: pod "p1" is simulated: '
    )
    assert kube.get(f"{PODS}/nope/{part}").json()["message"] == 'pods "nope" not found'


# ---- exec, attach and port-forward over WebSockets: refused with the Status that kubectl gets over HTTP


SAID = 'there are no containers in a playground: pod "p1" is simulated: nothing can be run or reached in it'


@pytest.fixture(params=["auto", "none"])
def site(request: pytest.FixtureRequest, transactional_db: None, wakes: list[Any]) -> Iterator[str]:
    """With uvicorn's WebSockets, and by the commands of README, which have none."""
    cluster = make_cluster(make_node("n1"), make_pod("p1"))
    with served(ws=request.param) as found:
        yield f"http://{found.place}/k8s/{cluster.public_id}"


def test_clients_get_the_status(site: str) -> None:
    for part in ("exec?command=ls&stdout=true", "attach?stdout=true", "portforward?ports=80"):
        url = f"{site.replace('http', 'ws', 1)}/api/v1/namespaces/default/pods/p1/{part}"
        with pytest.raises(websocket.WebSocketBadStatusException) as refused:
            websocket.create_connection(
                url, subprotocols=["v5.channel.k8s.io", "v4.channel.k8s.io"], timeout=20
            )
        assert refused.value.status_code == 400
        status = json.loads(refused.value.resp_body)
        assert (status["kind"], status["reason"], status["message"]) == ("Status", "BadRequest", SAID)
