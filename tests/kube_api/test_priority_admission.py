"""A pod's priority is its class's on every surface, so that no user's pod can evict a system's."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from playground.clusters.drive.config import set_release
from playground.clusters.errors import ClusterError
from playground.clusters.models import Cluster, Cycle, Event, Pod, PriorityClass
from playground.clusters.objects.apply import apply_documents
from playground.clusters.questions import admitted_pod
from playground.scenarios.services.shares import share
from scheduler_core.cli.main import main
from scheduler_core.errors import ForbiddenObject
from scheduler_core.objects.defaults import prepare
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.kube_api.conftest import PODS, Kube
from tests.kube_api.test_writing import DEPLOYMENTS, make_deployment
from tests.manifests import make_object, priority_class, scenario

WORDS = (
    "the integer value of priority (2147483647) must not be provided in pod spec; priority admission controller "
    "computed 0 from the given PriorityClass name"
)
SYSTEM = make_pod("system", cpu="4", namespace="kube-system", priorityClassName="system-node-critical")
GREEDY = make_pod("greedy", cpu="4", priority=2147483647)
UPDATES = "pod updates may not change fields other than `spec.containers[*].image`"


@pytest.fixture
def cluster(db: None, wakes: list[Any]) -> Cluster:
    """A full node with a system pod, and a user's pod that waits for it."""
    made = make_cluster(make_node("n1"), SYSTEM | {"spec": SYSTEM["spec"] | {"nodeName": "n1"}})
    apply_documents(cluster=made, objects=[make_pod("plain", cpu="4")])
    return made


def answer_of(answer: Any) -> str:
    assert answer.status_code in (400, 403, 422), answer.content
    return answer.content.decode().replace('\\"', '"').replace("&#x27;", "'").replace("&quot;", '"')


def raised(act: Callable[[], Any]) -> str:
    with pytest.raises((ClusterError, ForbiddenObject)) as caught:
        act()
    return str(caught.value)


def replayed(
    document: dict[str, Any],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    command: str = "replay",
    *more: str,
) -> str:
    path = folder / "scenario.json"
    path.write_text(json.dumps(document))
    assert main([command, str(path), *more]) != 0
    return capsys.readouterr().err


def test_no_surface_takes_a_priority_that_is_no_class_s(
    kube: Kube, client: Client, cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site, text = f"/c/{cluster.public_id}", json.dumps(GREEDY)
    api = f"/api/v1/clusters/{cluster.public_id}"
    change = {"spec": {"priority": 2147483647}}
    plain = f"{PODS}/plain"
    whole = kube.get(plain).json()
    here = (tmp_path, capsys)
    alone = tmp_path / "greedy.json"
    alone.write_text(text)
    bare, greedy = scenario(objects=[make_node()]), scenario(objects=[make_node(), GREEDY])
    templated = make_deployment(replicas=1)
    templated["spec"]["template"]["spec"] = GREEDY["spec"]
    dump = {"apiVersion": "v1", "kind": "List", "items": [make_node(), templated]}
    created = {
        "create": answer_of(kube.post(PODS, GREEDY)),
        "REST create": answer_of(client.post(f"{api}/pods/", GREEDY, content_type="application/json")),
        "replay --apply": replayed(bare, *here, "replay", "--apply", str(alone)),
        "model": replayed(greedy, *here, "model"),
        "optimum": replayed(greedy, *here, "optimum"),
        "a plan's pod": replayed(dump, *here, "plan", "headroom", "--pod", str(alone)),
        "a plan's workload": replayed(
            dump, *here, "plan", "headroom", "--workload", f"Deployment/default/{templated['metadata']['name']}"
        ),
        "a dump in a command": replayed(dump | {"items": [make_node(), GREEDY]}, *here, "plan", "any-node"),
        "server-side apply": answer_of(kube.apply(f"{PODS}/greedy", GREEDY)),
        "REST apply": answer_of(client.post(f"{api}/apply", GREEDY, content_type="application/json")),
        "a dump": raised(lambda: apply_documents(cluster=cluster, objects=[{
            "apiVersion": "v1", "kind": "List", "items": [GREEDY]}])),
        "a new cluster": raised(lambda: apply_documents(cluster=None, objects=[GREEDY], dry_run=True)),
        "the form's YAML": answer_of(client.post(f"{site}/pods/new/", {"yaml": text, "action": "yaml"})),
        "the import page": answer_of(client.post(f"{site}/import/", {"text": text, "action": "apply"})),
        "a try": raised(lambda: admitted_pod(cluster=cluster, text=text)),
        "the library": raised(lambda: prepare(GREEDY)),
        "a shared scenario": raised(lambda: share(document=json.dumps(greedy))),
        "a step": replayed(scenario(objects=[make_node()], steps=[{"apply": GREEDY}]), tmp_path, capsys),
    }  # fmt: skip
    assert {surface: said for surface, said in created.items() if WORDS not in said} == {}
    patch = {"kind": "Pod", "name": "plain", "patch": change}
    changed = {
        "PUT": answer_of(kube.put(plain, whole | {"spec": whole["spec"] | change["spec"]})),
        "merge patch": answer_of(kube.patch(plain, change)),
        "strategic patch": answer_of(kube.patch(plain, change, "strategic-merge-patch+json")),
        "REST patch": answer_of(
            client.patch(f"{api}/pods/default/plain/", change, content_type="application/merge-patch+json")
        ),
        "JSON patch": answer_of(
            kube.patch(plain, [{"op": "replace", "path": "/spec/priority", "value": 9}], "json-patch+json")
        ),
        "server-side apply": answer_of(
            kube.apply(plain, make_pod("plain", cpu="4", **change["spec"]), query="&force=true")
        ),
        "its class": answer_of(kube.patch(plain, {"spec": {"priorityClassName": "system-node-critical"}})),
        "REST apply": raised(
            lambda: apply_documents(
                cluster=cluster, objects=[make_pod("plain", cpu="4", **change["spec"])]
            )
        ),
        "a scenario's patch": replayed(
            scenario(objects=[make_node(), make_pod("plain", cpu="4")], steps=[{"patch": patch}]), tmp_path, capsys
        ),
    }  # fmt: skip
    assert {surface: said for surface, said in changed.items() if UPDATES not in said} == {}
    run(cluster)
    assert Pod.objects.get(name="system").node_name == "n1"
    assert not Cycle.objects.filter(outcome="preempting").exists()
    assert set(Pod.objects.values_list("name", flat=True)) == {"system", "plain"}


CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
HIGHEST = "maximum allowed value of a user defined priority is 1000000000"
RESERVED = "prefix are reserved for system use only"
TRICKS: dict[str, tuple[dict[str, Any], str]] = {
    "a value of the system's": (priority_class("mine", 2147483647), HIGHEST),
    "one more than allowed": (priority_class("mine", 1_000_000_001), HIGHEST),
    "the default of all": (priority_class("mine", 2147483647, globalDefault=True), HIGHEST),
    "a name of the system's": (priority_class("system-mine", 5), RESERVED),
    "a generated one": (
        priority_class("", 5) | {"metadata": {"generateName": "system-"}},
        RESERVED,
    ),
    "in other letters": (
        priority_class("System-node-critical", 2_000_001_000),
        "a lowercase RFC 1123 subdomain must",
    ),
    "a value in text": (priority_class("mine", 5) | {"value": "2147483647"}, "value"),
    "a broken value": (priority_class("mine", 5) | {"value": 2147483646.5}, "value"),
    "a value beyond 64 bits": (priority_class("mine", 2**64), "value"),
    "another value of a class there is": (priority_class("system-node-critical", 2147483647), RESERVED),
}


@pytest.mark.parametrize("trick", TRICKS)
def test_no_class_of_a_users_reaches_the_systems(
    kube: Kube, client: Client, cluster: Cluster, trick: str
) -> None:
    manifest, words = TRICKS[trick]
    named = manifest["metadata"].get("name")
    api = f"/api/v1/clusters/{cluster.public_id}"
    site = f"/c/{cluster.public_id}/config/classes/"
    form = {
        "name": named or "system-x",
        "value": str(manifest["value"]),
        "preemption_policy": "PreemptLowerPriority",
    }
    answers = {
        "create": kube.post(CLASSES, manifest),
        "REST apply": client.post(f"{api}/apply", manifest, content_type="application/json"),
        "REST create": client.post(f"{api}/priorityclasses/", manifest, content_type="application/json"),
        "the import page": client.post(
            f"/c/{cluster.public_id}/import/", {"text": json.dumps(manifest), "action": "apply"}
        ),
    }
    if named:
        answers["server-side apply"] = kube.apply(f"{CLASSES}/{named}", manifest)
    assert client.post(site, form | {"action": "class"}).status_code in (400, 403, 404, 409, 422)
    for surface, answer in answers.items():
        if surface == "create" and named == "system-node-critical":
            assert answer.status_code in (409, 422)
            continue
        assert words in answer_of(answer), surface
    if named:
        document = scenario(objects=[make_node()], steps=[{"apply": manifest}])
        assert raised(lambda: share(document=json.dumps(document)))
    assert dict(PriorityClass.objects.values_list("name", "value")) == {
        "system-cluster-critical": 2_000_000_000,
        "system-node-critical": 2_000_001_000,
    }


def test_a_priority_in_other_letters_is_no_priority(kube: Kube, cluster: Cluster) -> None:
    spec = {"Priority": 2147483647, "PRIORITY": 2147483647, "PriorityClassName": "system-node-critical"}
    kube.post(PODS, make_pod("shouting", cpu="4", **spec))
    assert kube.get(f"{PODS}/shouting").json()["spec"]["priority"] == 0
    run(cluster)
    assert Pod.objects.get(name="system").node_name == "n1"
    assert not Cycle.objects.filter(outcome="preempting").exists()


def test_a_class_made_anew_or_a_new_default_lifts_no_pod_that_is_there(kube: Kube, cluster: Cluster) -> None:
    apply_documents(cluster=cluster, objects=[priority_class("gold", 5)])
    apply_documents(cluster=cluster, objects=[make_pod("paid", cpu="4", priorityClassName="gold")])
    kube.delete(f"{CLASSES}/gold")
    kube.post(CLASSES, priority_class("gold", 1_000_000_000, globalDefault=True))
    for patch in (
        {"spec": {"priority": 1_000_000_000}},
        {"spec": {"priority": None, "priorityClassName": None}},
    ):
        kube.patch(f"{PODS}/paid", patch)
    assert kube.get(f"{PODS}/paid").json()["spec"]["priority"] == 5
    assert kube.get(f"{PODS}/plain").json()["spec"]["priority"] == 0


GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"


def make_group(**spec: Any) -> dict[str, Any]:
    spec = {"schedulingPolicy": {"gang": {"minCount": 1}}, **spec}
    return make_object("scheduling.k8s.io/v1alpha2", "PodGroup", "greedy", namespace="default", spec=spec)


def test_a_group_has_the_priority_of_its_class_and_evicts_no_system_pod(
    kube: Kube, client: Client, cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gates = {"GenericWorkload": True, "GangScheduling": True, "WorkloadAwarePreemption": True}
    set_release(cluster=cluster, name="1.36", gates=gates)
    words = (
        "priority set in the pod group (2147483647) must match the priority computed (0) based on the priority class"
        " set in the spec"
    )
    api, greedy = f"/api/v1/clusters/{cluster.public_id}", make_group(priority=2147483647)
    said = {
        "create": answer_of(kube.post(GROUPS, greedy)),
        "server-side apply": answer_of(kube.apply(f"{GROUPS}/greedy", greedy)),
        "REST apply": answer_of(client.post(f"{api}/apply", greedy, content_type="application/json")),
        "the library": raised(lambda: prepare(greedy)),
        "a step": replayed(scenario(objects=[make_node()], steps=[{"apply": greedy}]), tmp_path, capsys),
    }
    assert {surface: text for surface, text in said.items() if words not in text} == {}
    unknown = answer_of(kube.post(GROUPS, make_group(priorityClassName="nope")))
    assert "no PriorityClass with name nope was found" in unknown
    apply_documents(cluster=cluster, objects=[priority_class("gold", 5)])
    made = kube.post(GROUPS, make_group(priorityClassName="gold")).json()
    assert made["spec"]["priority"] == 5
    for patch in ({"priority": 2147483647}, {"priority": 6}, {"priorityClassName": "system-node-critical"}):
        assert "field is immutable" in answer_of(kube.patch(f"{GROUPS}/greedy", {"spec": patch}))
    assert "field is immutable" in raised(
        lambda: apply_documents(cluster=cluster, objects=[make_group(priorityClassName="gold", priority=9)])
    )
    # What is left out stays, and what agrees is taken.
    again = apply_documents(cluster=cluster, objects=[make_group(), make_pod("plain", cpu="4")])
    assert len(again.unchanged) == 2
    member = make_pod("member", cpu="4", schedulingGroup={"podGroupName": "greedy"})
    apply_documents(cluster=cluster, objects=[member])
    run(cluster)
    assert Pod.objects.get(name="system").node_name == "n1"
    assert not Cycle.objects.filter(outcome="preempting").exists()


def test_pods_of_a_template_with_a_priority_of_its_own_are_not_made(kube: Kube, cluster: Cluster) -> None:
    greedy = make_deployment(replicas=1)
    greedy["spec"]["template"]["spec"]["priority"] = 2147483647
    # An API server takes the Deployment: its pods are what is admitted.
    assert kube.post(DEPLOYMENTS, greedy).status_code == 201
    run(cluster)
    [event] = Event.objects.filter(reason="FailedCreate").values_list("manifest", flat=True)
    assert "is forbidden: " + WORDS in event["message"]
    assert event["message"].startswith('Error creating: pods "')
    assert set(Pod.objects.values_list("name", flat=True)) == {"system", "plain"}


def test_what_agrees_is_taken_and_an_update_keeps_what_admission_said(kube: Kube, cluster: Cluster) -> None:
    gold = priority_class("gold", 5, preemptionPolicy="Never")
    dump = [gold, make_pod("dumped", priorityClassName="gold", priority=5, preemptionPolicy="Never"),
            make_pod("zero", priority=0, preemptionPolicy="PreemptLowerPriority")]  # fmt: skip
    apply_documents(cluster=cluster, objects=dump)
    apply_documents(cluster=cluster, objects=[priority_class("usual", 3, globalDefault=True)])
    # A default class of later is no business of pods that are there.
    again = apply_documents(cluster=cluster, objects=[*dump, make_pod("plain", cpu="4")])
    assert (len(again.unchanged), again.configured) == (4, [])
    assert kube.patch(f"{PODS}/plain", {"metadata": {"labels": {"a": "b"}}}).json()["spec"]["priority"] == 0
    spec = kube.post(PODS, make_pod("later")).json()["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (3, "usual")
    assert kube.get(f"{PODS}/dumped").json()["spec"]["preemptionPolicy"] == "Never"
