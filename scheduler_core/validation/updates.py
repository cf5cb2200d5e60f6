"""What an update may not change, in an API server's words.

Source: pkg/apis/{apps,batch,core,networking,node,rbac,storage,resource}/validation/validation.go (Validate...Update),
v1.34
Differs: a claim's size may be changed before it is bound, too; the difference of two specs is not printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.errors import FieldError, InvalidObject
from scheduler_core.schema.tables import table_beside

Document = Mapping[str, Any]


def _rule(name: str) -> Any:
    return table_beside(__package__, "rules.yaml")[name]


def check_update(kind: str, new: Document, old: Document) -> None:
    """Refuse updates of immutable fields.

    Parameters
    ----------
    new, old
        After defaulting.

    Raises
    ------
    InvalidObject
    """
    for path in _rule("immutable").get(kind, ()):
        if _at(new, path) != _at(old, path):
            raise _immutable(path, _at(new, path))
    spec, was = _mapping(new, "spec"), _mapping(old, "spec")
    match kind:
        case "ConfigMap" | "Secret":
            _data(new, old)
        case "Job":
            _job(spec, was)
        case "PersistentVolume":
            if _without(spec, _rule("volume")) != _without(was, _rule("volume")):
                words = "spec.persistentvolumesource is immutable after creation"
                raise _forbidden("spec.persistentvolumesource", words)
            if (spec.get("volumeMode") or "Filesystem") != (was.get("volumeMode") or "Filesystem"):
                raise _immutable("spec.volumeMode", spec.get("volumeMode"))
        case "PersistentVolumeClaim":
            _claim(spec, was)
        case "RoleBinding" | "ClusterRoleBinding":
            if _without(_mapping(new, "roleRef"), ("apiGroup",)) != _without(
                _mapping(old, "roleRef"), ("apiGroup",)
            ):
                raise _immutable("roleRef", dict(_mapping(new, "roleRef")), "cannot change roleRef")
        case "StatefulSet":
            if _without(spec, _rule("statefulSet")) != _without(was, _rule("statefulSet")):
                quoted = [f"'{name}'" for name in _rule("statefulSet")]
                listed = f"{', '.join(quoted[:-1])} and {quoted[-1]}"
                words = f"updates to statefulset spec for fields other than {listed} are forbidden"
                raise _forbidden("spec", words)


def _data(new: Document, old: Document) -> None:
    if not old.get("immutable"):
        return
    words = "field is immutable when `immutable` is set"
    if not new.get("immutable"):
        raise _forbidden("immutable", words)
    for key in ("data", "binaryData"):
        if (new.get(key) or None) != (old.get(key) or None):
            raise _forbidden(key, words)


def _job(spec: Document, was: Document) -> None:
    completions = spec.get("completions")
    if completions != was.get("completions"):
        if spec.get("completionMode") != "Indexed":
            raise _immutable("spec.completions", completions)
        if completions != spec.get("parallelism", 1):
            words = "can only be modified in tandem with spec.parallelism"
            raise _immutable("spec.completions", completions, words)
    template, before = _mapping(spec, "template"), _mapping(was, "template")
    if was.get("suspend"):
        template, before = _fixed(template), _fixed(before)
    if _clean(template) != _clean(before):
        raise _immutable("spec.template", dict(_mapping(spec, "template")))


def _fixed(template: Document) -> dict[str, Any]:
    meta = _without(_mapping(template, "metadata"), ("annotations", "labels"))
    return {**template, "metadata": meta, "spec": _without(_mapping(template, "spec"), _rule("scheduling"))}


def _claim(spec: Document, was: Document) -> None:
    aside = ["resources", "volumeAttributesClassName", "volumeMode", "dataSource", "dataSourceRef"]
    # Both are given by controllers, once.
    aside += [key for key in ("volumeName", "storageClassName") if not was.get(key)]
    if _without(spec, aside) != _without(was, aside):
        words = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName"
            " for bound claims"
        )
        raise _forbidden("spec", words)
    if (spec.get("volumeMode") or "Filesystem") != (was.get("volumeMode") or "Filesystem"):
        raise _immutable("spec.volumeMode", spec.get("volumeMode"))


def _at(document: Document, path: str) -> Any:
    found: Any = document
    for key in path.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return _clean(found) or _rule("defaults").get(path)


def _clean(value: Any) -> Any:
    """A value without what is the same whether it is written or not; None if nothing is left."""
    if isinstance(value, Mapping):
        return {key: left for key, item in value.items() if (left := _clean(item)) is not None} or None
    if isinstance(value, list):
        return [_clean(item) for item in value] or None
    return value


def _without(document: Document, keys: Any) -> Any:
    return _clean({key: value for key, value in document.items() if key not in keys}) or {}


def _mapping(document: Document, key: str) -> Document:
    found = document.get(key)
    return found if isinstance(found, Mapping) else {}


def _immutable(path: str, value: Any, words: str = "field is immutable") -> InvalidObject:
    return InvalidObject.of(FieldError("FieldValueInvalid", path, value, words))


def _forbidden(path: str, words: str) -> InvalidObject:
    return InvalidObject.of(FieldError("FieldValueForbidden", path, None, words))


def check_priority_class_update(new: Document, old: Document) -> None:
    """Refuse another value or policy of a PriorityClass, both defaulted.

    Raises
    ------
    InvalidObject
    """
    if (new.get("value") or 0) != (old.get("value") or 0):
        raise _forbidden("value", "may not be changed in an update.")
    policy = new.get("preemptionPolicy")
    if policy != (old.get("preemptionPolicy") or "PreemptLowerPriority"):
        raise _immutable("preemptionPolicy", policy)
