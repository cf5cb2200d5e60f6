"""Twenty pending pods, each for another cause: what is said of them, and a change that places them.

The pod asked about is always `shop/web`.
"""

from dataclasses import dataclass
from typing import Any

from tests.tables import table

POD = "shop/web"


@dataclass(frozen=True)
class Case:
    """A pending pod with a known answer.

    Attributes
    ----------
    objects : list of dict
        Of the cluster.
    state : str
        Where the pod waits.
    plugin, reason : str
        What rejects it, and on how many nodes (`nodes`); an empty plugin: it does not come to a decision.
    fix : list of dict
        Objects that are applied, and place it.
    node : str
        Where it then lands.
    placed : str
        The pod that then lands: another one where the pod itself cannot be changed.
    edit : str
        The kind of a single change that places it; empty: none does, or it waits for more than a node.
    """

    name: str
    objects: list[dict[str, Any]]
    plugin: str
    reason: str
    nodes: int
    fix: list[dict[str, Any]]
    node: str
    state: str = "unschedulable"
    placed: str = POD
    edit: str = ""


def node(name: str, *, labels: str = "", allocatable: str = "", spec: str = "") -> str:
    room = {"cpu": "'4'", "memory": "8Gi", "pods": "'10'"}
    room |= dict(item.split(": ") for item in allocatable.split(", ") if item)
    words = ", ".join(f"{name}: {amount}" for name, amount in room.items())
    return (
        f"---\n{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: "
        f"{{kubernetes.io/hostname: {name}{', ' + labels if labels else ''}}}}}, spec: {{{spec}}}, "
        f"status: {{allocatable: {{{words}}}}}}}\n"
    )


def pod(
    name: str = "web",
    *,
    requests: str = 'cpu: "1"',
    limits: str = "",
    spec: str = "",
    labels: str = "",
    container: str = "",
) -> str:
    resources = f"requests: {{{requests}}}" + (f", limits: {{{limits}}}" if limits else "")
    return (
        f"---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: shop, labels: {{app: {name}"
        f"{', ' + labels if labels else ''}}}}}, spec: {{containers: [{{name: c, image: x, resources: {{{resources}}}"
        f"{', ' + container if container else ''}}}]{', ' + spec if spec else ''}}}}}\n"
    )


CASES = [Case(**row) for row in table(__file__, "CASES")]
