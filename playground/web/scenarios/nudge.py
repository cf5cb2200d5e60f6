"""A message that was lost is sent again when somebody still waits: rows are the truth, messages only wake."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.cache import cache
from django.utils import timezone

from playground.clusters import wake

PATIENCE_S = 45


def nudge(row: Any, task: str, **kwargs: Any) -> None:
    """Send a row's task again if it has waited long; at most once in a while, however many look."""
    if row is None or row.state != "queued" or row.created > timezone.now() - timedelta(seconds=PATIENCE_S):
        return
    if cache.add(f"scenarios:nudge:{task}:{row.pk}", 1, PATIENCE_S):
        wake.send(task, **kwargs)
