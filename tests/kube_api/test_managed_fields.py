"""Server-side apply: ownership, conflicts, what is given up."""

from typing import Any

import pytest

from playground.clusters.objects.write import merge_patch
from playground.kube_api.managed_fields import applied, from_fields, owned_paths, to_fields, updated
from playground.kube_api.patches import json_patch, strategic_merge_patch
from playground.kube_api.status import Refusal
from tests.tables import table

NOW = "2026-01-02T00:00:00Z"


def service(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}


def apply(live: Any, wanted: Any, manager: str, *, force: bool = False) -> dict[str, Any]:
    result, managers = applied(live, wanted, manager=manager, force=force, time=NOW)
    return result | {"metadata": result["metadata"] | {"managedFields": managers}}


def owners(document: dict[str, Any]) -> dict[str, set[str]]:
    return {
        entry["manager"]: {"/".join(path) for path in from_fields(entry["fieldsV1"])}
        for entry in document["metadata"]["managedFields"]
    }


def test_fields_are_written_as_kubernetes_writes_them() -> None:
    paths = owned_paths(service(ports=[{"port": 80, "name": "web"}], selector={"a": "b"}))
    assert to_fields(paths) == {
        "f:spec": {
            "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}, "f:port": {}}},
            "f:selector": {"f:a": {}},
        }
    }
    assert from_fields(to_fields(paths)) == paths


def test_two_managers_share_what_they_agree_on_and_conflict_where_they_do_not() -> None:
    live = apply(None, service(type="ClusterIP", selector={"a": "1"}), "one")
    live = apply(live, service(type="ClusterIP"), "two")
    assert "f:spec/f:type" in owners(live)["one"] & owners(live)["two"]
    with pytest.raises(Refusal) as refused:
        apply(live, service(type="NodePort"), "two")
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "one": .spec.type'
    with pytest.raises(Refusal) as refused:
        apply(live, service(type="NodePort", selector={"a": "2"}), "two")
    listed = '2 conflicts: conflicts with "one":\n- .spec.selector.a\n- .spec.type'
    assert refused.value.message == f"Apply failed with {listed}"
    forced = apply(live, service(type="NodePort"), "two", force=True)
    assert forced["spec"]["type"] == "NodePort"
    assert owners(forced) == {"one": {"f:spec/f:selector/f:a"}, "two": {"f:spec/f:type"}}


def test_what_is_not_applied_any_more_goes() -> None:
    live = apply(None, service(ports=[{"port": 80}, {"port": 81}], selector={"a": "1", "b": "2"}), "one")
    live = apply(live, service(selector={"b": "2"}), "two")
    live = apply(live, service(ports=[{"port": 81}]), "one")
    assert live["spec"] == {"ports": [{"port": 81}], "selector": {"b": "2"}}


def test_sets_keep_what_others_put_there() -> None:
    live = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "finalizers": ["x"]}}
    wanted = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "finalizers": ["y"]}}
    assert apply(live, wanted, "one")["metadata"]["finalizers"] == ["x", "y"]


def test_an_ordinary_write_takes_what_it_changes() -> None:
    live = apply(None, service(type="ClusterIP", selector={"a": "1"}), "one")
    new = live | {"spec": {"type": "NodePort", "selector": {"a": "1"}}}
    managers = updated(live, new, manager="editor", time=NOW)
    assert managers is not None
    found = {(e["manager"], e["operation"]): from_fields(e["fieldsV1"]) for e in managers}
    assert found[("editor", "Update")] == {("f:spec", "f:type")}
    assert found[("one", "Apply")] == {("f:spec", "f:selector", "f:a")}


def test_nothing_is_recorded_of_objects_that_were_never_applied() -> None:
    assert updated(service(), service(type="NodePort"), manager="x", time=NOW) is None


def test_a_broken_record_has_no_manager() -> None:
    live = service(type="ClusterIP")
    live["metadata"]["managedFields"] = [
        "x",
        {"manager": "m"},
        {"manager": "m", "operation": "Apply", "fieldsV1": 3},
    ]
    assert apply(live, service(type="NodePort"), "one")["spec"]["type"] == "NodePort"


def test_an_apply_that_changes_nothing_changes_no_entry() -> None:
    live = apply(None, service(type="ClusterIP"), "two")
    live = apply(live, service(selector={"a": "1"}), "one")
    assert list(owners(live)) == ["one", "two"]
    assert apply(live, service(type="ClusterIP"), "two") == live
    assert apply(live, service(selector={"a": "1"}), "one") == live


# ---- The patches as functions, against the examples of their specifications


POD: dict[str, Any] = table(__file__, "POD")


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    table(__file__, "merge_patch"),
)
def test_merge_patch(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


def spec(patch: dict[str, Any]) -> dict[str, Any]:
    return strategic_merge_patch(POD, {"spec": patch})["spec"]


@pytest.mark.parametrize(("patch", "field", "result"), table(__file__, "strategic_merge_patch"))
def test_strategic_merge_patch(patch: dict[str, Any], field: str, result: Any) -> None:
    assert spec(patch)[field] == result


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
