"""Dumps of real clusters: what runs goes on running, whatever owns it."""

import copy
from collections import Counter

import pytest

from playground.clusters.errors import InvalidManifest
from playground.clusters.kinds import by_kind
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import LogEntry, Manifest, Pod
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import delete_object
from playground.engine.rebuilt_owners import rebuilt_owners
from tests import real_dump
from tests.changes import one_in
from tests.rare_cycles import run_until
from tests.tables import table

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.mark.parametrize("cloud", one_in(2, ["aws", "gke"], "playground/clusters/objects/"))
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


@pytest.mark.parametrize("rebuild_owners", [False, True])
def test_a_uid_that_is_no_text_is_refused(rebuild_owners):
    [pod, *_] = (one for one in real_dump.real_dump(4, 250, owners=False) if one["kind"] == "Pod")
    pod["metadata"]["ownerReferences"][0]["uid"] = pod["metadata"]["uid"] = {"a": 1}
    with pytest.raises(InvalidManifest, match="uid"):
        apply_documents(cluster=None, objects=[pod], dry_run=True, rebuild_owners=rebuild_owners)


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


# ---- Owners a dump does not have are made again from the pods that name them


@pytest.fixture(params=one_in(2, ["aws", "gke"], "playground/engine/rebuilt_owners.py"))
def rebuilt(request):
    dump = real_dump.real_dump(12, 400, cloud=request.param, owners=False)
    cluster = create_cluster(name="prod", seed=7)
    result = apply_documents(cluster=cluster, objects=dump, rebuild_owners=True)
    return cluster, dump, result


def test_what_is_there_stays_and_a_pod_that_goes_is_made_again(rebuilt):
    cluster, dump, result = rebuilt
    named = {m["metadata"]["ownerReferences"][0]["uid"] for m in dump if m["kind"] == "Pod"}
    assert result.missing_owners == {} and sum(result.rebuilt.values()) == len(named)
    kinds = ("ReplicaSet", "StatefulSet", "DaemonSet", "Job")
    rows = Manifest.objects.filter(cluster=cluster, kind__in=kinds)
    assert set(rows.values_list("uid", flat=True)) == named
    assert set(result.rebuilt) == set(kinds)
    pods = {m["metadata"]["uid"] for m in dump if m["kind"] == "Pod"}
    run_until(cluster, "idle")
    assert set(Pod.objects.filter(cluster=cluster).values_list("uid", flat=True)) == pods
    assert not LogEntry.objects.filter(cluster=cluster, kind=LogEntry.Kind.DELETE).exists()
    placed = Pod.objects.filter(cluster=cluster).exclude(node_name="").order_by("pk")
    remakes = sorted(set(placed.values_list("owner_kind", flat=True)) - {"Job"})
    assert remakes == ["DaemonSet", "ReplicaSet", "StatefulSet"][: len(remakes)] and len(remakes) >= 2
    for kind in remakes:
        gone = placed.filter(owner_kind=kind).first()
        n = Pod.objects.filter(cluster=cluster, owner_name=gone.owner_name, namespace=gone.namespace).count()
        delete_object(
            cluster=cluster, kind=by_kind("Pod"), namespace=gone.namespace, name=gone.name, grace_s=0
        )
        cluster.refresh_from_db()
        run_until(cluster, "idle")
        now = Pod.objects.filter(cluster=cluster, owner_name=gone.owner_name, namespace=gone.namespace)
        assert now.count() == n and not now.filter(uid=gone.uid).exists(), kind
        assert now.exclude(uid__in=pods).get().cpu_milli == gone.cpu_milli


def test_owners_are_made_only_where_that_is_asked_for_and_none_twice():
    dump = real_dump.real_dump(4, 240, owners=False)
    cluster = create_cluster(name="prod", seed=7)
    told = apply_documents(cluster=cluster, objects=dump)
    assert told.rebuilt == {} and sum(told.missing_owners.values()) == 240
    assert not Manifest.objects.filter(cluster=cluster, kind="ReplicaSet").exists()
    first = apply_documents(cluster=cluster, objects=dump, rebuild_owners=True)
    again = apply_documents(cluster=cluster, objects=dump, rebuild_owners=True)
    assert first.rebuilt and again.rebuilt == {} and again.missing_owners == {}


def test_an_owner_of_another_kind_or_of_pods_without_labels_stays_missing():
    dump = real_dump.real_dump(2, 230, owners=False)
    pods = [m for m in dump if m["kind"] == "Pod"]
    rollout, bare = copy.deepcopy(pods[-1]), copy.deepcopy(pods[-2])
    rollout["metadata"]["ownerReferences"][0] |= {"kind": "Rollout", "apiVersion": "argoproj.io/v1alpha1"}
    bare["metadata"]["labels"] = {}
    uids = frozenset(one["metadata"]["ownerReferences"][0]["uid"] for one in (rollout, bare))
    assert rebuilt_owners([rollout, bare], uids) == []


def test_templates_have_nothing_of_one_pod_alone():
    pod = table(__file__, "templates_have_nothing_of_one_pod_alone")
    claim = {
        "metadata": {"name": "data-db-3", "namespace": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "gp3", "volumeName": "pv-7"},
    }
    [made] = rebuilt_owners([pod], frozenset({"u"}), [claim])
    spec = made["spec"]
    assert spec["selector"] == {"matchLabels": {"app": "db"}} and spec["ordinals"] == {"start": 3}
    assert spec["replicas"] == 1 and spec["updateStrategy"] == {"type": "OnDelete"}
    assert spec["template"]["spec"] == {
        "containers": [{"name": "c", "volumeMounts": [{"name": "data"}]}],
        "volumes": [],
    }
    [template] = spec["volumeClaimTemplates"]
    assert template["spec"]["storageClassName"] == "gp3" and "volumeName" not in template["spec"]
    assert pod["spec"]["nodeName"] == "a" and len(pod["spec"]["volumes"]) == 2


@pytest.mark.parametrize(
    "wrong",
    [{"spec": None}, {"spec": {"containers": "none"}}, {"metadata": {"name": "a", "labels": 3}}],
)
def test_a_pod_that_has_not_the_form_of_one_is_refused_in_words(wrong):
    [pod] = [m for m in real_dump.real_dump(1, 226, owners=False) if m["kind"] == "Pod"][-1:]
    broken = {**pod, **wrong}
    broken["metadata"] = {**pod["metadata"], **wrong.get("metadata", {})}
    with pytest.raises(InvalidManifest):
        apply_documents(cluster=None, objects=[broken], dry_run=True, rebuild_owners=True)
