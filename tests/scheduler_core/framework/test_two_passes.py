"""Both Filter passes over nodes with nominated pods: what each says, and which nodes fail in only one.

`alwaysCheckAllPredicates`: the message counts every predicate's reasons, whatever fails first.

The nominated node is tried first and alone, whatever PreFilter says; what was said of it there stands.
"""

from typing import Any

from scheduler_core.cli.conformance_cycles import CaseCluster
from scheduler_core.framework.record import CycleTrace
from scheduler_core.framework.recording import two_passes
from scheduler_core.framework.status import Code
from scheduler_core.scenario import run_scenario
from scheduler_core.scenario.gallery import gallery_scenario
from scheduler_core.schedule_one import Decision
from tests.manifests import node, pod, scheduler_config


def passes(objects: list[dict[str, Any]], manifest: dict[str, Any]) -> dict[str, Any] | None:
    cluster = CaseCluster(objects, None)
    return two_passes(cluster.schedule(cluster.pending_pod(manifest)).attempt)


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


def said(always: bool) -> Any:
    names = ("MatchNodeSelector", "PodFitsResources", "PodToleratesNodeTaints")
    policy = {
        "kind": "Policy",
        "apiVersion": "v1",
        "predicates": [{"name": name} for name in names],
        "priorities": [],
        "alwaysCheckAllPredicates": always,
    }
    tainted = node("tainted", "1", taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}])
    full = pod("full", "3", nodeName="other", priority=-1)
    cluster = CaseCluster([tainted, node("other"), full], policy)
    return cluster.schedule(cluster.pending_pod(pod("p", "2", nodeSelector={"disk": "ssd"})))


def test_all_reasons_are_counted() -> None:
    decision = said(always=True)
    assert decision.fit_error == (
        "0/2 nodes are available: 1 node(s) had untolerated taint {a: b}, 2 Insufficient cpu, "
        "2 node(s) didn't match Pod's node affinity/selector."
    )
    attempt = decision.attempt
    assert set(attempt.rejecting_plugins()) == {"TaintToleration", "NodeAffinity", "NodeResourcesFit"}
    # What preemption cannot help by one predicate it cannot help at all.
    assert not len(attempt.rejected_rows(Code.Unschedulable))


def test_without_it_the_first_one_speaks() -> None:
    assert said(always=False).fit_error == (
        "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."
    )


def only(*names: str) -> dict[str, Any]:
    """Node affinity by name, which PreFilter narrows the nodes by."""
    field = {"key": "metadata.name", "operator": "In", "values": list(names)}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


NARROWED_ONLY = scheduler_config(profiles=[{"plugins": {"filter": {"disabled": [{"name": "NodeAffinity"}]}}}])
"""NodeAffinity narrows the nodes in PreFilter, and its Filter has no say."""


def decide(
    objects: list[dict[str, Any]],
    manifest: dict[str, Any],
    nominated: str,
    config: dict[str, Any] | None = None,
) -> Decision:
    cluster = CaseCluster(objects, config)
    return cluster.schedule(cluster.pending_pod({**manifest, "status": {"nominatedNodeName": nominated}}))


def test_pods_on_it_may_be_preempted_where_its_filter_said_that_would_help() -> None:
    filler = pod("filler", "3", nodeName="nominated", priority=-1)
    objects = [node("nominated"), node("small", "1"), filler]
    decision = decide(objects, pod("p", "2", affinity=only("small")), "nominated", NARROWED_ONLY)
    attempt = decision.attempt
    assert attempt.node_names == ("small",)
    assert [attempt.name_of(row) for row in attempt.rejected_rows(Code.Unschedulable)] == ["nominated"]
    assert attempt.code_of("nominated") is Code.Unschedulable
    assert decision.fit_error == "0/2 nodes are available: 2 Insufficient cpu."
    assert decision.post_filter is not None
    assert decision.post_filter.nominated_node_name == "nominated"


def test_a_nominated_node_that_is_looked_at_again_is_counted_once_and_is_gone_where_all_is_well() -> None:
    objects = [node("full", "1"), node("other", "1")]
    assert decide(objects, pod("p", "2"), "full").fit_error == "0/2 nodes are available: 2 Insufficient cpu."
    roomy = decide([*objects, node("roomy")], pod("p", "2", affinity=only("roomy")), "full")
    assert (roomy.node_name, roomy.fit_error) == ("roomy", None)
