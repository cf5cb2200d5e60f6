"""The audit list: who did what to accounts, teams, tokens and to what clusters show others; and who may read it.

Embedded mode has one person and no list.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils import timezone

from playground.accounts.choices import Role
from playground.accounts.models import AuditEntry, Team
from scheduler_core.schema.tables import table_beside

ACTIONS: Final[Mapping[str, str]] = table_beside(__package__, "audit.yaml")
MAX_ENTRIES: Final = 200_000
"""However many days are kept: a list that anybody's wrong passwords could fill a disk with is no list."""


def record(
    action: str,
    *,
    by: Any = None,
    about: Any = None,
    team: Team | None = None,
    target: str = "",
    detail: str = "",
    address: str = "",
) -> None:
    """Write one entry, in the transaction of the change it records.

    Parameters
    ----------
    action
        A key of `ACTIONS`.
    by
        Who did it; None for a stranger.
    about
        The person it was done to, if that is another.
    target
        What else it was done to, by name.
    address
        From where, where that matters.
    """
    if action not in ACTIONS:
        raise ValueError(f'"{action}" is no action of the audit list')
    if settings.EMBEDDED:
        return
    who = by if by is not None and getattr(by, "pk", None) else None
    AuditEntry.objects.create(
        at=timezone.now(),
        action=action,
        actor=who,
        actor_name=who.get_username() if who else "",
        about=about,
        about_name=about.get_username() if about else "",
        team=team,
        team_name=team.name if team else "",
        target=target[:300],
        detail=detail[:300],
        address=address[:45],
    )


def entries_for(user: Any, *, action: str = "", before: int | None = None) -> QuerySet[AuditEntry]:
    """Entries a person may read, newest first: what they did, what was done to them, and all of teams they own.

    An administrator (superuser) reads everything.

    Parameters
    ----------
    action
        Only this one.
    before
        Only older entries than this one.
    """
    rows = AuditEntry.objects.select_related("actor", "about").order_by("-pk")
    if action:
        rows = rows.filter(action=action)
    if before:
        rows = rows.filter(pk__lt=before)
    if user.is_superuser:
        return rows
    owned = user.memberships.filter(role=Role.OWNER).values("team")
    return rows.filter(Q(actor=user) | Q(about=user) | Q(team__in=owned))


def may_see_address(entry: AuditEntry, user: Any) -> bool:
    """Whether a person may read the address of an entry: their own, or any as an administrator."""
    return bool(user.is_superuser or user.pk in (entry.actor_id, entry.about_id))


def was_here(user: Any, address: str) -> bool:
    """Whether a person has logged in from an address within what the list keeps. One query."""
    return bool(address) and AuditEntry.objects.filter(about=user, action="login", address=address).exists()


def forget_old(*, now: datetime | None = None) -> int:
    """Drop what is older than `PLAYGROUND_KEEP_AUDIT_DAYS`, and the oldest beyond `MAX_ENTRIES`; how many."""
    before = (now or timezone.now()) - timedelta(days=settings.PLAYGROUND_KEEP_AUDIT_DAYS)
    dropped = AuditEntry.objects.filter(at__lt=before).delete()[0]
    first_too_many = AuditEntry.objects.order_by("-pk").values_list("pk", flat=True)[MAX_ENTRIES:][:1]
    for pk in first_too_many:
        dropped += AuditEntry.objects.filter(pk__lte=pk).delete()[0]
    return dropped
