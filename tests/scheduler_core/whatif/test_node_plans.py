"""Nodes that are wanted or spare: never worse than the enumerated optimum by more than the gap, and proved by runs."""

from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.pod import pod_from
from scheduler_core.objects.prices import price_list_from, read_prices, shipped_prices
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif import consolidate
from scheduler_core.whatif.answers import answer_question
from tests.scheduler_core.whatif.clusters import Manifest, budget, cluster_of, node, pod
from tests.tables import table

TYPES = [
    {"name": "small", "cpu": "2", "memory": "8Gi", "price": 1.0},
    {"name": "large", "cpu": "5", "memory": "32Gi", "price": 2.2},
    {"name": "ssd", "cpu": "3", "memory": "16Gi", "price": 1.9, "labels": {"disk": "ssd"}},
]
Made = tuple[int, str, bool]
"""Of a pod: cpu in halves, the label its node must have, and whether it keeps off its like."""


def _pod(index: int, made: Made, *, on: str = "", owner: str = "ReplicaSet/web") -> Manifest:
    halves, disk, apart = made
    found = pod(
        f"p{index}", cpu=f"{halves * 500}m", on=on, owner=owner, labels={"app": f"{halves}-{disk}-{apart}"}
    )
    if disk:
        found["spec"]["nodeSelector"] = {"disk": disk}
    if apart:
        term = {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": found["metadata"]["labels"]},
        }
        found["spec"]["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        }
    return found


def _holds(nodes: Sequence[tuple[int, str]], pods: Sequence[Made]) -> bool:
    """Whether some way of placing all pods exists; nodes are (cpu in halves, disk). Tries every way."""
    ordered = sorted(pods, reverse=True)

    def place(index: int, free: list[int], there: list[list[Made]]) -> bool:
        if index == len(ordered):
            return True
        one = ordered[index]
        for at, (_, disk) in enumerate(nodes):
            if free[at] >= one[0] and (not one[1] or one[1] == disk) and not (one[2] and one in there[at]):
                free[at] -= one[0]
                there[at].append(one)
                if place(index + 1, free, there):
                    return True
                free[at] += one[0]
                there[at].pop()
        return False

    return place(0, [cpu for cpu, _ in nodes], [[] for _ in nodes])


made_pods = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from(["", "", "ssd"]), st.sampled_from([False, False, True])),
    min_size=1,
    max_size=5,
)


@given(made_pods, st.integers(0, 3))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_a_backlog_plan_is_never_worse_than_the_optimum_by_more_than_its_gap(
    pods: list[Made], halves: int
) -> None:
    there = node("here", cpu=f"{halves * 500}m")
    waiting = [_pod(index, made) for index, made in enumerate(pods)]
    answer = answer_question(cluster_of([there, *waiting]), {"ask": "backlog", "prices": TYPES})
    choices = [(2.2, 10, ""), (1.0, 4, ""), (1.9, 6, "ssd")]
    best = min(
        sum(kind[0] for kind in kinds)
        for number in range(len(pods) + 1)
        for kinds in combinations_with_replacement(choices, number)
        if _holds([(halves, ""), *((cpu, disk) for _, cpu, disk in kinds)], pods)
    )
    assert answer["nMoves"] == len(pods) and all(move["node"] for move in answer["moves"])
    assert answer["bound"] <= best + 1e-6 <= answer["cost"] + 2e-6
    assert answer["cost"] - best <= answer["gap"] + 1e-6
    _placed_by_a_scheduler_of_its_own([there, *(step["apply"] for step in answer["steps"]), *waiting])
    fewest = next(
        number
        for number in range(len(pods) + 1)
        for kinds in combinations_with_replacement(choices, number)
        if _holds([(halves, ""), *((cpu, disk) for _, cpu, disk in kinds)], pods)
    )
    if few := answer["fewest"]:
        assert few["bound"] <= fewest <= few["nodes"] <= len(answer["steps"])
        assert few["cost"] >= answer["bound"] - 1e-6
        _placed_by_a_scheduler_of_its_own([there, *(step["apply"] for step in few["steps"]), *waiting])
    else:
        assert fewest == len(answer["steps"]) <= 1


def test_fewer_and_dearer_nodes_stand_beside_the_cheapest() -> None:
    waiting = [pod(f"p{index}", cpu="2") for index in range(4)]
    prices = [
        {"name": "small", "cpu": "2", "memory": "8Gi", "price": 1.0},
        {"name": "huge", "cpu": "16", "memory": "64Gi", "price": 9.0},
    ]
    answer = answer_question(cluster_of([*waiting]), {"ask": "backlog", "prices": prices})
    assert (len(answer["steps"]), answer["cost"]) == (4, 4.0)
    few = answer["fewest"]
    assert (few["nodes"], few["bound"], few["cost"], few["types"]) == (1, 1, 9.0, {"huge": 1})
    assert "Fewest nodes instead: 1 × huge; no plan has fewer." in [line["text"] for line in answer["lines"]]


def _placed_by_a_scheduler_of_its_own(objects: list[Manifest]) -> None:
    simulation = cluster_of(objects)
    simulation.run_until_idle()
    pods = [stored.typed for stored in simulation.world.all("Pod")]
    assert all(one.node_name for one in pods), [one.key for one in pods if not one.node_name]


made_nodes = st.lists(st.tuples(st.integers(4, 10), st.sampled_from(["", "ssd"])), min_size=2, max_size=4)


@given(made_nodes, made_pods, st.randoms(use_true_random=False))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_fewer_nodes_save_no_less_than_the_optimum_but_the_gap(
    nodes: list[tuple[int, str]], pods: list[Made], draw: Any
) -> None:
    objects = [
        node(f"n{index}", cpu=f"{halves * 500}m", disk=disk) for index, (halves, disk) in enumerate(nodes)
    ]
    free = [halves for halves, _ in nodes]
    there: list[list[Made]] = [[] for _ in nodes]
    bound_pods: list[Made] = []
    for made in pods:
        fitting = [
            at
            for at, (_, disk) in enumerate(nodes)
            if free[at] >= made[0]
            and (not made[1] or made[1] == disk)
            and not (made[2] and made in there[at])
        ]
        if fitting:
            at = draw.choice(fitting)
            free[at] -= made[0]
            there[at].append(made)
            objects.append(_pod(len(bound_pods), made, on=f"n{at}"))
            bound_pods.append(made)
    answer = answer_question(cluster_of(objects), {"ask": "consolidate"})
    best = max(
        len(nodes) - len(kept)
        for number in range(len(nodes) + 1)
        for kept in combinations(nodes, number)
        if _holds(kept, bound_pods)
    )
    assert answer["saved"] <= best + 1e-6 <= answer["bound"] + 2e-6
    assert best - answer["saved"] <= answer["gap"] + 1e-6
    _every_step_is_possible(objects, answer)
    with mock.patch.object(consolidate, "MOST_COLUMNS", 0):  # nodes that take the same are counted together
        assert answer_question(cluster_of(objects), {"ask": "consolidate"})["bound"] >= best - 1e-6


def test_a_search_that_ends_at_its_limit_tells_what_it_found_and_which_limit_it_met(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    objects = [node(f"n{index}", cpu="4000m") for index in range(12)]
    objects += [pod(f"p{index}", on=f"n{index}", owner="ReplicaSet/web") for index in range(12)]
    whole = answer_question(cluster_of(objects), {"ask": "consolidate"})
    assert len(whole["steps"]) == 2 * 9 and "limit" not in whole
    monkeypatch.setattr(consolidate, "MOST_DECISIONS", 4)
    answer = answer_question(cluster_of(objects), {"ask": "consolidate"})
    # The third node has a pod of the first one by then.
    assert answer["steps"] == whole["steps"][: 2 * 3] and answer["bound"] == whole["bound"]
    assert answer["limit"] == {"decisions": 4, "untried": 9}
    assert answer["lines"][-1]["text"] == (
        "The search ended at its limit of 4 decisions: 9 of 12 nodes were not tried."
    )
    assert not [line for line in answer["lines"] if line["text"].endswith(("stay.", "stays."))]
    _every_step_is_possible(objects, answer)


def test_a_node_is_given_up_at_the_first_pod_that_is_hurt() -> None:
    objects = [
        node("a"), node("b", cpu="2"),
        *(pod(f"low-{index}", on="b", owner="ReplicaSet/low") for index in range(2)),
        *(pod(f"p{index}", on="a", owner="ReplicaSet/web", priority=10) for index in range(4)),
    ]  # fmt: skip
    answer = answer_question(cluster_of(objects), {"ask": "consolidate"})
    why = {line["text"].partition(" ")[0]: line["note"] for line in answer["lines"]}
    assert why["a"] == "default/p0 would preempt default/low-1."
    assert why["b"].startswith(
        "default/low-0 finds no other node: 0/2 nodes are available: 1 Insufficient cpu"
    )
    assert answer["decisions"] <= 3 * 3, "three orders; a preemption counts as two"


def test_a_callback_of_the_progress_can_end_the_question() -> None:
    objects = [node(f"n{index}") for index in range(6)]
    objects += [pod(f"p{index}", on=f"n{index}", owner="ReplicaSet/web") for index in range(6)]
    told: list[str] = []

    def report(done: int, total: int, what: str) -> None:
        told.append(what)
        if what.startswith("order 1 of 3: 2 "):
            raise TimeoutError

    with pytest.raises(TimeoutError):
        answer_question(cluster_of(objects), {"ask": "consolidate"}, report=report)
    assert "bounding what can be saved: solving" in told


def _every_step_is_possible(objects: list[Manifest], answer: dict[str, Any]) -> None:
    """Go through the moves one by one: where a pod lands there are the room, the label and no pod of its like."""
    nodes = {item["metadata"]["name"]: item for item in objects if item["kind"] == "Node"}
    where = {item["metadata"]["name"]: item["spec"]["nodeName"] for item in objects if item["kind"] == "Pod"}
    pods = {item["metadata"]["name"]: pod_from(item) for item in objects if item["kind"] == "Pod"}
    drained = [step["drain"] for step in answer["steps"] if "drain" in step]
    for number, name in enumerate(drained, start=1):
        for move in answer["moves"]:
            if move["step"] == number:
                own = move["pod"].partition("/")[2]
                to = move["node"] or move["onceDeleted"]
                assert where[own] == name == move["from"] and to not in drained[:number]
                where[own] = to
                beside = [pods[other] for other, at in where.items() if at == to]
                have = int(nodes[to]["status"]["allocatable"]["cpu"].removesuffix("m"))
                assert 500 <= sum(one.requests["cpu"] for one in beside) <= have, "in thousandths of a cpu"
                wanted = pods[own].manifest["spec"].get("nodeSelector", {})
                assert wanted.items() <= nodes[to]["metadata"]["labels"].items()
                if "affinity" in pods[own].manifest["spec"]:
                    assert sum(one.labels == pods[own].labels for one in beside) == 1
        assert name not in where.values()


def test_no_budget_is_broken_and_what_blocks_a_node_is_one_sentence() -> None:
    web = {"app": "web"}
    objects = [
        node("a"), node("b"), node("c", **{"node-role.kubernetes.io/control-plane": ""}), node("d"),
        pod("web-1", on="a", owner="ReplicaSet/web", labels=web), pod("bare", on="b"), budget("web", 0, app="web"),
    ]  # fmt: skip
    answer = answer_question(cluster_of(objects), {"ask": "consolidate"})
    assert answer["steps"] == [{"drain": "d"}, {"delete": {"kind": "Node", "name": "d"}}]
    why = {
        line["text"].removesuffix(" stays."): line["note"]
        for line in answer["lines"]
        if line["tone"] == "warning"
    }
    assert "would violate the pod's disruption budget" in why["a"] and "budget web" in why["a"]
    assert why["b"] == "default/bare has no owner that recreates it."
    assert why["c"] == "It is of the control plane."


def test_what_no_type_takes_is_told_and_the_rest_is_placed() -> None:
    objects = [node("a", cpu="1"), pod("huge", cpu="900"), pod("large", cpu="3"), pod("small", cpu="1")]
    answer = answer_question(cluster_of(objects), {"ask": "backlog", "prices": TYPES})
    assert answer["verdict"] == "1 node places 2 of 3 pending pods for $1.90 an hour; no plan costs less."
    (told,) = [line for line in answer["lines"] if line["tone"] == "bad"]
    assert told["text"] == "default/huge finds no node of the list." and "Insufficient cpu" in told["note"]


def test_new_nodes_carry_the_labels_taints_and_daemons_of_their_group() -> None:
    taint = {"key": "batch", "value": "", "effect": "NoSchedule"}
    there = node("a", cpu="1", pool="batch", **{"node.kubernetes.io/instance-type": "small"})
    there["spec"] = {"taints": [taint]}
    daemon = pod("agent-a", cpu="500m", on="a", owner="DaemonSet/agent")
    daemon["spec"]["tolerations"] = [{"operator": "Exists"}]
    waiting = pod("job", cpu="1800m")
    waiting["spec"] |= {"nodeSelector": {"pool": "batch"}, "tolerations": [{"operator": "Exists"}]}
    answer = answer_question(cluster_of([there, daemon, waiting]), {"ask": "backlog", "prices": TYPES})
    (made,) = [step["apply"] for step in answer["steps"]]
    assert made["metadata"]["labels"]["pool"] == "batch" and made["spec"]["taints"] == [taint]
    assert made["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "ssd", (
        "2 cpu are too few beside the daemon"
    )


def test_prices_are_read_from_yaml_and_csv_and_what_is_wrong_is_named() -> None:
    csv = "name,cpu,memory,price,labels,taints\nsmall,2,8Gi,1,disk=ssd;a=b,key=v:NoSchedule\n"
    (small,) = price_list_from(read_prices(csv), "prices").types
    assert (small.labels, small.taints) == (
        {"disk": "ssd", "a": "b"},
        ({"key": "key", "value": "v", "effect": "NoSchedule"},),
    )
    yaml = "types:\n- {name: small, cpu: 2, memory: 8Gi, price: 1, devices: {nvidia.com/gpu: 1}}\n"
    (small,) = price_list_from(read_prices(yaml), "prices").types
    assert small.allocatable == {"cpu": "2", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "1"}
    assert len(shipped_prices().types) > 5


_HEAD = "name,cpu,memory,price\n"
_ONE = "types: [{name: x, cpu: 1, memory: 1Gi, price: 1, "


@pytest.mark.parametrize(
    ("text", "said"), table(__file__, "a_wrong_row_of_a_price_list_is_named_with_its_value")
)
def test_a_wrong_row_of_a_price_list_is_named_with_its_value(text: str, said: str) -> None:
    with pytest.raises(InvalidObject) as error:
        price_list_from(read_prices(text), "prices")
    assert str(error.value).startswith(said)


@pytest.mark.parametrize("text", table(__file__, "a_price_list_as_spreadsheets_save_it_is_read"))
def test_a_price_list_as_spreadsheets_save_it_is_read(text: str) -> None:
    (one,) = price_list_from(read_prices(text), "prices").types
    assert (one.name, one.price, one.allocatable) == ("x", 1.0, {"cpu": "2", "memory": "8Gi", "pods": "110"})


def test_no_pod_pending_needs_no_node() -> None:
    simulation: Simulation = cluster_of([node("a"), pod("web", on="a")])
    assert answer_question(simulation, {"ask": "backlog"})["verdict"] == "No pod is pending."
