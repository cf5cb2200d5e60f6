"""All that a cluster holds, by kind: the pages."""

from typing import Any

import pytest
from django.test import Client

from playground.clusters import kinds
from playground.clusters.models import Cluster
from playground.clusters.objects.apply import apply_documents
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.clusters.test_kept_objects import every_object
from tests.markup import html_of


@pytest.fixture
def full(db: None) -> Cluster:
    cluster = make_cluster(make_node("n1"), make_pod("p1"))
    apply_documents(cluster=cluster, text=every_object())
    return cluster


def page(client: Client, cluster: Cluster, path: str = "") -> str:
    answer: Any = client.get(f"/c/{cluster.public_id}/objects/{path}")
    assert answer.status_code == 200, answer.content[:300]
    return html_of(answer)


def test_one_entry_of_the_core_makes_a_kind_shape_placement(monkeypatch: pytest.MonkeyPatch) -> None:
    more = {**kinds.SHAPING, "Lease": kinds.SHAPING["Node"]._replace(rank=4, effect="turns")}
    monkeypatch.setattr(kinds, "SHAPING", more)
    lease = kinds.built_in().by_row_kind("Lease")
    assert lease is not None
    assert (lease.interpreted, lease.role, lease.effect, lease.apply_rank) == (True, "read", "turns", 4)
    before = kinds.by_kind("Lease")
    assert before is not None and not before.interpreted and not before.effect


def test_the_page_names_every_kind_with_objects(client: Client, full: Cluster) -> None:
    text = page(client, full)
    for name in ("Ingress", "Role", "Gadget", "CustomResourceDefinition", "ResourceQuota"):
        assert f">{name}</a>" in text
    assert "only kept" in text and "the scheduler reads" in text
    kept = page(client, full, "?effect=kept")
    assert ">Ingress</a>" in kept and ">Node</a>" not in kept
    assert ">Event</a>" not in text and ">Event</a>" in page(client, full, "?none")
    assert client.get(f"/c/{full.public_id}/objects/?effect=x").status_code == 404


@pytest.mark.dialect
def test_objects_of_a_kind_are_found_and_edited(client: Client, full: Cluster) -> None:
    text = page(client, full, "Gadget.fresh.example/?name=fre")
    path = f"/c/{full.public_id}/objects/Gadget.fresh.example/fresh/fresh/"
    assert path in text
    assert "size: 5" in html_of(client.get(path))
    body = "apiVersion: fresh.example/v1\nkind: Gadget\nmetadata: {name: fresh, namespace: fresh}\nspec: {size: 9}\n"
    assert client.post(path, {"text": body}).status_code == 302
    assert "size: 9" in html_of(client.get(path))
    assert "No such object" in page(client, full, "Gadget.fresh.example/?name=nothing")
    assert client.get(f"/c/{full.public_id}/objects/Gadgets/").status_code == 404
    assert "ClusterRole/-/fresh:reader/" in page(client, full, "ClusterRole/")
