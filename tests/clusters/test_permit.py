"""Pods that wait at Permit: seen, allowed, rejected, timed out, evicted, deleted, and kept over crashes."""

from importlib import import_module
from typing import Any

import pytest

from playground.clusters.drive.advance import advance
from playground.clusters.drive.config import set_config
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import decide_permit
from playground.clusters.errors import Conflict, InvalidInput
from playground.clusters.history.cycles import cycle_explanation
from playground.clusters.history.queue import queue_view
from playground.clusters.history.redecide import recompute_trace
from playground.clusters.history.undo import undo
from playground.clusters.kinds import named
from playground.clusters.models import Checkpoint, Cluster, Cycle, Event, Pod
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import delete_object
from playground.engine.batch import Engine
from scheduler_core.framework.record import CycleTrace
from tests.clusters.builders import START_NS, make_cluster, make_node, make_pod, run, work
from tests.manifests import priority_class, scheduler_config
from tests.tables import table

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

CONFIG = scheduler_config(profiles=[{"plugins": {"permit": {"enabled": [{"name": "ManualApproval"}]}}}])


@pytest.fixture(params=["engine in memory", "engine from a checkpoint", "engine from the log"])
def memory(request: pytest.FixtureRequest) -> EngineMemory | None:
    """Where the engine of the next visit comes from."""

    class Forgetful(EngineMemory):
        def put(self, cluster_id: int, driven: Any) -> None:
            if request.param == "engine from the log":
                Checkpoint.objects.all().delete()

    return EngineMemory() if request.param == "engine in memory" else Forgetful()


def approved(name: str, cpu: str = "1", timeout: str = "90s", **spec: Any) -> dict[str, Any]:
    pod = make_pod(name, cpu, **spec)
    pod["metadata"]["annotations"] = {
        "playground.dev/approval": "required",
        "playground.dev/approval-timeout": timeout,
    }
    return pod


def waiting(memory: EngineMemory, *pods: dict[str, Any]) -> Cluster:
    cluster = make_cluster(make_node("n1", "2"), *pods)
    set_config(cluster=cluster, config=CONFIG)
    run(cluster, memory=memory)
    return cluster


def outcomes() -> list[tuple[str, str]]:
    return list(Cycle.objects.order_by("number").values_list("pod_name", "outcome"))


def test_a_waiting_pod_is_seen_with_plugin_node_and_deadline_and_costs_no_work(memory: EngineMemory) -> None:
    cluster = waiting(memory, approved("a", "2"), make_pod("b", "2"))
    assert outcomes() == [("a", "waiting"), ("b", "unschedulable")]
    pod = Pod.objects.get(name="a")
    assert (pod.lane, pod.node_name) == ("permit", "")
    [item] = queue_view(cluster)["permit"]
    assert (item.namespace, item.name, item.plugin, item.node) == ("default", "a", "ManualApproval", "n1")
    assert item.left_s == 90
    assert cluster.next_deadline_ns == START_NS + 90 * 10**9
    assert advance(cluster_id=cluster.pk, memory=memory).state == "idle"


def test_an_allowed_pod_is_bound_under_its_own_cycle(memory: EngineMemory) -> None:
    cluster = waiting(memory, approved("a"))
    decide_permit(cluster=cluster, namespace="default", name="a", decision="allow")
    run(cluster, memory=memory)
    assert outcomes() == [("a", "bound")]
    assert Pod.objects.get().phase == "Running"
    document = cycle_explanation(cluster, 1, full=True)[1]
    assert document is not None
    assert [(item["plugin"], item["decision"]) for item in document["permit"]] == [
        ("ManualApproval", "wait"),
        ("ManualApproval", "allow"),
    ]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_cycle_that_goes_on_after_a_replay_keeps_its_verdicts_and_scores(
    monkeypatch: pytest.MonkeyPatch, memory: EngineMemory, is_known: bool
) -> None:
    if not is_known:  # as a binding that is under way elsewhere than at Permit
        monkeypatch.setattr(import_module("playground.clusters.drive.advance"), "_waiting", lambda _: set())
    cluster = waiting(memory, make_pod("early", "100m"), approved("a", "1"))
    apply_documents(cluster=cluster, objects=[make_node("n2", "2"), make_pod("late", "100m")])
    run(cluster, memory=memory)
    cycle = Cycle.objects.get(pod_name="a")
    before = CycleTrace.from_bytes(bytes(cycle.trace or b""))
    decide_permit(cluster=cluster, namespace="default", name="a", decision="allow")
    run(cluster, memory=memory)
    cycle.refresh_from_db()
    after = CycleTrace.from_bytes(bytes(cycle.trace or b""))
    assert (before.outcome, after.outcome) == ("waiting", "bound")
    assert after.is_full and after.body and before.body
    assert set(after.body.arrays) == set(before.body.arrays)


def test_a_pod_that_is_allowed_and_changed_at_once_is_bound_with_the_change(memory: EngineMemory) -> None:
    cluster = waiting(memory, approved("a"))
    decide_permit(cluster=cluster, namespace="default", name="a", decision="allow")
    changed = approved("a")
    changed["metadata"]["labels"] = {"tier": "web"}
    apply_documents(cluster=cluster, objects=[changed])
    run(cluster, memory=memory)
    assert outcomes() == [("a", "bound")]
    pod = Pod.objects.get()
    assert (pod.phase, pod.manifest["metadata"]["labels"]) == ("Running", {"tier": "web"})
    assert Event.objects.filter(reason="Scheduled").count() == 1


def test_a_rejected_pod_gives_its_node_back_to_others(memory: EngineMemory) -> None:
    cluster = waiting(memory, approved("a", "2"), make_pod("b", "2"))
    decide_permit(
        cluster=cluster,
        namespace="default",
        name="a",
        decision="reject",
        plugin="ManualApproval",
        reason="the budget is spent",
    )
    work(cluster, memory)
    run(cluster, "10s", memory=memory)
    assert Pod.objects.get(name="b").node_name == "n1"
    assert Cycle.objects.get(number=1).outcome == "unschedulable"
    assert "the budget is spent" in Event.objects.filter(involved_name="a").first().message  # type: ignore[union-attr]


def test_a_wait_ends_in_a_rejection_at_its_deadline_and_not_before(memory: EngineMemory) -> None:
    cluster = waiting(memory, approved("a"))
    run(cluster, "89s", memory=memory)
    assert Pod.objects.get().lane == "permit"
    run(cluster, "1s", memory=memory)
    event = Event.objects.filter(reason="FailedScheduling").first()
    assert event is not None and "timeout after waiting 1m30s at plugin ManualApproval" in event.message


def test_a_waiting_victim_is_rejected(memory: EngineMemory) -> None:
    urgent = priority_class("urgent", 1000)
    cluster = waiting(memory, urgent, approved("a", "2"))
    apply_documents(cluster=cluster, objects=[make_pod("now", "2", priorityClassName="urgent")])
    run(cluster, memory=memory)
    assert Pod.objects.get(name="now").node_name == "n1"
    assert Pod.objects.get(name="a").lane != "permit"


def test_a_deleted_waiting_pod_gives_its_node_back(memory: EngineMemory) -> None:
    cluster = waiting(memory, approved("a", "2"), make_pod("b", "2"))
    kind = named("Pod")
    delete_object(cluster=cluster, kind=kind, namespace="default", name="a")
    run(cluster, memory=memory)
    assert list(Pod.objects.values_list("name", "node_name")) == [("b", "n1")]


def test_only_a_waiting_pod_can_be_decided(memory: EngineMemory) -> None:
    cluster = waiting(memory, make_pod("a"))
    with pytest.raises(Conflict):
        decide_permit(cluster=cluster, namespace="default", name="a", decision="allow")
    with pytest.raises(InvalidInput):
        decide_permit(cluster=cluster, namespace="default", name="a", decision="perhaps")


def test_a_gang_waits_until_enough_of_it_fits(memory: EngineMemory) -> None:
    config = {
        **CONFIG,
        "profiles": table(__file__, "a_gang_waits_until_enough_of_it_fits"),
    }

    def member(name: str) -> dict[str, Any]:
        pod = make_pod(name)
        pod["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "gang"}
        pod["metadata"]["annotations"] = {"scheduling.x-k8s.io/min-available": "3"}
        return pod

    cluster = make_cluster(make_node("n1", "4"))
    set_config(cluster=cluster, config=config)
    apply_documents(cluster=cluster, objects=[member("g1"), member("g2")])
    run(cluster, memory=memory)
    assert set(Pod.objects.values_list("lane", flat=True)) == {"permit"}
    apply_documents(cluster=cluster, objects=[member("g3")])
    run(cluster, memory=memory)
    assert set(Pod.objects.values_list("phase", flat=True)) == {"Running"}
    assert {outcome for _, outcome in outcomes()} == {"bound"}


def test_every_cycle_opens_as_it_was_recorded_and_no_later_one_is_decided_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reached: list[int] = []
    reopened = Engine.reopened

    def watched(engine: Engine, *given: Any, **named: Any) -> Any:
        record = reopened(engine, *given, **named)
        reached.append(engine.cycle - 1)
        return record

    monkeypatch.setattr(Engine, "reopened", watched)
    memory = EngineMemory()
    small = [make_pod(f"p{number}", "100m") for number in range(6)]
    cluster = make_cluster(make_node("n1", "2"), approved("a"), *small, make_pod("large", "64"))
    set_config(cluster=cluster, config=CONFIG)
    run(cluster, memory=memory)
    decide_permit(cluster=cluster, namespace="default", name="a", decision="allow")
    run(cluster, "400s", memory=memory)
    Checkpoint.objects.all().delete()
    recorded = {cycle.number: (cycle.digest, cycle.trace) for cycle in Cycle.objects.order_by("number")}
    assert len(recorded) >= 8 and all(trace for _, trace in recorded.values())
    Cycle.objects.update(trace=None)
    for number in recorded:
        assert recompute_trace(cluster_id=cluster.pk, number=number)
    again = {cycle.number: (cycle.digest, cycle.trace) for cycle in Cycle.objects.order_by("number")}
    assert {number: (digest, bytes(trace or b"")) for number, (digest, trace) in again.items()} == {
        number: (digest, bytes(trace or b"")) for number, (digest, trace) in recorded.items()
    }
    allowed = Cycle.objects.get(pod_name="a").number
    stopped_at = dict(zip(recorded, reached, strict=True))
    assert stopped_at.pop(allowed) >= allowed  # what came of it was told later
    assert all(at == number for number, at in stopped_at.items())


def test_an_undone_answer_has_the_pod_wait_again_with_the_cycle_as_it_was_told(memory: EngineMemory) -> None:
    cluster = waiting(memory, approved("a", "2"), make_pod("b", "2"))
    before = Cycle.objects.filter(number=1).values().get()
    decide_permit(cluster=cluster, namespace="default", name="a", decision="allow")
    work(cluster, memory)
    assert outcomes()[0] == ("a", "bound")

    assert undo(cluster=cluster).words == "allow Pod default/a"

    assert Cycle.objects.filter(number=1).values().get() == before
    work(cluster, memory)
    pod = Pod.objects.get(name="a")
    assert (pod.lane, pod.reserved_node, pod.node_name) == ("permit", "n1", "")
    decide_permit(cluster=cluster, namespace="default", name="a", decision="allow")
    work(cluster, memory)
    assert outcomes()[0] == ("a", "bound")
