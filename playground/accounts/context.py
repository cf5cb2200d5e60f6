"""What the header says about who is there."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest


def door(request: HttpRequest) -> dict[str, Any]:
    """`may_log_in`: whether this site has a login and no user is logged in."""
    user = getattr(request, "user", None)
    return {"may_log_in": not settings.EMBEDDED and not (user and user.is_authenticated)}
