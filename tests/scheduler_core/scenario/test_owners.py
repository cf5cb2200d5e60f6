"""A scenario that lists owners and what they own: they make nothing once more; what ran before goes on as it did."""

from typing import Any

import pytest

from scheduler_core.scenario import load_scenario
from scheduler_core.scenario.canonical import in_run_order
from scheduler_core.scenario.make import make_scenario
from scheduler_core.scenario.run import run
from tests.scheduler_core.scenario.builders import Recorded, document, make_node, make_pod

LABELS = {"app": "web"}
START_NS = 1_800_000_000_000_000_000


def owned(manifest: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    reference = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": name,
        "uid": f"uid-{name}",
        "controller": True,
    }
    meta = {"namespace": "default", "labels": LABELS, "uid": f"uid-{manifest['metadata']['name']}"}
    return {**manifest, "metadata": {**manifest["metadata"], **meta, "ownerReferences": [reference]}}


def workload(kind: str, name: str) -> dict[str, Any]:
    template = {"metadata": {"labels": LABELS}, "spec": make_pod("x")["spec"]}
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": LABELS}
    spec = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec}


def objects() -> list[dict[str, Any]]:
    """As a dump has them: owners first. One pod of two is on its node, the other pending."""
    pods = [make_pod("web-1"), make_pod("web-2")]
    pods[0]["spec"]["nodeName"] = "n"
    return [
        make_node("n"),
        workload("Deployment", "web"),
        owned(workload("ReplicaSet", "web-rs"), "Deployment", "web"),
        *(owned(pod, "ReplicaSet", "web-rs") for pod in pods),
    ]


@pytest.mark.parametrize("turned", [False, True])
def test_owners_come_after_what_they_own(turned: bool) -> None:
    listed = objects()[::-1] if turned else objects()
    ran = run(load_scenario(document(*listed)))
    assert set(ran.placement()) == {"default/web-1", "default/web-2"}
    assert [trace.pod for trace in ran.cycles] == ["default/web-2"]


@pytest.mark.parametrize("turned", [False, True])
def test_a_log_becomes_a_scenario_that_does_what_the_log_did(turned: bool) -> None:
    """In which order the log has owners decides what they made; a run must not sort them."""
    from scheduler_core.releases import release_named

    release = release_named("1.36")
    listed = objects()[::-1] if turned else objects()
    log = [Recorded(seq, "api", "write", START_NS, {"manifest": item}) for seq, item in enumerate(listed, 1)]
    made = make_scenario(log, start_ns=START_NS, release=release).scenario
    written = [*in_run_order(made.objects)]
    written += [item for step in made.steps for item in step.apply or ()]
    workloads = [item["kind"] for item in written if item["kind"] in ("Deployment", "ReplicaSet")]
    assert workloads == [item["kind"] for item in listed if item["kind"] in ("Deployment", "ReplicaSet")]
    order = [item["metadata"]["name"] for item in written if item["kind"] != "Node"]
    assert order == [item["metadata"]["name"] for item in listed if item["kind"] != "Node"]
