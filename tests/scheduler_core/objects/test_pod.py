"""Specs that were read before are not read again, and nothing can tell."""

import copy
from dataclasses import fields
from typing import Any

import pytest

from scheduler_core.errors import InvalidObject
from scheduler_core.objects import meta, resources
from scheduler_core.objects import pod as pod_module
from scheduler_core.objects.pod import Pod, pod_from
from tests.scheduler_core.recorded_clusters import RecordedCluster
from tests.tables import table


def values_of(pod: Pod) -> dict[str, Any]:
    """All but which reading of the spec it comes from."""
    return {field.name: getattr(pod, field.name) for field in fields(Pod) if field.name != "read"}


def read_afresh(manifest: dict[str, Any]) -> Pod:
    pod_module._known_specs.clear()
    pod_module._known_shapes.clear()
    return pod_from(manifest)


def read_closely(manifest: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Pod:
    """Without what most metadata and most requests are like."""
    with monkeypatch.context() as patched:
        patched.setattr(meta, "_plain_meta", lambda metadata: None)
        patched.setattr(resources, "_plain_requests", lambda manifest: None)
        return read_afresh(manifest)


@pytest.mark.parametrize("seed", range(40))
def test_a_pod_read_from_a_known_spec_is_the_pod_read_afresh(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = copy.deepcopy(dict(RecordedCluster("resources", seed).incoming().manifest))
    twin = copy.deepcopy(manifest)
    twin["metadata"] = {**twin["metadata"], "name": "twin", "uid": "twin", "labels": {"other": "labels"}}
    twin["spec"]["nodeName"] = "elsewhere"
    twin["status"] = {
        "phase": "Running",
        "startTime": "2026-01-01T00:00:00Z",
        "nominatedNodeName": "n",
        "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "why"}],
        "containerStatuses": [{"name": "c"}],
    }
    read_afresh(manifest)
    assert (
        values_of(pod_from(twin))
        == values_of(read_afresh(twin))
        == values_of(read_closely(twin, monkeypatch))
    )
    other = copy.deepcopy(twin)
    other["metadata"] = {"name": "other", "uid": "o", "creationTimestamp": "2026-01-01T00:00:00Z"}
    other["metadata"]["labels"] = {"b": "", "a": "x"}
    other["spec"].pop("resources", None)  # of the pod as a whole, whatever its containers ask for
    for container in other["spec"].get("containers", ()):
        container["resources"] = {"requests": {"cpu": "77m", "example.com/gpu": "2"}}
    found = pod_from(other)
    assert (
        found.requests.get("cpu") != pod_from(twin).requests.get("cpu") and found.read != pod_from(twin).read
    )
    assert values_of(found) == values_of(read_closely(other, monkeypatch))
    assert list(found.labels) == ["a", "b"]


@pytest.mark.parametrize("requests", ["much", ["much"], {"cpu": "much"}, {"cpu": True}])
def test_what_cannot_be_read_of_containers_is_told_alike_whatever_is_known(requests: Any) -> None:
    def manifest(resources: Any) -> dict[str, Any]:
        return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": resources}]}}

    bad = manifest({"requests": requests})
    with pytest.raises(InvalidObject) as afresh:
        read_afresh(bad)
    pod_from(manifest({}))
    with pytest.raises(InvalidObject) as known:
        pod_from(bad)
    assert str(known.value) == str(afresh.value)


@pytest.mark.parametrize(("status", "path"), table(__file__, "a_bad_status_beside_a_known_spec_is_refused"))
def test_a_bad_status_beside_a_known_spec_is_refused(status: dict[str, Any], path: str) -> None:
    spec: dict[str, Any] = {"containers": [{"name": "c"}]}
    pod_from({"metadata": {"name": "p"}, "spec": spec})
    with pytest.raises(InvalidObject, match=path):
        pod_from({"metadata": {"name": "p"}, "spec": spec, "status": status})


def test_true_is_not_read_as_the_one_before_it() -> None:
    pod_from({"metadata": {"name": "p"}, "spec": {"priority": 1}})
    with pytest.raises(InvalidObject, match=r"spec\.priority"):
        pod_from({"metadata": {"name": "p"}, "spec": {"priority": True}})
