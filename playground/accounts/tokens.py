"""Personal access tokens: made once, shown once, kept as a digest."""

from __future__ import annotations

import datetime
import hashlib
import secrets
from typing import TYPE_CHECKING, Final

from django.utils import timezone

from playground.accounts.models import AccessToken

if TYPE_CHECKING:
    from playground.accounts.models import User

PREFIX: Final = "ksp_"
MAX_TOKENS: Final = 50
USED_STEP: Final = datetime.timedelta(minutes=1)


class TooManyTokens(Exception):
    """One person has as many tokens as anybody may have."""


def create_token(
    *, user: User, name: str, expires: datetime.datetime | None = None
) -> tuple[AccessToken, str]:
    """A new token and its text, which nobody can find out later.

    Raises
    ------
    TooManyTokens
    """
    if user.access_tokens.count() >= MAX_TOKENS:
        raise TooManyTokens(f"at most {MAX_TOKENS} tokens a person; delete one first")
    text = PREFIX + secrets.token_urlsafe(32)
    token = AccessToken.objects.create(
        user=user, name=name, digest=digest_of(text), hint=text[: len(PREFIX) + 6], expires=expires
    )
    return token, text


def digest_of(text: str) -> str:
    """What is kept of a token. 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def user_of(text: str, *, now: datetime.datetime | None = None) -> User | None:
    """Whose token this is; None if it is nobody's, has expired, or its owner may not log in.

    `last_used` is written at most once a minute: reading must not make every request a write.
    """
    wall = now or timezone.now()
    token = AccessToken.objects.select_related("user").filter(digest=digest_of(text)).first()
    if token is None or not token.user.is_active or (token.expires is not None and token.expires <= wall):
        return None
    if token.last_used is None or wall - token.last_used >= USED_STEP:
        AccessToken.objects.filter(pk=token.pk).update(last_used=wall)
    return token.user
