"""Counts kept while pods, nodes and namespaces come and go (that they equal counting afresh: `test_columns.py`)."""

from typing import Any

import pytest

from scheduler_core.cluster import matching as matching_module
from scheduler_core.cluster.cache import Cache
from scheduler_core.cluster.matching import Stance
from scheduler_core.cluster.selection import PodSelector
from scheduler_core.objects.labels import selector_from_labels
from scheduler_core.objects.meta import plain_object_from
from scheduler_core.objects.node import node_from
from scheduler_core.objects.pod import Pod, pod_from

pytestmark = pytest.mark.usefixtures("every_threshold")

HOSTNAME = "kubernetes.io/hostname"
WEB = PodSelector(selector_from_labels({"app": "web"}), ("default",))


def node(name: str, **labels: str) -> Any:
    return node_from({"kind": "Node", "metadata": {"name": name, "labels": {HOSTNAME: name, **labels}}})


def web(name: str, node_name: str, namespace: str = "default", **spec: Any) -> Pod:
    metadata = {"name": name, "uid": f"{namespace}/{name}", "namespace": namespace, "labels": {"app": "web"}}
    return pod_from({"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node_name, **spec}})


def team(cache: Cache, namespace: str, name: str) -> None:
    manifest = {"kind": "Namespace", "metadata": {"name": namespace, "labels": {"team": name}}}
    cache.listers.set("Namespace", "", namespace, plain_object_from(manifest))


def test_a_namespace_that_changes_its_labels_changes_what_its_selector_selects() -> None:
    cache = Cache()
    cache.set_node(node("n1"))
    team(cache, "ns1", "y")
    cache.add_pod(web("p1", "n1", "ns1"))
    parts = (PodSelector(WEB.selector, (), selector_from_labels({"team": "x"})),)
    assert cache.matching.selection(parts).column[0] == 0
    team(cache, "ns1", "x")
    assert cache.matching.selection(parts).column[0] == 1
    cache.add_pod(web("p2", "n1", "ns1"))
    assert cache.matching.selection(parts).column[0] == 2


def test_selections_not_asked_for_are_dropped_and_counted_afresh_when_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(matching_module, "_MIN_SELECTIONS", 8)
    monkeypatch.setattr(matching_module, "_COLUMN_BYTES", 0)
    cache = Cache()
    cache.set_node(node("n1"))
    first = cache.matching.selection((WEB,))
    for number in range(50):
        cache.matching.selection((PodSelector(selector_from_labels({"app": str(number)}), ("default",)),))
    assert len(cache.matching._selections) <= 8
    cache.add_pod(web("p1", "n1"))
    again = cache.matching.selection((WEB,))
    assert again is not first
    assert again.column[0] == 1


def test_no_term_of_a_new_pod_is_dropped_while_its_others_are_made() -> None:
    """Unused terms are dropped at 512: a pod with several must not come between two of its own."""
    cache = Cache()
    cache.set_node(node("n1"))

    def keeps_away(*apps: str) -> Pod:
        terms = [{"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}} for app in apps]
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        return web(f"p-{apps[0]}", "n1", affinity=affinity)

    cache.add_pod(keeps_away("first"))
    for number in range(400):
        cache.add_pod(keeps_away(f"a{number}", f"b{number}"))
    carriers = cache.matching.carriers
    for number in range(400):
        for app in (f"a{number}", f"b{number}"):
            pod = pod_from({"kind": "Pod", "metadata": {"name": app, "uid": app, "namespace": "default",
                                                        "labels": {"app": app}}, "spec": {}})  # fmt: skip
            (about,) = carriers.about(Stance.REQUIRES_ABSENCE, cache.matching.pods.class_of(pod))
            assert about.rows == {0: 1}, app
