"""What of accounts is over: counts, sessions, tokens, invitations, old entries of the audit list."""

from __future__ import annotations

from datetime import datetime
from importlib import import_module

from django.conf import settings

from playground.accounts import audit, idempotency, invitations, limits, tokens


def tidy(*, now: datetime | None = None) -> dict[str, int]:
    """Drop it; how many, by name. Safe to run at any time and twice. Sessions are dropped by their own clock."""
    import_module(settings.SESSION_ENGINE).SessionStore.clear_expired()
    return {
        "counts": limits.forget_counts(now=None if now is None else now.timestamp()),
        "tokens": tokens.forget_expired(now=now),
        "invitations": invitations.forget_over(now=now),
        "audit": audit.forget_old(now=now),
        "keptAnswers": idempotency.forget_old(now=now),
    }
