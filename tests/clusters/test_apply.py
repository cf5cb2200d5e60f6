"""Apply, and single objects: created, configured, unchanged, ignored; all of a request or nothing."""

from typing import Any

import pytest
from django.conf import settings

from playground.clusters.drive.config import set_config
from playground.clusters.drive.runs import request_run
from playground.clusters.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    InvalidInput,
    InvalidManifest,
    NotFound,
    TooManyRequests,
    Unsupported,
)
from playground.clusters.kinds import named
from playground.clusters.lifecycle import export_manifests
from playground.clusters.models import Cluster, LogEntry, Manifest, Node, Pod
from playground.clusters.objects.actions import expand_pool
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import (
    bind_pod,
    create_object,
    delete_object,
    evict_pod,
    replace_object,
)
from tests.clusters.builders import START_NS, make_cluster, make_node, make_pod
from tests.manifests import budget, scheduler_config
from tests.tables import table

pytestmark = pytest.mark.django_db

SHOP = table(__file__, "SHOP")


def names(items: Any) -> list[str]:
    return [f"{item.kind} {item.name}" for item in items]


@pytest.mark.dialect
def test_every_object_of_a_text_is_created_and_what_is_ignored_is_named() -> None:
    cluster = make_cluster()
    result = apply_documents(cluster=cluster, text=SHOP)
    assert names(result.created) == [
        "Namespace shop",
        "PriorityClass gold",
        "Node n1",
        "ServiceAccount shop",
        "Pod web",
    ]
    assert [item.note for item in result.created if item.kind == "ServiceAccount"] == [
        "kept, plays no part in scheduling"
    ]
    assert [(item.kind, item.name) for item in result.ignored] == [("ServiceMonitor", "shop")]
    assert "no CustomResourceDefinition" in result.ignored[0].reason
    pod = Pod.objects.get()
    assert (pod.namespace, pod.phase, pod.priority, pod.cpu_milli) == ("shop", "Pending", 1000, 500)
    assert (pod.memory_bytes, pod.extended) == (2**30, {"example.com/gpu": 2})
    assert pod.created_ns == START_NS
    node = Node.objects.get()
    assert (node.zone, node.unschedulable, node.cpu_milli, node.max_pods) == ("a", True, 4000, 110)


def test_applying_again_changes_nothing() -> None:
    cluster = make_cluster()
    apply_documents(cluster=cluster, text=SHOP)
    before = cluster.next_seq
    again = apply_documents(cluster=cluster, text=SHOP)
    assert (len(again.unchanged), again.created, again.configured) == (4, [], [])
    assert cluster.next_seq == before


@pytest.mark.dialect
def test_a_changed_object_is_configured_and_the_change_is_named() -> None:
    cluster = make_cluster(make_node("n1", "4"))
    uid = Node.objects.get().uid
    result = apply_documents(cluster=cluster, objects=[make_node("n1", "8", unschedulable=True)])
    assert names(result.configured) == ["Node n1"]
    assert ("spec.unschedulable", None, True) in result.changes["Node n1"]
    node = Node.objects.get()
    assert (node.cpu_milli, node.unschedulable, node.uid) == (8000, True, uid)


def test_a_dry_run_says_the_same_and_writes_nothing() -> None:
    cluster = make_cluster(make_node("n1", "4"))
    before = LogEntry.objects.count()
    result = apply_documents(cluster=cluster, text=SHOP, dry_run=True)
    assert (names(result.configured), len(result.created)) == (["Node n1"], 4)
    assert (LogEntry.objects.count(), Pod.objects.count()) == (before, 0)


BAD = table(__file__, "BAD")


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_placed_and_nothing_of_the_request_is_kept(case: str) -> None:
    old, new, line, path, value = BAD[case]
    assert old in SHOP
    cluster = make_cluster()
    before = cluster.version
    with pytest.raises(InvalidManifest) as caught:
        apply_documents(cluster=cluster, text=SHOP.replace(old, new))
    assert (caught.value.line, caught.value.path, caught.value.value) == (line, path, value)
    cluster.refresh_from_db()
    assert (cluster.version, Pod.objects.count(), Node.objects.count()) == (before, 0, 0)


def test_an_object_that_is_there_twice_is_refused() -> None:
    cluster = make_cluster()
    with pytest.raises(InvalidManifest, match='Pod "default/a" is there twice') as caught:
        apply_documents(cluster=cluster, objects=[make_pod("a"), make_pod("b"), make_pod("a")])
    assert caught.value.document == 2
    assert Pod.objects.count() == 0


def test_every_problem_of_a_request_is_named() -> None:
    objects = [make_pod(f"p{number}", cpu="1x") for number in range(3)]
    with pytest.raises(InvalidManifest) as caught:
        apply_documents(cluster=make_cluster(), objects=objects)
    assert [cause.document for cause in (caught.value, *caught.value.causes)] == [0, 1, 2]
    assert caught.value.as_dict()["field"] == "spec.containers[0].resources.requests.cpu"


def test_nested_brackets_and_huge_texts_are_refused_before_they_are_read() -> None:
    cluster = make_cluster()
    with pytest.raises(InvalidManifest, match="nested deeper"):
        apply_documents(cluster=cluster, text="[" * 200_000)
    with pytest.raises(InvalidManifest, match="the limit is"):
        apply_documents(cluster=cluster, text=b"#" * (settings.PLAYGROUND_MAX_UNPACKED_BYTES + 1))
    with pytest.raises(Unsupported, match="text/html"):
        apply_documents(cluster=cluster, text="a: 1", content_type="text/html")
    with pytest.raises(InvalidManifest, match="no object"):
        apply_documents(cluster=cluster, text="# nothing\n")


def test_json_is_taken_and_yaml_under_its_name_is_not() -> None:
    cluster = make_cluster()
    text = '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}'
    apply_documents(cluster=cluster, text=text, content_type="application/json; charset=utf-8")
    with pytest.raises(InvalidManifest, match="not valid JSON"):
        apply_documents(cluster=cluster, text="kind: Pod", content_type="application/json")


def test_pods_that_are_not_simulated_say_so() -> None:
    cluster = make_cluster()
    result = apply_documents(
        cluster=cluster,
        objects=[make_pod("a", schedulerName="other"), make_pod("b", workloadRef={"name": "gang"})],
    )
    assert "no profile" in result.created[0].note
    assert "not simulated" in result.created[1].note
    set_config(
        cluster=cluster,
        config=scheduler_config(
            profiles=[{"schedulerName": "default-scheduler"}, {"schedulerName": "other"}]
        ),
    )
    assert dict(Pod.objects.values_list("name", "waits_for"))["a"] == ""


def test_a_configuration_that_cannot_be_used_is_refused_and_changes_nothing() -> None:
    cluster = make_cluster()
    config = scheduler_config(percentageOfNodesToScore=101)
    with pytest.raises(InvalidManifest) as caught:
        set_config(cluster=cluster, config=config)
    assert "percentageOfNodesToScore" in caught.value.path
    cluster.refresh_from_db()
    assert cluster.config is None


@pytest.mark.dialect
def test_one_object_is_created_once_and_replaced_only_by_who_has_seen_it() -> None:
    cluster = make_cluster()
    stored_pod = create_object(cluster=cluster, manifest=make_pod("a"))
    meta = stored_pod["metadata"]
    assert (meta["resourceVersion"], meta["creationTimestamp"]) == (
        str(cluster.last_seq),
        "2027-01-15T08:00:00Z",
    )
    with pytest.raises(AlreadyExists, match='pods "a" already exists'):
        create_object(cluster=cluster, manifest=make_pod("a"))

    changed = stored_pod | {"metadata": meta | {"labels": {"app": "x"}}}
    replaced = replace_object(cluster=cluster, manifest=changed)
    assert replaced["metadata"]["uid"] == meta["uid"]
    with pytest.raises(Conflict, match="the object has been modified"):
        replace_object(cluster=cluster, manifest=changed | {"metadata": meta | {"labels": {"app": "y"}}})
    with pytest.raises(NotFound):
        replace_object(cluster=cluster, manifest=make_pod("b"))


def test_a_pods_spec_is_fixed_but_for_what_kubernetes_lets_change() -> None:
    cluster = make_cluster(make_pod("a"))
    with pytest.raises(InvalidManifest, match="pod updates may not change") as caught:
        apply_documents(cluster=cluster, objects=[make_pod("a", cpu="2")])
    assert caught.value.path == "spec.containers"
    image = make_pod("a")
    image["spec"]["containers"][0]["image"] = "app:2"
    assert len(apply_documents(cluster=cluster, objects=[image]).configured) == 1


def test_the_namespace_of_a_single_object_must_exist_and_agree() -> None:
    cluster = make_cluster()
    with pytest.raises(NotFound, match='namespaces "shop" not found'):
        create_object(cluster=cluster, manifest=make_pod("a", namespace="shop"))
    with pytest.raises(InvalidManifest, match="does not match"):
        create_object(cluster=cluster, manifest=make_pod("a"), namespace="kube-system")
    with pytest.raises(Unsupported, match="no kind"):
        create_object(cluster=cluster, manifest={"apiVersion": "v1", "kind": "Widget"})


def test_a_generated_name_is_new_each_time() -> None:
    cluster = make_cluster()
    made = set()
    for _ in range(3):
        manifest = make_pod("x")
        manifest["metadata"] = {"generateName": "job-"}
        made.add(create_object(cluster=cluster, manifest=manifest)["metadata"]["name"])
    assert len(made) == 3
    assert all(name.startswith("job-") and len(name) == 9 for name in made)


@pytest.mark.dialect
def test_deleting_takes_a_pending_pod_at_once_and_lets_a_bound_one_terminate() -> None:
    cluster = make_cluster(make_node(), make_pod("a"), make_pod("b", nodeName="n1"))
    kind = named("Pod")
    delete_object(cluster=cluster, kind=kind, namespace="default", name="a")
    last = delete_object(cluster=cluster, kind=kind, namespace="default", name="b")
    assert last["metadata"]["deletionTimestamp"] == "2027-01-15T08:00:30Z"
    assert list(Pod.objects.values_list("name", "terminating")) == [("b", True)]
    delete_object(cluster=cluster, kind=kind, namespace="default", name="b", grace_s=0)
    assert not Pod.objects.exists()
    with pytest.raises(NotFound):
        delete_object(cluster=cluster, kind=kind, namespace="default", name="b")


@pytest.mark.dialect
def test_a_namespace_takes_everything_in_it_along_and_the_default_one_stays() -> None:
    cluster = make_cluster()
    apply_documents(cluster=cluster, text=SHOP)
    kind = named("Namespace")
    delete_object(cluster=cluster, kind=kind, namespace="", name="shop")
    assert not Pod.objects.exists()
    assert not Manifest.objects.filter(kind="ServiceAccount").exists()
    with pytest.raises(Forbidden):
        delete_object(cluster=cluster, kind=kind, namespace="", name="default")


def test_binding_puts_a_pod_on_a_node_once() -> None:
    cluster = make_cluster(make_node(), make_pod("a"))
    bind_pod(cluster=cluster, namespace="default", name="a", node="n1")
    assert Pod.objects.get().node_name == "n1"
    with pytest.raises(Conflict, match="already assigned"):
        bind_pod(cluster=cluster, namespace="default", name="a", node="n2")


def test_an_eviction_honours_the_budget() -> None:
    web = budget(maxUnavailable=1) | {"status": {"disruptionsAllowed": 1}}
    pods = []
    for name in ("a", "b"):
        pod = make_pod(name, nodeName="n1") | {"status": {"phase": "Running"}}
        pod["metadata"]["labels"] = {"app": "web"}
        pods.append(pod)
    cluster = make_cluster(make_node(), web, *pods)
    evict_pod(cluster=cluster, namespace="default", name="a")
    with pytest.raises(TooManyRequests, match="disruption budget"):
        evict_pod(cluster=cluster, namespace="default", name="b")
    assert dict(Pod.objects.values_list("name", "terminating")) == {"a": True, "b": False}


@pytest.mark.dialect
def test_an_export_applies_to_an_empty_cluster_and_gives_the_same_export() -> None:
    cluster = make_cluster()
    apply_documents(cluster=cluster, text=SHOP)
    text = "".join(export_manifests(cluster))
    assert "kube-system" not in text
    other = make_cluster()
    assert len(apply_documents(cluster=other, text=text).created) == 5
    assert "".join(export_manifests(other)) == text


def test_a_pool_becomes_nodes_in_turn_over_the_zones() -> None:
    nodes = expand_pool(
        name="gpu-{zone}-{n:02}",
        count=3,
        cpu="16",
        extended={"nvidia.com/gpu": 4},
        taints=["gpu=true:NoSchedule"],
        zones=["a", "b"],
    )
    assert [node["metadata"]["name"] for node in nodes] == ["gpu-a-01", "gpu-b-02", "gpu-a-03"]
    cluster = make_cluster(*nodes)
    node = Node.objects.get(cluster=cluster, name="gpu-b-02")
    assert (node.zone, node.extended, node.taints[0]["key"]) == ("b", {"nvidia.com/gpu": 4}, "gpu")


@pytest.mark.parametrize(("changed", "field"), table(__file__, "a_bad_pool_field_is_named"))
def test_a_bad_pool_field_is_named(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        expand_pool(**({"name": "n", "count": 2} | changed))
    assert caught.value.field == field


@pytest.mark.parametrize("until", ["", "soon", "10", "-5s", "1e9h", "99999999h", "5s5x"])
def test_a_run_goal_that_is_none_is_refused(until: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        request_run(cluster=make_cluster(), until=until)
    assert caught.value.field == "until"


@pytest.mark.dialect
def test_amounts_beyond_64_bits_are_kept_in_the_manifest_and_capped_in_the_columns() -> None:
    make_cluster(make_node("n1", "1e30"), make_pod("a", "1e30"))
    assert Node.objects.get().cpu_milli == 2**47
    assert Cluster.objects.count() == 1
