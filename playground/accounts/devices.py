"""Devices a person has logged in from: a signed cookie that says so, until the password changes.

It opens nothing by itself; `throttle` gives a known device counts of its own.
"""

from __future__ import annotations

import secrets
from typing import Any, Final

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse

from playground.accounts.models import User

COOKIE: Final = "known-device"
SALT: Final = "playground.accounts.devices"
KEPT_S: Final = 400 * 86_400


def remember_device(request: HttpRequest, response: HttpResponse, user: Any) -> None:
    """Make the browser a known device of a person who has just shown that the account is theirs."""
    known = known_device(request, user)
    value = signing.dumps([user.pk, known or secrets.token_hex(8), _stamp(user)], salt=SALT)
    response.set_cookie(
        COOKIE,
        value,
        max_age=KEPT_S,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
        path="/account/",
    )


def known_device(request: HttpRequest, user: User | None) -> str:
    """The device's id if it is a known one of this person; else empty."""
    if user is None:
        return ""
    try:
        owner, device, stamp = signing.loads(request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=KEPT_S)
    except (signing.BadSignature, ValueError, TypeError):
        return ""
    if owner != user.pk or not secrets.compare_digest(str(stamp), _stamp(user)):
        return ""
    return str(device)


def _stamp(user: User) -> str:
    """What changes with the password."""
    return user.get_session_auth_hash()[:16]
