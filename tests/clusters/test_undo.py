"""Undo: whatever a person did, the cluster is afterwards as it was before, and goes on as if it had never been done."""

import inspect
import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from django.forms.models import model_to_dict

from playground.clusters import branches, lifecycle
from playground.clusters.drive import config, extender_calls, runs
from playground.clusters.drive.advance import Visit, advance
from playground.clusters.drive.config import set_assumed_expiry, set_clock, set_config, set_release
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.errors import Conflict
from playground.clusters.extenders import mock
from playground.clusters.extenders.mock import (
    create_mock_extender,
    delete_mock_extender,
    update_mock_extender,
)
from playground.clusters.history import redecide
from playground.clusters.history.undo import last_change, undo
from playground.clusters.kinds import named
from playground.clusters.lifecycle import rename_cluster
from playground.clusters.log import changes
from playground.clusters.log.changes import one_change, written_by
from playground.clusters.log.rows import MODELS
from playground.clusters.models import (
    Change,
    Checkpoint,
    Cluster,
    ControllerRecord,
    Cycle,
    LogEntry,
    Manifest,
    MockExtender,
    Node,
    Pod,
    QueueMove,
    QueueSnapshot,
    Run,
)
from playground.clusters.objects import actions, apply, write
from playground.clusters.objects.actions import expand_pool
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import (
    bind_pod,
    create_object,
    delete_object,
    evict_pod,
    patch_object,
    replace_object,
    set_cordon,
)
from playground.engine.batch import Budget
from playground.scenarios.services.forking import make_text
from tests.changes import one_in
from tests.clusters.builders import make_cluster, make_node, make_pod, run, work
from tests.manifests import budget, make_object, scheduler_config
from tests.tables import table

pytestmark = pytest.mark.django_db

BUDGET = budget(minAvailable=2)
NOTES = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notes", "namespace": "default"}}
PACKS = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
PERMITTED = scheduler_config(profiles=[{"schedulerName": "default-scheduler", "pluginConfig": [PACKS]}])


def labelled(name: str, **more: Any) -> dict[str, Any]:
    pod = make_pod(name, **more)
    pod["metadata"]["labels"] = {"app": "web"}
    return pod


def a_cluster() -> Cluster:
    """Three pods on two nodes, one that waits, a budget, a ConfigMap and a mock extender nothing names."""
    objects = [make_node("n1"), make_node("n2"), BUDGET, NOTES, *(labelled(f"web-{n}") for n in range(3))]
    cluster = make_cluster(*objects, labelled("large", cpu="64"))
    create_mock_extender(cluster=cluster, rules=[{"deny": {"nodes": ["n9"]}}], name="first")
    run(cluster)
    assert cluster.pods.exclude(node_name="").count() == 3
    return cluster


_UNSEEN = {
    "id", "generation", "next_seq", "version", "last_input_seq", "lease_token", "lease_holder", "lease_expires",
    "driven_at", "cursor_seq", "engine_seq", "entries_since_checkpoint", "stored_bytes", "measured_seq", "measured_at",
    "virtual_anchor_ns", "wall_anchor", "clock_note",
}  # fmt: skip
"""Counters that go on, and what belongs to the process that drives."""


SEEN: tuple[Any, ...] = (*MODELS.values(), Cycle, QueueMove, ControllerRecord, Run)


def picture(cluster: Cluster) -> dict[str, Any]:
    """All that readers see of a cluster."""
    found: dict[str, Any] = {"cluster": model_to_dict(cluster, exclude=_UNSEEN)}
    for model in SEEN:
        rows = model.objects.filter(cluster=cluster).order_by("pk").values()
        seen = [{key: value for key, value in row.items() if key not in ("id", "ran_seq")} for row in rows]
        found[model.__name__] = sorted(json.dumps(row, default=repr, sort_keys=True) for row in seen)
    queue = QueueSnapshot.objects.get(cluster=cluster)
    found["queue"] = {"at_ns": queue.at_ns, "head": queue.head}
    mocks = MockExtender.objects.filter(cluster=cluster).order_by("public_id")
    found["mocks"] = list(mocks.values("public_id", "name", "rules", "calls"))
    return found


def differences(left: dict[str, Any], right: dict[str, Any]) -> list[str]:
    return [name for name in left if left[name] != right[name]]


def pod(name: str) -> dict[str, Any]:
    return {"namespace": "default", "name": name}


def node(name: str) -> dict[str, Any]:
    return {"kind": named("Node"), "namespace": "", "name": name}


def grown(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = Pod.objects.get(cluster=cluster, name="web-0").manifest
    return found | {"metadata": found["metadata"] | {"labels": {"app": "web", "grown": "replaced"}}}


def first_mock(cluster: Cluster) -> MockExtender:
    return cluster.mock_extenders.get()


CHANGES: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (apply_documents, {"objects": [make_node("n3"), labelled("more")]}, "create Node n3 and 1 more"),
    (apply_documents, {"objects": [make_node("n1", "8")]}, "change Node n1"),
    (apply_documents, {"objects": [NOTES | {"data": {"a": "b"}}]}, "change ConfigMap default/notes"),
    (create_object, {"manifest": make_pod("new")}, "create Pod default/new"),
    (replace_object, {"manifest": grown}, "change Pod default/web-0"),
    (patch_object, node("n1") | {"patch": {"metadata": {"labels": {"a": "b"}}}}, "change Node n1"),
    (delete_object, {"kind": named("Pod"), **pod("web-1")}, "delete Pod default/web-1"),
    (delete_object, node("n1"), "delete Node n1"),
    (delete_object, {"kind": named("ConfigMap"), **pod("notes")}, "delete ConfigMap default/notes"),
    (bind_pod, pod("large") | {"node": "n2"}, "bind Pod default/large to Node n2"),
    (evict_pod, pod("web-2"), "evict Pod default/web-2"),
    (set_cordon, {"node": "n1", "unschedulable": True}, "cordon Node n1"),
    (
        apply_documents,
        {"objects": expand_pool(name="pool", count=3, cpu="4", memory="8Gi")},
        "create 3 Nodes",
    ),
    (set_config, {"config": PERMITTED}, "change the configuration"),
    (set_release, {"name": "1.35"}, "follow Kubernetes 1.35"),
    (set_assumed_expiry, {"after_ns": 30 * 10**9}, "change how long assumed pods are believed"),
    (set_clock, {"mode": "realtime", "rate": 2}, "let the clock run"),
    (rename_cluster, {"name": "Another name"}, 'rename the cluster to "Another name"'),
    (create_mock_extender, {"rules": [], "name": "second"}, "make mock extender second"),
    (update_mock_extender, {"extender": first_mock, "rules": [], "name": "x"}, "change mock extender first"),
    (delete_mock_extender, {"extender": first_mock}, "delete mock extender first"),
    (request_run, {"until": "30s"}, "run for 30s"),
]
"""A service, what it is given besides the cluster (a function: what it makes of the cluster), its words in the list."""

NO_CHANGES = {
    "clone_cluster", "serve_mock_extenders",  # begin a cluster
    "delete_cluster", "reset_cluster",  # leave nothing behind that could go back: each asks before
    "unpark_cluster", "offer_clock",  # write nothing that is decided by
    "decide_permit",  # has a test of its own below
    "act_on_nodes", "act_on_pods",  # have theirs in test_what_if.py
    "write_rule", "delete_rule", "set_job_duration", "delete_objects",  # as set_config, patch_object, delete_object
    "convert_config", "request_trace",  # write nothing
}  # fmt: skip


DOORS = (actions, apply, branches, config, lifecycle, mock, redecide, runs, write)


def test_every_service_that_changes_a_cluster_is_tried_here() -> None:
    functions = {
        name
        for module in DOORS
        for name, function in vars(module).items()
        if inspect.isfunction(function)
        and function.__module__ == module.__name__
        and name[0] != "_"
        and any(
            parameter.name in ("cluster", "extender") and parameter.kind is inspect.Parameter.KEYWORD_ONLY
            for parameter in inspect.signature(function).parameters.values()
        )
    }
    assert functions == {service.__name__ for service, *_ in CHANGES} | NO_CHANGES


@pytest.mark.parametrize(
    "with_run",
    [pytest.param(False, id="at once"), pytest.param(True, id="after a run", marks=pytest.mark.any_database)],
)
@pytest.mark.parametrize("change", one_in(3, CHANGES, "playground/clusters/", name=lambda change: change[2]))
def test_the_cluster_is_as_it_was_whatever_was_done(change: tuple[Any, Any, str], with_run: bool) -> None:
    cluster = a_cluster()
    before, text = picture(cluster), make_text(cluster=cluster).text
    service, given, words = change
    given = {name: value(cluster) if callable(value) else value for name, value in given.items()}
    service(**({} if "extender" in given else {"cluster": cluster}), **given)
    work(cluster)
    assert differences(before, picture(cluster)), "it changed nothing, and so tells nothing here"
    if with_run:
        run(cluster)
        assert undo(cluster=cluster).words == "run until idle"
    last = last_change(cluster)
    assert last is not None and last.words == words

    undone = undo(cluster=cluster, seq=last.seq)

    assert undone.words == words
    work(cluster)
    assert differences(before, picture(cluster)) == []
    assert make_text(cluster=cluster).text == text


def test_what_is_decided_next_is_what_would_have_been_decided_without_the_change() -> None:
    twins = [a_cluster(), a_cluster()]
    set_cordon(cluster=twins[0], node="n1", unschedulable=True)
    run(twins[0])
    undo(cluster=twins[0])
    undo(cluster=twins[0])
    for twin in twins:
        delete_object(cluster=twin, kind=named("Pod"), **pod("web-0"))
        run(twin)
    ours, theirs = (
        list(Cycle.objects.filter(cluster=twin).order_by("number").values_list("number", "digest", "node"))
        for twin in twins
    )
    assert ours == theirs and len(ours) > 4


def test_an_undo_needs_a_change_and_the_one_that_was_meant() -> None:
    cluster = make_cluster()
    with pytest.raises(Conflict, match="there is nothing to undo"):
        undo(cluster=cluster)
    apply_documents(cluster=cluster, objects=[make_node("n1")])
    first = last_change(cluster)
    apply_documents(cluster=cluster, objects=[make_node("n2")])
    assert first is not None
    with pytest.raises(
        Conflict, match='something else was done meanwhile: "create Node n2" would be undone now'
    ):
        undo(cluster=cluster, seq=first.seq)
    assert Node.objects.count() == 2
    assert [undo(cluster=cluster).words for _ in range(2)] == ["create Node n2", "create Node n1"]
    with pytest.raises(Conflict, match="there is nothing to undo"):
        undo(cluster=cluster)


def test_only_the_newest_changes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "KEPT", 3)
    monkeypatch.setattr(changes, "TRIM_EVERY", 1)
    cluster = make_cluster()
    for number in range(6):
        apply_documents(cluster=cluster, objects=[make_node(f"n{number}")])
    assert list(Change.objects.order_by("id").values_list("words", flat=True)) == [
        "create Node n3", "create Node n4", "create Node n5",
    ]  # fmt: skip


def test_a_run_under_way_goes_on_from_before_the_change_and_one_asked_for_later_is_cancelled() -> None:
    cluster = make_cluster(make_node("n1", "64"), *(make_pod(f"p{number}") for number in range(12)))
    asked = request_run(cluster=cluster)
    visit = Visit(wall_s=0, batch=Budget(wall_s=60, max_cycles=4))
    advance(cluster_id=cluster.pk, memory=EngineMemory(), visit=visit)
    create_object(cluster=cluster, manifest=make_pod("late"))
    advance(cluster_id=cluster.pk, memory=EngineMemory(), visit=visit)
    asked.refresh_from_db()
    assert (asked.state, asked.cycles_done, asked.pods_bound) == ("running", 8, 8)
    later = request_run(cluster=cluster)

    with_run = undo(cluster=cluster)
    later.refresh_from_db()
    assert (with_run.words, later.state, later.message) == ("run until idle", "cancelled", "Undone.")
    undone = undo(cluster=cluster)

    assert (undone.words, undone.cycles) == ("create Pod default/late", 4)
    asked.refresh_from_db()
    assert (asked.state, asked.cycles_done, asked.pods_bound) == ("running", 4, 4)
    work(cluster)
    asked.refresh_from_db()
    assert (asked.state, asked.stop, asked.cycles_done) == ("done", "idle", 12)
    assert Cycle.objects.count() == 12


@pytest.mark.dialect
def test_a_worker_in_the_middle_of_a_batch_cannot_commit_what_was_undone() -> None:
    cluster = a_cluster()
    create_object(cluster=cluster, manifest=make_pod("new"))
    advancing = import_module("playground.clusters.drive.advance")

    def undo_first(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.undo()
        undo(cluster=cluster)
        return advancing.commit_batch(*args, **kwargs)

    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(advancing, "commit_batch", undo_first)
    report = advance(cluster_id=cluster.pk, memory=EngineMemory())
    assert report.state == "fenced"
    work(cluster)
    assert not Pod.objects.filter(name="new").exists()


def test_what_other_schedulers_decide_is_no_change_and_goes_with_the_one_before() -> None:
    cluster = a_cluster()
    create_object(cluster=cluster, manifest=make_pod("theirs", schedulerName="bin-packer"))
    with written_by("bin-packer/v1"):
        bind_pod(cluster=cluster, **pod("theirs"), node="n1")
    assert undo(cluster=cluster).words == "create Pod default/theirs"
    assert not Pod.objects.filter(name="theirs").exists()
    assert not cluster.foreign.exists()


@pytest.mark.dialect
def test_several_requests_are_one_change_within_one_change_and_nothing_if_one_fails() -> None:
    cluster = a_cluster()
    before = picture(cluster)
    with one_change("make room"):
        set_cordon(cluster=cluster, node="n1", unschedulable=True)
        set_release(cluster=cluster, name="1.35")
    assert undo(cluster=cluster).words == "make room"
    work(cluster)
    assert differences(before, picture(cluster)) == []
    with pytest.raises(Conflict), one_change("make room"):
        set_cordon(cluster=cluster, node="n1", unschedulable=True)
        raise Conflict("the next one is refused")
    assert differences(before, picture(cluster)) == []


def test_custom_kinds_come_back_with_their_objects() -> None:
    cluster = a_cluster()
    definition = table(__file__, "custom_kinds_come_back_with_their_objects")
    empty = picture(cluster)
    widget = make_object("example.com/v1", "Widget", "w", namespace="default")
    apply_documents(cluster=cluster, objects=[definition, widget])
    work(cluster)
    full = picture(cluster)
    kind = named("CustomResourceDefinition")
    delete_object(cluster=cluster, kind=kind, namespace="", name="widgets.example.com")
    assert not Manifest.objects.filter(kind="Widget.example.com").exists()
    undo(cluster=cluster)
    work(cluster)
    assert differences(full, picture(cluster)) == []
    undo(cluster=cluster)
    work(cluster)
    assert differences(empty, picture(cluster)) == []


def test_allowing_a_host_is_undone(settings: Any) -> None:
    cluster = a_cluster()
    document = PERMITTED | {"extenders": [{"urlPrefix": "http://127.0.0.1:8888", "filterVerb": "filter"}]}
    set_config(cluster=cluster, config=document)
    extender_calls.allow_extender_host(cluster=cluster, host="127.0.0.1:8888")
    assert cluster.extender_hosts == ["127.0.0.1:8888"]
    assert undo(cluster=cluster).words == "allow calls of 127.0.0.1:8888"
    assert cluster.extender_hosts == []
    assert config.checked_config(cluster.config) == cluster.config


def test_a_log_that_was_shortened_goes_no_further_back() -> None:
    cluster = a_cluster()
    last = last_change(cluster)
    assert last is not None
    Cluster.objects.filter(pk=cluster.pk).update(compacting_seq=last.seq)
    with pytest.raises(Conflict, match="cannot be undone any more"):
        undo(cluster=cluster)
    assert Checkpoint.objects.filter(cluster=cluster).exists()
    assert LogEntry.objects.filter(cluster=cluster, kind="undo").count() == 0
