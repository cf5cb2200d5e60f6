"""How an existing object takes a new manifest: what the writer may change and what stays the server's own."""

from collections.abc import Mapping
from typing import Any, Final

from playground.clusters.custom_kinds import DEFINITION
from playground.clusters.kinds import Kind
from playground.clusters.services.cluster_ips import with_kept_addresses
from playground.engine.admission import (
    POD_UPDATES,
    FieldError,
    InvalidObject,
    Posted,
    as_read_today,
    check_update,
)
from playground.engine.columns import budget_columns

SERVER_METADATA: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
)
NOT_KEPT: Final = ("managedFields", "selfLink", "generation", "resourceVersion")
_POD_MUTABLE: Final = (
    "activeDeadlineSeconds",
    "terminationGracePeriodSeconds",
    "tolerations",
    "schedulingGates",
)


def without_server_fields(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of a new object without what only an API server sets."""
    meta = {
        key: value
        for key, value in (manifest.get("metadata") or {}).items()
        if key not in NOT_KEPT and key not in ("deletionTimestamp", "deletionGracePeriodSeconds")
    }
    return dict(manifest) | {"metadata": meta}


def updated(
    kind: Kind, posted: Posted, old: Mapping[str, Any], new: Mapping[str, Any], seq: int
) -> dict[str, Any]:
    """The object after an update of everything but its status.

    Parameters
    ----------
    posted
        Where `new` came from, for the place of an error.
    old
        As stored.
    new
        After admission.
    seq
        Of the entry that will hold it.

    Raises
    ------
    InvalidManifest
        A field that may not change does.
    """
    old_meta = old["metadata"]
    meta = {key: value for key, value in new["metadata"].items() if key not in NOT_KEPT}
    for key in SERVER_METADATA:
        meta.pop(key, None)
        if key in old_meta:
            meta[key] = old_meta[key]
    try:
        check_update(kind.kind if kind.custom is None else "", new, as_read_today(old))
    except InvalidObject as error:
        raise posted.invalid(error) from None
    result = dict(new) | {"metadata": meta}
    # A node's status is what its kubelet reports, and here only the client can say it.
    # A definition's status is worked out with it, and a custom resource may have one that is a field like others.
    theirs = kind.row_kind == DEFINITION or (kind.custom is not None and "status" not in kind.subresources)
    if not theirs and not (kind.row_kind == "Node" and new.get("status")):
        result.pop("status", None)
        if "status" in old:
            result["status"] = old["status"]
    if (
        kind.row_kind == "PodDisruptionBudget"
        and result.get("spec") != old.get("spec")
        and budget_columns(old)["given"]
    ):
        # A status from elsewhere counted by the old rule: from here on it is computed.
        result.pop("status", None)
    if kind.row_kind == "Pod":
        result["spec"] = _pod_spec(posted, as_read_today(old)["spec"], dict(new["spec"]))
    if kind.row_kind == "Service":
        _check_address(posted, old.get("spec") or {}, new.get("spec") or {})
        result = with_kept_addresses(result, old, seq)
    if kind.has_generation:
        generation = int(old_meta.get("generation") or 1)
        meta["generation"] = generation + (1 if _wish(kind, result) != _wish(kind, old) else 0)
    return result


def _wish(kind: Kind, manifest: Mapping[str, Any]) -> Any:
    """What counts as another generation when it changes."""
    if kind.custom is None and "spec" in manifest:
        return manifest["spec"]
    told = kind.subresources if kind.custom is not None else ("status",)
    return {
        key: value for key, value in manifest.items() if key not in ("apiVersion", "kind", "metadata", *told)
    }


def same(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether an update would change nothing."""
    return _comparable(old) == _comparable(new)


def _comparable(manifest: Mapping[str, Any]) -> dict[str, Any]:
    meta = {
        key: value
        for key, value in manifest["metadata"].items()
        if key not in NOT_KEPT and value not in ({}, None)
    }
    return {key: value for key, value in manifest.items() if value is not None} | {"metadata": meta}


def _check_address(posted: Posted, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Source: pkg/apis/core/validation/validation.go ValidateServiceClusterIPsRelatedFields, v1.34."""
    external = "ExternalName" in (old.get("type"), new.get("type"))
    was, wanted = old.get("clusterIP"), new.get("clusterIP")
    if not external and was and wanted and was != wanted:
        given = new.get("clusterIPs") or [wanted]
        words = "may not change once set"
        raise posted.invalid(
            InvalidObject.of(FieldError("FieldValueInvalid", "spec.clusterIPs[0]", given, words))
        )


def _pod_spec(posted: Posted, old: Mapping[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Source: pkg/apis/core/validation/validation.go ValidatePodUpdate, v1.34."""
    if old.get("nodeName") and not new.get("nodeName"):
        new["nodeName"] = old["nodeName"]
    for key in ("serviceAccountName", "serviceAccount"):
        if key in old:
            new[key] = old[key]
    gates = [gate.get("name") for gate in new.get("schedulingGates") or ()]
    known = [gate.get("name") for gate in old.get("schedulingGates") or ()]
    for position, gate in enumerate(gates):
        if gate not in known:
            raise posted.problem(
                "a gate may be removed, not added", path=f"spec.schedulingGates[{position}].name", value=gate
            )
    for toleration in old.get("tolerations") or ():
        if toleration not in (new.get("tolerations") or ()):
            new.setdefault("tolerations", []).append(toleration)
    # While gated, a pod may still be told more narrowly where to go.
    loose = ("nodeSelector", "affinity") if known else ()
    for key in sorted({*old, *new}):
        if key in _POD_MUTABLE or key in loose or _images_aside(old.get(key)) == _images_aside(new.get(key)):
            continue
        error = FieldError("FieldValueForbidden", f"spec.{key}", None, POD_UPDATES)
        raise posted.invalid(InvalidObject.of(error))
    return new


def _images_aside(value: Any) -> Any:
    if not isinstance(value, list):
        return value or None
    loose = ("image", "imagePullPolicy")
    return [
        {key: item for key, item in part.items() if key not in loose} if isinstance(part, dict) else part
        for part in value
    ] or None


__all__ = ["same", "updated", "without_server_fields"]
