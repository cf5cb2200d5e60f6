"""Which release a recorded case is of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.releases import OLDEST, Release, release_named


def release_of(case: Mapping[str, Any]) -> Release:
    """The release of a case's `version`, its `features` switched; without one, the oldest release.

    Gates that a recording names for its own sake are left at what they are where the release has them locked.
    """
    release = release_named(case["version"], "version") if "version" in case else OLDEST
    return release.with_gates(case.get("features") or {})
