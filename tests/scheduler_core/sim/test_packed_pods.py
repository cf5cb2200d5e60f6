"""Pods of a checkpoint that are read only when asked for count as if each had been read."""

import json
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.cluster.cache import Cache
from scheduler_core.cluster.matching import Matching
from scheduler_core.cluster.selection import PodSelector
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.labels import selector_from_labels
from scheduler_core.sim.manifests import pack
from scheduler_core.sim.past import PackedPods, PodThen
from tests.scheduler_core.sim.builders import make_node
from tests.scheduler_core.sim.test_manifests import pods

NODES = [make_node(name, cpu="64") for name in ("n1", "n2")]


@st.composite
def bound_pods(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Of one name each, all with a node; that of some is gone."""
    found = {
        (pod["metadata"]["namespace"], pod["metadata"]["name"]): pod
        for pod in draw(st.lists(pods(), max_size=12))
    }
    for number, pod in enumerate(found.values()):
        pod["metadata"]["uid"] = f"u{number}"
        pod["spec"]["nodeName"] = draw(st.sampled_from(["n1", "n2", "gone"]))
        if draw(st.booleans()):
            ports = [{"containerPort": 80, "hostPort": draw(st.integers(80, 81))}]
            pod["spec"]["containers"] = [
                {**container, "ports": ports} for container in pod["spec"]["containers"]
            ]
    return list(found.values())


def of_nodes() -> Cache:
    cache = Cache()
    for node in NODES:
        cache.set_node(parse(node).typed)
    return cache


def columns(cache: Cache) -> dict[str, Any]:
    """All that plugins can read of where pods stand, with names for numbers that follow from the order of reading."""
    n_rows, n_pods = cache.nodes.n_rows, len(cache.pods)
    rows, ids = slice(0, n_rows), slice(0, n_pods)
    nodes, table, matching, vocabulary = cache.nodes, cache.pods, cache.matching, cache.vocabulary
    resources = [vocabulary.resources[number] for number in range(len(vocabulary.resources))]
    absent = matching.carriers.absence_ids(np.arange(n_pods)).tolist()
    return {
        "requested": dict(zip(resources, nodes.requested[:, rows].tolist(), strict=False)),
        "non_zero": nodes.non_zero[:, rows].tolist(),
        "n_pods": nodes.n_pods[rows].tolist(),
        "alive": nodes.alive[rows].tolist(),
        "pods_on": [nodes.pods_on(row) for row in range(n_rows)],
        "ports": {
            vocabulary.ports[port]: nodes.port_in_use(port)[rows].tolist()
            for port in range(len(vocabulary.ports))
        },
        **{
            name: getattr(table, name)[ids].tolist()
            for name in ("row", "priority", "start_ns", "terminating", "has_ports", "arrival")
        },
        "classes": [vocabulary.pod_classes[number] for number in table.class_id[ids].tolist()],
        "requests": dict(zip(resources, table.requests[:, ids].tolist(), strict=False)),
        "items": [
            {(resources[number], amount) for number, amount in items} for items in table.request_items[ids]
        ],
        "below": [table.has_below(priority) for priority in (0, 1, 6)],
        "selected": [selected(matching, live_only).tolist() for live_only in (False, True)],
        "absent": [None if found < 0 else matching.carriers.absence_terms[found] for found in absent],
        "pods": [{**vars(pod), "read": None} for pod in cache.pods_in_order()],
    }


def selected(matching: Matching, live_only: bool) -> Any:
    part = PodSelector(selector_from_labels({"a": "x"}), ("default",))
    return matching.selection((part,), live_only=live_only).column[: matching.nodes.n_rows]


@given(bound_pods(), st.data())
def test_they_count_as_if_each_had_been_read(manifests: list[dict[str, Any]], data: st.DataObject) -> None:
    document = json.loads(json.dumps(pack([*NODES, *manifests])))
    packed = PackedPods(document)
    order = data.draw(st.permutations(packed.places_of_pods.tolist()))
    read, unread = of_nodes(), of_nodes()
    read.fill([parse(packed.manifest(place)).typed for place in order], {})
    # In two lots, and the second where pods are being counted already.
    n_first = data.draw(st.integers(0, len(order)))
    for lot in (order[:n_first], order[n_first:]):
        at = np.array(lot, np.int64)
        unread.fill_columns(packed.unread(at), packed.node_names(at))
        selected(unread.matching, live_only=True)
    assert columns(unread) == columns(read)
    for place in data.draw(st.permutations(order))[:4]:
        uid = packed.manifest(place)["metadata"]["uid"]
        assert unread.remove_pod(uid) and read.remove_pod(uid)
        again = parse(packed.manifest(place)).typed
        if data.draw(st.booleans()):
            unread.add_pod(again)
            read.add_pod(again)
    assert columns(unread) == columns(read)


@given(bound_pods())
def test_each_is_found_by_its_name_as_it_was_read(manifests: list[dict[str, Any]]) -> None:
    packed = PackedPods(json.loads(json.dumps(pack([*NODES, *manifests]))))
    assert packed.pod(("default", "stranger")) is None
    for manifest in manifests:
        found = packed.pod((manifest["metadata"]["namespace"], manifest["metadata"]["name"]))
        assert found is not None and found.read().manifest == manifest
        assert found[:-1] == PodThen.of(parse(manifest).typed)[:-1]


def test_nodes_that_have_changed_are_read_again() -> None:
    def found(nodes: list[dict[str, Any]]) -> list[Any]:
        others = PackedPods(json.loads(json.dumps(pack(nodes)))).others().objects
        return [(kind, node.allocatable, node.unschedulable) for kind, node in others]

    full, drained = make_node("n1", cpu="4"), make_node("n1", cpu="4")
    drained["spec"] = {**drained.get("spec", {}), "unschedulable": True}
    for nodes in (
        [full, NODES[1]],
        [drained, NODES[1]],
        [NODES[1], full],
        [make_node("n1", cpu="5"), NODES[1]],
    ):
        for _ in range(2):
            typed = [parse(node).typed for node in nodes]
            assert found(nodes) == [("Node", node.allocatable, node.unschedulable) for node in typed]
