"""Another scheduler's decisions beside ours: agree, tie, different and by whom, or against a filter."""

from random import Random
from typing import Any

import pytest

from scheduler_core.fork import Fork
from scheduler_core.objects.defaults import PriorityClasses, prepare
from scheduler_core.whatif.judge import ForeignDecision, Judge, share_of_agreement
from tests.manifests import scheduler_config
from tests.scheduler_core.whatif.random_clusters import CLASSES, draw_cluster, node, pod
from tests.tables import table

Manifest = dict[str, Any]


def ready(*manifests: Manifest) -> list[Manifest]:
    return [dict(prepare(item, PriorityClasses(CLASSES))) for item in manifests]


def verdict(objects: list[Manifest], pending: Manifest, decision: ForeignDecision, **more: Any) -> Any:
    [subject] = ready(pending)
    return Judge(objects=ready(*objects), **more).judge(subject, decision)


TWO = [node("n1", cpu="4"), node("n2", cpu="4"), pod("there", on="n1", requests={"cpu": "2"})]
SMALL = pod("new", requests={"cpu": "1"}, schedulerName="bin-packer")


@pytest.mark.parametrize(
    ("objects", "pending", "plugin", "reason"), table(__file__, "a_node_that_a_filter_rejects_does_not_fit")
)
def test_a_node_that_a_filter_rejects_does_not_fit(
    objects: list[Manifest], pending: Manifest, plugin: str, reason: str
) -> None:
    found = verdict(objects, pending, ForeignDecision("bind", "n1"))
    assert (found.verdict, found.plugin, found.reasons) == ("infeasible", plugin, (reason,))


def test_a_sample_of_the_nodes_judges_nothing() -> None:
    config = scheduler_config(percentageOfNodesToScore=1)
    nodes = [node(f"n{number:03}") for number in range(300)]
    judge = Judge(config, objects=ready(*nodes))
    [subject] = ready(SMALL)
    for name in ("n000", "n299"):
        assert judge.judge(subject, ForeignDecision("bind", name)).verdict in ("agree", "tie")


def test_finding_no_node_agrees_only_where_there_is_none() -> None:
    big = pod("new", requests={"cpu": "9"})
    assert verdict(TWO, big, ForeignDecision("no-node")).verdict == "agree"
    found = verdict(TWO, SMALL, ForeignDecision("no-node"))
    assert (found.verdict, found.node, found.trace.n_feasible) == ("different", "n2", 2)


PREEMPTABLE = [
    node("n1", cpu="2"), node("n2", cpu="2"),
    pod("low-1", on="n1", requests={"cpu": "2"}, priority=10),
    pod("low-2", on="n2", requests={"cpu": "1"}, priority=10),
    pod("low-3", on="n2", requests={"cpu": "1"}, priority=10),
    pod("above", on="n2", requests={"cpu": "0"}, priority=200),
]  # fmt: skip
VIP = pod("vip", requests={"cpu": "2"}, priority=100)


def test_a_preemption_is_compared_by_its_node_and_its_victims() -> None:
    def preempt(node_name: str, *victims: str) -> Any:
        keys = tuple(f"default/{name}" for name in victims)
        return verdict(PREEMPTABLE, VIP, ForeignDecision("preempt", node_name, keys))

    assert preempt("n1", "low-1").verdict == "agree"
    assert preempt("n1").verdict == "agree"
    other = preempt("n2", "low-2", "low-3")
    assert (other.verdict, other.plugin, other.node) == ("different", "lowestPrioritySum", "n1")
    more = preempt("n2", "low-2", "low-3", "above")
    assert (more.verdict, more.plugin, more.victims) == ("different", "victims", ("default/low-1",))
    none = preempt("n9")
    assert (none.verdict, none.reasons) == ("infeasible", ("there is no node n9",))
    assert verdict(PREEMPTABLE, VIP, ForeignDecision("no-node")).outcome == "preempting"


def test_preempting_where_there_is_room_differs_and_where_it_helps_nothing_is_infeasible() -> None:
    roomy = [*PREEMPTABLE, node("n3", cpu="9")]
    found = verdict(roomy, VIP, ForeignDecision("preempt", "n1", ("default/low-1",)))
    assert (found.verdict, found.outcome, found.node) == ("different", "bound", "n3")
    polite = pod("vip", requests={"cpu": "2"}, priority=1000)
    refused = verdict(PREEMPTABLE, polite, ForeignDecision("preempt", "n1", ("default/low-1",)))
    assert (refused.verdict, refused.plugin) == ("infeasible", "DefaultPreemption")


def test_a_judge_follows_what_happens() -> None:
    judge = Judge(objects=ready(*TWO))
    [subject] = ready(SMALL)
    assert judge.judge(subject, ForeignDecision("bind", "n2")).verdict == "agree"
    [busy] = ready(pod("busy", on="n2", requests={"cpu": "4"}))
    judge.write(busy)
    assert judge.judge(subject, ForeignDecision("bind", "n2")).verdict == "infeasible"
    judge.delete("Pod", "default", "busy")
    judge.delete("Pod", "default", "busy")
    assert judge.judge(subject, ForeignDecision("bind", "n2")).verdict == "agree"
    judge.delete("Node", "", "n2")
    assert judge.judge(subject, ForeignDecision("bind", "n2")).reasons == ("there is no node n2",)
    bound = {**subject, "spec": {**subject["spec"], "nodeName": "n1"}}
    assert judge.judge(bound, ForeignDecision("bind", "n1")).verdict == "unknown"


def test_a_nominated_pod_is_looked_at_on_its_node_first_and_elsewhere_with_all() -> None:
    [subject] = ready(SMALL)
    judge = Judge(objects=ready(*TWO))
    nominated = {**subject, "status": {"nominatedNodeName": "n1"}}
    assert judge.judge(nominated, ForeignDecision("bind", "n1")).verdict == "agree"
    assert judge.judge(nominated, ForeignDecision("bind", "n2")).verdict == "agree"


@pytest.mark.parametrize("seed", range(40))
def test_our_own_decisions_agree_with_the_judge(seed: int) -> None:
    """The twin: what a scheduler decides in a cycle, told as another scheduler's."""
    cluster = draw_cluster(Random(seed))
    fork = Fork(cluster.simulation().scheduler)
    decided = fork.decide(cluster.pending_pod(), preempt=True)
    judge = Judge(objects=ready(*cluster.nodes, *cluster.pods))
    [subject] = ready(cluster.pending)
    result = decided.post_filter
    if decided.node_name is not None:
        told = ForeignDecision("bind", decided.node_name)
    elif result is not None and result.status.is_success:
        keys = tuple(victim.key for victim in result.victims)
        told = ForeignDecision("preempt", result.nominated_node_name or "", keys)
    else:
        told = ForeignDecision("no-node")
    found = judge.judge(subject, told)
    assert found.verdict in ("agree", "tie"), (told, found)


def test_a_share_counts_what_could_be_judged() -> None:
    assert share_of_agreement([]) is None
    assert share_of_agreement(["unknown"]) is None
    assert share_of_agreement(["agree", "tie", "different", "unknown", "infeasible"]) == 50.0
