"""What a request says: the object of its path, its query parameters, and its body in whatever form it comes.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go, v1.34; ListOptions, GetOptions,
DeleteOptions, CreateOptions, UpdateOptions, PatchOptions and TableOptions in
staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go, v1.36
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest

from playground.bodies import media_type, read_body
from playground.clusters.errors import InvalidManifest
from playground.clusters.kinds import Kind, KindTable
from playground.clusters.objects.admission import MODES
from playground.kube_api import protobuf
from playground.kube_api.status import Refusal, check_fields
from scheduler_core.errors import FieldError, not_supported, required
from scheduler_core.objects.documents import load_document
from scheduler_core.schema.fields_check import nearest_name
from scheduler_core.schema.tables import table_beside

JSON_TYPES: Final = ("", "application/json")
YAML_TYPES: Final = ("application/yaml", "application/x-yaml", "text/yaml")
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = ("application/apply-patch+yaml",)
PATCH_TYPES: Final = (JSON_PATCH, MERGE, STRATEGIC, *APPLY)

UNKNOWN_FORMAT: Final = "the body of the request was in an unknown format - accepted media types include: "

LONGEST_MANAGER: Final = 128
MOST_BYTES: Final = 3 * 2**20
"""Of one body, packed or not: what a real API server reads, and far more than one object may have."""


def document_of(request: HttpRequest) -> dict[str, Any]:
    """The object in a body; empty without one. Clients that name no Content-Type send JSON.

    Raises
    ------
    Refusal, ClusterError, BodyTooLarge
    """
    kind = media_type(request)
    body = _body_of(request)
    if not body.strip():
        return {}
    if kind == protobuf.MEDIA_TYPE or (not kind and protobuf.is_protobuf(body)):
        return protobuf.decode(body)
    if not kind and "Origin" in request.headers:
        # A web page can send this without asking first; tools that name no type send no Origin either.
        raise Refusal("UnsupportedMediaType", "a body needs a Content-Type when an Origin is sent")
    if kind not in JSON_TYPES + YAML_TYPES:
        raise Refusal(
            "UnsupportedMediaType",
            UNKNOWN_FORMAT + "application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )
    return _loaded(body, json_only=kind in JSON_TYPES)


def patch_of(request: HttpRequest) -> tuple[str, Any]:
    """The type and the document of a patch.

    Raises
    ------
    Refusal, ClusterError, BodyTooLarge
    """
    kind = media_type(request)
    if kind not in PATCH_TYPES:
        raise Refusal("UnsupportedMediaType", UNKNOWN_FORMAT + ", ".join(PATCH_TYPES))
    body = _body_of(request)
    if kind == JSON_PATCH:
        # A JSON patch is a list, and the guarded reader reads objects.
        return kind, _loaded(b'{"patch":' + body + b"}", json_only=True).get("patch")
    return kind, _loaded(body, json_only=kind not in APPLY)


_OPTIONS: Final = {
    "POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions", "DELETE": "DeleteOptions",
}  # fmt: skip


def check_write_options(request: HttpRequest) -> None:
    """Refuse what the query of a write may not say.

    Source: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go, v1.34

    Raises
    ------
    Refusal
        Invalid.
    """
    asked, errors = request.GET, [*dry_run_errors(request.GET.getlist("dryRun"))]
    manager, mode = asked.get("fieldManager", ""), asked.get("fieldValidation", "")
    if request.method == "PATCH" and media_type(request) in APPLY:
        if not manager:
            errors.append(required("fieldManager", "is required for apply patch"))
    elif "force" in asked:
        words = "may not be specified for non-apply patch"
        errors.append(FieldError("FieldValueForbidden", "force", None, words))
    if len(manager) > LONGEST_MANAGER:
        words = f"may not be more than {LONGEST_MANAGER} bytes"
        errors.append(FieldError("FieldValueTooLong", "fieldManager", manager, words))
    if mode not in ("", *MODES):
        errors.append(not_supported("fieldValidation", mode, ("", *MODES)))
    if errors:
        check_fields(f'{_OPTIONS[str(request.method)]}.meta.k8s.io ""', errors)


def dry_run_errors(wanted: Any) -> Iterator[FieldError]:
    """What is wrong with ``dryRun``, of a query or in a body."""
    if wanted not in (None, [], [""], ["All"]):
        yield not_supported("dryRun", wanted, ["All"])


def _body_of(request: HttpRequest) -> bytes:
    return read_body(request, limit_bytes=min(MOST_BYTES, settings.PLAYGROUND_MAX_UPLOAD_BYTES))


def _loaded(body: bytes, *, json_only: bool) -> dict[str, Any]:
    try:
        document = load_document(body, json_only=json_only)
    except InvalidManifest as error:
        if error.status == 413:
            raise
        raise Refusal("BadRequest", f"the object provided is unrecognized: {error.message}") from None
    return {} if document is None else document


_LEFT_OUT: Final = ("annotations", "finalizers", "labels", "ownerReferences")


def manifest_of(document: dict[str, Any], kind: Kind, name: str = "", namespace: str = "") -> dict[str, Any]:
    """A body as an object of a kind: what it leaves out the path says, what it says must agree.

    Raises
    ------
    Refusal
        BadRequest.
    """
    if not document:
        raise Refusal("BadRequest", f"a {kind.kind} is expected in the body")
    api_version = document.get("apiVersion") or kind.api_version
    written = document.get("kind") or kind.kind
    if (api_version, written) != kind.key:
        raise Refusal(
            "BadRequest",
            f"{written} in version {api_version} cannot be handled as a {kind.kind} in {kind.api_version}",
        )
    metadata = document.get("metadata")
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        raise Refusal("BadRequest", "metadata: must be an object")
    if name:
        check_named(metadata, name)
        metadata = metadata | {"name": name}
    # As Go leaves them out: nothing of an empty map or list is written.
    metadata = {
        key: value for key, value in metadata.items() if key not in _LEFT_OUT or value not in ({}, [])
    }
    if namespace and metadata.get("namespace") not in (None, "", namespace):
        raise Refusal(
            "BadRequest",
            f"the namespace of the provided object does not match the namespace sent on the request:"
            f" {metadata['namespace']} is not {namespace}",
        )
    return {**document, "apiVersion": api_version, "kind": written, "metadata": metadata}


def check_named(metadata: Mapping[str, Any], name: str) -> None:
    """Refuse an object of another name than its path has.

    Raises
    ------
    Refusal
        BadRequest.
    """
    if metadata.get("name") not in (None, "", name):
        raise Refusal(
            "BadRequest",
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})",
        )


_EARLIER: Final[Mapping[str, str]] = table_beside(__package__, "protocol.yaml")["earlier"]
"""Versions upstream serves no more, whose fields are today's: an older `kubectl describe` reads objects in them."""


@dataclass(frozen=True, slots=True)
class Target:
    """A collection, an object, or a part of one.

    Attributes
    ----------
    kind
        Of the object.
    namespace
        Of the path; empty = all namespaces, or a cluster-scoped kind.
    name
        Empty = the collection.
    subresource
        ``status``, ``scale``, ``binding``, ``eviction``, ``resize``; empty = the object itself.
    earlier
        API version of an old client that reads one object; empty = the kind's own.
    """

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    earlier: str = ""


def target_of(table: KindTable, path: str) -> Target | None:
    """What a path like ``api/v1/namespaces/default/pods/web/binding`` is about; None if nothing we know.

    ``namespaces/{ns}/bindings`` is the old name of the binding of whichever pod the body names.
    """
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) > 2:
        api_version, rest = parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        api_version, rest = f"{parts[1]}/{parts[2]}", parts[3:]
    else:
        return None
    namespace = ""
    of_namespace = len(rest) > 2 and not (len(rest) == 3 and rest[2] in ("status", "finalize"))
    if rest[0] == "namespaces" and of_namespace:
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    if api_version == "v1" and plural == "bindings" and namespace and not name:
        pod = table.by_resource("v1", "pods")
        return Target(pod, namespace, "", "binding") if pod else None
    now = _EARLIER.get(f"{api_version}/{plural}", "") if name and not subresource else ""
    kind = table.by_resource(now or api_version, plural)
    if kind is None or not kind.is_stored or (namespace and not kind.namespaced):
        return None
    if name and kind.namespaced and not namespace:
        return None
    if subresource and subresource not in kind.subresources:
        return None
    return Target(kind, namespace, name, subresource, api_version if now else "")


KNOWN: Final[frozenset[str]] = frozenset(table_beside(__package__, "protocol.yaml")["parameters"])
"""Query parameters that there are."""


def unknown_parameters(given: Iterable[str]) -> list[str]:
    """A sentence for each unknown parameter.

    Raises
    ------
    Refusal
        BadRequest: one that is most likely another, misspelt.
    """
    told = []
    for name in given:
        if name in KNOWN:
            continue
        near = nearest_name(name, sorted(KNOWN))
        if near:
            raise Refusal("BadRequest", f'unknown query parameter "{name[:80]}" (did you mean {near}?)')
        told.append(f'unknown query parameter "{name[:80]}"')
    return told
