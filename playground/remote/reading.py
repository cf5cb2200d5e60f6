"""What an answer of the API says, in few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def reasons_of(explained: Mapping[str, Any]) -> list[tuple[str, str, list[str]]]:
    """(plugin, reason, nodes) of a cycle's explanation, that of most nodes first.

    A plugin that rejects the pod before any node is looked at has no nodes.
    """
    before = explained.get("preFilter") or {}
    if before.get("reasons") and explained.get("filter") is None:
        return [(before.get("plugin") or "", reason, []) for reason in before["reasons"]]
    nodes: dict[tuple[str, str], list[str]] = {}
    for node, verdict in (explained.get("filter") or {}).items():
        for reason in (verdict or {}).get("reasons") or ():
            nodes.setdefault((verdict.get("plugin") or "", reason), []).append(node)
    return sorted(
        ((plugin, reason, found) for (plugin, reason), found in nodes.items()), key=lambda item: -len(item[2])
    )
