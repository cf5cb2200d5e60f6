"""Edits that place pending pods without a new node: each claim is proved by a cluster in which they were made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.errors import InvalidObject
from scheduler_core.whatif.answers import answer_question, answer_text
from tests.scheduler_core.whatif.clusters import Manifest, cluster_of, node, pod


def _with(manifest: Manifest, **spec: Any) -> Manifest:
    return manifest | {"spec": manifest["spec"] | spec}


def _pods(app: str, count: int, cpu: str, **spec: Any) -> list[Manifest]:
    return [
        _with(pod(f"{app}-{index}", cpu=cpu, owner=f"ReplicaSet/{app}", labels={"app": app}), **spec)
        for index in range(count)
    ]


def _nodes() -> list[Manifest]:
    gpu = _with(
        node("gpu", cpu="8") | {"spec": {}}, taints=[{"key": "gpu", "value": "x", "effect": "NoSchedule"}]
    )
    return [node("a"), node("b"), gpu]


def _bound(objects: Sequence[Manifest]) -> int:
    """Pending pods that the scheduler itself binds in this cluster."""
    simulation = cluster_of(objects)
    simulation.run_until_idle()
    there = {
        (item["metadata"]["namespace"], item["metadata"]["name"])
        for item in objects
        if item["kind"] == "Pod" and not item["spec"].get("nodeName")
    }
    return sum(
        bool(stored.typed.node_name)
        for stored in simulation.world.all("Pod")
        if (stored.typed.namespace, stored.typed.name) in there
    )


def _made(objects: Sequence[Manifest], workloads: Sequence[dict[str, Any]]) -> list[Manifest]:
    """The objects with the first edit of each workload made."""
    result = [dict(item) for item in objects]
    for workload in workloads:
        written = workload["edits"][0]["change"]["write"]
        for place, item in enumerate(result):
            key = f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"
            if written["kind"] == "Node" and item["kind"] == "Node":
                if item["metadata"]["name"] == written["metadata"]["name"]:
                    result[place] = written
            elif item["kind"] == "Pod" and key in workload["pods"]:
                result[place] = item | {"spec": written["spec"]}
    return result


def test_what_each_workload_and_all_together_win_is_what_a_run_gives() -> None:
    objects = [
        *_nodes(),
        *_pods("web", 5, "2"),
        *_pods("api", 3, "500m", nodeSelector={"disk": "ssd"}),
        *_pods("huge", 2, "24"),
    ]
    answer = answer_question(cluster_of(objects), {"ask": "backlog"})
    edits = answer["edits"]
    told = {item["workload"].split(",")[0]: item for item in edits["workloads"]}
    assert told["ReplicaSet default/web"]["edits"][0]["kind"] == "tolerate"
    assert told["ReplicaSet default/api"]["nPods"] == 3
    assert edits["without"] == ["ReplicaSet default/huge, 2 pods"]
    assert edits["together"] == 8 == _bound(_made(objects, edits["workloads"]))
    assert "With these 2 edits and no new node, 8 of 10 pending pods find a node." in [
        line["text"] for line in answer["lines"]
    ]
    assert edits["rest"] is not None and edits["rest"]["placed"] == 2
    # What is still to be bought is less than without the edits.
    assert edits["rest"]["cost"] < answer["cost"]


def test_a_request_is_lowered_so_far_that_all_pods_of_the_workload_fit() -> None:
    objects = [node("a", cpu="4"), node("b", cpu="4"), *_pods("web", 8, "5")]
    answer = answer_question(cluster_of(objects), {"ask": "backlog"})
    [told] = answer["edits"]["workloads"]
    best = told["edits"][0]
    assert (best["kind"], best["placed"]) == ("lower-request", 8)
    assert _bound(_made(objects, [told])) == 8
    amount = best["change"]["write"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    assert amount == "1"


def test_no_edit_takes_anything_from_a_pod_that_runs() -> None:
    running = [pod(f"r-{index}", cpu="2", on=name, priority=0) for index, name in enumerate("aabb")]
    objects = [node("a"), node("b"), *running, _with(pod("urgent", cpu="3"), priority=1000)]
    answer = answer_question(cluster_of(objects), {"ask": "backlog"})
    assert answer["edits"]["workloads"] == []
    assert answer["edits"]["without"] == ["Pod default/urgent"]


def test_one_workload_is_asked_about_alone() -> None:
    objects = [*_nodes(), *_pods("web", 5, "2"), *_pods("api", 3, "3")]
    asked = {"ask": "backlog", "workload": "ReplicaSet default/api"}
    answer = answer_question(cluster_of(objects), asked)
    assert {move["pod"].rpartition("-")[0] for move in answer["moves"]} == {"default/api"}
    assert "of ReplicaSet default/api" in answer["verdict"]
    assert "The 5 other pending pods are not asked about and take no room here." in answer["leavesOut"]
    assert answer_text(answer) == answer_text(answer_question(cluster_of(objects), asked))
    with pytest.raises(InvalidObject, match="has no pending pod"):
        answer_question(cluster_of(objects), {"ask": "backlog", "workload": "ReplicaSet default/none"})


groups = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.sampled_from(["500m", "1", "3", "6"]),
        st.sampled_from(
            [{}, {"nodeSelector": {"disk": "ssd"}}, {"nodeSelector": {"kubernetes.io/hostname": "a"}}]
        ),
    ),
    min_size=1,
    max_size=3,
)


@given(groups)
@settings(max_examples=30, deadline=None, derandomize=True)
def test_every_claim_is_proved_by_a_run(made: list[tuple[int, str, dict[str, Any]]]) -> None:
    objects = _nodes()
    for index, (count, cpu, spec) in enumerate(made):
        objects += _pods(f"w{index}", count, cpu, **spec)
    edits = answer_question(cluster_of(objects), {"ask": "backlog"})["edits"]
    if edits is None:
        assert _bound(objects) == sum(count for count, _, _ in made)
        return
    assert edits["together"] == _bound(_made(objects, edits["workloads"]))
    assert edits["together"] >= _bound(objects)
