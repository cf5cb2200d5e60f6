"""How an existing object takes a new manifest: what the writer may change and what stays the server's own."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Any, Final

from playground.clusters.custom_kinds import DEFINITION
from playground.clusters.kinds import Kind
from playground.engine.admission import as_read_today
from playground.engine.columns import budget_columns
from scheduler_core.errors import FieldError, InvalidObject
from scheduler_core.objects.reading import Posted
from scheduler_core.sim.admission import POD_UPDATES
from scheduler_core.validation.updates import check_update

_SPACE: Final = uuid.UUID("5f0c4f0e-6a5b-4a43-9d5e-2f3c1a7b9e10")
# Kubernetes' own alphabet for generated names: no vowels, no look-alikes.
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"


def object_uid(seed: int, kind: str, namespace: str, name: str, seq: int) -> str:
    """The uid of an object created as entry `seq`."""
    return str(uuid.uuid5(_SPACE, f"{seed}/{seq}/{kind}/{namespace}/{name}"))


def generated_name(prefix: str, seed: int, seq: int, *, attempt: int = 0) -> str:
    """A name for metadata.generateName: the prefix and five characters."""
    number = uuid.uuid5(_SPACE, f"{seed}/{seq}/{attempt}/{prefix}").int
    letters = []
    for _ in range(5):
        number, position = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[position])
    return prefix[:248] + "".join(letters)


# ---- What an API server gives a Service that its writer left out: cluster IP and node ports
#
# Helm and others wait for a Service until it has an address. The numbers follow from the sequence number of the entry
# that makes the Service, so that equal logs give equal addresses and no table of taken ones is kept.
#
# Source: pkg/registry/core/service/storage/{alloc,storage}.go (patchAllocatedValues), v1.34
# Differs: addresses and ports that others wrote are not looked at; families are always [IPv4].

FIRST_ADDRESS: Final = int(IPv4Address("10.96.1.0"))
N_ADDRESSES: Final = 2**20 - 2 * 256  # 10.96.0.0/12 without both ends
FIRST_NODE_PORT: Final = 30000
N_NODE_PORTS: Final = 2768
_WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")


def with_addresses(manifest: dict[str, Any], seq: int) -> dict[str, Any]:
    """A Service that is about to be created, with what it needs.

    Parameters
    ----------
    seq
        Of the entry that makes it.
    """
    spec = manifest.get("spec")
    if not isinstance(spec, Mapping) or spec.get("type") == "ExternalName":
        return manifest
    given = spec.get("clusterIPs") or []
    address = spec.get("clusterIP") or (given[0] if given else "")
    address = address or str(IPv4Address(FIRST_ADDRESS + seq % N_ADDRESSES))
    filled = {
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
        **spec,
        "clusterIP": address,
        "clusterIPs": given or [address],
    }
    return {**manifest, "spec": _with_node_ports(filled, seq)}


def with_kept_addresses(manifest: dict[str, Any], old: Mapping[str, Any], seq: int) -> dict[str, Any]:
    """A Service that takes the place of another, with the addresses that one was given.

    Parameters
    ----------
    old
        As stored.
    seq
        Of the entry that changes it, for what the other had no need of.
    """
    spec, was = manifest.get("spec"), old.get("spec")
    if not isinstance(spec, Mapping) or not isinstance(was, Mapping):
        return manifest
    spec = dict(spec)
    if spec.get("type") == "ExternalName":
        return manifest
    if was.get("type") != "ExternalName" and not spec.get("clusterIP") and was.get("clusterIP"):
        kept = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")
        spec = {key: was[key] for key in kept if key in was} | spec
    if was.get("type") in _WITH_NODE_PORTS and spec.get("type") in _WITH_NODE_PORTS:
        ports = {_port_key(port): port.get("nodePort") for port in was.get("ports") or ()}
        spec["ports"] = [
            port if port.get("nodePort") or not ports.get(_port_key(port))
            else {**port, "nodePort": ports[_port_key(port)]}
            for port in spec.get("ports") or ()
        ]  # fmt: skip
    return with_addresses({**manifest, "spec": spec}, seq)


def _with_node_ports(spec: dict[str, Any], seq: int) -> dict[str, Any]:
    ports = spec.get("ports") or []
    if spec.get("type") not in _WITH_NODE_PORTS or spec.get("allocateLoadBalancerNodePorts") is False:
        return spec
    numbered = []
    for place, port in enumerate(ports):
        # Neighbours in the log must not get neighbouring ports, as both may need several.
        free = FIRST_NODE_PORT + (seq * 7 + place * 997) % N_NODE_PORTS
        numbered.append({**port, "nodePort": port.get("nodePort") or free})
    return spec | {"ports": numbered}


def _port_key(port: Mapping[str, Any]) -> tuple[Any, Any]:
    return port.get("protocol") or "TCP", port.get("port")


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
