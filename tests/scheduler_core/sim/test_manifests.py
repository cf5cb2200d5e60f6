"""Packing objects: what comes back says the same, in the same order, and is read as if it had been read alone."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.objects.kinds import parse
from scheduler_core.objects.pod import Pod
from scheduler_core.sim.manifests import Packer, pack, unpack
from tests.scheduler_core.sim.builders import make_pod

scalars = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([1.0, "", "a", "1"]))
keys = st.sampled_from(["apiVersion", "kind", "metadata", "spec", "status", "nodeName", "phase"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
strangers = st.dictionaries(keys, values, max_size=7).map(lambda found: {**found, "kind": "Stranger"})


@given(st.lists(strangers, max_size=8))
def test_any_objects_come_back_as_they_were(manifests: list[dict[str, Any]]) -> None:
    document = json.loads(json.dumps(pack(manifests)))
    # As text: the order of keys, 1 and 1.0 and true, null and nothing at all.
    assert [json.dumps(manifest) for manifest, _ in unpack(document)] == [
        json.dumps(item) for item in manifests
    ]


@given(st.lists(strangers, max_size=8))
def test_what_was_unpacked_is_packed_as_it_was(manifests: list[dict[str, Any]]) -> None:
    document = json.loads(json.dumps(pack(manifests)))
    packer = Packer()
    found = [manifest for manifest, _ in packer.unpack(document)]
    assert json.dumps(packer.pack(found)) == json.dumps(document)
    assert json.dumps(packer.pack(found[1:])) == json.dumps(pack(manifests[1:]))


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    spec: dict[str, Any] = draw(
        st.sampled_from(
            [
                {},
                {"priority": 5, "hostNetwork": True},
                {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}]}}},
            ]
        )
    )  # fmt: skip
    name = f"p{draw(st.integers(0, 99))}"
    pod = make_pod(
        name,
        cpu=draw(st.sampled_from(["1", "500m"])),
        labels=draw(st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"))),
        **spec,
    )
    pod["metadata"]["namespace"] = draw(st.sampled_from(["default", "other"]))
    if draw(st.booleans()):
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    node_name = draw(st.sampled_from([None, "", "n1", "n2"]))
    if node_name is not None:
        # First or last: bound pods have it elsewhere than pods that came with it.
        where = draw(st.booleans())
        spec = pod["spec"]
        pod["spec"] = {"nodeName": node_name, **spec} if where else {**spec, "nodeName": node_name}
    pod["status"] = draw(
        st.sampled_from(
            [
                {},
                {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"},
                {"phase": "Pending", "nominatedNodeName": "n1"},
                {"phase": "Running", "containerStatuses": [
                    {"name": "main", "resources": {"requests": {"cpu": "2", "memory": "64Mi"}}}]},
            ]
        )
    )  # fmt: skip
    return pod


@given(st.lists(pods(), max_size=12))
def test_every_pod_is_read_as_if_it_were_alone(manifests: list[dict[str, Any]]) -> None:
    for manifest, typed in unpack(pack(manifests)):
        alone: Pod = parse(manifest).typed
        # Which reading of the spec it comes from is no part of what it says.
        assert {**vars(typed), "read": None} == {**vars(alone), "read": None}
        assert typed.manifest is manifest
