"""One document of a request: what a client sends beside manifests (patches, options, settings)."""

from typing import Any

from playground.engine.admission import ManifestProblem
from scheduler_core.objects.documents import MAX_BYTES, DocumentError, decoded, load_documents

__all__ = ["decoded", "load_one"]


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
    try:
        documents = load_documents(text, json_only=json_only, max_bytes=max_bytes)
    except DocumentError as error:
        raise ManifestProblem.of(error) from None
    if len(documents) > 1:
        raise ManifestProblem("one document is wanted here, not several", document=1, line=documents[1].line)
    return documents[0].value if documents else None
