"""`alwaysCheckAllPredicates`: the message counts every predicate's reasons, whatever fails first."""

from __future__ import annotations

from typing import Any

from scheduler_core.cli.conformance_cycles import CaseCluster
from scheduler_core.framework.status import Code
from tests.manifests import node, pod


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
