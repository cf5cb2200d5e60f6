"""Posted text to objects, by its media type."""

from django.conf import settings

from playground.clusters.errors import Unsupported
from playground.engine import admission
from playground.engine.admission import Posted

YAML_TYPES = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain")
JSON_TYPES = ("application/json",)


def read_posted(text: str | bytes, content_type: str = "application/yaml") -> list[Posted]:
    """Every object of a posted text. It may have been packed as it was sent (`playground.bodies` bounds that).

    Raises
    ------
    InvalidManifest, Unsupported
    """
    media_type = checked_media_type(content_type)
    limit = settings.PLAYGROUND_MAX_UNPACKED_BYTES
    return admission.read_posted(text, json_only=media_type in JSON_TYPES, max_bytes=limit)


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
