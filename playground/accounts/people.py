"""The people of a site, to be found."""

from __future__ import annotations

from django.db.models import QuerySet

from playground.accounts.models import User


def everyone() -> QuerySet[User]:
    """All accounts with their teams, unordered."""
    return User.objects.prefetch_related("memberships__team")


def person_by_number(user_id: int) -> User | None:
    """An account by its number, with its teams."""
    return everyone().filter(pk=user_id).first()


def person_named(name: str, *, active: bool = False) -> User | None:
    """An account by its name; `active`: only one that may log in. One query."""
    rows = User.objects.filter(username=name)
    return (rows.filter(is_active=True) if active else rows).first()
