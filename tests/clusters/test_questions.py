"""Questions over scheduler_core itself: asked once, answered by a worker, true, and nothing changes."""

from importlib import import_module
from typing import Any

import pytest
from django.core.cache import cache

from playground.clusters import branches, luck, questions, wake
from playground.clusters.drive import turns
from playground.clusters.drive.advance import advance, load
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.errors import InvalidInput, InvalidManifest, NotFound
from playground.clusters.kinds import by_kind
from playground.clusters.models import Cluster, Cycle, LogEntry, Pod, Question, SeedEnd
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import delete_object
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.manifests import priority_class
from tests.tables import table

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """Messages are kept instead of sent."""
    messages: list[tuple[str, dict[str, Any]]] = []

    def send(task: str, *, countdown_s: float | None = None, **kwargs: Any) -> bool:
        messages.append((task, kwargs))
        return True

    monkeypatch.setattr(wake, "send", send)
    return messages


def answered(cluster: Cluster, kind: str, **params: Any) -> Question:
    question = questions.ask(cluster=cluster, kind=kind, params=params)
    questions.answer(question_id=question.pk, memory=EngineMemory())
    question.refresh_from_db()
    return question


def full_cluster() -> Cluster:
    taint = {"key": "gpu", "value": "t4", "effect": "NoSchedule"}
    cluster = make_cluster(
        make_node("n1", cpu="2"),
        make_node("n2", cpu="8", taints=[taint]),
        make_pod("small", cpu="1500m"),
    )
    run(cluster)
    apply_documents(cluster=cluster, objects=[make_pod("large", cpu="1800m")])
    run(cluster)
    return cluster


def test_fixes_are_answered_in_the_order_of_their_kinds() -> None:
    cluster = full_cluster()
    question = answered(cluster, "fix", pod="default/large")
    assert question.state == "done", question.error
    found = [(item["kind"], item["what"], *item["lands"].values()) for item in question.answer["fixes"]]
    assert found[0] == ("keeps", "add-node", "plan-node-1")
    assert ("changes", "tolerate", "n2") in found
    assert ("changes", "lower-request", "n1") in found
    assert ("harms", "delete-pod", "n1") in found
    assert [item["nearest"] for item in question.answer["groups"]] == ["n1", "n2"]


def test_every_edit_told_places_the_pod_in_a_branch_of_its_own() -> None:
    cluster = full_cluster()
    question = answered(cluster, "fix", pod="default/large")
    log = LogEntry.objects.filter(cluster=cluster).count()
    for rank, edit in enumerate(question.answer["fixes"], start=1):
        branch = branches.branch_with_edit(question=question, rank=rank)
        run(branch)
        pod = Pod.objects.get(cluster=branch, name="large")
        assert (pod.node_name or pod.nominated_node) == edit["lands"]["default/large"], edit["title"]
    assert LogEntry.objects.filter(cluster=cluster).count() == log
    with pytest.raises(NotFound):
        branches.branch_with_edit(question=question, rank=99)


def test_what_is_known_of_some_workloads_is_in_the_row_before_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = full_cluster()
    apply_documents(cluster=cluster, objects=[make_pod("larger", cpu="1900m")])
    run(cluster)
    monkeypatch.setattr(questions, "PARTLY_EVERY_S", -1.0)
    states: list[tuple[str, int]] = []

    def change(row: Question, **columns: Any) -> bool:
        if "answer" in columns and columns.get("state") is None:
            kept = Question.objects.get(pk=row.pk)
            states.append((kept.state, len(columns["answer"]["workloads"])))
        return original(row, **columns)

    original = Question.change
    monkeypatch.setattr(Question, "change", change)
    question = answered(cluster, "fix")
    assert states == [("running", 1), ("running", 2)]
    assert question.answer is not None and len(question.answer["workloads"]) == 2 and question.answer["best"]


def test_asking_twice_is_asking_once_until_something_happens(
    sent: list[tuple[str, dict[str, Any]]], django_capture_on_commit_callbacks: Any
) -> None:
    cluster = full_cluster()
    sent.clear()
    ask = {"kind": "fix", "params": {"pod": "default/large"}}
    with django_capture_on_commit_callbacks(execute=True):
        first = questions.ask(cluster=cluster, **ask)
        assert questions.ask(cluster=cluster, **ask).pk == first.pk
    assert [task for task, _ in sent] == ["answer"]
    questions.answer(question_id=first.pk, memory=EngineMemory())
    assert questions.ask(cluster=cluster, **ask).state == "done"
    apply_documents(cluster=cluster, objects=[make_pod("more", cpu="100m")])
    cluster.refresh_from_db()
    assert questions.ask(cluster=cluster, **ask).pk != first.pk


@pytest.mark.dialect
def test_answering_twice_is_answering_once() -> None:
    cluster = full_cluster()
    question = answered(cluster, "fix", pod="default/large")
    assert questions.answer(question_id=question.pk) == "done"
    # One whose process died is answered by the next.
    Question.objects.filter(pk=question.pk).update(state="running", answer=None)
    assert questions.answer(question_id=question.pk) == "done"


def test_inputs_the_engine_has_not_read_are_read_before_the_answer() -> None:
    cluster = full_cluster()
    apply_documents(cluster=cluster, objects=[make_node("n3", cpu="2")])
    cluster.refresh_from_db()
    assert cluster.cursor_seq < cluster.last_input_seq
    question = answered(cluster, "why-not", namespace="default", name="large", node="n3")
    assert question.answer["verdict"] == "chosen"


def test_why_not_says_the_values() -> None:
    cluster = full_cluster()
    question = answered(cluster, "why-not", namespace="default", name="large", node="n1")
    assert question.answer["rejectedBy"] == "NodeResourcesFit"
    assert question.answer["needs"] == ["1.3 CPU more: it asks 1.8 CPU, 0.5 free of 2"]
    missing = answered(cluster, "why-not", namespace="default", name="large", node="n9")
    assert (missing.state, missing.error) == ("failed", "There is no node n9.")


def test_nothing_of_the_cluster_or_its_engine_changes() -> None:
    cluster = full_cluster()
    log = list(LogEntry.objects.order_by("seq").values_list("seq", "kind"))
    memory = EngineMemory()
    memory.put(cluster.pk, load(cluster))
    driven = memory.take(cluster)
    assert driven is not None
    before = driven.engine.checkpoint()
    memory.put(cluster.pk, driven)
    for kind, params in (
        ("fix", {"pod": "default/large"}),
        ("why-not", {"namespace": "default", "name": "large", "node": "n1"}),
        ("weights", {"cycle": 1}),
        ("try", {"manifest": questions.admitted_pod(cluster=cluster, text=TRIED)}),
    ):
        question = questions.ask(cluster=cluster, kind=kind, params=params)
        questions.answer(question_id=question.pk, memory=memory)
    assert list(LogEntry.objects.order_by("seq").values_list("seq", "kind")) == log
    again = memory.take(cluster)
    assert again is driven
    assert again.engine.checkpoint() == before


TRIED = table(__file__, "TRIED")


def test_a_tried_pod_has_its_cycle_explained_and_is_not_there() -> None:
    cluster = full_cluster()
    manifest = questions.admitted_pod(cluster=cluster, text=TRIED)
    question = answered(cluster, "try", manifest=manifest)
    assert question.answer["outcome"] == "bound"
    assert question.answer["cycle"]["node"] == "n1"
    assert question.answer["cycle"]["cycle"] == cluster.next_cycle
    assert "filterByPlugin" in question.answer["cycle"]
    assert not Pod.objects.filter(name="tried").exists()
    apply_documents(cluster=cluster, text=TRIED)
    run(cluster)
    assert Cycle.objects.get(number=cluster.next_cycle - 1).node == "n1"


def test_a_gated_pod_has_no_cycle() -> None:
    cluster = full_cluster()
    text = TRIED.replace("spec:", "spec:\n  schedulingGates: [{name: hold}]")
    question = answered(cluster, "try", manifest=questions.admitted_pod(cluster=cluster, text=text))
    assert (question.answer["outcome"], question.answer["cycle"]) == ("gated", None)


def test_what_cannot_be_tried_is_refused_when_it_is_asked() -> None:
    cluster = full_cluster()
    with pytest.raises(InvalidManifest):
        questions.admitted_pod(cluster=cluster, text="kind: Service\napiVersion: v1\nmetadata: {name: s}")
    with pytest.raises(InvalidManifest, match="1x"):
        questions.admitted_pod(cluster=cluster, text=TRIED.replace("400m", "1x"))


def tied_cluster() -> Cluster:
    cluster = make_cluster(make_node("n1"), make_node("n2"), make_node("n3", cpu="8"))
    apply_documents(cluster=cluster, objects=[make_pod(f"p{index}", cpu="3") for index in range(4)])
    run(cluster, max_cycles=3)
    return cluster


def test_weights_of_every_recorded_cycle_are_proven() -> None:
    cluster = tied_cluster()
    numbers = [
        item.number
        for item in Cycle.objects.filter(cluster=cluster).order_by("number")
        if item.n_feasible > 1
    ]
    assert numbers
    for number in numbers:
        question = answered(cluster, "weights", cycle=number)
        assert question.state == "done", question.error
        assert question.answer["same"] is True, number
        assert all(item["agrees"] for item in question.answer["proofs"])


def test_a_draw_is_told_with_what_other_seeds_draw() -> None:
    cluster = tied_cluster()
    tied = Cycle.objects.filter(cluster=cluster, n_viable__gt=1).first()
    assert tied is not None
    draw = answered(cluster, "weights", cycle=tied.number).answer["draw"]
    assert (draw["chosen"], draw["seed"]) == (tied.node, cluster.seed)
    assert draw["seeds"][0] == {"seed": cluster.seed, "node": tied.node}
    assert sum(draw["counts"].values()) == draw["nCounted"] == 50


def test_why_a_recorded_cycle_did_not_choose_a_node() -> None:
    cluster = tied_cluster()
    first = Cycle.objects.get(cluster=cluster, number=1)
    loser = next(name for name in ("n1", "n2", "n3") if name != first.node)
    question = answered(cluster, "why-not", cycle=1, node=loser)
    assert question.seq == 0
    assert question.answer["winner"] == first.node
    assert question.answer["verdict"] in ("lost", "tied")
    last = Cycle.objects.filter(cluster=cluster, outcome="bound").order_by("number").last()
    assert last is not None
    for name in ("n1", "n2", "n3"):
        answer = answered(cluster, "why-not", cycle=last.number, node=name).answer
        assert (answer["verdict"] == "chosen") == (name == last.node)


def test_a_question_about_a_cycle_of_which_only_the_summary_is_kept_decides_it_again() -> None:
    cluster = tied_cluster()
    first = Cycle.objects.get(cluster=cluster, number=1)
    kept = bytes(first.trace or b"")
    Cycle.objects.update(trace=None)
    assert answered(cluster, "why-not", cycle=1, node=first.node).answer["verdict"] == "chosen"
    first.refresh_from_db()
    assert bytes(first.trace or b"") == kept
    Cycle.objects.filter(number=2).update(trace_note="Engine 9 decides this cycle differently.")
    question = answered(cluster, "weights", cycle=2)
    assert (question.state, question.error) == ("failed", "Engine 9 decides this cycle differently.")


@pytest.mark.any_database
def test_seeds_are_counted_by_how_they_end(sent: list[tuple[str, dict[str, Any]]]) -> None:
    cluster = tied_cluster()
    question = questions.ask(cluster=cluster, kind="seeds", params={"seeds": 12})
    sent.clear()
    questions.answer(question_id=question.pk)
    parts = [kwargs for task, kwargs in sent if task == "run_seeds"]
    assert [len(part["seeds"]) for part in parts] == [5, 5, 2]
    for part in (*parts, parts[0]):
        questions.run_seeds(**part)
    question.refresh_from_db()
    assert question.state == "done", question.error
    answer = question.answer
    assert answer["nSeeds"] == sum(state["n"] for state in answer["states"]) + answer["rest"]["n"] == 12
    assert answer["ties"]
    # The cluster's own seed is the first, and ends as the cluster did.
    own = next(state for state in answer["states"] if cluster.seed in state["seeds"])
    for item in own["differs"]:
        namespace, name = item["pod"].split("/")
        assert Pod.objects.get(cluster=cluster, namespace=namespace, name=name).node_name == item["node"]
    assert not SeedEnd.objects.exists()


@pytest.mark.any_database
def test_seeds_begin_where_chance_begins_and_end_as_the_whole_log_does(
    monkeypatch: pytest.MonkeyPatch, sent: list[tuple[str, dict[str, Any]]]
) -> None:
    # As in a large cluster: a checkpoint is kept before the first decision, and none where a run ends.
    monkeypatch.setattr("playground.clusters.drive.commit.COSTLY_CHECKPOINT_MS", 0)
    for module in ("advance", "commit"):
        monkeypatch.setattr(import_module(f"playground.clusters.drive.{module}"), "CHECKPOINT_EVERY", 12)
    placed = [make_pod(f"there-{index}", cpu="2", nodeName=f"n{index % 4}") for index in range(8)]
    cluster = make_cluster(*(make_node(f"n{index}") for index in range(4)), *placed)
    assert advance(cluster_id=cluster.pk, memory=EngineMemory()).state == "driven"
    apply_documents(cluster=cluster, objects=[make_pod("waits", cpu="3")])
    run(cluster)
    urgent: list[dict[str, Any]] = [
        make_pod(f"urgent-{index}", cpu="3", priorityClassName="urgent") for index in range(2)
    ]
    urgent.insert(0, priority_class("urgent", 10))
    apply_documents(cluster=cluster, objects=[*urgent, make_node("late", cpu="1")])
    run(cluster)
    nodes = by_kind("Node")
    assert nodes is not None
    delete_object(cluster=cluster, kind=nodes, namespace="", name="late")
    run(cluster)

    def ends() -> tuple[dict[str, Any], int]:
        Question.objects.all().delete()
        sent.clear()
        n_read.clear()
        question = questions.ask(cluster=cluster, kind="seeds", params={"seeds": 8})
        questions.answer(question_id=question.pk)
        for part in [kwargs for task, kwargs in sent if task == "run_seeds"]:
            questions.run_seeds(**part)
        question.refresh_from_db()
        assert question.state == "done", question.error
        return question.answer, max(n_read)

    n_read: list[int] = []

    def counted(cluster: Cluster, seq: int) -> tuple[Any, Any]:
        beginning, entries = run_again(cluster, seq)
        found = list(entries)
        n_read.append(len(found))
        return beginning, found

    run_again = luck.run_again
    monkeypatch.setattr(questions, "run_again", counted)
    from_there, n_left = ends()
    monkeypatch.setattr(luck, "_beginning", lambda cluster, seq: (None, 0))
    whole, n_entries = ends()
    assert from_there == whole
    assert n_left < n_entries - 12 and n_entries == LogEntry.objects.filter(cluster=cluster).count()
    assert from_there["nPods"] == 8 + 3 and from_there["nStates"] > 2 and from_there["sometimesGone"]


@pytest.mark.parametrize(("kind", "params"), [("seeds", {"seeds": 51}), ("nonsense", {})])
def test_bad_questions_are_refused(kind: str, params: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        questions.ask(cluster=make_cluster(), kind=kind, params=params)


def test_a_question_of_a_reset_cluster_fails() -> None:
    cluster = full_cluster()
    question = questions.ask(cluster=cluster, kind="fix", params={"pod": "default/large"})
    Cluster.objects.filter(pk=cluster.pk).update(generation=cluster.generation + 1)
    assert questions.answer(question_id=question.pk) == "failed"


def test_looking_at_a_pod_that_waits_has_the_engine_loaded_once(
    monkeypatch: pytest.MonkeyPatch, client: Any
) -> None:
    cache.clear()
    sent: list[str] = []
    monkeypatch.setattr(wake, "send", lambda task, **_: bool(sent.append(task)) or True)
    cluster = make_cluster(make_node(cpu="1"), make_pod("giant", cpu="64"))
    run(cluster)
    sent.clear()
    for _ in range(3):
        client.get(f"/c/{cluster.public_id}/pods/default/giant/")
        client.get(f"/c/{cluster.public_id}/pods/default/giant/fix/")
    assert sent == ["ready_engine"]
    memory = EngineMemory()
    assert turns.ready_engine(cluster_id=cluster.pk, memory=memory)
    assert not turns.ready_engine(cluster_id=cluster.pk, memory=memory)
    driven = memory.take(cluster)
    assert driven is not None and driven.engine_seq == cluster.engine_seq
