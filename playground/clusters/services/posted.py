"""Posted text to objects, with the engine's problems turned into the services' errors."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings

from playground.clusters.errors import ClusterError, ForbiddenManifest, InvalidManifest, TooLarge, Unsupported
from playground.engine import admission
from playground.engine.admission import ManifestProblem, Posted

YAML_TYPES = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain")
JSON_TYPES = ("application/json",)


def read_posted(text: str | bytes, content_type: str = "application/yaml") -> list[Posted]:
    """Every object of a posted text. It may have been packed as it was sent (`playground.bodies` bounds that).

    Raises
    ------
    InvalidManifest, TooLarge, Unsupported
    """
    media_type = checked_media_type(content_type)
    limit = settings.PLAYGROUND_MAX_UNPACKED_BYTES
    try:
        return admission.read_posted(text, json_only=media_type in JSON_TYPES, max_bytes=limit)
    except ManifestProblem as problem:
        raise as_error(problem) from None


def checked_media_type(content_type: str) -> str:
    """Without its parameters, if manifests can be of that type.

    Raises
    ------
    Unsupported
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type not in YAML_TYPES + JSON_TYPES:
        raise Unsupported(f"{media_type or 'no media type'}: send application/yaml or application/json")
    return media_type


def as_error(problem: ManifestProblem, causes: Sequence[ManifestProblem] = ()) -> ClusterError:
    """The service's error of a problem; further problems of the same request go along as causes."""
    if problem.too_large:
        return TooLarge(problem.reason)
    facts: dict[str, Any] = {
        "document": problem.document,
        "line": problem.line,
        "column": problem.column,
        "path": problem.path,
        "value": problem.value,
        "kind": problem.kind,
        "name": problem.name,
        "type_": problem.type,
    }
    causes = [*problem.others, *causes]
    others = tuple(error for cause in causes if isinstance(error := as_error(cause), InvalidManifest))
    if problem.forbidden:
        return ForbiddenManifest(problem.reason, causes=others, **facts)
    return InvalidManifest(str(problem), causes=others, **facts)
