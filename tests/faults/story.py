"""What happens in one round, drawn from its seed: the same inputs, once without and once with faults."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

from tests.clusters.builders import make_node, make_pod

Phase = list[tuple[str, Any]]
"""Inputs given while the engine is at rest, then a run until idle."""


def draw(seed: int, extender_url: str | None) -> list[Phase]:
    """Phases of a cluster's life: nodes, pods, a Deployment, a preemption, a lost node."""
    dice = random.Random(seed)
    n_nodes = dice.randint(2, 4)
    first: Phase = [("apply", [make_node(f"n{number}", "4") for number in range(n_nodes)])]
    first.append(("apply", [_priority_class("urgent", 1000)]))
    if extender_url is not None:
        first.append(("config", _configuration(extender_url)))
    pods = [
        make_pod(f"p{number}", dice.choice(["250m", "500m", "1", "2"]))
        for number in range(dice.randint(8, 18))
    ]
    first.append(("apply", [*pods, make_pod("too-big", "64")]))
    second: Phase = [("apply", [_deployment("web", dice.randint(1, 4))])]
    if dice.random() < 0.7:
        urgent = [
            make_pod(f"u{number}", "1", priorityClassName="urgent") for number in range(dice.randint(1, 3))
        ]
        second.append(("apply", urgent))
    third: Phase = [("delete", ("Pod", "default", dice.choice(pods)["metadata"]["name"]))]
    if dice.random() < 0.6:
        third.append(("delete", ("Node", "", f"n{dice.randrange(n_nodes)}")))
    third.append(("apply", [make_node("late", "8")]))
    return [first, second, third]


def perform(cluster: Any, phase: Phase, between: Callable[[], None] = lambda: None) -> Any:
    """Give a phase's inputs and ask for the run that ends it."""
    from playground.clusters import services
    from playground.clusters.errors import NotFound
    from playground.clusters.kinds import by_kind

    for what, given in phase:
        if what == "apply":
            services.apply_documents(cluster=cluster, objects=given)
        elif what == "config":
            services.set_config(cluster=cluster, config=given)
        else:
            kind = by_kind(given[0])
            assert kind is not None
            with contextlib.suppress(NotFound):  # preempted meanwhile, as in the run without faults
                services.delete_object(cluster=cluster, kind=kind, namespace=given[1], name=given[2])
        between()
    return services.request_run(cluster=cluster)


def _priority_class(name: str, value: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def _deployment(name: str, replicas: int) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "300m"}}}]},
            },
        },
    }


def _configuration(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [
            {
                "urlPrefix": url,
                "filterVerb": "filter",
                "prioritizeVerb": "prioritize",
                "weight": 1,
                "nodeCacheCapable": True,
                "ignorable": True,
                "httpTimeout": "300ms",
            }
        ],
    }
