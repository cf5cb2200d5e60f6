"""One document of a request: what a client sends beside manifests (patches, options, settings)."""

from typing import Any

from playground.engine.admission import ManifestProblem
from scheduler_core.objects.documents import (
    MAX_BYTES,
    DocumentError,
    LoadedDocument,
    decoded,
    load_documents,
)

__all__ = ["DocumentError", "decoded", "load_all", "load_one"]


def load_one(text: bytes, *, json_only: bool = False, max_bytes: int = MAX_BYTES) -> Any:
    """The one document of a text, with the same guards as manifests have (depth, aliases, NUL, duplicates).

    Returns
    -------
    object
        A mapping, or None for an empty text.

    Raises
    ------
    ManifestProblem
        It cannot be read, is no mapping, or there are several.
    """
    documents = _loaded(text, json_only, max_bytes)
    if len(documents) > 1:
        raise ManifestProblem("one document is wanted here, not several", document=1, line=documents[1].line)
    return documents[0].value if documents else None


def load_all(text: bytes, *, max_bytes: int = MAX_BYTES) -> list[dict[str, Any]]:
    """Every document of a text, with the same guards.

    Raises
    ------
    ManifestProblem
        It cannot be read, or a document is no mapping.
    """
    return [document.value for document in _loaded(text, False, max_bytes)]


def _loaded(text: bytes, json_only: bool, max_bytes: int) -> list[LoadedDocument]:
    try:
        return load_documents(text, json_only=json_only, max_bytes=max_bytes)
    except DocumentError as error:
        raise ManifestProblem.of(error) from None
