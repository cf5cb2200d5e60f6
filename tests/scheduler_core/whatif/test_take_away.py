"""Nodes that go: who finds a node, who is held back, and that nothing is left changed."""

import json
import random
from typing import Any

import pytest

from scheduler_core.cli.manifests import scenario_of_dump
from scheduler_core.fork import Fork
from scheduler_core.objects.defaults import prepare
from scheduler_core.scenario import load_scenario, run_scenario
from scheduler_core.sim.changes import WriteObject
from scheduler_core.whatif.answers import (
    answer_question,
    any_domain_verdict,
    any_node_verdict,
    taken_away_verdict,
)
from scheduler_core.whatif.take_away import (
    DRAIN,
    LOSS,
    EvictionBudgets,
    TakenAway,
    UnknownNodes,
    lose_any,
    lose_each,
    nodes_with,
    taken_away,
)
from scheduler_core.whatif.workloads import owner_kind
from tests.scheduler_core.whatif.clusters import (
    Manifest,
    budget,
    cluster_of,
    node,
    pod,
    state_of,
    with_devices,
)

WEB = "ReplicaSet/web"
ZONE = "topology.kubernetes.io/zone"


def _sandbox(*objects: Manifest) -> Fork:
    return Fork(cluster_of(objects).scheduler)


def lose(fork: Fork, nodes: list[str]) -> TakenAway:
    return taken_away(fork, LOSS, nodes)


def drain(fork: Fork, nodes: list[str]) -> TakenAway:
    return taken_away(fork, DRAIN, nodes)


def _outcomes(answer: Any) -> dict[str, tuple[str, str | None]]:
    return {item.pod.removeprefix("default/"): (item.outcome, item.node) for item in answer.pods}


def test_pods_of_a_lost_node_are_followed_through_their_owners() -> None:
    ending = pod("ending", on="a", owner=WEB)
    ending["metadata"]["deletionTimestamp"] = "2025-01-01T00:00:00Z"
    fork = _sandbox(
        node("a"), node("b", cpu="2"),
        pod("web-1", on="a", owner=WEB), pod("web-2", on="a", owner=WEB, cpu="2"),
        pod("bare", on="a", cpu="100m"), pod("agent", on="a", owner="DaemonSet/agent", cpu="100m"),
        ending,
    )  # fmt: skip
    answer = lose(fork, ["a"])
    assert _outcomes(answer) == {
        "web-1": ("lands", "b"),
        "web-2": ("pending", None),
        "bare": ("lost", None),
        "agent": ("with-node", None),
        "ending": ("ending", None),
    }
    reason = next(item.reason for item in answer.pods if item.pod == "default/web-2")
    assert reason.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert taken_away_verdict(answer) == (
        "1 of its 3 pods finds another node, 1 finds none; default/bare has no owner that recreates it."
    )


def test_victims_of_a_displaced_pod_are_followed_too() -> None:
    fork = _sandbox(
        node("a"), node("b", cpu="2"), node("c", cpu="1"),
        pod("high", on="a", owner=WEB, cpu="2", priority=100),
        pod("low-1", on="b", owner="ReplicaSet/low"), pod("low-2", on="b", owner="ReplicaSet/low"),
    )  # fmt: skip
    answer = lose(fork, ["a"])
    found = _outcomes(answer)
    assert found["high"] == ("lands", "b")
    assert sorted([found["low-1"], found["low-2"]], key=str) == [("lands", "c"), ("pending", None)]
    assert {item.because for item in answer.preempted} == {"default/high"}
    assert not answer.is_harmless


def test_a_drain_waits_for_budgets_that_come_back_and_says_which_one_holds() -> None:
    labels = {"app": "web"}
    webs = [pod(f"web-{index}", on="a", owner=WEB, labels=labels) for index in range(3)]
    roomy = _sandbox(node("a"), node("b"), *webs, budget("web", 1, app="web"))
    assert {item.outcome for item in drain(roomy, ["a"]).pods} == {"lands"}
    # The first one to leave finds no node, and its budget never comes back.
    tight = _sandbox(node("a"), node("b", cpu="500m"), *webs, budget("web", 1, app="web"))
    answer = drain(tight, ["a"])
    assert [item.outcome for item in answer.pods] == ["pending", "blocked", "blocked"]
    assert "1 node(s) were unschedulable" in answer.pods[0].reason
    assert "The disruption budget web allows no disruption now." in answer.pods[1].reason
    spent = _sandbox(node("a"), node("b"), *webs, budget("web", 0, app="web"))
    assert {item.outcome for item in drain(spent, ["a"]).pods} == {"blocked"}
    assert {item.outcome for item in lose(spent, ["a"]).pods} == {"lands"}, "a loss asks no budget"


def test_a_pod_with_two_budgets_cannot_be_evicted() -> None:
    fork = _sandbox(
        node("a"), node("b"), pod("web-1", on="a", owner=WEB, labels={"app": "web"}),
        budget("one", 5, app="web"), budget("two", 5, app="web"),
    )  # fmt: skip
    (told,) = drain(fork, ["a"]).pods
    assert told.outcome == "blocked"
    assert "more than one PodDisruptionBudget" in told.reason


def test_a_node_that_is_not_there_is_named_and_nothing_is_changed() -> None:
    fork = _sandbox(node("a"), pod("web-1", on="a"))
    before = state_of(fork)
    with pytest.raises(UnknownNodes, match="there is no node b, c"):
        lose(fork, ["a", "b", "c"])
    assert state_of(fork) == before


@pytest.mark.parametrize("seed", range(20))
def test_budgets_that_refuse_an_eviction_now_are_told_beside_a_map_of_losses(seed: int) -> None:
    objects = _random_cluster(seed)
    answer = answer_question(cluster_of(objects), {"ask": "any-node"})
    said = {name for names in answer["heldUp"].values() for name in names}
    fork = _sandbox(*objects)
    cache = fork.scheduler.cache
    budgets = EvictionBudgets(cache.listers.all("PodDisruptionBudget"))
    bare = [one for one in cache.pods_in_order() if owner_kind(one) != "DaemonSet"]
    assert said == {cache.node_name_of(one.uid) for one in bare if budgets.refusal(one)}
    assert len(answer["heldUp"]) == sum("has to wait for" in line["text"] for line in answer["lines"])


def _random_cluster(seed: int) -> list[Manifest]:
    draw = random.Random(seed)
    nodes = [
        node(f"n{index}", cpu=str(draw.randint(2, 5)), zone=draw.choice("abc"))
        for index in range(draw.randint(2, 7))
    ]
    free = {item["metadata"]["name"]: 10 * int(item["status"]["allocatable"]["cpu"]) for item in nodes}
    pods = []
    for index in range(draw.randint(3, 22)):
        app, tenths, name = draw.choice("xyz"), draw.randint(2, 15), draw.choice(list(free))
        if tenths > free[name]:
            continue  # Its kubelet would refuse it.
        free[name] -= tenths
        made = pod(
            f"p{index}",
            cpu=f"{tenths}00m",
            on=name,
            owner=draw.choice([f"ReplicaSet/{app}", f"ReplicaSet/{app}", "DaemonSet/d", ""]),
            priority=draw.choice([0, 0, 0, 10]),
            labels={"app": app},
        )
        if draw.random() < 0.3:
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
            terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            made["spec"]["affinity"] = {"podAntiAffinity": terms}
        pods.append(made)
    return [*nodes, *pods, budget("x", draw.randint(0, 2), app="x")]


@pytest.mark.parametrize("seed", range(30))
def test_an_answer_does_not_depend_on_the_questions_before_it_and_leaves_no_trace(seed: int) -> None:
    objects = _random_cluster(seed)
    fork = _sandbox(*objects)
    before = state_of(fork)
    together = list(lose_any(fork))
    names = fork.nodes_in_order()
    drain(fork, names[:2])
    assert state_of(fork) == before
    alone = [lose(_sandbox(*objects), [name]) for name in names]
    assert together == alone


@pytest.mark.parametrize("seed", range(30))
def test_a_loss_is_what_a_cluster_without_these_nodes_decides(seed: int) -> None:
    """Proof by a run of its own: the cluster made without the nodes, their pods submitted to its scheduler."""
    objects = _random_cluster(seed)
    for manifest in objects:
        if manifest["kind"] == "Pod":
            manifest["spec"]["priority"] = 0
    fork = Fork(cluster_of(objects, first_of_ties=True).scheduler)
    asked = lose(fork, ["n0", "n1"] if seed % 2 else ["n0"])
    # The map of all nodes and the table of zones are proved as the one question is.
    of_zones = [answer for _, answer in lose_each(fork, ZONE)]
    assert of_zones
    for answer in (asked, *lose_any(fork), *of_zones):
        _is_what_a_cluster_without_these_nodes_decides(objects, answer)


def _is_what_a_cluster_without_these_nodes_decides(objects: list[Manifest], answer: TakenAway) -> None:
    gone = set(answer.nodes)
    staying = [
        manifest
        for manifest in objects
        if manifest["metadata"]["name"] not in gone and manifest.get("spec", {}).get("nodeName") not in gone
    ]
    simulation = cluster_of(staying, first_of_ties=True)
    moving = [item for item in answer.pods if item.outcome in ("lands", "pending")]
    manifests = {f"default/{item['metadata']['name']}": item for item in objects if item["kind"] == "Pod"}
    for item in moving:
        again = prepare(manifests[item.pod])
        del again["spec"]["nodeName"]
        simulation.submit(WriteObject(again))
        simulation.run_until_idle()
    for item in moving:
        namespace, _, name = item.pod.partition("/")
        decided = simulation.world.pod(namespace, name)
        assert decided is not None
        assert (decided.node_name or None) == item.node, item.pod


def test_nodes_of_a_zone_are_found_by_their_label_and_any_node_is_summed_up() -> None:
    fork = _sandbox(
        node("a1", zone="a"), node("b1", zone="b"), node("a2", zone="a"), pod("web-1", on="b1", owner=WEB, cpu="3"),
        pod("web-2", on="a1", owner=WEB, cpu="4"), pod("web-3", on="a2", owner=WEB, cpu="4"),
    )  # fmt: skip
    assert sorted(nodes_with(fork, "topology.kubernetes.io/zone", "a")) == ["a1", "a2"]
    answers = list(lose_any(fork))
    assert any_node_verdict(answers) == (
        "Losing any one of the 3 nodes leaves pods without a node; none can be lost without harm."
    )


def test_nodes_that_strand_pods_that_harm_otherwise_and_that_do_no_harm_are_each_counted() -> None:
    cluster = [node("a", cpu="4"), node("b", cpu="3"), node("c", cpu="3"), pod("bare", on="b")]
    assert any_node_verdict([]) == "There is no node to lose."
    answers = list(lose_any(_sandbox(*cluster, pod("web", on="a", owner=WEB, cpu="4"))))
    assert any_node_verdict(answers) == (
        "Losing a, 1 of the 3 nodes, leaves pods without a node;"
        " the loss of 1 more preempts, holds back or loses pods; 1 can be lost without harm."
    )


@pytest.mark.parametrize(("n_big", "said"), [(1, "1 pod"), (2, "2 pods")])
def test_a_zone_that_cannot_be_lost_is_said_with_the_pods_it_leaves(n_big: int, said: str) -> None:
    pods = [pod(f"web-{n}", on=f"a{n}", owner=WEB, cpu="4") for n in range(n_big)]
    answers = {
        "a": lose(
            _sandbox(*(node(f"a{n}") for n in range(n_big)), *pods, pod("bare", on="a0")),
            ["a0", "a1"][:n_big],
        )
    }
    label = "topology.kubernetes.io/zone"
    assert any_domain_verdict(label, answers) == f"No zone can be lost: even a leaves {said} without a node."
    answers["b"] = lose(_sandbox(node("b0")), ["b0"])
    assert any_domain_verdict(label, answers) == f"1 of 2 zones can be lost; a leaves {said} without a node."


def test_harm_that_leaves_no_pod_pending_is_told_by_the_number_of_nodes() -> None:
    answers = list(
        lose_any(_sandbox(node("a"), node("b"), pod("web", on="a", owner=WEB), pod("bare", on="b")))
    )
    assert any_node_verdict(answers) == (
        "Whichever of the 2 nodes is lost, every pod that is recreated finds a node;"
        " the loss of 1 of them preempts, holds back or loses pods."
    )


def test_a_node_that_is_named_twice_goes_once() -> None:
    objects = (
        node("a"),
        node("b"),
        pod("web-1", on="a", owner=WEB),
        pod("agent", on="a", owner="DaemonSet/agent"),
    )
    for ask in (drain, lose):
        assert ask(_sandbox(*objects), ["a", "a"]) == ask(_sandbox(*objects), ["a"])


@pytest.mark.parametrize("seed", range(30))
def test_every_claim_of_a_drain_is_proved_in_a_cluster_of_its_own(seed: int) -> None:
    """The cluster as the drain leaves it, made anew: each pod is where its claim says, and for the reason it says."""
    objects = _random_cluster(seed)
    for manifest in objects:
        if manifest["kind"] == "Pod":
            manifest["spec"]["priority"] = 0
    gone = ["n0", "n1"] if seed % 2 else ["n0"]
    (allowed,) = (
        item["status"]["disruptionsAllowed"] for item in objects if item["kind"] == "PodDisruptionBudget"
    )
    answer = drain(Fork(cluster_of(objects, first_of_ties=True).scheduler), gone)
    manifests = {f"default/{item['metadata']['name']}": item for item in objects if item["kind"] == "Pod"}
    assert [item.pod for item in answer.pods if item.origin not in gone] == []
    assert {item.pod for item in answer.pods} == {
        key for key, item in manifests.items() if item["spec"]["nodeName"] in gone
    }
    evicted = {item.pod: item for item in answer.pods if item.outcome in ("lands", "pending", "lost")}
    after = [_drained(item, gone, evicted) for item in objects]
    for item in answer.pods:
        kind = (manifests[item.pod]["metadata"].get("ownerReferences") or [{"kind": ""}])[0]["kind"]
        assert (item.outcome == "with-node") == (kind == "DaemonSet")
        assert item.outcome != "lost" or not kind
        if item.outcome == "blocked":
            stranded = sum(
                one.outcome != "lands" and manifests[one.pod]["metadata"]["labels"]["app"] == "x"
                for one in evicted.values()
            )
            assert manifests[item.pod]["metadata"]["labels"]["app"] == "x" and stranded >= allowed
        if item.outcome in ("lands", "pending"):
            # A pod without a node finds none in the end either; one that landed fits there beside all others.
            assert _lands_in(after, manifests[item.pod], item.node) == (item.outcome == "lands"), item


def _drained(manifest: Manifest, gone: list[str], evicted: dict[str, Any]) -> Manifest | None:
    if manifest["kind"] == "Node" and manifest["metadata"]["name"] in gone:
        return {**manifest, "spec": {"unschedulable": True}}
    item = evicted.get(f"default/{manifest['metadata']['name']}") if manifest["kind"] == "Pod" else None
    if item is None:
        return manifest
    return None if item.node is None else {**manifest, "spec": {**manifest["spec"], "nodeName": item.node}}


def _lands_in(after: list[Manifest | None], manifest: Manifest, node_name: str | None) -> bool:
    """Whether a scheduler of its own gives the pod a node, or the one node named, beside all others."""
    name = manifest["metadata"]["name"]
    others = [
        item
        for item in after
        if item is not None and (item["kind"] != "Pod" or item["metadata"]["name"] != name)
    ]
    simulation = cluster_of(others, first_of_ties=True)
    again = prepare(manifest)
    del again["spec"]["nodeName"]
    if node_name is not None:
        again["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node_name}
    simulation.submit(WriteObject(again))
    simulation.run_until_idle()
    decided = simulation.world.pod("default", name)
    return decided is not None and bool(decided.node_name)


@pytest.mark.parametrize(
    "question", [{"ask": "any-domain", "label": "rack"}, {"ask": "lose", "label": "rack=1"}]
)
def test_nodes_without_the_label_are_told_where_its_values_are_lost(question: dict[str, str]) -> None:
    racks = [node("a", rack="1"), node("b", rack="2")]
    told = "1 of 3 nodes carries no rack, so no loss takes it away: c."
    lines = answer_question(cluster_of([*racks, node("c")]), question)["lines"]
    assert [line["tone"] for line in lines if line["text"] == told] == ["warning"], lines
    assert "carries no" not in json.dumps(answer_question(cluster_of(racks), question))


def test_a_pod_is_made_anew_with_claims_of_its_templates() -> None:
    run = run_scenario(load_scenario(scenario_of_dump(with_devices())))
    [on] = [stored.typed.node_name for stored in run.simulation.world.all("Pod")]
    fork = Fork(run.simulation.scheduler)
    for how in (DRAIN, LOSS):
        assert _outcomes(taken_away(fork, how, [on])) == {"train": ("lands", {"a": "b", "b": "a"}[on])}
    room = answer_question(run.simulation, {"ask": "headroom", "workload": "ReplicaSet default/train"})
    assert room["figures"][0] == {"words": "more fit", "value": 1}
    assert "Insufficient" not in room["verdict"] and "cannot allocate all claims" in room["lines"][0]["note"]
