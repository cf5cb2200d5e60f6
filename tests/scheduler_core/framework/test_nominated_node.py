"""The nominated node is tried first and alone, whatever PreFilter says; what was said of it there stands."""

from __future__ import annotations

from typing import Any

from scheduler_core.cli.conformance_cycles import CaseCluster
from scheduler_core.framework.status import Code
from scheduler_core.schedule_one import Decision
from tests.manifests import node, pod


def only(*names: str) -> dict[str, Any]:
    """Node affinity by name, which PreFilter narrows the nodes by."""
    field = {"key": "metadata.name", "operator": "In", "values": list(names)}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


NARROWED_ONLY = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"filter": {"disabled": [{"name": "NodeAffinity"}]}}}],
}
"""NodeAffinity narrows the nodes in PreFilter, and its Filter has no say."""


def decide(
    objects: list[dict[str, Any]],
    manifest: dict[str, Any],
    nominated: str,
    config: dict[str, Any] | None = None,
) -> Decision:
    cluster = CaseCluster(objects, config)
    return cluster.schedule(cluster.pending_pod({**manifest, "status": {"nominatedNodeName": nominated}}))


def test_a_nominated_node_that_prefilter_left_out_has_its_filters_reason() -> None:
    tainted = node("tainted", taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}])
    objects = [tainted, node("other"), node("small", "1")]
    decision = decide(objects, pod("p", "2", affinity=only("small")), "tainted")
    assert decision.fit_error == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) "
        "[NodeAffinity TaintToleration], 1 node(s) had untolerated taint {a: b}."
    )
    assert set(decision.attempt.rejecting_plugins()) == {
        "NodeAffinity",
        "TaintToleration",
        "NodeResourcesFit",
    }


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
