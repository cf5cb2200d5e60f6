"""The pages that a cluster's header leads to."""

from dataclasses import dataclass
from typing import Any, Final

from django.urls import reverse


@dataclass(frozen=True)
class Tab:
    """One of them; ``key`` is what a view calls it."""

    key: str
    words: str
    path: str


OF_A_BRANCH: Final = ("difference", "Difference", "web:difference")
TABS: Final = (
    ("board", "Board", "web:board"),
    ("cycles", "Cycles", "web:cycles"),
    ("pods", "Pods", "web:pods"),
    ("plan", "Plan", "web:plan"),
    ("pod-new", "Submit pod", "web:pod-new"),
    ("import", "Import", "web:import"),
    ("config", "Config", "web:config"),
    ("replay", "Replay", "scenarios:replay"),
    ("share", "Share", "scenarios:share"),
    ("settings", "Cluster", "web:settings"),
)
"""Key, words and route of each, in their order."""


def tabs_of(cluster: Any) -> list[Tab]:
    """The tabs of a cluster; a branch has its difference before all others."""
    rows = (OF_A_BRANCH, *TABS) if getattr(cluster, "parent_id", None) else TABS
    return [Tab(key, words, reverse(route, args=[cluster.public_id])) for key, words, route in rows]
