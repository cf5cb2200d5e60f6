"""How many passwords may be tried: counted before each try, so that many at once are no way around it.

Each window begins with its first try and ends after `WINDOW_S`, however often it is knocked at meanwhile. Right
passwords give their counts back.

==========================  =====================================================================
a known device of the name  its own count alone: no stranger's failures lock out who has a device
a name from an address      ten
an address, all names       forty: trying one password on many names is slowed as well
a name, all addresses       fifty from where it was never seen: many addresses are slowed as well
==========================  =====================================================================

A device becomes known by a login, an accepted invitation or a reset link; so the owner of the account gets in with a
reset link even while others keep trying its name.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse

from playground.accounts import audit
from playground.accounts.addresses import origin_of
from playground.accounts.limits import count, give_back
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
    """A value that changes with the password."""
    return user.get_session_auth_hash()[:16]


WINDOW_S: Final = 300
PER_DEVICE: Final = 10
PER_NAME_AND_ADDRESS: Final = 10
PER_ADDRESS: Final = 40
PER_NAME: Final = 50


@dataclass(frozen=True, slots=True)
class LoginAttempt:
    """One try that was counted.

    Attributes
    ----------
    wait_s
        0 if the password may be tried, else the seconds until the window is over.
    is_first_refusal
        Of its window, so that it is told once.
    """

    keys: tuple[str, ...]
    wait_s: int = 0
    is_first_refusal: bool = False

    def succeeded(self) -> None:
        """The password was right: it does not count."""
        for key in self.keys:
            give_back(key)


def count_login(
    *, name: str, address: str, user: User | None, device: str = "", now: float | None = None
) -> LoginAttempt:
    """Count one try of a password before it is tried.

    Parameters
    ----------
    name
        As it was typed.
    user
        Whose name that is, if anybody's.
    device
        Id of the device, if it is a known one of this user; else empty.
    """
    origin = origin_of(address)
    folded = name.strip().casefold()
    if device and user is not None:
        buckets = [(f"device {user.pk} {device}", PER_DEVICE)]
    else:
        buckets = [(f"address {origin}", PER_ADDRESS), (f"both {origin} {folded}", PER_NAME_AND_ADDRESS)]
        if user is None or not audit.was_here(user, address):
            buckets.append((f"name {folded}", PER_NAME))
    return _count(buckets, now)


def count_password(*, user: User, now: float | None = None) -> LoginAttempt:
    """Count one try of the old password that a person who is logged in has to give."""
    return _count([(f"own {user.pk}", PER_DEVICE)], now)


def _count(buckets: list[tuple[str, int]], now: float | None) -> LoginAttempt:
    wall = int(time.time() if now is None else now)
    keys: list[str] = []
    for bucket, most in buckets:
        key = "login:" + hashlib.sha256(bucket.encode("utf-8", "replace")).hexdigest()
        number, started = count(key, period_s=WINDOW_S, now=wall)
        if number > most:
            return LoginAttempt(tuple(keys), max(1, started + WINDOW_S - wall), number == most + 1)
        keys.append(key)
    return LoginAttempt(tuple(keys))
