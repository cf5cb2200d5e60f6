"""Both Filter passes over nodes with nominated pods: what each says, and which nodes fail in only one."""

from __future__ import annotations

from typing import Any

from scheduler_core.cli.conformance_cycles import CaseCluster
from scheduler_core.framework.record import CycleTrace
from scheduler_core.framework.recording import two_passes
from scheduler_core.scenario import run_scenario
from scheduler_core.scenario.gallery import gallery_scenario
from tests.manifests import node, pod


def beside(app: str) -> dict[str, Any]:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def passes(objects: list[dict[str, Any]], manifest: dict[str, Any]) -> dict[str, Any] | None:
    cluster = CaseCluster(objects, None)
    return two_passes(cluster.schedule(cluster.pending_pod(manifest)).attempt)


def test_a_node_may_fail_only_with_only_without_in_both_or_in_neither() -> None:
    objects = [
        node("full-with"),
        node("alone"),
        node("never", "1"),
        node("roomy", "16"),
        node("free"),
        pod("a", "3", nominated="full-with", labels={"app": "db"}, priority=10),
        pod("b", nominated="alone", labels={"app": "db"}, priority=10),
        pod("c", nominated="never", priority=10),
        pod("d", nominated="roomy", labels={"app": "db"}, priority=10),
        pod("db", "1", labels={"app": "db"}, nodeName="full-with"),
        pod("db2", "1", labels={"app": "db"}, nodeName="roomy"),
    ]
    found = passes(objects, pod("p", "2", affinity=beside("db")))
    assert found is not None and found["count"] == 4
    by_node = {item["node"]: item for item in found["nodes"]}
    assert {name: item["failsIn"] for name, item in by_node.items()} == {
        "full-with": "with",
        "alone": "without",
        "never": "both",
        "roomy": None,
    }
    assert by_node["full-with"]["with"] == {
        "plugin": "NodeResourcesFit",
        "code": "Unschedulable",
        "reasons": ["Insufficient cpu"],
    }
    assert by_node["full-with"]["without"] is None
    assert by_node["alone"]["without"]["plugin"] == "InterPodAffinity"
    assert by_node["alone"]["pods"] == ["default/b"]
    # Nodes that fail in one pass alone come first.
    assert [item["node"] for item in found["nodes"]] == ["alone", "full-with", "never", "roomy"]


def test_pods_of_lower_priority_have_no_pass_of_their_own() -> None:
    objects = [node("n"), pod("low", "3", nominated="n", priority=1)]
    assert passes(objects, pod("p", "2", priority=5)) is None
    assert passes([node("n")], pod("p", "2")) is None


def test_the_record_of_a_cycle_keeps_both_passes() -> None:
    run = run_scenario(gallery_scenario("filtering-twice"), full_traces=True)
    second = CycleTrace.from_bytes(run.cycles[1].to_bytes()).explain()["nominatedPasses"]
    (only,) = second["nodes"]
    # The victim still terminates: with the nominated pod the cpu is short, without it nothing is there to be near.
    assert (only["node"], only["pods"], only["failsIn"]) == ("node-a", ["default/nominee"], "both")
    assert (only["with"]["plugin"], only["without"]["plugin"]) == ("NodeResourcesFit", "InterPodAffinity")
    assert run.cycles[0].explain()["nominatedPasses"] is None
