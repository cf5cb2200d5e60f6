"""Extenders over real HTTP: our own mock extender, foreign ones, bind calls and crashes around them."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from playground.clusters.drive import extender_calls
from playground.clusters.drive.advance import load
from playground.clusters.drive.config import set_config
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.errors import InvalidManifest
from playground.clusters.extenders.mock import create_mock_extender, mock_extender_url
from playground.clusters.history.cycles import cycle_explanation
from playground.clusters.history.redecide import recompute_trace
from playground.clusters.history.undo import undo
from playground.clusters.kinds import named
from playground.clusters.lifecycle import reset_cluster
from playground.clusters.models import Change, Checkpoint, Cluster, Cycle, ExtenderCall, LogEntry, Pod, Run
from playground.clusters.objects.write import bind_pod, delete_object
from playground.engine.batch import checkpoint_document
from tests.clusters.builders import make_cluster, make_node, make_pod, run, work
from tests.engine.extender_server import ExtenderServer, serving
from tests.manifests import scheduler_config

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _allow_loopback(settings: Any) -> None:
    settings.PLAYGROUND_EXTENDER_HOSTS = ["127.0.0.1"]


@pytest.fixture
def own_site(settings: Any, live_server: Any) -> str:
    settings.PLAYGROUND_OWN_URL = live_server.url
    settings.PLAYGROUND_EXTENDER_HOSTS = []
    return str(live_server.url)


def configuration(url: str, *verbs: str, **more: Any) -> dict[str, Any]:
    usual = {"urlPrefix": url, "nodeCacheCapable": True, "weight": 1, "httpTimeout": "2s"}
    return scheduler_config(extenders=[usual | {f"{verb}Verb": verb for verb in verbs} | more])


def state_of(cluster: Cluster) -> Any:
    """The engine's state as the log alone gives it."""
    Checkpoint.objects.filter(cluster=cluster).delete()
    document = checkpoint_document(load(cluster).engine.checkpoint())
    return document["simulation"]


def three_nodes(*pods: dict[str, Any]) -> Cluster:
    return make_cluster(*(make_node(f"n{number}") for number in (1, 2, 3)), *pods)


# ---- our own


def test_a_mock_extender_filters_and_scores_over_http_and_its_log_counts_the_requests(
    own_site: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = three_nodes(*(make_pod(f"p{number}") for number in range(3)))
    mock = create_mock_extender(
        cluster=cluster,
        rules=[
            {"deny": {"nodes": ["n1"], "reason": "not today"}},
            {"score": {"nodes": ["n3"], "points": 10}},
        ],
    )
    url = mock_extender_url(mock)
    assert url == f"{own_site}/mock-extenders/{mock.public_id}"
    set_config(cluster=cluster, config=configuration(url, "filter", "prioritize", weight=5))
    with caplog.at_level(logging.INFO, "playground.clusters.extenders.mock"):
        run(cluster)
    assert set(Pod.objects.values_list("node_name", flat=True)) == {"n3"}
    requests = [record for record in caplog.records if record.name.endswith("extenders.mock")]
    assert [record.verb for record in requests] == ["filter", "prioritize"] * 3  # type: ignore[attr-defined]
    mock.refresh_from_db()
    assert mock.calls == {"filter": 3, "prioritize": 3}
    document = cycle_explanation(cluster, 1, full=True)[1]
    assert document is not None
    asked = document["extenders"][0]
    assert (asked["verb"], asked["status"], json.loads(asked["answer"])["FailedNodes"]) == (
        "filter",
        200,
        {"n1": "not today"},
    )
    kept = ExtenderCall.objects.filter(cluster=cluster, cycle=2)
    assert [(call.verb, call.pod_name, call.status) for call in kept] == [
        ("filter", "p1", 200),
        ("prioritize", "p1", 200),
    ]


def test_a_mock_extender_is_reached_by_its_id_whatever_the_host(own_site: str) -> None:
    cluster = three_nodes(make_pod())
    mock = create_mock_extender(cluster=cluster, rules=[{"deny": {"nodes": ["n1", "n2"]}}])
    config = configuration(f"https://elsewhere.example/mock-extenders/{mock.public_id}", "filter")
    set_config(cluster=cluster, config=config)
    run(cluster)
    assert Pod.objects.get().node_name == "n3"


def test_a_mock_extender_of_another_cluster_is_no_way_in(own_site: str) -> None:
    mine, theirs = three_nodes(make_pod()), make_cluster(name="theirs")
    mock = create_mock_extender(cluster=theirs, rules=[])
    set_config(cluster=mine, config=configuration(mock_extender_url(mock), "filter"))
    run(mine)
    assert "inside this server's network" in Cycle.objects.get(number=1).message


def test_slowness_of_a_mock_extender_is_virtual_time_and_a_timeout_when_too_long(own_site: str) -> None:
    cluster = three_nodes(make_pod())
    mock = create_mock_extender(
        cluster=cluster,
        rules=[
            {"slow": "1h", "verbs": ["filter"], "times": 1},
            {"fail": {"error": "EOF"}, "after": 1, "times": 1},
        ],
    )
    set_config(cluster=cluster, config=configuration(mock_extender_url(mock), "filter"))
    run(cluster)
    errors = list(ExtenderCall.objects.order_by("id").values_list("error", flat=True))
    assert "Client.Timeout exceeded" in errors[0] and errors[1].endswith(": EOF") and errors[2] == ""
    assert Pod.objects.get().node_name


def test_bad_rules_are_refused_with_their_place() -> None:
    cluster = make_cluster()
    with pytest.raises(InvalidManifest) as refused:
        create_mock_extender(cluster=cluster, rules=[{"deny": {"node": ["n1"]}}])
    assert (refused.value.path, "nodes" in refused.value.message) == ("rules[0].deny.node", True)


def test_odd_requests_to_a_mock_extender_are_answered(client: Any) -> None:
    cluster = make_cluster()
    mock = create_mock_extender(cluster=cluster, rules=[])
    path = f"/mock-extenders/{mock.public_id}"

    def status(path: str, body: Any) -> int:
        return int(client.post(path, body, content_type="application/json").status_code)

    assert status(f"{path}/filter", "nonsense{") == 400
    assert status(f"{path}/filter", "[]") == 400
    assert status(f"{path}/dance", "{}") == 404
    assert status("/mock-extenders/absent/filter", "{}") == 404
    assert client.get(f"{path}/filter").status_code == 405
    assert status(f"{path}/filter", '{"NodeNames": ["a"]}') == 200


# ---- foreign ones


def passing(path: str, body: Any) -> Any:
    if path.endswith("prioritize"):
        return [{"Host": name, "Score": 0} for name in body["NodeNames"]]
    if path.endswith("bind"):
        return {}
    return {"NodeNames": body["NodeNames"]}


def address(server: ExtenderServer) -> str:
    return f"http://127.0.0.1:{server.port}"


def test_a_replay_never_calls_out_and_arrives_where_the_engine_is() -> None:
    cluster = three_nodes(*(make_pod(f"p{number}") for number in range(5)))
    memory = EngineMemory()
    with serving(passing) as server:
        set_config(cluster=cluster, config=configuration(address(server), "filter", "prioritize"))
        run(cluster, memory=memory, max_cycles=2)
        driven = memory.take(cluster)
        assert driven is not None
        lived = checkpoint_document(driven.engine.checkpoint())["simulation"]
    assert len(server.log) == 10
    assert state_of(cluster) == lived
    Cycle.objects.filter(number=2).update(trace=None)
    assert recompute_trace(cluster_id=cluster.pk, number=2)
    assert len(server.log) == 10
    entries = LogEntry.objects.filter(kind="extender")
    assert entries.count() == 10 and set(entries.values_list("cycle", flat=True)) == {1, 2, 3, 4, 5}


def test_an_extender_that_fails_fails_the_cycle_unless_it_is_ignorable() -> None:
    cluster = three_nodes(make_pod())

    def fail(path: str, body: Any) -> Any:
        return lambda handler: handler.send_error(500)

    with serving(fail) as server:
        set_config(cluster=cluster, config=configuration(address(server), "filter"))
        run(cluster, "cycle")
        first = Cycle.objects.get(number=1)
        assert first.outcome == "error" and "code 500" in first.message
        config = configuration(address(server), "filter", ignorable=True)
        set_config(cluster=cluster, config=config)
        run(cluster)
    assert Pod.objects.get().phase == "Running"


def bind_by_hand(cluster: Cluster, seen: list[str]) -> Any:
    """An extender that posts the Binding before it answers, and looks whether the intent was committed."""

    def answer(path: str, body: Any) -> Any:
        if path.endswith("bind"):
            try:
                intended = ExtenderCall.objects.filter(pod_uid=body["PodUID"], state="intended").exists()
                seen.append(f"{body['PodName']} {'intended' if intended else 'unannounced'}")
                bind_pod(
                    cluster=cluster, namespace=body["PodNamespace"], name=body["PodName"], node=body["Node"]
                )
            finally:
                connection.close()
        return passing(path, body)

    return answer


def test_the_intent_of_a_bind_is_committed_before_the_call() -> None:
    cluster = three_nodes(make_pod("a"), make_pod("b"))
    seen: list[str] = []
    with serving(bind_by_hand(cluster, seen)) as server:
        set_config(cluster=cluster, config=configuration(address(server), "bind"))
        run(cluster)
    assert seen == ["a intended", "b intended"]
    assert set(Pod.objects.values_list("phase", flat=True)) == {"Running"}


class Killed(BaseException):
    """What is left of a worker killed with -9."""


@pytest.fixture
def killed_after_the_call(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def keep_nothing(*_: Any) -> None:
        monkeypatch.undo()
        raise Killed

    monkeypatch.setattr(extender_calls, "_keep_answer", keep_nothing)
    yield


@pytest.mark.dialect
def test_after_a_crash_a_bind_is_not_sent_for_a_bound_pod(killed_after_the_call: None, settings: Any) -> None:
    cluster = three_nodes(make_pod("a"))
    seen: list[str] = []
    with serving(bind_by_hand(cluster, seen)) as server:
        set_config(cluster=cluster, config=configuration(address(server), "bind"))
        request_run(cluster=cluster)
        with pytest.raises(Killed):
            work(cluster)
        settings.PLAYGROUND_EXTENDER_HOSTS = ["127.0.0.1"]
        Cluster.objects.update(lease_expires=None)
        assert work(cluster) == "driven"
    assert seen == ["a intended"]
    assert Pod.objects.get().phase == "Running"
    assert Cycle.objects.get().outcome == "bound"
    assert ExtenderCall.objects.get().state == "skipped"
    lived = state_of(cluster)
    assert lived == state_of(cluster)


def test_a_reset_forgets_the_bind_call_a_killed_worker_had_intended(killed_after_the_call: None) -> None:
    cluster = three_nodes(make_pod("a"))
    with serving(passing) as server:
        set_config(cluster=cluster, config=configuration(address(server), "bind"))
        request_run(cluster=cluster)
        with pytest.raises(Killed):
            work(cluster)
    assert ExtenderCall.objects.filter(state="intended").exists()
    reset_cluster(cluster=cluster)
    assert work(cluster) == "driven"
    # It would be work for ever: each visit would end with a wake-up for the next.
    assert work(cluster) == "idle"
    assert not ExtenderCall.objects.exists()


def test_an_undo_between_a_bind_call_and_its_answer_has_it_called_again(own_site: str) -> None:
    cluster = three_nodes(make_pod("p1"))
    mock = create_mock_extender(cluster=cluster, rules=[])
    set_config(cluster=cluster, config=configuration(mock_extender_url(mock), "bind"))
    run(cluster, "cycle")
    assert [item.words for item in Change.objects.order_by("-id")[:2]] == [
        "run one cycle",
        "change the configuration",
    ]
    assert Pod.objects.get().node_name
    # As if a client had written while the answer was awaited: all that came after the cycle's batch is undone.
    ran = LogEntry.objects.filter(kind="ran").order_by("seq")
    intended = next(entry for entry in ran if entry.payload["cycles"])
    change = Change.objects.order_by("-id")[0]
    change.seq = intended.seq + 1
    change.before |= {"next_cycle": 2, "engine_seq": intended.seq, "cursor_seq": intended.payload["read"]}
    change.before |= {
        "call": ExtenderCall.objects.order_by("-id")[0].pk,
        "run": Run.objects.order_by("-id")[0].pk,
    }
    change.save()

    undo(cluster=cluster)

    assert (Cycle.objects.get().outcome, Pod.objects.get().node_name) == ("binding", "")
    assert list(ExtenderCall.objects.values_list("verb", "state")) == [("bind", "intended")]
    work(cluster)
    assert (Cycle.objects.get().outcome, ExtenderCall.objects.get().state) == ("bound", "answered")
    assert Pod.objects.get().node_name


def test_an_extender_that_says_yes_and_never_binds_leaves_the_pod_assumed() -> None:
    cluster = three_nodes(make_pod("a", "4"), make_pod("b", "4"), make_pod("c", "4"), make_pod("d", "4"))
    with serving(passing) as server:
        set_config(cluster=cluster, config=configuration(address(server), "bind"))
        run(cluster)
    assert [path for path, _ in server.log] == ["/bind"] * 3
    assert not Pod.objects.exclude(node_name="").exists()
    last = Cycle.objects.order_by("number").last()
    assert last is not None and last.pod_name == "d" and "Insufficient cpu" in last.message


def test_a_pod_deleted_before_its_bind_call_is_not_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = three_nodes(make_pod("a"))
    make = extender_calls.make_bind_calls
    kind = named("Pod")

    def delete_first(*given: Any) -> None:
        delete_object(cluster=cluster, kind=kind, namespace="default", name="a")
        make(*given)

    monkeypatch.setattr(extender_calls, "make_bind_calls", delete_first)
    with serving(passing) as server:
        set_config(cluster=cluster, config=configuration(address(server), "bind"))
        run(cluster)
    assert server.log == []
    assert ExtenderCall.objects.get().error == 'pods "a" not found'
