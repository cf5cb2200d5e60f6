"""What plugins keep in columns, and say of many nodes at once, is what they say of a cluster they never saw before.

What they ought to say of it was recorded of the real scheduler (`tests/scheduler_core/conformance`).
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scheduler_core.cli.conformance_cycles import CaseCluster, decision_body
from scheduler_core.framework.attempt import Attempt, AttemptWorlds
from scheduler_core.framework.status import Code
from scheduler_core.objects.pod import Pod
from tests.scheduler_core.afresh import afresh
from tests.scheduler_core.recorded_clusters import RecordedCluster

pytestmark = pytest.mark.usefixtures("every_threshold")


KINDS = pytest.mark.parametrize("kind", ["resources", "devices", "domains", "storage"])
SEEDS = st.integers(0, 2**32)


@KINDS
@given(seed=SEEDS)
@settings(max_examples=12)
def test_what_is_kept_between_cycles_is_what_a_fresh_scheduler_finds(kind: str, seed: int) -> None:
    made = RecordedCluster(kind, seed)
    pods = [made.incoming() for _ in range(3)]
    for _ in range(8):
        pod = made.random.choice(pods)
        kept, fresh = made.cluster.schedule(pod), afresh(made.cluster).schedule(pod)
        assert decision_body(kept) == decision_body(fresh)
        for _ in range(made.random.randint(0, 2)):
            made.change()


def without_preemption(cluster: CaseCluster, pod: Pod) -> dict[str, Any]:
    """What every filter plugin alone says of each node: plugin -> node -> verdict."""
    algorithm, snapshot = cluster.algorithm, cluster.cache.snapshot()
    decision = algorithm.schedule(cluster.framework_for(pod), pod, snapshot, with_post_filter=False)
    found: dict[str, Any] = decision_body(decision)["filterByPlugin"]
    return {name: said.get("fails", {}) for name, said in found.items()}


def said_of_worlds(attempt: Attempt, world: AttemptWorlds, plugin: Any) -> list[Any]:
    state, nodes, rows = world.states.get(plugin.name), world.nodes, np.arange(len(world.nodes.base_rows))
    verdicts = plugin.filter(state, attempt.pod, nodes, rows)
    details = np.zeros(len(rows), np.int64) if verdicts.details is None else verdicts.details
    said: list[Any] = []
    for row, number, detail in zip(rows.tolist(), verdicts.codes.tolist(), details.tolist(), strict=True):
        reasons = plugin.reasons(state, attempt.pod, nodes, row, Code(number), detail) if number else ()
        said.append({"code": Code(number).name, "reasons": sorted(reasons)} if number else None)
    return said


@KINDS
@given(seed=SEEDS)
@settings(max_examples=12)
def test_worlds_in_lock_step_are_clusters_in_which_one_node_is_another(kind: str, seed: int) -> None:
    made = RecordedCluster(kind, seed)
    cluster, pod, random = made.cluster, made.incoming(), made.random
    # Upstream moves pods that it never counted: terminating ones, and those of a constraint with an empty selector.
    spread = pod.manifest["spec"].get("topologySpreadConstraints", ())
    assume(all(constraint.get("labelSelector") != {} for constraint in spread))
    snapshot = cluster.cache.snapshot()
    attempt = Attempt(cluster.framework_for(pod), pod, snapshot)
    before = without_preemption(cluster, pod)
    if not len(snapshot.order) or not attempt.run_pre_filter().is_success:
        return
    world = attempt.what_if(snapshot.order)
    nominated = [made.incoming() for _ in range(4)]
    ids = [cluster.cache.pods.add(other, findable=False) for other in nominated if not other.host_ports]
    for _ in range(3):
        come = random.random() < 0.5
        moves = []
        for row in range(len(snapshot.order)):
            there = world.nodes.pods_on(row)
            able = [
                pod_id for pod_id in (ids if come else there) if not cluster.cache.pods.terminating[pod_id]
            ]
            able = [pod_id for pod_id in able if not come or pod_id not in there]
            if able and random.random() < 0.8:
                moves.append((row, random.choice(able)))
        rows, pod_ids = np.array(moves, np.int64).reshape(-1, 2).T
        (world.add_pods if come else world.remove_pods)(rows, pod_ids)
    active = [plugin for _, plugin in attempt.framework.filters.active(attempt.skipped_filters)]
    said = {plugin.name: said_of_worlds(attempt, world, plugin) for plugin in active}
    for row, base_row in enumerate(snapshot.order.tolist()):
        other, name = afresh(cluster), snapshot.nodes.name(base_row)
        there, here = world.nodes.pods_on(row), snapshot.nodes.pods_on(base_row)
        for pod_id in [one for one in here if one not in there]:
            other.cache.remove_pod(cluster.cache.pods[pod_id].uid)
        for pod_id in [one for one in there if one not in here]:
            other.cache.add_pod(replace(cluster.cache.pods[pod_id], node_name=name))
        fresh = without_preemption(other, pod)
        for plugin in active:
            assert said[plugin.name][row] == fresh.get(plugin.name, {}).get(name), (plugin.name, name)
    # The cluster itself has not been touched.
    assert without_preemption(cluster, pod) == before
