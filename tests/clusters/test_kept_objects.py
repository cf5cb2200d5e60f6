"""Objects of every kind: what shapes no placement is kept all the same, and stays out of the log that replays."""

import json
import re
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from playground.clusters.custom_kinds import table_of
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.drive.turns import take_turn
from playground.clusters.kinds import KINDS
from playground.clusters.lifecycle import clone_cluster, export_manifests, reset_cluster
from playground.clusters.log.rows import rows_of
from playground.clusters.models import Cluster, LogEntry, Run
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import replace_object
from playground.scenarios.selectors import origin_state
from playground.scenarios.services.forking import do_next_step, fork, make_text
from playground.scenarios.services.shares import share
from scheduler_core.scenario import load_scenario, run_scenario
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.tables import table
from tests.web.factories import copied

pytestmark = pytest.mark.any_database

DATA: Final = Path(__file__).parents[1] / "kube_api/data"


def every_object() -> str:
    """An object of each kind there is, and of a kind that one of them makes."""
    return "---\n".join((DATA / name).read_text() for name in ("custom_object.yaml", "every_kind.yaml"))


SET_BY_THE_SERVER: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


def objects(cluster: Cluster) -> dict[tuple[str, str, str], Any]:
    """All a cluster holds but Events: row kind, namespace and name -> the whole of it, status and metadata too.

    What a server sets anew on each creation is left out, and where a uid is named, its object's key stands.
    """
    rows = [
        (kind.row_kind, manifest)
        for kind in table_of(cluster).kinds
        if kind.row_kind != "Event"
        for manifest in rows_of(cluster, kind).values_list("manifest", flat=True)
    ]
    keys = dict(map(_keyed, rows))
    names = {manifest["metadata"]["uid"]: "/".join(key) for key, manifest in keys.items()}
    uids = re.compile("|".join(map(re.escape, names)))
    found = {}
    for key, manifest in keys.items():
        said = {name: value for name, value in manifest["metadata"].items() if name not in SET_BY_THE_SERVER}
        text = json.dumps({**manifest, "metadata": said})
        found[key] = json.loads(uids.sub(lambda uid: names[uid[0]], text))
    return found


def _keyed(row: tuple[str, dict[str, Any]]) -> tuple[tuple[str, str, str], dict[str, Any]]:
    row_kind, manifest = row
    meta = manifest["metadata"]
    return (row_kind, meta.get("namespace", ""), meta["name"]), manifest


def fresh_of(cluster: Cluster) -> set[str]:
    return {kind for kind, _, name in objects(cluster) if "fresh" in name}


@pytest.fixture
def full(db: None) -> Cluster:
    return copied("one of each kind", one_of_each_kind)


def one_of_each_kind() -> Cluster:
    cluster = make_cluster()
    result = apply_documents(cluster=cluster, text=every_object(), field_validation="Strict")
    assert not result.ignored and not result.warnings
    for kind in table_of(cluster).kinds:
        for manifest in list(
            rows_of(cluster, kind).filter(name__contains="fresh").values_list("manifest", flat=True)
        ):
            replace_object(cluster=cluster, manifest=_said_more(manifest))
    return cluster


def _said_more(manifest: dict[str, Any]) -> dict[str, Any]:
    """With what people may say of an object of any kind."""
    meta = dict(manifest["metadata"])
    said = {"walked": "yes"}
    meta |= {key: (meta.get(key) or {}) | said for key in ("labels", "annotations")}
    if manifest["kind"] not in ("Namespace", "Node", "Pod"):  # those go without them
        meta["finalizers"] = ["example.com/waits"]
    if manifest["kind"] == "Lease":
        manifest = manifest | {"spec": (manifest.get("spec") or {}) | {"holderIdentity": "a-holder"}}
    return manifest | {"metadata": meta}


def test_there_is_one_of_every_kind(full: Cluster) -> None:
    kinds = {kind.row_kind for kind in table_of(full).kinds} - {"Event"}
    assert fresh_of(full) == kinds
    assert any(kind.custom is not None for kind in table_of(full).kinds)


def test_each_object_has_a_uid_of_its_own(full: Cluster) -> None:
    uids = [
        manifest["metadata"]["uid"]
        for kind in table_of(full).kinds
        for manifest in rows_of(full, kind).values_list("manifest", flat=True)
        if kind.row_kind != "Event"
    ]
    assert len({*uids}) == len(uids) and all(uuid.UUID(uid) for uid in uids)


def test_nothing_is_lost_on_export_and_import(full: Cluster) -> None:
    other = make_cluster(name="other")
    text = "".join(export_manifests(full))
    apply_documents(cluster=other, text=text)
    assert objects(other) == objects(full)


def test_nothing_is_lost_on_reset_and_clone(full: Cluster) -> None:
    before = objects(full)
    clone = clone_cluster(cluster=full, name="clone")
    assert objects(clone) == before
    reset_cluster(cluster=full)
    assert objects(full) == before
    reset_cluster(cluster=full)
    assert objects(full) == before


def test_nothing_is_lost_on_share_and_fork_once_its_steps_are_done(full: Cluster) -> None:
    memory = EngineMemory()
    request_run(cluster=full)
    _finish(full, memory)
    forked = fork(scenario=share(document=make_text(cluster=full).text).scenario)
    while origin_state(forked).next_words:
        do_next_step(cluster=forked)
        _finish(forked, memory)
    assert objects(forked) == objects(full)


def test_what_shapes_no_placement_stays_at_home_when_names_are_taken_out(full: Cluster) -> None:
    made = make_text(cluster=full, redact=True)
    assert "walked" not in made.text and "a-holder" not in made.text
    assert "fresh" not in made.text
    assert any("ConfigMap" in note and "Lease" in note for note in made.notes)


def test_whatever_custom_resources_hold_they_come_through_a_share_and_out_of_it_again(db: None) -> None:
    cluster = make_cluster(make_node("n1"), make_node("n2"), make_pod("p1"), name="travels")
    apply_documents(cluster=cluster, objects=table(__file__, "WORLD"))
    text = make_text(cluster=cluster).text
    opened = fork(scenario=share(document=text).scenario)

    def custom(of: Cluster) -> dict[tuple[str, str, str], Any]:
        return {key: said for key, said in objects(of).items() if key[0].endswith("travel.example")}

    assert custom(opened) == custom(cluster) and len(custom(cluster)) == 4
    again = make_text(cluster=opened, title="travels").text
    # The bytes of what shapes no placement, and the decisions about all else.
    assert again[again.index("\nkept:") :] == text[text.index("\nkept:") :]
    one, other = (run_scenario(replace(load_scenario(each), steps=())) for each in (text, again))
    assert [trace.pod for trace in one.cycles] == ["default/p1"]
    assert one.digest == other.digest


def _finish(cluster: Cluster, memory: EngineMemory) -> None:
    while cluster.runs.filter(state__in=Run.OPEN).exists():
        take_turn(memory=memory)
    cluster.refresh_from_db()


def test_what_shapes_no_placement_is_no_input(full: Cluster) -> None:
    aside = {kind.row_kind for kind in table_of(full).kinds if not kind.interpreted}
    entries = LogEntry.objects.filter(cluster=full, object_kind__in=aside)
    assert entries.exists()
    assert set(entries.values_list("source", flat=True)) == {LogEntry.Source.KEPT}
    inputs = LogEntry.objects.filter(cluster=full, source=LogEntry.Source.API)
    assert not set(inputs.values_list("object_kind", flat=True)) & aside


def test_a_lease_that_is_renewed_takes_one_entry(full: Cluster) -> None:
    kind = next(kind for kind in KINDS if kind.kind == "Lease")
    for number in range(5):
        stored = rows_of(full, kind).get(name="fresh").manifest
        stored["spec"]["leaseTransitions"] = number
        replace_object(cluster=full, manifest=stored)
    assert LogEntry.objects.filter(cluster=full, object_kind="Lease").count() == 1
