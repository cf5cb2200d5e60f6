"""Pod groups in a simulated cluster: all members or none, who has to go for them, and what a checkpoint keeps."""

from typing import Any

import pytest

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.kinds import parse
from scheduler_core.releases import RELEASES, Release
from scheduler_core.sim.changes import EventRecorded
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.pod_group import UnknownGroup, group_story
from tests.manifests import make_object
from tests.scheduler_core.sim.builders import (
    make_cluster,
    make_node,
    make_pod,
    pod_named,
    pods_of,
    reborn,
    state,
    write,
)
from tests.scheduler_core.stored import prepare
from tests.tables import table

GROUPS = RELEASES["1.36"].with_gates({"GenericWorkload": True, "GangScheduling": True})
WORKLOAD_AWARE = GROUPS.with_gates({"WorkloadAwarePreemption": True})


def make_group(name: str, min_count: int | None = None, **spec: Any) -> dict[str, Any]:
    policy: dict[str, Any] = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    return prepare(
        make_object("scheduling.k8s.io/v1alpha2", "PodGroup", name, spec={"schedulingPolicy": policy, **spec})
    )


def members(group: str, n: int, **spec: Any) -> list[dict[str, Any]]:
    return [
        make_pod(f"{group}-{place}", labels={"app": group}, schedulingGroup={"podGroupName": group}, **spec)
        for place in range(n)
    ]


def condition_of(simulation: Simulation, group: str) -> tuple[str, str, str]:
    stored = simulation.world.get("PodGroup", "default", group)
    assert stored is not None
    [condition] = stored.manifest["status"]["conditions"]
    return condition["status"], condition["reason"], condition["message"]


def n_bound(simulation: Simulation, group: str) -> int:
    return sum(bool(pod.node_name) for pod in pods_of(simulation, group))


def events_of(simulation: Simulation) -> list[tuple[str, str]]:
    return [
        (item.manifest["reason"], item.manifest["involvedObject"]["name"])
        for item in simulation.drain_outcomes()
        if isinstance(item, EventRecorded)
    ]


def test_members_are_held_back_until_their_group_and_enough_of_them_are_there() -> None:
    first, *others = members("g", 3)
    cluster = make_cluster(3, first, release=GROUPS)
    cluster.run_until_idle()
    [held] = cluster.queue_view()["gated"]
    assert held["reason"] == 'waiting for pods\'s pod group "g" to appear in scheduling queue'
    write(cluster, make_group("g", 3), others[0])
    cluster.run_until_idle()
    assert n_bound(cluster, "g") == 0
    words = "waiting for minCount pods from a gang to appear in scheduling queue"
    assert {held["reason"] for held in cluster.queue_view()["gated"]} == {words}
    write(cluster, others[1])
    cluster.run_until_idle()
    assert n_bound(cluster, "g") == 3


def test_a_basic_group_takes_what_it_gets() -> None:
    cluster = make_cluster(2, make_group("g"), *members("g", 3, cpu="3"), release=GROUPS)
    cluster.run_until_idle()
    assert n_bound(cluster, "g") == 2
    assert condition_of(cluster, "g") == ("True", "Scheduled", "")


@pytest.mark.parametrize(
    "release", [RELEASES["1.34"], RELEASES["1.35"], RELEASES["1.36"]], ids=lambda it: it.name
)
def test_without_the_gate_the_field_means_nothing(release: Release) -> None:
    cluster = make_cluster(2, *members("g", 3, cpu="3"), release=release)
    cluster.run_until_idle()
    assert n_bound(cluster, "g") == 2
    assert not any(trace.group for trace in cluster.drain_cycles())


def test_pods_anywhere_go_for_a_group_that_is_more_important_and_no_more_of_them_than_needed() -> None:
    low = [make_pod(f"low-{place}", cpu="3", priority=0) for place in range(3)]
    together = members("pair", 2, cpu="500m", priority=0)
    cluster = make_cluster(
        3, *low, make_group("pair", disruptionMode="PodGroup"), *together, release=WORKLOAD_AWARE
    )
    cluster.run_until_idle()
    before = cluster.scheduler.cache.pod_order()
    write(cluster, make_group("huge", 4, priority=100), *members("huge", 4, cpu="4", priority=100))
    cluster.run_until_idle()
    said = "pod group is unschedulable, pod group is unschedulable"
    assert condition_of(cluster, "huge")[2] == said, "no eviction helps it"
    assert cluster.scheduler.cache.pod_order() == before, "trying without pods leaves them in their places"
    cluster.drain_outcomes()
    write(cluster, make_group("g", 2, priority=100), *members("g", 2, cpu="3", priority=100))
    cluster.step()
    evicted = [name for reason, name in events_of(cluster) if reason == "Preempted"]
    assert len(evicted) == 2
    assert all(name.startswith("low-") for name in evicted)
    assert condition_of(cluster, "g")[2] == "pod group is unschedulable"
    cluster.run_until_idle()
    assert n_bound(cluster, "g") == 2
    assert n_bound(cluster, "pair") == 2


def test_a_group_with_a_never_preempting_member_evicts_no_pod() -> None:
    cluster = make_cluster(1, make_pod("low", cpu="3"), release=WORKLOAD_AWARE)
    cluster.run_until_idle()
    pods = members("g", 1, cpu="3", priority=100, preemptionPolicy="Never")
    write(cluster, make_group("g", 1, priority=100), *pods)
    cluster.run_until_idle()
    assert condition_of(cluster, "g")[2] == (
        "pod group is unschedulable, not eligible due to preemptionPolicy=Never."
    )
    assert pod_named(cluster, "low") is not None


@pytest.mark.parametrize("n_steps", [1, 2, 4])
def test_groups_go_on_after_a_checkpoint_as_they_would_have(n_steps: int) -> None:
    objects = [make_group("g", 3), *members("g", 3, cpu="3"), make_group("h"), *members("h", 2, cpu="1")]
    cluster = make_cluster(2, *objects, release=WORKLOAD_AWARE)
    for _ in range(n_steps):
        cluster.step()
    again = reborn(cluster)
    assert state(again) == state(cluster)
    for it in (cluster, again):
        write(it, make_node("node-2"), make_node("node-3"))
        it.run_until_idle()
        assert n_bound(it, "g") == 3
    assert state(again) == state(cluster)


@pytest.mark.parametrize(
    ("spec", "field"), table(__file__, "a_group_an_api_server_refuses_is_refused_by_field")
)
def test_a_group_an_api_server_refuses_is_refused_by_field(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidObject, match=field.replace(".", r"\.")):
        parse(prepare({"kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec}))


def test_the_story_of_a_gang_says_how_far_it_is_and_only_what_was_tried_with_success() -> None:
    low = [make_pod(f"low-{place}", cpu="3", priority=0) for place in range(2)]
    cluster = make_cluster(3, *low, release=GROUPS)
    cluster.run_until_idle()
    write(cluster, make_group("g", 3, priority=10), *members("g", 3, cpu="3", priority=0))
    cluster.run_until_idle()
    before = state(cluster)
    story = group_story(cluster.scheduler, "default", "g")
    assert state(cluster) == before
    assert story["sentence"] == "default/g waits: 1 of the 3 members it needs fit at once, 2 too few."
    assert (story["fit"], story["missing"], len(story["nodes"])) == (1, 2, 1)
    assert sum(member["message"] is not None for member in story["members"]) == 2
    remedies = {remedy["kind"]: remedy for remedy in story["remedies"]}
    assert remedies["minCount"]["to"] == 1
    assert remedies["addNodes"]["count"] == 2
    assert sorted(remedies["evict"]["pods"]) == ["default/low-0", "default/low-1"]
    assert remedies["evict"]["gate"] == "WorkloadAwarePreemption"
    # What it says is so: with one node more than none it still waits, with two it goes.
    write(cluster, make_node("more-1"))
    cluster.run_until_idle()
    assert n_bound(cluster, "g") == 0
    write(cluster, make_node("more-2"))
    cluster.run_until_idle()
    assert n_bound(cluster, "g") == 3
    assert (
        group_story(cluster.scheduler, "default", "g")["sentence"]
        == "All 3 members of default/g hold a node."
    )


def test_a_group_that_is_not_there_has_no_story() -> None:
    cluster = make_cluster(1, release=GROUPS)
    with pytest.raises(UnknownGroup, match='"g" not found in namespace "default"'):
        group_story(cluster.scheduler, "default", "g")
