"""Who owns whom among some manifests: an owner that came first would make once more what is there already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def generations(manifests: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many generations of what it owns are among the manifests, of each owner that is named.

    Parameters
    ----------
    manifests
        As a client wrote them: anything may be in their metadata.

    Returns
    -------
    dict of str to int
        Uid -> 1 for what owns objects that own nothing, 2 for the owner of such an owner, ... An owner that owns itself
        counts once.
    """
    owned: dict[str, set[str]] = {}
    for manifest in manifests:
        for owner in owner_uids_of(manifest):
            owned.setdefault(owner, set()).add(uid_of(manifest))
    heights: dict[str, int] = {}

    def height(uid: str, below: frozenset[str] = frozenset()) -> int:
        if uid not in owned or uid in below:
            return 0
        if uid not in heights:
            heights[uid] = 1 + max(height(child, below | {uid}) for child in owned[uid])
        return heights[uid]

    return {uid: height(uid) for uid in owned}


def uid_of(manifest: Mapping[str, Any]) -> str:
    """Empty where it says none."""
    uid = _mapping(manifest.get("metadata")).get("uid")
    return uid if isinstance(uid, str) else ""


def owner_uids_of(manifest: Mapping[str, Any]) -> list[str]:
    """Of the owners it names, without those that have none."""
    references = _mapping(manifest.get("metadata")).get("ownerReferences")
    uids = [_mapping(item).get("uid") for item in references] if isinstance(references, list) else []
    return [uid for uid in uids if isinstance(uid, str) and uid]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
