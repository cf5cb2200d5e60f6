"""Objects besides nodes and pods, as plugins look them up; the selector that they give a pod."""

from __future__ import annotations

from typing import Any

from scheduler_core.objects.labels import EVERYTHING, LabelSelector, selector_from_labels
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.policy import SelectingObject

Key = tuple[str, str]
"""(namespace, name); the namespace is empty for kinds that live in none."""


class Listers:
    """Typed objects by kind and name, in order of arrival.

    `version(kind)` changes with every change of that kind, so that what was derived from it can be kept.
    """

    def __init__(self) -> None:
        self._objects: dict[str, dict[Key, Any]] = {}
        self._versions: dict[str, int] = {}

    def copy(self) -> Listers:
        """A copy with the same objects and separate versions."""
        other = Listers()
        other._objects = {kind: found.copy() for kind, found in self._objects.items()}
        other._versions = self._versions.copy()
        return other

    def set(self, kind: str, namespace: str, name: str, typed: Any) -> None:
        self._objects.setdefault(kind, {})[(namespace, name)] = typed
        self._versions[kind] = self._versions.get(kind, 0) + 1

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Nothing happens when there is no such object."""
        if self._objects.get(kind, {}).pop((namespace, name), None) is not None:
            self._versions[kind] += 1

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        return self._objects.get(kind, {}).get((namespace, name))

    def all(self, kind: str) -> list[Any]:
        return list(self._objects.get(kind, {}).values())

    def version(self, kind: str) -> int:
        return self._versions.get(kind, 0)

    def namespace_labels(self, name: str) -> dict[str, str] | None:
        """Labels of a Namespace object, None when there is no such object."""
        namespace = self.get("Namespace", "", name)
        return None if namespace is None else namespace.meta.labels


# ---- The selector a pod is deduced to belong to: that of its Services and of the controller that owns it

_KINDS = ("Service", "ReplicationController", "ReplicaSet", "StatefulSet")
_MAX_ANSWERS = 8192


class DefaultSelectors:
    """Deduced selectors, kept until one of the objects they come from changes.

    Source: pkg/scheduler/framework/plugins/helper/spread.go DefaultSelector, v1.34
    """

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self._versions: tuple[int, ...] = ()
        self._services: dict[str, list[SelectingObject]] = {}
        self._any = False
        self._answers: dict[tuple[str, tuple[tuple[str, str], ...], str, str, str], LabelSelector] = {}

    def of(self, pod: Pod) -> LabelSelector:
        """The deduced selector; the one for everything when nothing is known."""
        if not self._is_any():
            return EVERYTHING
        owner = pod.meta.controller
        identity = (owner.api_version, owner.kind, owner.name) if owner else ("", "", "")
        key = (pod.namespace, tuple(pod.labels.items()), *identity)
        found = self._answers.get(key)
        if found is None:
            if len(self._answers) >= _MAX_ANSWERS:
                self._answers.clear()
            found = self._answers[key] = self._deduce(pod)
        return found

    def services_of(self, pod: Pod) -> list[SelectingObject]:
        """Services that select a pod."""
        self._is_any()
        return [
            service
            for service in self._services.get(pod.namespace, ())
            if all(pod.labels.get(key) == value for key, value in service.selector_labels.items())
        ]

    def _is_any(self) -> bool:
        """Bring what is kept up to date; whether there is any object to deduce from."""
        versions = tuple([self._listers.version(kind) for kind in _KINDS])
        if versions != self._versions:
            self._renew(versions)
        return self._any

    def _renew(self, versions: tuple[int, ...]) -> None:
        self._versions = versions
        self._answers.clear()
        self._services = {}
        for service in self._listers.all("Service"):
            # Services without a selector match nothing, not everything.
            if service.selector_labels:
                self._services.setdefault(service.meta.namespace, []).append(service)
        self._any = any(self._listers.all(kind) for kind in _KINDS)

    def _deduce(self, pod: Pod) -> LabelSelector:
        labels: dict[str, str] = {}
        for service in self.services_of(pod):
            labels.update(service.selector_labels)
        selector = selector_from_labels(labels)
        owner = pod.meta.controller
        if owner is None:
            return selector
        kind = (owner.api_version, owner.kind)
        if kind == ("v1", "ReplicationController"):
            controller = self._listers.get(owner.kind, pod.namespace, owner.name)
            if controller is not None:
                selector = selector_from_labels({**labels, **controller.selector_labels})
        elif kind in (("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")):
            controller = self._listers.get(owner.kind, pod.namespace, owner.name)
            if controller is not None:
                selector = selector.add(controller.selector.requirements)
        return selector
