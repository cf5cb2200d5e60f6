"""The audit list."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from playground.accounts.audit import ACTIONS, entries_for, may_see_address
from playground.web.accounts.access import team_mode
from playground.web.numbers import positive_int

SHOWN = 50


@team_mode
@require_safe
def audit(request: HttpRequest) -> HttpResponse:
    """What the person may read of it, newest first; ``?action=`` chooses, ``?before=`` goes on."""
    rows = entries_for(request.user).select_related("actor", "about")
    action, before = request.GET.get("action", ""), positive_int(request.GET.get("before"))
    if action:
        rows = rows.filter(action=action)
    if before:
        rows = rows.filter(pk__lt=before)
    found = list(rows[: SHOWN + 1])
    entries: list[dict[str, Any]] = [
        {
            "row": row,
            "words": ACTIONS.get(row.action, row.action),
            "address": row.address if may_see_address(row, request.user) else "",
        }
        for row in found[:SHOWN]
    ]
    context = {
        "entries": entries,
        "actions": ACTIONS,
        "action": action,
        "next": found[SHOWN - 1].pk if len(found) > SHOWN else None,
    }
    return render(request, "accounts/audit.html", context)
