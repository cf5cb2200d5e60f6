"""Scenarios for tests."""

from typing import Any

import yaml

from tests.manifests import make_object
from tests.tables import table


def node(name: str, *, cpu: str = "4", memory: str = "8Gi", **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": "110"}},
    }


def pod(name: str, *, cpu: str = "1", memory: str = "1Gi", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "web:1", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return make_object("v1", "Pod", name, namespace="default", spec={"containers": [container], **spec})


PACKING = table(__file__, "PACKING")


def small(**changes: Any) -> dict[str, Any]:
    """Three nodes, five pods, one of which fits nowhere."""
    return {
        "apiVersion": "scheduling.playground/v1",
        "kind": "Scenario",
        "name": "small",
        "title": "Five pods on three nodes",
        "seed": 7,
        "objects": [
            node("node-a", **{"topology.kubernetes.io/zone": "a"}),
            node("node-b", **{"topology.kubernetes.io/zone": "b"}),
            node("node-c", cpu="8", **{"topology.kubernetes.io/zone": "c"}),
            *(pod(f"web-{i}") for i in range(4)),
            pod("giant", cpu="64"),
        ],
        "steps": [{"run": "idle"}],
        **changes,
    }


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def text_of(document: dict[str, Any]) -> str:
    return yaml.dump(document, Dumper=_Plain, sort_keys=False)


def small_text(**changes: Any) -> str:
    return text_of(small(**changes))
