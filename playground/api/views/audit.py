"""The audit list of accounts (team mode)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.request import Request
from rest_framework.response import Response

from playground.accounts.audit import ACTIONS, entries_for, may_see_address
from playground.api.documentation import number, operation, query
from playground.api.pages import next_page
from playground.api.queries import whole_number
from playground.api.serializers import answers
from playground.api.views.base import PlaygroundView

if TYPE_CHECKING:
    from playground.accounts.row_types import AuditEntry

ENTRY = {
    "id": 17,
    "at": "2026-01-02T00:00:00Z",
    "actor": "ada",
    "action": "member-set",
    "words": ACTIONS["member-set"],
    "about": "grace",
    "team": "platform",
    "target": None,
    "detail": "viewer",
    "address": None,
}


class Audit(PlaygroundView):
    @operation(
        "Read the audit list",
        id="audit_list",
        answers_={200: answers.AuditEntries},
        errors=(400,),
        parameters=[
            number("limit", "How many at most.", least=1, most=200),
            number("before", "The id of an entry: only older ones.", least=1),
            query("action", f"Only one of: {', '.join(ACTIONS)}."),
        ],
        answer_example={"items": [ENTRY], "next": None},
        tag="teams",
        reads=True,
    )
    def get(self, request: Request) -> Response:
        """Newest first: what you did, what was done to your account, and all about teams you own.

        An administrator of the site reads everything. `next` is the path of the next page, or null.
        """
        if self.person is None:
            return Response({"items": [], "next": None})
        limit = whole_number(request, "limit", default=50, least=1, most=200) or 50
        before = whole_number(request, "before", least=1)
        rows = entries_for(self.person)
        if action := request.GET.get("action"):
            rows = rows.filter(action=action)
        if before:
            rows = rows.filter(pk__lt=before)
        found = list(rows[: limit + 1])
        items = [_shown(row, self.person) for row in found[:limit]]
        more = str(items[-1]["id"]) if len(found) > limit else None
        return Response({"items": items, "next": next_page(request, before=more)})


def _shown(row: AuditEntry, person: Any) -> dict[str, Any]:
    return {
        "id": row.pk,
        "at": row.at,
        "actor": row.actor_name or None,
        "action": row.action,
        "words": ACTIONS.get(row.action, row.action),
        "about": row.about_name or None,
        "team": row.team_name or None,
        "target": row.target or None,
        "detail": row.detail or None,
        "address": row.address or None if may_see_address(row, person) else None,
    }
