"""What pages draw of a moment of a large cluster: the same as pod by pod, from a hundredth of it."""

import json
from typing import Any

import pytest

from playground.clusters.packed import pack
from playground.scenarios.models import Moment
from playground.scenarios.selectors import moment
from playground.scenarios.services.recording import MOST_CARDS, brief_of, moment_row
from playground.web.scenarios import past_board
from tests.clusters.builders import make_cluster
from tests.web.cases import by_attribute

ZONE = "topology.kubernetes.io/zone"


def pod(number: int, **said: Any) -> dict[str, Any]:
    return {
        "namespace": "default", "name": f"p{number}", "uid": f"u{number}", "phase": "Running", "node_name": "",
        "nominated_node": "", "priority": 0, "priority_class": "batch", "cpu_milli": 100, "memory_bytes": 1,
        "extended": {}, "terminating": False, "created_ns": number, "waits_for": "",
    } | said  # fmt: skip


def state_of(n_nodes: int) -> dict[str, Any]:
    """Two zones; bound, finished, reserved and nominated pods; ten that wait."""
    nodes = [
        {
            "name": f"n{number}", "labels": {ZONE: f"z{number % 2}", "other": "x"}, "zone": f"z{number % 2}",
            "unschedulable": number == 3,
            "ready": number != 5, "cpu_milli": 1000, "memory_bytes": 10, "max_pods": 9, "extended": {}, "taints": [],
        }
        for number in range(n_nodes)
    ]  # fmt: skip
    pods = [pod(number, node_name=f"n{number % n_nodes}") for number in range(3 * n_nodes)]
    pods.append(pod(10_001, node_name="n0", phase="Succeeded", cpu_milli=500))
    pods.append(pod(10_002, phase="Pending", reserved="n2", cpu_milli=300))
    pods.append(pod(10_003, phase="Pending", nominated_node="n4", cpu_milli=300))
    waits = [pod(20_000 + number, phase="Pending", priority_class=f"c{number}") for number in range(10)]
    queue = {"active": [{"pod": f"default/{item['name']}", "priority": 1} for item in waits], "backoff": []}
    return {
        "cycle": 7, "clock_ns": 5 * 10**9, "nodes": nodes, "pods": pods + waits, "queue": queue,
        "classes": [["batch", 100, False], ["c3", 1000, True]],
    }  # fmt: skip


view_past = by_attribute(past_board.view_past)


@pytest.mark.parametrize("n_nodes", [MOST_CARDS, MOST_CARDS + 1])
def test_what_is_drawn_of_a_large_cluster_is_what_its_pods_say(n_nodes: int) -> None:
    state = state_of(n_nodes)
    board = view_past(state)
    even = (n_nodes + 1) // 2
    assert [(zone.name, zone.n_nodes, zone.n_pods) for zone in board.look.zones] == [
        ("z0", even, 3 * even + 1),
        ("z1", n_nodes - even, 3 * (n_nodes - even)),
    ]
    assert board.look.sums[0].of == f"{(300 * n_nodes + 300) / 1000:g} of {n_nodes}"
    assert (board.n_nodes, board.n_pods, board.n_queued) == (n_nodes, len(state["pods"]), 10)
    active = next(lane for lane in board.lanes if lane.key == "active")
    assert (active.count, len(active.items), active.items[3].item.priority_class) == (10, 6, "c3")
    assert board.look.form == "rows"
    if n_nodes > MOST_CARDS:
        assert view_past(json.loads(json.dumps(brief_of(state)))) == board


@pytest.mark.django_db
def test_the_brief_of_a_large_moment_is_kept_beside_it_and_read_in_its_place(
    django_assert_num_queries: Any,
) -> None:
    cluster = make_cluster()
    states = {1: state_of(MOST_CARDS), 2: state_of(MOST_CARDS + 1)}
    small, large = (
        moment_row(number, state, cluster=cluster, generation=cluster.generation)
        for number, state in states.items()
    )
    Moment.objects.bulk_create([small, large])
    assert not small.brief and len(pack(large.brief)) < len(pack(large.data)) / 3
    for row, cycle in ((small, 1), (large, 2)):
        with django_assert_num_queries(1):
            found, note = moment(cluster=cluster, cycle=cycle)
        assert found == (row.brief or row.data) and note == ""
