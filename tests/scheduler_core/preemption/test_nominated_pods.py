"""Nominated pods as columns follow the nominator, whatever comes and goes."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.cluster.cache import Cache
from scheduler_core.cluster.nominator import NominatedPods, Nominator
from scheduler_core.objects.node import node_from
from scheduler_core.objects.pod import Pod, pod_from

pytestmark = pytest.mark.usefixtures("every_threshold")


def pod(number: int, priority: int) -> Pod:
    metadata = {"name": f"p{number}", "uid": f"p{number}", "namespace": "default"}
    return pod_from({"metadata": metadata, "spec": {"priority": priority}})


@given(st.integers(0, 2**32))
@settings(max_examples=50)
def test_columns_hold_exactly_the_pods_nominated_to_a_known_node(seed: int) -> None:
    random = Random(seed)
    cache, nominator = Cache(), Nominator()
    columns = NominatedPods(nominator, cache.nodes)
    for _ in range(40):
        for _ in range(random.randint(0, 3)):
            pick, node_name = random.random(), f"n{random.randint(0, 3)}"
            if pick < 0.5:
                nominator.add(pod(random.randint(0, 9), random.choice((0, 5))), node_name)
            elif pick < 0.8:
                nominator.remove(f"p{random.randint(0, 9)}")
            elif pick < 0.9:
                cache.set_node(node_from({"metadata": {"name": node_name}}))
            else:
                cache.remove_node(node_name)
        incoming = pod(random.randint(0, 9), random.choice((0, 3, 9)))
        columns.refresh(cache.snapshot().generation)
        counted = columns.count_for(incoming)
        rows, pod_ids = columns.rows[counted].tolist(), columns.pod_ids[counted].tolist()
        assert sorted(
            (row, cache.pods[pod_id].uid) for row, pod_id in zip(rows, pod_ids, strict=True)
        ) == sorted(
            (cache.nodes.row_of[name], other.uid)
            for name in nominator.nodes()
            if cache.node(name) is not None
            for other in nominator.pods_for(name)
            if other.priority >= incoming.priority and other.uid != incoming.uid
        )
        turns = columns.turns[counted].tolist()
        assert len(set(zip(rows, turns, strict=True))) == len(rows)
        # Nothing else finds them: they are not in the cluster.
        assert not cache.pods.id_of
