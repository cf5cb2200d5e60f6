"""The patches as functions, against the examples of their specifications."""

from __future__ import annotations

from typing import Any

import pytest

from playground.clusters.objects.write import merge_patch
from playground.kube_api.patches import json_patch, strategic_merge_patch
from playground.kube_api.status import Refusal
from tests.tables import table

POD: dict[str, Any] = table(__file__, "POD")


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    table(__file__, "merge_patch"),
)
def test_merge_patch(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


def spec(patch: dict[str, Any]) -> dict[str, Any]:
    return strategic_merge_patch(POD, {"spec": patch})["spec"]


def test_keyed_lists_merge_item_by_item() -> None:
    assert spec({"containers": [{"name": "b", "image": "b:2"}, {"name": "c"}]})["containers"] == [
        {"name": "a", "image": "a:1"},
        {"name": "b", "image": "b:2"},
        {"name": "c"},
    ]


def test_an_item_is_deleted_or_the_whole_list_replaced_on_request() -> None:
    assert spec({"containers": [{"name": "a", "$patch": "delete"}]})["containers"] == [
        {"name": "b", "image": "b:1"}
    ]
    assert spec({"containers": [{"$patch": "replace"}, {"name": "z"}]})["containers"] == [{"name": "z"}]


def test_lists_without_a_key_are_replaced() -> None:
    assert spec({"tolerations": [{"key": "z"}]})["tolerations"] == [{"key": "z"}]


def test_objects_are_replaced_deleted_or_cut_on_request() -> None:
    assert spec({"nodeSelector": {"$patch": "replace", "a": "b"}})["nodeSelector"] == {"a": "b"}
    assert spec({"nodeSelector": {"$patch": "delete"}})["nodeSelector"] == {}
    assert spec({"nodeSelector": {"$retainKeys": ["disk"]}})["nodeSelector"] == {"disk": "ssd"}
    assert spec({"nodeSelector": {"disk": None}})["nodeSelector"] == {"zone": "z"}


def test_sets_grow_shrink_and_take_an_order() -> None:
    patch = {"metadata": {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]}}
    assert strategic_merge_patch(POD, patch)["metadata"]["finalizers"] == ["b", "c"]
    patch = {"metadata": {"$setElementOrder/finalizers": ["b", "a"]}}
    assert strategic_merge_patch(POD, patch)["metadata"]["finalizers"] == ["b", "a"]
    order = {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}
    assert [c["name"] for c in spec(order)["containers"]] == ["b", "a"]


def test_a_list_merges_as_the_schema_of_its_kind_says() -> None:
    """`ports` is keyed by port in a Service, by containerPort in a Pod, and one value in an EndpointSlice."""
    patch = {"ports": [{"port": 81}]}
    slice_ = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "ports": [{"port": 80}]}
    assert strategic_merge_patch(slice_, patch)["ports"] == [{"port": 81}]
    service = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]}}
    assert strategic_merge_patch(service, {"spec": patch})["spec"]["ports"] == [{"port": 80}, {"port": 81}]
    hook = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    hooks = {**hook, "webhooks": [{"name": "a"}]}
    assert strategic_merge_patch(hooks, {"webhooks": [{"name": "b"}]})["webhooks"] == [
        {"name": "a"},
        {"name": "b"},
    ]
    own = {"apiVersion": "example.com/v1", "kind": "Own", "spec": {"containers": [{"name": "a"}]}}
    assert strategic_merge_patch(own, {"spec": {"containers": [{"name": "b"}]}})["spec"]["containers"] == [
        {"name": "b"}
    ]


@pytest.mark.parametrize(
    "patch",
    [{"containers": [{"image": "x"}]}, {"$patch": "explode"}, {"$unknown/x": []}],
)
def test_what_is_no_strategic_patch_is_refused(patch: dict[str, Any]) -> None:
    with pytest.raises(Refusal):
        spec(patch)


@pytest.mark.parametrize(
    ("operations", "result"),
    table(__file__, "json_patch"),
)
def test_json_patch(operations: list[Any], result: Any) -> None:
    target = {"a": [1, 2], "o": {"x~/y": 1}}
    assert json_patch(target, operations) == result
    assert target == {"a": [1, 2], "o": {"x~/y": 1}}


@pytest.mark.parametrize(
    "operation",
    table(__file__, "what_does_not_fit_is_refused"),
)
def test_what_does_not_fit_is_refused(operation: Any) -> None:
    with pytest.raises(Refusal):
        json_patch({"a": [1, 2]}, [operation])
