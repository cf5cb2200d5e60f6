"""Extended resources of DeviceClasses: requests of the claim made for them.

Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
staging/src/k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache, v1.36
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scheduler_core.dynamic_resources.model import EXACT_COUNT, Manifest, Objects
from scheduler_core.objects.quantity import read_quantity
from scheduler_core.objects.resources import is_extended_resource

CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
ANNOTATION = "resource.kubernetes.io/extended-resource-claim"

Requests = list[dict[str, Any]]


def is_possible(resource: str) -> bool:
    """Whether a DeviceClass may stand behind a resource of that name."""
    return resource.startswith(CLASS_PREFIX) or is_extended_resource(resource)


def class_by_resource(classes: Iterable[Manifest]) -> dict[str, str]:
    """Resource name -> name of the DeviceClass behind it: of several the youngest, then the first by name."""
    found: dict[str, str] = {}
    by_age = sorted(classes, key=lambda item: item["metadata"]["name"], reverse=True)
    by_age.sort(key=lambda item: str(item["metadata"].get("creationTimestamp") or ""))
    for item in by_age:
        name = item["metadata"]["name"]
        resource = (item.get("spec") or {}).get("extendedResourceName")
        if resource:
            found[resource] = name
        found[CLASS_PREFIX + name] = name
    return found


class ClassesByResource:
    """`class_by_resource` of a cluster, made anew once its DeviceClasses change."""

    def __init__(self) -> None:
        self._listers: Objects | None = None
        self._version = -1
        self._found: Mapping[str, str] = {}

    def of(self, listers: Objects) -> Mapping[str, str]:
        version = listers.version("DeviceClass")
        if listers is not self._listers or version != self._version:
            self._found = class_by_resource(item.manifest for item in listers.all("DeviceClass"))
            self._listers, self._version = listers, version
        return self._found


def requests_and_mappings(
    pod_spec: Manifest, resources: Iterable[str], classes: Mapping[str, str]
) -> tuple[Requests, Requests]:
    """The device requests for a pod's extended resources, and which container's request each of them serves."""
    init = list(pod_spec.get("initContainers") or ())
    containers = [*init, *(pod_spec.get("containers") or ())]
    short = [place for place, item in enumerate(init) if item.get("restartPolicy") != "Always"]
    requests: Requests = []
    mappings: Requests = []
    for resource in sorted(resources):
        if resource not in classes:
            continue
        long_lived: list[dict[str, Any] | None] = [None] * len(containers)
        of_long: Requests = []
        of_short: Requests = []
        for place, container in enumerate(containers):
            if place not in short:
                long_lived[place], said = _request(place, container, resource, classes[resource], ())
                of_long += said
        largest: dict[str, Any] | None = None
        names: list[str] = []
        for place in short:
            request, said = _request(
                place, containers[place], resource, classes[resource], long_lived[place:]
            )
            if request is not None:
                names.append(request["name"])
                if largest is None or largest["exactly"]["count"] < request["exactly"]["count"]:
                    largest = request
            of_short += said
        if largest is not None:
            for mapping in of_short:
                if mapping["requestName"] in names:
                    mapping["requestName"] = largest["name"]
            requests.append(largest)
        requests += [request for request in long_lived if request is not None]
        mappings += [*of_long, *of_short]
    return sorted(requests, key=lambda request: str(request["name"])), mappings


def _request(
    place: int,
    container: Manifest,
    resource: str,
    class_name: str,
    reusable: Sequence[dict[str, Any] | None],
) -> tuple[dict[str, Any] | None, Requests]:
    amounts = (container.get("resources") or {}).get("requests") or {}
    if resource not in amounts:
        return None, []
    wanted = read_quantity(str(amounts[resource])).value()
    if not wanted:
        return None, []
    mappings: Requests = []

    def serve(name: str) -> None:
        mappings.append(
            {"containerName": container.get("name", ""), "requestName": name, "resourceName": resource}
        )

    covered = 0
    for request in reusable:
        if request is not None:
            covered += request["exactly"]["count"]
            serve(request["name"])
            if covered >= wanted:
                return None, mappings
    name = f"container-{place}-request-{sorted(amounts).index(resource)}"
    serve(name)
    exactly = {"deviceClassName": class_name, "allocationMode": EXACT_COUNT, "count": wanted - covered}
    return {"name": name, "exactly": exactly}, mappings
