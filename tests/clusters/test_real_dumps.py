"""Dumps of real clusters: what runs goes on running, whatever owns it."""

from collections import Counter

import pytest

from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import LogEntry, Manifest, Pod
from playground.clusters.objects.apply import apply_documents
from tests import real_dump
from tests.rare_cycles import run_until
from tests.tables import table

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.mark.parametrize("cloud", ["aws", "gke"])
def test_what_owners_own_already_is_not_made_once_more(cloud):
    dump = real_dump.real_dump(12, 400, cloud=cloud)
    cluster = create_cluster(name="prod", seed=7)
    apply_documents(cluster=cluster, objects=dump)
    pods = {manifest["metadata"]["uid"] for manifest in dump if manifest["kind"] == "Pod"}
    sets = {manifest["metadata"]["uid"] for manifest in dump if manifest["kind"] == "ReplicaSet"}
    run_until(cluster, "idle")
    assert set(Pod.objects.filter(cluster=cluster).values_list("uid", flat=True)) == pods
    assert (
        set(Manifest.objects.filter(cluster=cluster, kind="ReplicaSet").values_list("uid", flat=True)) == sets
    )
    assert not LogEntry.objects.filter(cluster=cluster, kind=LogEntry.Kind.DELETE).exists()


def test_owners_are_written_after_what_they_own_and_all_else_as_posted():
    dump = real_dump.real_dump(4, 250)
    cluster = create_cluster(name="prod", seed=7)
    apply_documents(cluster=cluster, objects=dump)
    entries = (
        LogEntry.objects.filter(cluster=cluster).order_by("seq").values_list("object_kind", "object_name")
    )
    written = [name for kind, name in entries if kind == "Pod"]
    assert written == [manifest["metadata"]["name"] for manifest in dump if manifest["kind"] == "Pod"]
    last = {kind: place for place, (kind, _) in enumerate(entries)}
    first = {kind: place for place, (kind, _) in reversed([*enumerate(entries)])}
    assert last["Node"] < first["Pod"] and last["Pod"] < first["ReplicaSet"]
    assert last["ReplicaSet"] < first["Deployment"]


def test_an_owner_that_owns_itself_is_written_once():
    looped = table(__file__, "an_owner_that_owns_itself_is_written_once")
    cluster = create_cluster(name="loop", seed=7)
    result = apply_documents(cluster=cluster, objects=[looped])
    assert [item.name for item in result.created] == ["a"]


def test_the_dump_is_the_same_each_time_and_has_what_it_says():
    dump = real_dump.real_dump(200, 3000)
    assert dump == real_dump.real_dump(200, 3000)
    kinds = Counter(manifest["kind"] for manifest in dump)
    assert kinds["Node"] == 200 and kinds["Pod"] == 3000
    pending = [m for m in dump if m["kind"] == "Pod" and "nodeName" not in m["spec"]]
    assert len(pending) == sum(workload.n for workload in real_dump.PENDING)
    assert all(m["metadata"]["ownerReferences"] for m in dump if m["kind"] == "Pod")


def test_owners_that_pods_name_and_that_are_not_there_are_counted():
    dump = real_dump.real_dump(4, 250, owners=False)
    counts = Counter(m["metadata"]["ownerReferences"][0]["kind"] for m in dump if m["kind"] == "Pod")
    result = apply_documents(cluster=None, objects=dump, dry_run=True)
    assert result.missing_owners == dict(counts) and counts["Job"] == 203
    whole = apply_documents(cluster=None, objects=real_dump.real_dump(4, 250), dry_run=True)
    assert whole.missing_owners == {}
    cluster = create_cluster(name="prod", seed=7)
    owners = [m for m in real_dump.real_dump(4, 250) if m["kind"] in (*counts, "Deployment")]
    apply_documents(cluster=cluster, objects=owners)
    assert apply_documents(cluster=cluster, objects=dump).missing_owners == {}
