"""Filling a cache at once and putting the pods in one by one come to the same."""

import dataclasses
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.cluster.cache import AssumedPod, Cache
from scheduler_core.objects.node import ContainerImage, Node
from scheduler_core.objects.pod import HostPort
from tests.scheduler_core.recorded_clusters import RecordedCluster

ZONE = "topology.kubernetes.io/zone"
POD_COLUMNS = ("row", "priority", "start_ns", "class_id", "terminating", "has_ports", "arrival")
NODE_COLUMNS = (
    *("allocatable", "requested", "non_zero", "allowed_pods", "n_pods", "alive", "unschedulable"),
    *("taint_list_id", "feature_list_id"),
)


def with_the_nodes_of(original: Cache, *, at_once: bool, labels_first: bool = False) -> Cache:
    cache = Cache()
    if labels_first:
        cache.nodes.label_column(ZONE)
    nodes: list[Node] = []
    for name in original.node_order()[1:]:  # the pods of the first one come to a node that is not there
        node = original.node(name)
        assert node is not None
        images = (ContainerImage(("i", f"i:{name}"), 5),) if len(nodes) % 3 == 0 else ()
        nodes.append(dataclasses.replace(node, images=images))
    if at_once:
        cache.add_nodes(nodes)
    else:
        for node in nodes:
            cache.set_node(node)
    return cache


def contents(cache: Cache) -> dict[str, Any]:
    pods, nodes = cache.pods, cache.nodes
    n_pods, n_rows = len(pods._pods), nodes.n_rows
    found: dict[str, Any] = {name: getattr(pods, name)[:n_pods].tolist() for name in POD_COLUMNS}
    found |= {name: getattr(nodes, name)[..., :n_rows].tolist() for name in NODE_COLUMNS}
    return found | {
        "zones": nodes.label_column(ZONE)[:n_rows].tolist(),
        "images": (nodes.image_nodes, nodes.image_size_bytes),
        "changed": [journal.since(0, 10_000) for journal in (nodes.spec_journal, nodes.usage_journal)],
        "requests": pods.requests[:, :n_pods].tolist(),
        "items": pods.request_items,
        "ids": pods.id_of,
        "order": cache.pod_order(),
        "names": cache.vocabulary.resources.values,
        "ports": [column[:n_rows].tolist() for column in nodes._ports_in_use.values()],
        "classes": cache.matching._pods_of_class,
        "carriers": {key: item.rows for key, item in cache.matching.carriers._all.items() if item.rows},
        "assumed": cache.assumed,
    }


@given(st.integers(0, 2**32), st.booleans(), st.booleans())
@settings(max_examples=30)
def test_filling_equals_putting_in_one_by_one(seed: int, reuses_ids: bool, labels_first: bool) -> None:
    rng = random.Random(seed)
    original = RecordedCluster("domains", seed).cluster.cache
    pods = []
    for pod in original.pods_in_order():
        if rng.random() < 0.3:
            pod = dataclasses.replace(pod, host_ports=(HostPort("", "TCP", rng.choice((80, 443))),))
        if rng.random() < 0.2:
            pod = dataclasses.replace(pod, requests={**pod.requests, "example.com/gpu": rng.randint(0, 2)})
        pods.append(pod)
    # They were assumed one after the other, whichever nodes they are on.
    in_turn = rng.sample(pods, len(pods) // 5)
    assumed = {pod.uid: AssumedPod(pod.node_name, True, 5) for pod in in_turn}
    one_by_one = with_the_nodes_of(original, at_once=False)
    at_once = with_the_nodes_of(original, at_once=True, labels_first=labels_first)
    if reuses_ids and pods:
        for cache in (one_by_one, at_once):
            cache.add_pod(pods[0])
            cache.remove_pod(pods[0].uid)
    for pod in pods:
        held = assumed.get(pod.uid)
        if held is None:
            one_by_one.add_pod(pod)
        else:
            one_by_one.assume(pod, held.node_name)
            one_by_one.assumed[pod.uid] = held
    at_once.fill(pods, assumed)
    assert list(at_once.assumed) == [pod.uid for pod in in_turn]
    assert contents(at_once) == contents(one_by_one)
    names = one_by_one.node_order()
    assert at_once.node_order() == names
    for name in names:
        row = at_once.nodes.row_of[name]
        assert at_once.nodes.pods_on(row) == one_by_one.nodes.pods_on(one_by_one.nodes.row_of[name])


@given(st.integers(0, 2**32), st.data())
@settings(max_examples=30)
def test_a_copy_is_the_same_and_changes_by_itself(seed: int, data: st.DataObject) -> None:
    original = RecordedCluster("domains", seed).cluster.cache
    pods = original.pods_in_order()
    for pod in data.draw(st.permutations(pods))[: len(pods) // 3]:
        original.remove_pod(pod.uid)
    nominated = original.pods.add(pods[0], findable=False) if pods else None
    copy = original.copy()
    if nominated is not None:  # it stands on no node, and its place is not taken over
        original.pods.remove(nominated)
    before = contents(original)
    same = contents(copy)
    assert [key for key in same if same[key] != before[key]] in ([], ["changed"])
    assert copy.node_order() == original.node_order()
    for name in original.node_order():
        row = original.nodes.row_of[name]
        assert copy.nodes.pods_on(row) == original.nodes.pods_on(row)
    for pod in data.draw(st.permutations(copy.pods_in_order()))[:3]:
        copy.remove_pod(pod.uid)
        copy.add_pod(dataclasses.replace(pod, meta=pod.meta._replace(uid=f"{pod.uid}-again")))
    for name in copy.node_order()[:1]:
        copy.remove_node(name)
    assert contents(original) == before
