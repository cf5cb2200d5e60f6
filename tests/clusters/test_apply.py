"""Apply, and single objects: created, configured, unchanged, ignored; all of a request or nothing."""

from typing import Any

import pytest
from django.conf import settings

from playground.clusters.drive.config import set_config
from playground.clusters.errors import Forbidden, InvalidInput, InvalidManifest, Unsupported
from playground.clusters.kinds import named
from playground.clusters.models import Cluster, LogEntry, Manifest, Node, Pod, PodDisruptionBudget
from playground.clusters.objects.actions import expand_pool
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import create_object, delete_object, replace_object
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


def test_json_is_taken_and_yaml_under_its_name_is_not() -> None:
    cluster = make_cluster()
    text = '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}'
    apply_documents(cluster=cluster, text=text, content_type="application/json; charset=utf-8")
    with pytest.raises(InvalidManifest, match="not valid JSON"):
        apply_documents(cluster=cluster, text="kind: Pod", content_type="application/json")


def test_the_namespace_and_the_kind_of_a_single_object_must_agree() -> None:
    cluster = make_cluster()
    with pytest.raises(InvalidManifest, match="does not match"):
        create_object(cluster=cluster, manifest=make_pod("a"), namespace="kube-system")
    with pytest.raises(Unsupported, match="no kind"):
        create_object(cluster=cluster, manifest={"apiVersion": "v1", "kind": "Widget"})
    with pytest.raises(InvalidManifest, match="the limit is"):
        apply_documents(cluster=cluster, text=b"#" * (settings.PLAYGROUND_MAX_UNPACKED_BYTES + 1))


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


def test_a_pods_spec_is_fixed_but_for_what_kubernetes_lets_change() -> None:
    cluster = make_cluster(make_pod("a"))
    with pytest.raises(InvalidManifest, match="pod updates may not change") as caught:
        apply_documents(cluster=cluster, objects=[make_pod("a", cpu="2")])
    assert caught.value.path == "spec.containers"
    image = make_pod("a")
    image["spec"]["containers"][0]["image"] = "app:2"
    assert len(apply_documents(cluster=cluster, objects=[image]).configured) == 1


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


@pytest.mark.dialect
def test_amounts_beyond_64_bits_are_kept_in_the_manifest_and_capped_in_the_columns() -> None:
    make_cluster(make_node("n1", "1e30"), make_pod("a", "1e30"))
    assert Node.objects.get().cpu_milli == 2**47
    assert Cluster.objects.count() == 1


# ---- A budget's fields are typed columns: derived in the same write


AT = "2026-01-01T00:00:00Z"


def test_the_columns_follow_the_manifest() -> None:
    counts = {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 4}
    status = counts | {"disruptedPods": {"b": AT, "a": AT}}
    cluster = make_cluster(budget("db", minAvailable="50%") | {"status": status})
    row = PodDisruptionBudget.objects.get(cluster=cluster)
    assert (row.min_available, row.max_unavailable) == ("50%", "")
    assert row.selector == {"matchLabels": {"app": "db"}}
    assert (row.expected_pods, row.current_healthy) == (4, 3)
    assert (row.desired_healthy, row.disruptions_allowed) == (2, 1)
    assert (row.disrupted_pods, row.counted, row.given) == (["a", "b"], True, True)
    # Another rule makes a status from elsewhere old: it goes, and the controller counts anew.
    replace_object(cluster=cluster, manifest=budget("db", maxUnavailable=0))
    row.refresh_from_db()
    assert (row.min_available, row.max_unavailable, row.counted, row.given) == ("", "0", False, False)


@pytest.mark.parametrize(
    ("spec", "place", "words"),
    table(__file__, "what_an_api_server_refuses_is_refused_in_its_words"),
)
def test_what_an_api_server_refuses_is_refused_in_its_words(
    spec: dict[str, Any], place: str, words: str
) -> None:
    cluster = make_cluster()
    with pytest.raises(InvalidManifest) as refused:
        create_object(cluster=cluster, manifest=budget("db", **spec))
    assert refused.value.path == place
    assert refused.value.message.endswith(words)
    with pytest.raises(InvalidManifest) as refused:
        apply_documents(cluster=cluster, objects=[budget("db", **spec)])
    assert refused.value.path == place
    assert not PodDisruptionBudget.objects.filter(cluster=cluster).exists()
