"""Objects and lists in the form a client asked for, with what a kubelet would say; nothing of that is kept.

The simulation takes a node without a Ready condition for ready. `kubectl get nodes` and
`kubectl wait --for=condition=Ready` want to read it. Clients count on the API's defaults, too (`read_defaults`).

Addresses follow from a node's name and a pod's uid, so that they stay and nothing has to be kept: nodes are in
10.128.0.0/9, pods below 10.96.0.0, where Services begin. Two of many thousands may have the same one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import heapq
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from django.http import HttpRequest

from playground.clusters.clock import virtual_now_ns
from playground.clusters.kinds import Kind
from playground.clusters.objects.queries import (
    ObjectSelection,
    n_objects_after,
    node_addresses,
    selected_objects,
    selection_of,
)
from playground.clusters.row_types import Cluster
from playground.kube_api.built_in import built_in_objects
from playground.kube_api.requests import Target
from playground.kube_api.status import Refusal, check_fields
from playground.kube_api.tables import partial, table
from scheduler_core.errors import FieldError, not_supported
from scheduler_core.objects.defaults import pull_policy
from scheduler_core.releases import release_from
from scheduler_core.schema.tables import kinds, table_beside, types

_DEFAULTS: Final[Mapping[str, Mapping[str, Document]]] = table_beside(__package__, "read_defaults.yaml")
_SYSTEM: Final[Mapping[str, str]] = table_beside(__package__, "protocol.yaml")["system"]


def presented(
    kind: Kind, manifest: dict[str, Any], patch: str, hosts: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The object with what was left out and every client looks for; nodes run the cluster's release (`v1.36.2`).

    Parameters
    ----------
    hosts
        Addresses of nodes that have one written down, by name, as far as pods need them (`node_wanted`).
    """
    if kind.row_kind == "Node":
        return _node(manifest, patch)
    if kind.row_kind == "Pod":
        manifest = _with_addresses(manifest, hosts or {})
    return with_read_defaults(kind.row_kind, manifest)


def _node(manifest: dict[str, Any], patch: str) -> dict[str, Any]:
    status = manifest.get("status") or {}
    conditions = list(status.get("conditions") or ())
    added: dict[str, Any] = {}
    if not any(isinstance(item, Mapping) and item.get("type") == "Ready" for item in conditions):
        since = manifest["metadata"].get("creationTimestamp")
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "the simulated kubelet is ready",
            "lastHeartbeatTime": since,
            "lastTransitionTime": since,
        }
        added["conditions"] = [*conditions, ready]
    if not status.get("addresses"):
        name = manifest["metadata"]["name"]
        added["addresses"] = [
            {"type": "InternalIP", "address": _address(name, 128, 128)},
            {"type": "Hostname", "address": name},
        ]
    if not status.get("nodeInfo"):
        added["nodeInfo"] = {**_SYSTEM, "kubeletVersion": patch}
    return {**manifest, "status": {**status, **added}} if added else manifest


def node_wanted(manifest: Mapping[str, Any]) -> str:
    """The node of a pod that was started and has no address; empty for all others."""
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    started = status.get("phase") == "Running" or status.get("containerStatuses")
    node = spec.get("nodeName")
    return node if isinstance(node, str) and started and not status.get("podIP") else ""


def internal_address(addresses: Any) -> str:
    """The InternalIP among a node's addresses; empty if none is written down."""
    for item in addresses if isinstance(addresses, list) else ():
        if isinstance(item, Mapping) and item.get("type") == "InternalIP" and item.get("address"):
            return str(item["address"])
    return ""


def _with_addresses(manifest: dict[str, Any], hosts: Mapping[str, str]) -> dict[str, Any]:
    """A pod that was started, with its addresses and its node's."""
    node = node_wanted(manifest)
    if not node:
        return manifest
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    host = status.get("hostIP") or hosts.get(node) or _address(node, 128, 128)
    own = host if spec.get("hostNetwork") else _address(str(manifest["metadata"].get("uid")), 0, 96)
    addresses = {"hostIP": host, "hostIPs": [{"ip": host}], "podIP": own, "podIPs": [{"ip": own}]}
    return {**manifest, "status": {**status, **addresses}}


def _address(text: str, first: int, n: int) -> str:
    """An address from 10.{first}.0.1 on, out of n networks of 16 bits."""
    number = hashlib.sha256(text.encode()).digest()
    return f"10.{first + number[0] % n}.{number[1]}.{1 + number[2] % 254}"


_AS: Final = re.compile(r"as=(Table|PartialObjectMetadataList|PartialObjectMetadata)")
_META: Final = re.compile(r"v=(v1beta1|v1)\b")


@dataclass(frozen=True, slots=True)
class Form:
    """How objects are wanted: themselves, as a Table, or only their metadata.

    Attributes
    ----------
    shape
        Empty, ``Table`` or ``PartialObjectMetadata``.
    api_version
        Of the wrapping object.
    include
        What of each object a Table row carries.
    """

    shape: str = ""
    api_version: str = "meta.k8s.io/v1"
    include: str = "Metadata"

    def one(self, cluster: Cluster, kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
        """One object."""
        [shown] = _presented(cluster, kind, [manifest])
        if self.shape == "Table":
            version = shown["metadata"].get("resourceVersion", "")
            return self._table(cluster, kind, [shown], {"resourceVersion": version})
        return partial(shown) if self.shape else shown

    def many(
        self, cluster: Cluster, kind: Kind, manifests: list[dict[str, Any]], metadata: dict[str, Any]
    ) -> dict[str, Any]:
        """A list."""
        shown = _presented(cluster, kind, manifests)
        if self.shape == "Table":
            return self._table(cluster, kind, shown, metadata)
        list_kind, api_version = f"{kind.kind}List", kind.api_version
        if self.shape:
            list_kind, api_version, shown = f"{self.shape}List", self.api_version, [*map(partial, shown)]
        return {"kind": list_kind, "apiVersion": api_version, "metadata": metadata, "items": shown}

    def _table(
        self, cluster: Cluster, kind: Kind, shown: list[dict[str, Any]], metadata: dict[str, Any]
    ) -> dict[str, Any]:
        now_ns = virtual_now_ns(cluster)
        how = {"api_version": self.api_version, "include": self.include}
        return table(kind, shown, now_ns, metadata=metadata, **how)


def _presented(cluster: Cluster, kind: Kind, manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    patch, hosts = release_from(cluster.release).patch, _hosts(cluster, kind, manifests)
    return [presented(kind, manifest, patch, hosts) for manifest in manifests]


def _hosts(cluster: Cluster, kind: Kind, manifests: list[dict[str, Any]]) -> dict[str, str]:
    """Addresses that nodes of these pods have written down. One query, if a pod needs one."""
    if kind.row_kind != "Pod":
        return {}
    names = {node_wanted(manifest) for manifest in manifests} - {""}
    if not names:
        return {}
    found = node_addresses(cluster, names)
    return {name: internal_address(listed) for name, listed in found.items()}


def form_of(request: HttpRequest) -> Form:
    """The first form in `Accept` that we have; JSON objects if there is none.

    Raises
    ------
    Refusal
        BadRequest: includeObject is none of its three words.
    """
    include = request.GET.get("includeObject") or "Metadata"
    if include not in ("None", "Metadata", "Object"):
        raise Refusal("BadRequest", f'includeObject: "{include}" is none of None, Metadata, Object')
    for part in request.headers.get("Accept", "").split(","):
        if "json" not in part:
            continue
        wanted = _AS.search(part)
        if wanted is None:
            return Form()
        version = _META.search(part)
        shape = wanted[1].removesuffix("List")
        return Form(shape, f"meta.k8s.io/{version[1] if version else 'v1'}", include)
    return Form()


def selection_for(request: HttpRequest, target: Target) -> ObjectSelection:
    """The selectors of a query."""
    return selection_of(
        target.kind, request.GET.get("labelSelector", ""), request.GET.get("fieldSelector", "")
    )


def list_of(request: HttpRequest, cluster: Cluster, target: Target) -> dict[str, Any]:
    """A collection, or one page of it, in the form that is wanted.

    Raises
    ------
    Refusal
    """
    found, metadata = page_of(request, cluster, target)
    return form_of(request).many(cluster, target.kind, found, metadata)


def page_of(
    request: HttpRequest, cluster: Cluster, target: Target
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The objects of a page, and the list's metadata.

    Raises
    ------
    Refusal
    """
    check_version_match(request, watches=False)
    selection = selection_for(request, target)
    limit = whole(request, "limit")
    after = _continued(request.GET.get("continue", ""), cluster)
    version = str(after[0] if after else cluster.last_seq)
    _check_version(request, cluster)
    found: list[dict[str, Any]] = []
    more = False
    found_all = selected_objects(
        cluster,
        target.kind,
        selection,
        namespace=target.namespace or None,
        name=target.name,
        after=after and after[1:],
    )
    for manifest in _with_built_in(cluster, target, selection, found_all, after and after[1:]):
        if limit and len(found) == limit:
            more = True
            break
        found.append(manifest)
    metadata: dict[str, Any] = {"resourceVersion": version}
    if more:
        last = found[-1]["metadata"]
        token = {
            "v": int(version),
            "g": cluster.generation,
            "after": [last.get("namespace", ""), last["name"]],
        }
        metadata["continue"] = base64.urlsafe_b64encode(json.dumps(token).encode()).decode()
        if not selection:  # as upstream: what a selector leaves out is not counted
            metadata["remainingItemCount"] = _remaining(cluster, target, selection, _place(found[-1]))
    return found, metadata


def _remaining(cluster: Cluster, target: Target, selection: ObjectSelection, last: tuple[str, str]) -> int:
    """How many objects come after the last one of a page. One query."""
    built_in = built_in_objects(cluster, target, selection)
    written = n_objects_after(cluster, target.kind, last, namespace=target.namespace)
    return written + sum(_place(manifest) > last for manifest in built_in)


def _with_built_in(
    cluster: Cluster,
    target: Target,
    selection: ObjectSelection,
    found: Iterator[dict[str, Any]],
    after: tuple[str, str] | None,
) -> Iterator[dict[str, Any]]:
    """What was written, and what is there without being written, in one order."""
    built_in = (
        manifest
        for manifest in built_in_objects(cluster, target, selection)
        if after is None or _place(manifest) > after
    )
    return heapq.merge(found, built_in, key=_place)


def _place(manifest: dict[str, Any]) -> tuple[str, str]:
    meta = manifest["metadata"]
    return meta.get("namespace", ""), meta["name"]


def _continued(token: str, cluster: Cluster) -> tuple[int, str, str] | None:
    if not token:
        return None
    try:
        document = json.loads(base64.urlsafe_b64decode(token.encode()))
        version, generation = int(document["v"]), int(document["g"])
        namespace, name = document["after"]
        known = isinstance(namespace, str) and isinstance(name, str) and "\0" not in namespace + name
    except (ValueError, TypeError, KeyError, binascii.Error, UnicodeError, RecursionError):
        known = False
    if not known:
        raise Refusal("BadRequest", "continue key is not valid: it did not come from a list of this cluster")
    if generation != cluster.generation:
        raise Refusal("Expired", "The provided continue parameter is too old: the cluster was reset.")
    return version, namespace, name


def _check_version(request: HttpRequest, cluster: Cluster) -> None:
    wanted = whole(request, "resourceVersion")
    if wanted > cluster.last_seq:
        raise Refusal("Timeout", f"Too large resource version: {wanted}, current: {cluster.last_seq}")
    if request.GET.get("resourceVersionMatch") == "Exact" and wanted != cluster.last_seq:
        raise Refusal("Expired", "The provided resource version is too old: only the newest state is kept.")


def check_version_match(request: HttpRequest, *, watches: bool) -> None:
    """Refuse parameters about versions that contradict each other, of a list or a watch.

    Source: staging/src/k8s.io/apimachinery/pkg/apis/meta/internalversion/validation/validation.go, v1.36

    Raises
    ------
    Refusal
        Invalid.
    """
    match, version = (request.GET.get(name, "") for name in ("resourceVersionMatch", "resourceVersion"))
    has_initial, goes_on = "sendInitialEvents" in request.GET, bool(request.GET.get("continue"))
    allowed = ("NotOlderThan",) if watches else ("Exact", "NotOlderThan", "")
    forbidden = {
        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan": (
            watches and has_initial and match != "NotOlderThan"
        ),
        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided": (
            watches and match and not has_initial
        ),
        "resourceVersionMatch is forbidden unless resourceVersion is provided": (
            not watches and match and not version
        ),
        "resourceVersionMatch is forbidden when continue is provided": match and goes_on,
        'resourceVersionMatch "exact" is forbidden for resourceVersion "0"': (
            not watches and match == "Exact" and version == "0"
        ),
    }
    faults = [
        FieldError("FieldValueForbidden", "resourceVersionMatch", match, words)
        for words, is_so in forbidden.items()
        if is_so
    ]
    if match and match not in allowed:
        faults.append(not_supported("resourceVersionMatch", match, allowed))
    if has_initial and not watches:
        words = "sendInitialEvents is forbidden for list"
        faults.append(FieldError("FieldValueForbidden", "sendInitialEvents", None, words))
    check_fields('ListOptions.meta.k8s.io ""', faults)


def whole(request: HttpRequest, name: str) -> int:
    """A whole number of the query; 0 if it is absent.

    Raises
    ------
    Refusal
        BadRequest.
    """
    text = request.GET.get(name, "")
    if text and not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise Refusal("BadRequest", f'{name}: "{text}" is not a whole number')
    return int(text or 0)


def switched(request: HttpRequest, name: str) -> bool:
    """A boolean of the query; absent = False.

    Raises
    ------
    Refusal
        BadRequest.
    """
    text = request.GET.get(name, "").lower()
    if text not in ("", "0", "1", "true", "false", "t", "f"):
        raise Refusal("BadRequest", f'{name}: "{text}" is neither true nor false')
    return text in ("1", "true", "t")


# ---- defaults that stored objects are read with

Document = Mapping[str, Any]


def with_read_defaults(kind: str, manifest: Document) -> dict[str, Any]:
    """The object with every default; parts that need none are shared, and nothing wrong is looked at."""
    of_kind = _DEFAULTS["kinds"].get(kind, {})
    return _filled(_types_of_kinds().get(kind, ""), _merged(of_kind, manifest))


@cache
def _types_of_kinds() -> Mapping[str, str]:
    """Kind -> its type; all versions of a kind have the same defaults."""
    return {said["kind"]: said["type"] for said in reversed(kinds())}


@cache
def _below(type_name: str) -> tuple[tuple[str, str, bool], ...]:
    """Fields of a type with defaults in them: name, type, and whether it is a list."""
    return tuple(
        (name, field.item, field.type.startswith("[]"))
        for name, field in types().get(type_name, {}).items()
        if not field.type.startswith("{}") and _has_defaults(field.item, frozenset())
    )


def _has_defaults(type_name: str, above: frozenset[str]) -> bool:
    if type_name in _DEFAULTS["types"] or type_name in _COMPUTED:
        return True
    if type_name in above:
        return False
    fields = types().get(type_name, {})
    return any(_has_defaults(field.item, above | {type_name}) for field in fields.values())


def _filled(type_name: str, value: Document) -> dict[str, Any]:
    result = _merged(_DEFAULTS["types"].get(type_name, {}), value)
    for name, inner, is_list in _below(type_name):
        part = result.get(name)
        if is_list and isinstance(part, list) and part:
            result[name] = [_filled(inner, item) if isinstance(item, Mapping) else item for item in part]
        elif not is_list and isinstance(part, Mapping):
            result[name] = _filled(inner, part)
    return {**_COMPUTED[type_name](value), **result} if type_name in _COMPUTED else result


def _merged(defaults: Document, value: Document) -> dict[str, Any]:
    result = {**defaults, **value}
    for name, default in defaults.items():
        if isinstance(default, Mapping):
            part = value.get(name)
            if part is None:
                result[name] = default
            elif isinstance(part, Mapping):
                result[name] = _merged(default, part)
    return result


def _pull_policy(container: Document) -> Document:
    image = container.get("image")
    return {"imagePullPolicy": pull_policy(image if isinstance(image, str) else "")}


_COMPUTED: Final[Mapping[str, Callable[[Document], Document]]] = {
    "core.v1.Container": _pull_policy,
    "core.v1.EphemeralContainer": _pull_policy,
    "core.v1.ServicePort": lambda port: {"targetPort": port["port"]} if "port" in port else {},
    "core.v1.Volume": lambda volume: {"emptyDir": {}} if set(volume) <= {"name"} else {},
}
"""Defaults that depend on other fields."""
