"""Objects of every kind: what shapes no placement is kept all the same, and stays out of the log that replays."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from playground.clusters import services
from playground.clusters.custom_kinds import table_of
from playground.clusters.kinds import KINDS
from playground.clusters.models import Cluster, LogEntry
from playground.clusters.rows import rows_of
from playground.scenarios.services.forking import fork, make_text
from playground.scenarios.services.shares import share
from tests.clusters.builders import make_cluster

DATA: Final = Path(__file__).parents[1] / "kube_api/data"


def every_object() -> str:
    """An object of each kind there is, and of a kind that one of them makes."""
    return "---\n".join((DATA / name).read_text() for name in ("custom_object.yaml", "every_kind.yaml"))


def objects(cluster: Cluster) -> dict[tuple[str, str, str], Any]:
    """Row kind, namespace and name of all a cluster holds but Events, with what people said of it."""
    found = {}
    for kind in table_of(cluster).kinds:
        if kind.row_kind == "Event":
            continue
        for manifest in rows_of(cluster, kind).values_list("manifest", flat=True):
            meta = manifest["metadata"]
            said = {key: value for key, value in manifest.items() if key not in ("metadata", "status")}
            found[kind.row_kind, meta.get("namespace", ""), meta["name"]] = (said, meta.get("labels"))
    return found


def fresh_of(cluster: Cluster) -> set[str]:
    return {kind for kind, _, name in objects(cluster) if "fresh" in name}


@pytest.fixture
def full(db: None) -> Cluster:
    cluster = make_cluster()
    result = services.apply_documents(cluster=cluster, text=every_object(), field_validation="Strict")
    assert not result.ignored and not result.warnings
    return cluster


def test_there_is_one_of_every_kind(full: Cluster) -> None:
    kinds = {kind.row_kind for kind in table_of(full).kinds} - {"Event"}
    assert fresh_of(full) == kinds
    assert any(kind.custom is not None for kind in table_of(full).kinds)


def test_nothing_is_lost_on_export_and_import(full: Cluster) -> None:
    other = make_cluster(name="other")
    text = "".join(services.export_manifests(full))
    services.apply_documents(cluster=other, text=text)
    assert objects(other) == objects(full)


def test_nothing_is_lost_on_reset_and_clone(full: Cluster) -> None:
    before = objects(full)
    clone = services.clone_cluster(cluster=full, name="clone")
    assert objects(clone) == before
    services.reset_cluster(cluster=full)
    assert objects(full) == before
    services.reset_cluster(cluster=full)
    assert objects(full) == before


def test_nothing_but_leases_is_lost_on_share_and_fork(full: Cluster) -> None:
    text = make_text(cluster=full).text
    forked = fork(scenario=share(document=text).scenario)
    steps = [item for step in yaml.safe_load(text).get("steps", ()) for item in step.get("apply", ())]
    waiting = {(item["kind"], item["metadata"]["name"]) for item in steps}
    lost = {(kind, name) for kind, _, name in objects(full).keys() - objects(forked).keys()}
    assert {kind for kind, _ in lost - waiting} <= {"Lease"}


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
        services.replace_object(cluster=full, manifest=stored)
    assert LogEntry.objects.filter(cluster=full, object_kind="Lease").count() == 1
