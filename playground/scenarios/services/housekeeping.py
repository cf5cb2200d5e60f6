"""What is of no use any more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from django.db.models import QuerySet
from django.utils import timezone

from playground.scenarios.models import Comparison, Luck, LuckEnd, Scenario, Verdict, Verification
from playground.scenarios.services.storage import count_all

KEPT_PROOFS: Final = 20
"""Of each share, the newest."""
BATCH: Final = 500


def tidy(*, now: datetime | None = None, limit: int = 20_000) -> dict[str, int]:
    """Drop what has expired with all that was found out about it, comparisons of shares that are gone, old proofs.

    An expired share is not shown, tidied or not. Every share holds a document of its own, so none of the same
    content is touched. Safe to run at any time and twice.

    Returns
    -------
    dict of str to int
        How many, by name.
    """
    moment = now or timezone.now()
    # First the shares: what compares them goes in the same round.
    shares = _delete(Scenario.objects.filter(expires__lte=moment), limit)
    dropped = {
        "shares": shares,
        "comparisons": _delete(Comparison.objects.filter(expires__lte=moment), limit)
        + _comparisons_of_nothing(limit),
        "verdicts": _delete(Verdict.objects.filter(expires__lte=moment), limit),
        "proofs": _old_proofs(limit),
        "seeds": _delete(LuckEnd.objects.exclude(luck__state=Luck.State.QUEUED), limit),
    }
    count_all()
    return dropped


def _comparisons_of_nothing(limit: int) -> int:
    """Comparisons of which a share is gone; they are not shown any more."""
    known = set(Scenario.objects.values_list("public_id", flat=True))
    rows = Comparison.objects.order_by("pk").values_list("pk", "a", "b", "more")
    gone = [
        pk
        for pk, a, b, more in rows.iterator(BATCH)
        if any(side["kind"] == "scenario" and side["id"] not in known for side in (a, b, *more))
    ]
    return _delete_keys(Comparison, gone[:limit])


def _old_proofs(limit: int) -> int:
    """Finished proofs beyond the newest of each share."""
    old = Verification.objects.exclude(state=Verification.State.QUEUED).order_by("scenario_id", "-pk")
    seen: dict[int, int] = {}
    chosen = []
    for pk, scenario_id in old.values_list("pk", "scenario_id").iterator(2000):
        seen[scenario_id] = seen.get(scenario_id, 0) + 1
        if seen[scenario_id] > KEPT_PROOFS:
            chosen.append(pk)
    return _delete_keys(Verification, chosen[:limit])


def _delete(rows: QuerySet[Any], limit: int) -> int:
    """Delete rows and what hangs on them; how many rows."""
    return _delete_keys(rows.model, list(rows.order_by("pk").values_list("pk", flat=True)[:limit]))


def _delete_keys(model: Any, keys: Sequence[int]) -> int:
    for start in range(0, len(keys), BATCH):
        model.objects.filter(pk__in=keys[start : start + BATCH]).delete()
    return len(keys)
