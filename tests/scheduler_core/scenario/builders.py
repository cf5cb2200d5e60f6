"""Small scenarios for tests."""

import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_core.scenario import Scenario, load_scenario
from scheduler_core.scenario.load import scenario_document
from scheduler_core.scenario.redact import LABEL_MAPS, Redacted
from tests.manifests import make_object, priority_class


def make_node(name: str, cpu: str = "4", **labels: str) -> dict[str, Any]:
    allocatable = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return make_object("v1", "Node", name, labels=labels, status={"allocatable": allocatable})


def make_pod(
    name: str,
    cpu: str = "1",
    *,
    priority: int | None = None,
    node: str = "",
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    body: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec}
    if priority is not None:
        body["priority"] = priority
    if node:
        body["nodeName"] = node
    manifest = make_object("v1", "Pod", name, labels=labels or {}, spec=body)
    if node:
        manifest["status"] = {"phase": "Running", "startTime": "2024-12-31T00:00:00Z"}
    return manifest


def make_budget(name: str, app: str, min_available: int = 1) -> dict[str, Any]:
    spec = {"minAvailable": min_available, "selector": {"matchLabels": {"app": app}}}
    return make_object("policy/v1", "PodDisruptionBudget", name, spec=spec)


def make_scenario(*objects: dict[str, Any], **fields: Any) -> Scenario:
    """The scenario; a pod with a bare priority is given a class of that value."""
    return load_scenario(with_classes(document(*objects, **fields)))


def with_classes(found: dict[str, Any]) -> dict[str, Any]:
    """The document with a PriorityClass for each priority that pods name without one."""
    found = copy.deepcopy(found)
    applied = [
        step["apply"] for step in found.get("steps") or () if isinstance(step, dict) and step.get("apply")
    ]
    given = [
        *found["objects"],
        *(item for one in applied for item in (one if isinstance(one, list) else [one])),
    ]
    classes: dict[str, dict[str, Any]] = {}
    for item in given:
        spec = item.get("spec")
        if item.get("kind") != "Pod" or "priority" not in spec or spec.get("priorityClassName"):
            continue
        value = spec.pop("priority")
        policy = spec.pop("preemptionPolicy", None)
        name = f"priority-{'minus-' * (value < 0)}{abs(value)}{'-never' * (policy is not None)}"
        spec["priorityClassName"] = name
        classes[name] = priority_class(name, value, **({"preemptionPolicy": policy} if policy else {}))
    return {**found, "objects": [*classes.values(), *found["objects"]]}


def document(*objects: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "scheduling.playground/v1", "kind": "Scenario", "objects": list(objects), **fields}


@dataclass(frozen=True, slots=True)
class Recorded:
    """A record of a cluster's log."""

    seq: int
    source: str
    kind: str
    at_ns: int
    payload: Mapping[str, Any]
    cycle: int | None = None


def leaked_names(redacted: Redacted, names: Iterable[str] = ()) -> list[str]:
    """Old names that still stand somewhere in the redacted document; none is right.

    Parameters
    ----------
    names : iterable of str
        More words that must not be found.
    """
    old = {name for renamed in redacted.renamed.values() for name in renamed} | set(names)
    texts = _texts(scenario_document(redacted.scenario), "")
    words = {word for text in texts for word in (text, *re.findall(r"[\w./:@-]+", text))}
    return sorted(name for name in old if name in words)


def _texts(value: Any, key: str) -> Iterator[str]:
    """Every text that is no field name."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        if key in (*LABEL_MAPS, "selector"):
            yield from (name for name in value if name not in ("matchLabels", "matchExpressions"))
        for name, item in value.items():
            if name not in ("kind", "apiVersion"):
                yield from _texts(item, name)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, key)
