"""A live cluster is told batch by batch, and mirrored: nothing of it is lost, doubled, decided or kept by accident."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.apps import apps

from playground.clusters.drive.advance import load
from playground.clusters.foreign import following
from playground.clusters.foreign.following import live_gauges
from playground.clusters.log.housekeeping import shorten_live
from playground.clusters.models import Cluster, LogEntry, Node, Pod
from playground.engine.compressed import decompress
from tests.api.conftest import Api
from tests.api.test_questions import answer
from tests.clusters.builders import make_node, make_pod
from tests.manifests import make_object

AT = "2026-11-20T02:10:{:02d}Z"
DECISION = {
    "time": AT.format(4), "pod": "default/web", "kind": "bind", "node": "a", "victims": [], "by": "default-scheduler",
    "verdict": "different", "ours": "b", "plugin": "NodeResourcesFit", "reasons": [], "points": 10, "ourPoints": 20,
    "cause": {
        "kind": "weight", "plugin": "NodeResourcesFit", "weights": [{"plugin": "NodeResourcesFit", "from": 5, "to": 7}],
    },
}  # fmt: skip


class Told:
    """A follower of a cluster, as its requests are."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.id = api.post("/clusters/", {"name": "live", "live": True}).json()["id"]
        self.path = f"/clusters/{self.id}/following/"
        self.number = self.session = 0

    def begin(self, **more: Any) -> Any:
        said = self.api.send("PUT", self.path, {"source": "prod", "program": "follow on laptop", **more})
        self.session, self.number = said.json().get("session", 0), 0
        return said

    def tell(self, *changes: dict[str, Any], second: int = 1, type: str = "LISTED", **more: Any) -> Any:
        self.number += 1
        lines = [
            item if "type" in item else {"at": AT.format(second), "type": type, "object": item}
            for item in changes
        ]
        return self.api.post(
            self.path, {"session": self.session, "number": self.number, "changes": lines, **more}
        )

    @property
    def cluster(self) -> Cluster:
        return Cluster.objects.get(public_id=self.id)


@pytest.fixture
def told(api: Api) -> Iterator[Told]:
    told = Told(api)
    told.begin()
    yield told


def _pod(name: str, **more: Any) -> dict[str, Any]:
    pod = make_pod(name, **more)
    pod["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "17"}
    return pod


def test_a_batch_that_comes_twice_is_taken_once_and_a_gap_or_an_old_session_is_refused(told: Told) -> None:
    first = told.tell(make_node("a"), _pod("web"), listed=True)
    assert first.json() == {"session": 1, "number": 1, "page": f"/c/{told.id}/followed/", "paused": False}
    told.number -= 1
    assert told.tell(make_node("never")).json()["number"] == 1
    assert [node.name for node in Node.objects.all()] == ["a"]
    told.number += 1
    assert "batch 3 came where 2 is expected" in told.tell().json()["detail"]
    old, _ = told.session, told.begin()
    told.session = old
    assert "session 1 is over: session 2 follows now" in told.tell().json()["detail"]


@pytest.mark.dialect
def test_the_same_object_again_is_no_entry_and_what_is_not_named_is_gone(told: Told) -> None:
    told.tell(make_node("a"), make_node("b"), _pod("web"), _pod("api"))
    n_entries = LogEntry.objects.count()
    again = _pod("web")
    again["metadata"]["resourceVersion"] = "99"
    there = {"at": AT.format(9), "type": "THERE", "kind": "Pod", "names": ["default/web"]}
    told.tell(again, there, second=9)
    assert [pod.name for pod in Pod.objects.all()] == ["web"]
    assert LogEntry.objects.count() == n_entries + 1
    other = _pod("web") | {"metadata": {**_pod("web")["metadata"], "uid": "another"}}
    told.tell(other, second=12, type="MODIFIED")
    kinds = [*LogEntry.objects.order_by("-seq").values_list("kind", flat=True)[:2]]
    assert kinds == ["write", "delete"] and Pod.objects.get().uid == "another"


def test_nothing_acts_on_a_followed_cluster_and_questions_about_it_are_answered(
    told: Told, visit: Callable[[Cluster], None], api: Api
) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}
    workload = make_object("apps/v1", "ReplicaSet", "web", namespace="default", spec={"replicas": 5})
    pod = _pod("web", cpu="1")
    pod["metadata"]["ownerReferences"] = [owner]
    large = _pod("large", cpu="64")
    second = {**_pod("web2"), "metadata": {**pod["metadata"], "name": "web2", "uid": "uid-web2"}}
    told.tell(
        make_node("a"), workload, pod, second, large, {**_pod("on"), "spec": {**pod["spec"], "nodeName": "a"}}
    )
    visit(told.cluster)
    told.tell(make_node("b"), second=40, type="ADDED")
    visit(told.cluster)
    assert {pod.name: (pod.node_name, pod.phase) for pod in Pod.objects.all()} == {
        "web": ("", "Pending"), "web2": ("", "Pending"), "large": ("", "Pending"), "on": ("a", "Pending"),
    }  # fmt: skip
    assert not LogEntry.objects.filter(source="engine", kind="write").exists()
    assert told.cluster.next_cycle == 1 and Pod.objects.get(name="web").lane == "active"
    for method, path, body in (
        ("POST", f"/clusters/{told.id}/run", {"until": "idle"}),
        ("PUT", f"/clusters/{told.id}/clock/", {"mode": "realtime"}),
        ("POST", f"/clusters/{told.id}/reset", None),
        ("DELETE", f"/clusters/{told.id}/pods/default/web/", None),
    ):
        refused = api.send(method, path, body)
        assert (refused.status_code, "only mirrors it" in refused.json()["detail"]) == (409, True), (
            path,
            refused.json(),
        )
    found = answer(api, api.post(f"/clusters/{told.id}/fix", {"pod": "default/large"}))
    assert "lower-request" in {fix["what"] for fix in found["answer"]["fixes"]}
    drained = answer(api, api.post(f"/clusters/{told.id}/plan", {"ask": "drain", "nodes": ["a"]}))
    assert drained["answer"]["verdict"]
    copy = api.post(f"/clusters/{told.id}/clone", {"name": "ours"}).json()["id"]
    made = api.post(f"/clusters/{copy}/run", {"until": "idle"})
    visit(Cluster.objects.get(public_id=copy))
    assert made.status_code == 202
    decided = Pod.objects.filter(cluster__public_id=copy).values_list("name", "node_name")
    assert all(node or name == "large" for name, node in decided) and len(decided) == 4


def test_decisions_and_what_is_pending_are_read(told: Told, api: Api) -> None:
    waits = _pod("large", cpu="64")
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes fit",
    }
    waits["status"] = {"phase": "Pending", "conditions": [condition]}
    gap = {
        "kind": "PodDisruptionBudget",
        "resource": "poddisruptionbudgets",
        "group": "policy",
        "what": "no right",
    }
    told.tell(
        make_node("a"), _pod("web"), waits, decisions=[DECISION], notKnown=[gap], lagMs=300, listed=True
    )
    found = api.get(told.path).json()
    assert (found["state"], found["lagMs"], found["notKnown"], found["counts"]["different"]) == (
        "following",
        300,
        [gap],
        1,
    )
    assert [(one["pods"], one["message"]) for one in found["pending"]] == [(1, ""), (1, "0/1 nodes fit")]
    [row] = api.get(f"/clusters/{told.id}/judge/").json()["items"]
    assert (row["pod"], row["cause"]) == ("default/web", DECISION["cause"])
    assert "has another weight, as if NodeResourcesFit had a weight of 5 to 7." in row["why"]
    assert (found["judged"], found["causes"]) == (1, {"weight": 1})
    paused = api.send("PATCH", told.path, {"paused": True}).json()
    assert paused["state"] == "paused" and told.tell().json()["paused"]
    assert api.send("DELETE", told.path).json()["state"] == "stopped"
    assert "was stopped on its page" in told.tell().json()["detail"]


def test_what_nothing_decides_by_never_reaches_the_database(
    told: Told, visit: Callable[[Cluster], None]
) -> None:
    pod = _pod("web")
    pod["metadata"]["annotations"] = {"acme.example/note": "acme-note"}
    env = [
        {"name": "PASSWORD", "value": "acme-password"},
        {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "acme-ref"}}},
    ]
    pod["spec"]["containers"][0] |= {
        "env": env,
        "command": ["run", "--token=acme-token"],
        "args": ["acme-argument"],
    }
    node = make_node("a")
    node["metadata"]["managedFields"] = [{"manager": "acme-manager"}]
    told.tell(node, pod)
    motto = make_object("v1", "ConfigMap", "c", namespace="default", data={"motto": "acme-motto"})
    assert (
        told.tell(motto).status_code
        == told.tell(make_object("v1", "Secret", "s", data={"k": "acme-key"})).status_code
        == 400
    )
    visit(told.cluster)
    kept = "".join(
        map(
            _text_of,
            (value for model in apps.get_models() for row in model.objects.values_list() for value in row),
        )
    )
    assert "uid-web" in kept
    assert not re.findall("acme-[a-z]+", kept)


def _text_of(value: Any) -> str:
    if not isinstance(value, bytes | memoryview):
        return str(value)
    with suppress(Exception):
        return decompress(bytes(value)).decode()
    return bytes(value).decode(errors="replace")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"at": AT.format(1), "type": "BOOKMARK", "object": {}}, '"BOOKMARK" is no type of a change'),
        ({"at": "now", "type": "ADDED", "object": make_node("a")}, "is no change of a watch"),
        (
            {"at": AT.format(1), "type": "ADDED", "object": make_object("v1", "Secret", "s")},
            "no scheduler goes by",
        ),
        ({"at": AT.format(1), "type": "ADDED", "object": make_node("a", cpu="1x")}, "1x"),
    ],
)
def test_a_line_that_is_none_is_refused_with_its_place(told: Told, change: dict[str, Any], said: str) -> None:
    refused = told.tell(make_node("kept-not"), change)
    assert refused.status_code == 400 and refused.json()["field"].startswith("changes[1]")
    assert said in f"{refused.json()['detail']} {refused.json().get('value')}"
    assert not Node.objects.exists()


@pytest.mark.dialect
def test_what_is_too_old_or_too_much_is_dropped_and_the_rest_is_a_log_still(
    told: Told, visit: Callable[[Cluster], None], settings: Any
) -> None:
    told.tell(make_node("a"), make_node("b"), _pod("web"), _pod("api"), second=1)
    for second in range(10, 30):
        told.tell(make_node("a", cpu=str(second)), second=second, type="MODIFIED")
    told.tell(_pod("api"), second=31, type="DELETED")
    told.tell(
        make_node("a", cpu="40"),
        second=40,
        type="MODIFIED",
        decisions=[DECISION, DECISION | {"time": AT.format(41)}],
    )
    visit(told.cluster)
    now = datetime.fromisoformat(AT.format(35))
    days = timedelta(days=settings.PLAYGROUND_FOLLOW_DAYS)
    dropped = shorten_live(now=now + days)
    assert dropped >= 22 and shorten_live(now=now + days) == 0
    kept = LogEntry.objects.filter(source="api").order_by("seq").values_list("object_name", "kind")
    assert [*kept] == [("b", "write"), ("web", "write"), ("a", "write"), ("a", "write")]
    found = told.api.get(told.path).json()
    assert (found["keptFrom"], found["decisions"]) == (AT.format(35), 1)
    incident = following.incident_of(
        told.cluster, *following.span_of(told.cluster, AT.format(36), AT.format(50))
    )
    assert sorted(key[2] for key in incident.before) == ["a", "b", "web"] and len([*incident.changes()]) == 1
    visit(told.cluster)
    engine = load(told.cluster).engine.simulation
    assert engine.world.node("a").manifest["status"]["allocatable"]["cpu"] == "40" and engine.world.pod(
        "default", "web"
    )
    for second in range(50, 60):
        told.tell(make_node("a", cpu=str(second)), second=second, type="MODIFIED")
    settings.PLAYGROUND_FOLLOW_MB = 0.0001
    assert shorten_live(now=now) and [*kept.values_list("object_name", flat=True)] == ["b", "web", "a", "a"]


def test_what_waits_for_long_is_counted_by_reason(told: Told) -> None:
    waits = _pod("large", cpu="64")
    waits["metadata"]["creationTimestamp"] = AT.format(0)
    waits["status"] = {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    }
    none = {"kind": "no-node", "pod": "default/large", "node": "", "ours": "", "verdict": "agree"}
    told.tell(waits, decisions=[DECISION, {**DECISION, **none}])
    told.tell({"at": "2026-11-20T02:20:00Z", "type": "ADDED", "object": make_node("a")})
    lines = told.api.client.get(f"/api/v1/clusters/{told.id}/metrics").content.decode().splitlines()
    assert live_gauges()[:3] == live_gauges(told.cluster)[:3]
    waiting = [line for line in lines if line.startswith("playground_pending_longer_pods{")]
    assert [line.partition(",")[2] for line in waiting] == [
        'longer_than_seconds="300",plugin="NodeResourcesFit",reason="Unschedulable"} 1',
        'longer_than_seconds="3600",plugin="NodeResourcesFit",reason="Unschedulable"} 0',
    ]  # fmt: skip
    assert f'playground_live_decisions{{cluster="{told.id}",verdict="different"}} 1' in lines
    differs = f'cause="weight",cluster="{told.id}",plugin="NodeResourcesFit"'
    assert f"playground_live_differences{{{differs}}} 1" in lines
