"""Small things of sharing that several pages need."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from playground.clusters.errors import InvalidInput


def site_user(request: HttpRequest) -> Any:
    """Who asks; None for the one person of embedded mode, and for nobody."""
    return request.user if not settings.EMBEDDED and request.user.is_authenticated else None


def expiry_of(days: str) -> datetime | None:
    """When a share that lives so many days expires; never if nothing is said.

    Raises
    ------
    InvalidInput
    """
    text = days.strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:6]) <= 3660:
        raise InvalidInput(
            "a share lives 1 to 3660 days, or until it is deleted", field="days", value=text[:20]
        )
    return timezone.now() + timedelta(days=int(text))
