"""What was asked for and is not wanted any more."""

from __future__ import annotations

from django.db.models import QuerySet

from playground.scenarios.models import Luck, ModelCheck, Optimum, Upgrade

Asked = Luck | ModelCheck | Optimum | Upgrade
CANCELLED = "cancelled"


def cancel(rows: QuerySet[Luck] | QuerySet[ModelCheck] | QuerySet[Optimum] | QuerySet[Upgrade]) -> int:
    """End those of the rows that are open; how many. A worker that is at one stops within a second. Twice is once."""
    news = {"state": CANCELLED, "problem": "Cancelled."}
    if rows.model in (Optimum, Upgrade):
        news["step"] = ""
    return rows.filter(state__in=rows.model.OPEN).update(**news)
