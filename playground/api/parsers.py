"""Bodies that are settings rather than manifests."""

from __future__ import annotations

from typing import IO, Any, Final

from rest_framework.parsers import BaseParser

from playground.bodies import BodyTooLarge, decoded
from playground.clusters.drive.config import read_config
from playground.clusters.errors import InvalidInput
from scheduler_core.objects.documents import load_document, load_documents

MAX_BYTES: Final = 1024 * 1024


class StrictJSONParser(BaseParser):
    """One JSON object, read with the guards manifests have: depth, duplicate keys, NUL, endless numbers."""

    media_type = "application/json"
    json_only = True

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None
    ) -> dict[str, Any]:
        body = stream.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise BodyTooLarge(MAX_BYTES)
        encoding = parser_context["request"].headers.get("Content-Encoding", "") if parser_context else ""
        body = decoded(body, encoding, limit_bytes=MAX_BYTES)
        document = self.read(body)
        if document is None and body.strip():
            raise InvalidInput("the body holds nothing; an object is wanted")
        return document or {}

    def read(self, body: bytes) -> dict[str, Any] | None:
        """The document of a body; None for an empty one."""
        document: dict[str, Any] | None = load_document(body, json_only=self.json_only, max_bytes=MAX_BYTES)
        return document


class YAMLParser(StrictJSONParser):
    """The same in YAML, where people write it by hand."""

    media_type = "application/yaml"
    json_only = False


class ConfigurationParser(YAMLParser):
    """A scheduler configuration, also out of a ConfigMap among other manifests."""

    def read(self, body: bytes) -> dict[str, Any] | None:
        documents = [document.value for document in load_documents(body, max_bytes=MAX_BYTES)]
        return read_config(documents) if documents else None


class MergePatchParser(StrictJSONParser):
    """A merge patch (RFC 7386)."""

    media_type = "application/merge-patch+json"
