"""Bodies of requests as objects, whatever form they come in."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest

from playground.bodies import media_type, read_body
from playground.clusters.errors import InvalidManifest
from playground.clusters.kinds import Kind
from playground.kube_api import protobuf
from playground.kube_api.status import Refusal
from scheduler_core.objects.documents import load_document

JSON_TYPES: Final = ("", "application/json")
YAML_TYPES: Final = ("application/yaml", "application/x-yaml", "text/yaml")
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = ("application/apply-patch+yaml", "application/apply-patch+cbor")[:1]
PATCH_TYPES: Final = (JSON_PATCH, MERGE, STRATEGIC, *APPLY)

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
            "the body of the request was in an unknown format - accepted media types include:"
            " application/json, application/yaml, application/vnd.kubernetes.protobuf",
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
        raise Refusal(
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: "
            + ", ".join(PATCH_TYPES),
        )
    body = _body_of(request)
    if kind == JSON_PATCH:
        # A JSON patch is a list, and the guarded reader reads objects.
        return kind, _loaded(b'{"patch":' + body + b"}", json_only=True).get("patch")
    return kind, _loaded(body, json_only=kind not in APPLY)


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
        if metadata.get("name") not in (None, "", name):
            raise Refusal(
                "BadRequest",
                f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})",
            )
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
