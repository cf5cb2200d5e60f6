"""What the resize subresource of a pod takes: other cpu and memory for its containers, and nothing else.

Source: pkg/registry/core/pod/strategy.go podResizeStrategy, pkg/apis/core/validation/validation.go
ValidatePodResize, v1.34
"""

from collections.abc import Mapping
from typing import Any

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import mapping, mappings
from scheduler_core.objects.quantity import quantity_from
from scheduler_core.objects.reading import Posted
from scheduler_core.sim.resizing import RESIZED

__all__ = ["check_quality", "qos_class", "resized"]


def resized(posted: Posted, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The pod with other resources; amounts are not read here.

    Raises
    ------
    InvalidManifest
    """
    try:
        containers = _resized(old, new)
    except InvalidObject as error:
        raise posted.invalid(error) from None
    spec = dict(old["spec"]) | {"containers": containers}
    meta = dict(old["metadata"])
    if spec != old["spec"]:
        meta["generation"] = int(meta.get("generation") or 1) + 1
    return dict(old) | {"metadata": meta, "spec": spec}


def check_quality(posted: Posted, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Refuse what would make another class of pod of it.

    Raises
    ------
    InvalidManifest
    """
    if qos_class(new["spec"]) != qos_class(old["spec"]):
        words = "Pod QOS Class may not change as a result of resizing"
        raise posted.problem(words, path="spec", value=qos_class(new["spec"]))


def _resized(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[dict[str, Any]]:
    asked = {item.get("name"): item for _, item in mappings(mapping(new, "spec", ""), "containers", "spec")}
    containers = []
    for index, item in enumerate(old["spec"].get("containers") or ()):
        place = f"spec.containers[{index}]"
        wanted = asked.get(item.get("name"))
        if wanted is None:
            words = "Forbidden: containers may not be added or removed by a resize"
            raise InvalidObject("spec.containers", None, words)
        had, gets = item.get("resources") or {}, dict(mapping(wanted, "resources", place))
        for key in ("requests", "limits"):
            path = f"{place}.resources"
            before, after = had.get(key) or {}, mapping(gets, key, path)
            for name in sorted({*before, *after}):
                if name not in RESIZED and before.get(name) != after.get(name):
                    words = "Forbidden: only cpu and memory resources are mutable"
                    raise InvalidObject(f"{path}.{key}", None, words)
                if name in RESIZED and name in before and name not in after:
                    raise InvalidObject(f"{path}.{key}", None, f"Forbidden: resource {key} cannot be removed")
        changed = {key: value for key, value in item.items() if key != "resources"}
        if gets:
            changed["resources"] = gets
        if "resizePolicy" in wanted:
            changed["resizePolicy"] = wanted["resizePolicy"]
        containers.append(changed)
    return containers


def qos_class(spec: Mapping[str, Any]) -> str:
    """`Guaranteed`, `Burstable` or `BestEffort`. Source: pkg/apis/core/v1/helper/qos/qos.go ComputePodQOS, v1.34."""
    guaranteed, anything = True, False
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        resources = container.get("resources") or {}
        requests, limits = (
            {
                name: quantity_from(amount)
                for name, amount in (resources.get(key) or {}).items()
                if name in RESIZED
            }
            for key in ("requests", "limits")
        )
        anything |= any(not amount.is_zero() for amount in (*requests.values(), *limits.values()))
        for name in RESIZED:
            limit = limits.get(name)
            if limit is None or limit.is_zero() or requests.get(name, limit).cmp(limit) != 0:
                guaranteed = False
    if not anything:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"
