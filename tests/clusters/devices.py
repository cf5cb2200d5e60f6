"""GPU pools for tests: nodes with devices, templates and pods that claim them."""

from typing import Any

from tests.clusters.builders import make_node, make_pod
from tests.manifests import make_object

GROUP = "resource.k8s.io/v1"


def gpu_node(name: str = "g1", devices: str = "gpu=2") -> dict[str, Any]:
    """A node whose simulated driver finds devices."""
    node = make_node(name)
    node["metadata"]["annotations"] = {"playground.dev/devices": devices}
    return node


def template(
    name: str = "one-gpu", device_class: str = "gpu.playground.dev", **request: Any
) -> dict[str, Any]:
    """A ResourceClaimTemplate with one request, as a person writes it: without defaults."""
    exactly = {"deviceClassName": device_class, **request}
    spec = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
    return make_object(GROUP, "ResourceClaimTemplate", name, namespace="default", spec=spec)


def claim(name: str = "shared", **request: Any) -> dict[str, Any]:
    """A ResourceClaim of its own."""
    made = template(name, **request)
    return {**made, "kind": "ResourceClaim", "spec": made["spec"]["spec"]}


def claiming(name: str, of: str = "one-gpu", **spec: Any) -> dict[str, Any]:
    """A pod with a claim from a template."""
    return make_pod(name, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": of}], **spec)
