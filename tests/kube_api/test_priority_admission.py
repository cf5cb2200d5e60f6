"""A pod's priority is its class's on every surface, so that no user's pod can evict a system's."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.test import Client

from playground.clusters import services
from playground.clusters.errors import ClusterError
from playground.clusters.models import Cluster, Cycle, Event, Pod, PriorityClass
from playground.clusters.services.questions import admitted_pod
from playground.scenarios.models import Scenario
from playground.scenarios.services import request_verification, share
from scheduler_core.cli.main import main
from scheduler_core.errors import ForbiddenObject
from scheduler_core.objects.defaults import prepare
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.clusters.test_real_engine import run
from tests.kube_api.conftest import PODS, Kube
from tests.kube_api.test_both_surfaces import make_class
from tests.kube_api.test_writing import DEPLOYMENTS, make_deployment

WORDS = (
    "the integer value of priority (2147483647) must not be provided in pod spec; priority admission controller "
    "computed 0 from the given PriorityClass name"
)
SYSTEM = make_pod("system", cpu="4", namespace="kube-system", priorityClassName="system-node-critical")
GREEDY = make_pod("greedy", cpu="4", priority=2147483647)
UPDATES = "pod updates may not change fields other than container images"


@pytest.fixture
def cluster(db: None, wakes: list[Any]) -> Cluster:
    """A full node with a system pod, and a user's pod that waits for it."""
    made = make_cluster(make_node("n1"), SYSTEM | {"spec": SYSTEM["spec"] | {"nodeName": "n1"}})
    services.apply_documents(cluster=made, objects=[make_pod("plain", cpu="4")])
    return made


def scenario(*objects: dict[str, Any], steps: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    body = {"apiVersion": "scheduling.playground/v1", "kind": "Scenario", "objects": list(objects)}
    return body | ({"steps": steps} if steps else {})


def answer_of(answer: Any) -> str:
    assert answer.status_code in (400, 403, 422), answer.content
    return answer.content.decode().replace('\\"', '"').replace("&#x27;", "'").replace("&quot;", '"')


def raised(act: Callable[[], Any]) -> str:
    with pytest.raises((ClusterError, ForbiddenObject)) as caught:
        act()
    return str(caught.value)


def replayed(document: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = folder / "scenario.json"
    path.write_text(json.dumps(document))
    assert main(["replay", str(path)]) != 0
    return capsys.readouterr().err


def test_no_surface_takes_a_priority_that_is_no_class_s(
    kube: Kube, client: Client, cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site, text = f"/c/{cluster.public_id}", json.dumps(GREEDY)
    api = f"/api/v1/clusters/{cluster.public_id}"
    change = {"spec": {"priority": 2147483647}}
    plain = f"{PODS}/plain"
    whole = kube.get(plain).json()
    created = {
        "create": answer_of(kube.post(PODS, GREEDY)),
        "server-side apply": answer_of(kube.apply(f"{PODS}/greedy", GREEDY)),
        "REST apply": answer_of(client.post(f"{api}/apply", GREEDY, content_type="application/json")),
        "a dump": raised(lambda: services.apply_documents(cluster=cluster, objects=[{
            "apiVersion": "v1", "kind": "List", "items": [GREEDY]}])),
        "a new cluster": raised(lambda: services.apply_documents(cluster=None, objects=[GREEDY], dry_run=True)),
        "the form's YAML": answer_of(client.post(f"{site}/pods/new/", {"yaml": text, "deed": "yaml"})),
        "the import page": answer_of(client.post(f"{site}/import/", {"text": text, "deed": "apply"})),
        "a try": raised(lambda: admitted_pod(cluster=cluster, text=text)),
        "the library": raised(lambda: prepare(GREEDY)),
        "a shared scenario": raised(lambda: share(document=json.dumps(scenario(make_node(), GREEDY)))),
        "a step": replayed(scenario(make_node(), steps=[{"apply": GREEDY}]), tmp_path, capsys),
    }  # fmt: skip
    assert {surface: said for surface, said in created.items() if WORDS not in said} == {}
    patch = {"kind": "Pod", "name": "plain", "patch": change}
    changed = {
        "PUT": answer_of(kube.put(plain, whole | {"spec": whole["spec"] | change["spec"]})),
        "merge patch": answer_of(kube.patch(plain, change)),
        "strategic patch": answer_of(kube.patch(plain, change, "strategic-merge-patch+json")),
        "JSON patch": answer_of(
            kube.patch(plain, [{"op": "replace", "path": "/spec/priority", "value": 9}], "json-patch+json")
        ),
        "server-side apply": answer_of(
            kube.apply(plain, make_pod("plain", cpu="4", **change["spec"]), query="&force=true")
        ),
        "its class": answer_of(kube.patch(plain, {"spec": {"priorityClassName": "system-node-critical"}})),
        "REST apply": raised(
            lambda: services.apply_documents(
                cluster=cluster, objects=[make_pod("plain", cpu="4", **change["spec"])]
            )
        ),
        "a scenario's patch": replayed(
            scenario(make_node(), make_pod("plain", cpu="4"), steps=[{"patch": patch}]), tmp_path, capsys
        ),
    }  # fmt: skip
    assert {surface: said for surface, said in changed.items() if UPDATES not in said} == {}
    # No class of a user's reaches the system's either.
    said = answer_of(kube.post("/apis/scheduling.k8s.io/v1/priorityclasses", make_class("mine", 2147483647)))
    assert "maximum allowed value of a user defined priority is 1000000000" in said
    run(cluster)
    assert Pod.objects.get(name="system").node_name == "n1"
    assert not Cycle.objects.filter(outcome="preempting").exists()
    assert set(Pod.objects.values_list("name", flat=True)) == {"system", "plain"}


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
    gold = make_class("gold", 5, preemptionPolicy="Never")
    dump = [gold, make_pod("dumped", priorityClassName="gold", priority=5, preemptionPolicy="Never"),
            make_pod("zero", priority=0, preemptionPolicy="PreemptLowerPriority")]  # fmt: skip
    services.apply_documents(cluster=cluster, objects=dump)
    services.apply_documents(cluster=cluster, objects=[make_class("usual", 3, globalDefault=True)])
    # A default class of later is no business of pods that are there.
    again = services.apply_documents(cluster=cluster, objects=[*dump, make_pod("plain", cpu="4")])
    assert (len(again.unchanged), again.configured) == (4, [])
    assert kube.patch(f"{PODS}/plain", {"metadata": {"labels": {"a": "b"}}}).json()["spec"]["priority"] == 0
    spec = kube.post(PODS, make_pod("later")).json()["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (3, "usual")
    assert kube.get(f"{PODS}/dumped").json()["spec"]["preemptionPolicy"] == "Never"


def test_every_cluster_has_the_systems_classes_and_keeps_them(kube: Kube, cluster: Cluster) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical"
    assert kube.get(path).json()["preemptionPolicy"] == "PreemptLowerPriority"
    assert kube.delete(path).status_code == 403
    assert kube.patch(path, {"globalDefault": True}).status_code == 422
    # One that an earlier version stored without the default is read with it.
    row = PriorityClass.objects.get(name="system-node-critical")
    del row.manifest["preemptionPolicy"]
    row.save()
    assert kube.get(path).json()["preemptionPolicy"] == "PreemptLowerPriority"


def test_a_share_of_before_has_classes_for_its_bare_priorities_and_decides_as_it_did(
    kube: Kube, cluster: Cluster
) -> None:
    low = make_pod("low", cpu="4", priority=-5) | {"status": {"phase": "Running"}}
    low["spec"]["nodeName"] = "n1"
    old = scenario(
        make_node("n1"), low, steps=[{"apply": make_pod("high", cpu="4", priority=1000)}, {"run": "idle"}]
    )
    known = share(document=json.dumps(scenario(make_node("n2")))).scenario
    document = json.dumps(old).encode()
    Scenario.objects.filter(pk=known.pk).update(document=document, n_bytes=len(document), state="queued")
    import_module("playground.scenarios.migrations.0007_priority_classes").add_classes(apps, None)
    now = Scenario.objects.get(pk=known.pk)
    assert now.digest != known.digest
    assert now.n_bytes == len(now.document)
    again = share(document=bytes(now.document)).scenario
    assert again.figures["victims"] == 1
    assert request_verification(scenario=again) is not None
    before = bytes(now.document)
    import_module("playground.scenarios.migrations.0007_priority_classes").add_classes(apps, None)
    assert bytes(Scenario.objects.get(pk=known.pk).document) == before
