"""Answers kept between cycles are the answers a scheduler that never saw the cluster before would give."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.cli.conformance_cycles import CaseCluster, decision_body
from scheduler_core.cluster.journal import Journal
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.plugins.node_resources_fit import NodeResourcesFit
from tests.scheduler_core.random_clusters import CLAIMS, RandomCluster
from tests.scheduler_core.stored import prepare

pytestmark = pytest.mark.usefixtures("every_threshold")


def _fresh(random_cluster: RandomCluster) -> CaseCluster:
    """The same cluster, met for the first time, in the same evaluation order."""
    cache = random_cluster.cluster.cache
    fresh = CaseCluster([], None, release=random_cluster.release)
    for name in cache.node_order():
        fresh.cache.set_node(cache.nodes.node(cache.nodes.row_of[name]))
    # Image sizes are the first teller's: who told first is part of the history a fresh cache does not have.
    fresh.cache.nodes.image_size_bytes.update(cache.nodes.image_size_bytes)
    for uid in cache.pod_order():
        pod = cache.pod(uid)
        assert pod is not None
        fresh.cache.add_pod(pod)
    for kind in ("DeviceClass", "ResourceSlice", "ResourceClaim"):
        for item in cache.listers.all(kind):
            fresh.cache.listers.set(kind, item.meta.namespace, item.meta.name, item)
    return fresh


@given(st.randoms(use_true_random=False), st.booleans())
def test_kept_answers_equal_fresh_ones_whatever_happens_between_cycles(random: Random, devices: bool) -> None:
    random_cluster = RandomCluster(random)
    pods: list[Pod] = [random_cluster.pod() for _ in range(3)]
    if devices:
        pods += [random_cluster.pod_with_a_claim(name) for name in CLAIMS]
    for _ in range(8):
        for _ in range(random.randint(0, 2)):
            random_cluster.change()
            if devices:
                random_cluster.change_devices()
        pod = random.choice(pods)
        kept = decision_body(random_cluster.cluster.schedule(pod))
        fresh = decision_body(_fresh(random_cluster).schedule(pod))
        assert kept == fresh


@pytest.mark.parametrize("point", ["filter", "score"])
def test_what_a_plugin_failed_to_answer_is_asked_again(monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    def node(name: str, cpu: str) -> dict[str, Any]:
        return {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "9"}},
        }  # fmt: skip

    def broken(*_: Any) -> Any:
        raise RuntimeError("broken")

    pod = pod_from(prepare({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]},
    }))  # fmt: skip
    cluster = CaseCluster([node("n1", "3"), node("n2", "2")], None)
    assert cluster.schedule(pod).node_name == "n1"
    _, _, _, changed = parse(prepare(node("n2", "4")))
    cluster.cache.set_node(changed)
    with monkeypatch.context() as patch:
        patch.setattr(NodeResourcesFit, point, broken)
        assert cluster.schedule(pod).error
    assert cluster.schedule(pod).node_name == "n2"


def test_a_journal_names_each_changed_row_once_and_in_order() -> None:
    journal = Journal()
    start = journal.position
    for row in (5, 2, 5, 9):
        journal.record(row)
    assert journal.since(start, 10) == [2, 5, 9]
    assert journal.since(journal.position, 10) == []


def test_a_journal_that_forgot_says_so() -> None:
    journal = Journal()
    for row in range(200_000):
        journal.record(row % 7)
    assert journal.since(0, 10**9) is None
    assert journal.since(journal.position - 3, 2) is None
