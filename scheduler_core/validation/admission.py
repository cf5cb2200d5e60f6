"""The door: what an API server makes of an object that is written, or why it refuses it.

Source: plugin/pkg/admission/priority/admission.go, v1.36
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scheduler_core.errors import ForbiddenObject, InvalidObject
from scheduler_core.objects.defaults import KeptPriority, PriorityClasses
from scheduler_core.objects.defaults import prepare as with_defaults
from scheduler_core.objects.fields import Document, boolean, mapping, string
from scheduler_core.objects.kinds import is_read, parse
from scheduler_core.releases import DEFAULT, Release
from scheduler_core.sim.admission import POD_UPDATES
from scheduler_core.validation.kinds import check_types, is_own, validate
from scheduler_core.validation.updates import check_priority_class_update


def prepare(
    manifest: Document, priority_classes: PriorityClasses | None = None, release: Release = DEFAULT
) -> dict[str, Any]:
    """Default and check an object, as an API server does before it stores one; its kind decides how.

    Parameters
    ----------
    manifest : mapping
        With `kind`; `metadata.namespace` and `metadata.uid` are filled in when absent.
    priority_classes : PriorityClasses, optional
        For pods and PodGroups to name; absent means the two built-in classes only.
    release : Release
        Whose rules and words apply.

    Raises
    ------
    InvalidObject
        Names the field and the value at fault, in Kubernetes' words.

    Examples
    --------
    >>> prepare({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"restartPolicy": "Never"}})
    Traceback (most recent call last):
    scheduler_core.errors.InvalidObject: spec.containers: Required value
    """
    result = admitted(manifest, priority_classes or PriorityClasses(), release=release)
    try:
        check_types(manifest)
    except InvalidObject as error:
        raise error.in_kubernetes_form() from None
    return result


def check(manifest: Document, release: Release) -> None:
    """Refuse what an API server refuses whichever PriorityClasses there are.

    Raises
    ------
    InvalidObject
    """
    try:
        ready = with_defaults(manifest, KeptPriority({})) if is_own(manifest) else manifest
        validate(ready, release)
        if is_read(ready):
            parse(ready)
        check_types(manifest)
    except InvalidObject as error:
        raise error.in_kubernetes_form() from None


def admitted(
    manifest: Document,
    classes: PriorityClasses,
    *,
    others: Iterable[Document] = (),
    old: Document | None = None,
    release: Release = DEFAULT,
) -> dict[str, Any]:
    """Default an object and check its rules, but for the types of its values (`check_types`).

    Parameters
    ----------
    classes
        The PriorityClasses of the cluster, for pods and PodGroups to name.
    others
        Their manifests, for a new PriorityClass to be compared with.
    old
        The object it replaces, defaulted: priorities are settled when objects are created.
    release
        Whose rules and words apply.

    Raises
    ------
    InvalidObject
    """
    try:
        return _admitted(manifest, classes, others, old, release)
    except InvalidObject as error:
        raise error.in_kubernetes_form() from None


def _admitted(
    manifest: Document,
    classes: PriorityClasses,
    others: Iterable[Document],
    old: Document | None,
    release: Release,
) -> dict[str, Any]:
    kind = string(manifest, "kind", "")
    if kind in ("Pod", "PodGroup") and old is not None:
        classes = KeptPriority(mapping(old, "spec", ""))
    result = with_defaults(manifest, classes)
    validate(result, release)
    if is_read(result):
        parse(result)
    if kind in ("Pod", "PodGroup") and old is not None:
        _check_priority_is_kept(result, old)
    if kind == "PriorityClass":
        check_only_default(result, others)
        if old is not None:
            check_priority_class_update(result, old)
    return result


def check_only_default(manifest: Document, others: Iterable[Document]) -> None:
    """Refuse a PriorityClass that would be the second default.

    Parameters
    ----------
    others : iterable of mapping
        The cluster's PriorityClasses; one of the same name is passed over.

    Raises
    ------
    ForbiddenObject
    """
    if not boolean(manifest, "globalDefault", ""):
        return
    name = string(mapping(manifest, "metadata", ""), "name", "metadata")
    for other in others:
        other_name = string(mapping(other, "metadata", ""), "name", "metadata")
        if other_name != name and boolean(other, "globalDefault", ""):
            words = f"PriorityClass {other_name} is already marked as default. Only one default can exist"
            raise ForbiddenObject("globalDefault", True, words)


def _check_priority_is_kept(new: Document, old: Document) -> None:
    before, after = mapping(old, "spec", ""), mapping(new, "spec", "")
    for key in ("priority", "preemptionPolicy", "priorityClassName"):
        if (after.get(key) or None) != (before.get(key) or None):
            if new["kind"] == "PodGroup":
                raise InvalidObject(f"spec.{key}", after.get(key), "field is immutable")
            raise ForbiddenObject(f"spec.{key}", after.get(key), POD_UPDATES)
