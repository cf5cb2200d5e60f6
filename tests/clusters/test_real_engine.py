"""The pipeline over scheduler_core itself."""

from importlib import import_module
from typing import Any

import pytest

from playground.clusters import demo
from playground.clusters.board.nodes import node_uses
from playground.clusters.board.overview import with_counts
from playground.clusters.drive.advance import Visit, advance
from playground.clusters.drive.config import set_config
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.history.cycles import cycle_explanation
from playground.clusters.history.queue import queue_view
from playground.clusters.history.redecide import recompute_trace
from playground.clusters.kinds import named
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Checkpoint, Cluster, Cycle, Event, LogEntry, Pod, PodDisruptionBudget
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import delete_object
from playground.engine.batch import Budget
from scheduler_core.schedule_one import Algorithm
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.manifests import scheduler_config
from tests.tables import table

pytestmark = pytest.mark.django_db


def test_the_demo_runs_until_idle_and_every_cycle_is_explained() -> None:
    cluster = demo.ensure_demo()
    done = run(cluster)
    assert (done.state, done.stop) == ("done", "idle")
    assert done.cycles_done == Cycle.objects.count() >= 7
    for cycle in Cycle.objects.all():
        document = cycle_explanation(cluster, cycle.number, full=True)[1]
        assert document is not None
        assert (document["cycle"], document["outcome"]) == (cycle.number, cycle.outcome)
        assert document["sentence"] == cycle.sentence
        assert document["digest"] == cycle.digest
    lanes = queue_view(cluster)
    assert [item.pod for item in lanes["gated"]] == ["default/ml-sweep-0"]
    assert (
        Event.objects.filter(reason="Scheduled").count()
        == Pod.objects.filter(
            namespace="default", name__in=Cycle.objects.filter(outcome="bound").values("pod_name")
        ).count()
    )


def test_a_step_is_one_cycle_and_the_pod_runs() -> None:
    cluster = make_cluster(make_node(), make_pod("a"), make_pod("b"))
    assert run(cluster, "cycle").cycles_done == 1
    assert run(cluster, "cycle").cycles_done == 1
    run(cluster)
    assert set(Pod.objects.values_list("phase", "node_name")) == {("Running", "n1")}


def test_killing_every_worker_after_each_batch_changes_nothing() -> None:
    def story(memory: EngineMemory | None, *, checkpoints: bool) -> list[Any]:
        cluster = create_cluster(name="x", seed=3, start_ns=1_800_000_000_000_000_000)
        apply_documents(cluster=cluster, objects=demo.demo_objects())
        asked = request_run(cluster=cluster)
        while asked.is_open:
            visit = Visit(wall_s=0, batch=Budget(wall_s=60, max_cycles=2))
            advance(cluster_id=cluster.pk, memory=memory or EngineMemory(), visit=visit)
            if not checkpoints:
                Checkpoint.objects.all().delete()
            asked.refresh_from_db()
        run(cluster, "10m", memory=memory)
        kind = named("Node")
        delete_object(cluster=cluster, kind=kind, namespace="", name="node-b3")
        run(cluster, memory=memory)
        rows = LogEntry.objects.filter(cluster=cluster).order_by("seq")
        return [(row.seq, row.kind, row.at_ns, row.cycle, row.payload) for row in rows]

    never_killed = story(EngineMemory(), checkpoints=True)
    assert story(None, checkpoints=True) == never_killed
    assert story(None, checkpoints=False) == never_killed


def test_another_configuration_holds_from_its_entry_on_and_survives_a_worker() -> None:
    cluster = make_cluster(make_node("n1", "4"), make_node("n2", "4"), make_pod("a", "1", nodeName="n1"))
    config = scheduler_config(
        profiles=table(__file__, "another_configuration_holds_from_its_entry_on_and_survives_a_worker")
    )
    run(cluster)
    set_config(cluster=cluster, config=config)
    apply_documents(cluster=cluster, objects=[make_pod("b", "1")])
    Checkpoint.objects.all().delete()
    run(cluster)
    assert Pod.objects.get(name="b").node_name == "n1"


def test_two_workers_by_turns_bring_their_remembered_engines_up_to_date(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pods = [make_pod(f"p{number:02}", "100m") for number in range(12)]
    cluster = make_cluster(make_node(), make_node("n2"), *pods)
    asked = request_run(cluster=cluster)
    memories = [EngineMemory(), EngineMemory()]
    visit = Visit(wall_s=0, batch=Budget(wall_s=60, max_cycles=2))
    for turn in range(2):
        advance(cluster_id=cluster.pk, memory=memories[turn], visit=visit)
    monkeypatch.setattr(import_module("playground.clusters.drive.advance"), "load", None)
    turn = 0
    while asked.is_open:
        report = advance(cluster_id=cluster.pk, memory=memories[turn % 2], visit=visit)
        assert report.state == "driven"
        asked.refresh_from_db()
        turn += 1
    assert Pod.objects.exclude(node_name="").count() == 12


def test_many_inputs_have_their_checkpoint_before_the_first_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("advance", "commit"):
        monkeypatch.setattr(import_module(f"playground.clusters.drive.{module}"), "CHECKPOINT_EVERY", 5)
    # As those of a large cluster: few are kept, but this one is.
    monkeypatch.setattr(import_module("playground.clusters.drive.commit"), "LARGE_CHECKPOINT_BYTES", 1)
    cluster = make_cluster(make_node(), *(make_pod(f"p{i}") for i in range(5)))
    assert run(cluster, "cycle").cycles_done == 1
    first = Cycle.objects.get(number=1)
    assert Checkpoint.objects.filter(engine_seq__lt=first.ran_seq).exists()
    run(cluster)
    assert Checkpoint.objects.filter(engine_seq__lt=first.ran_seq).exists()
    assert Checkpoint.objects.count() == 2
    kept = bytes(first.trace or b"")
    Cycle.objects.filter(number=1).update(trace=None)
    assert recompute_trace(cluster_id=cluster.pk, number=1)
    assert bytes(Cycle.objects.get(number=1).trace or b"") == kept


def test_what_lies_before_an_old_cycle_is_lived_through_as_recorded(monkeypatch):
    cluster = make_cluster(make_node(), make_node("n2"), *(make_pod(f"p{i}", "100m") for i in range(12)))
    run(cluster)
    last = Cycle.objects.get(number=12)
    kept = bytes(last.trace or b"")
    Checkpoint.objects.all().delete()
    Cycle.objects.filter(number=12).update(trace=None)
    decided = []
    schedule = Algorithm.schedule

    def counted(self, framework, pod, snapshot, **options):
        decided.append(pod.name)
        return schedule(self, framework, pod, snapshot, **options)

    monkeypatch.setattr(Algorithm, "schedule", counted)
    assert recompute_trace(cluster_id=cluster.pk, number=12)
    assert bytes(Cycle.objects.get(number=12).trace or b"") == kept
    assert decided == [last.pod_name]


# ---- The demo cluster


def test_the_demo_is_made_once_and_has_something_of_everything() -> None:
    cluster = demo.ensure_demo()
    assert demo.ensure_demo() == cluster
    assert Cluster.objects.count() == 1
    figures: Any = with_counts(cluster)
    assert (figures.n_nodes, figures.n_pods, figures.n_pending) == (12, 50, 9)
    uses = node_uses(cluster)
    assert [use.name for use in uses if not use.ready] == ["node-c2"]
    assert [use.name for use in uses if use.unschedulable] == ["node-c3"]
    assert all(use.used_cpu_milli <= use.cpu_milli for use in uses)


def test_a_newcomers_first_steps_show_a_choice_a_preemption_and_a_tie() -> None:
    cluster = demo.ensure_demo()
    memory = EngineMemory()
    run(cluster, "cycle", memory=memory)
    status = PodDisruptionBudget.objects.get(cluster=cluster).manifest["status"]
    assert (status["expectedPods"], status["currentHealthy"], status["disruptionsAllowed"]) == (6, 5, 1)
    for until in ("cycle", "idle"):
        run(cluster, until, memory=memory)
    told = {cycle.number: cycle for cycle in Cycle.objects.filter(cluster=cluster)}
    assert (told[1].pod_name, told[1].outcome, told[1].n_feasible) == ("gateway-0", "bound", 7)
    assert (told[2].pod_name, told[2].outcome) == ("checkout-api-0", "preempting")
    preemption: Any = cycle_explanation(cluster, 2)[1]
    criteria = preemption["preemption"]["criteria"]
    # Seven candidates, and the last question but one settles it: everything on the page has something to show.
    assert [step["left"] for step in criteria] == [7, 3, 2, 2, 1]
    assert criteria[-1]["name"] == "latestEarliestStart"
    later = [cycle for cycle in told.values() if cycle.pod_name == "checkout-api-0" and cycle.number > 2]
    assert [(cycle.outcome, cycle.node) for cycle in later] == [("bound", "node-b3")]
    assert any("drawn among" in cycle.sentence for cycle in told.values())
    assert any(cycle.outcome == "unschedulable" for cycle in told.values())
