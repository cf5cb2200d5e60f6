"""Personal access tokens: made once, shown once, kept as a digest; with a scope and an expiry."""

from __future__ import annotations

import datetime
import hashlib
import secrets
from typing import Any, Final

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from playground.accounts import audit
from playground.accounts.choices import TokenScope
from playground.accounts.models import AccessToken, User
from playground.accounts.teams import AccountError

PREFIX: Final = "ksp_"
MAX_TOKENS: Final = 50
USED_STEP: Final = datetime.timedelta(minutes=1)
DEFAULT_DAYS: Final = 90
MAX_DAYS: Final = 3660
KEPT_EXPIRED: Final = datetime.timedelta(days=30)
"""So long an expired token stays in its owner's list, saying so."""


def create_token(
    *,
    user: User,
    name: str,
    scope: str = TokenScope.WRITE,
    cluster: str = "",
    days: int | None = DEFAULT_DAYS,
    by: object = None,
) -> tuple[AccessToken, str]:
    """Create a token; its text is shown only once.

    Parameters
    ----------
    scope
        ``read``, or ``write``: all that the person may.
    cluster
        Public id of the only cluster it is for; empty: all. That the person sees it is the caller's to check.
    days
        Until it expires; None: never.
    by
        What it is asked for with; a new one does not outlive a token.

    Raises
    ------
    AccountError
    """
    if scope not in TokenScope.values:
        raise AccountError("Conflict", f'the scope is "read" or "write", not "{scope}"', "Token")
    if days is not None and not 1 <= days <= MAX_DAYS:
        raise AccountError("Conflict", f"a token lives 1 to {MAX_DAYS} days, or has no expiry", "Token")
    expires = None if days is None else timezone.now() + datetime.timedelta(days=days)
    if isinstance(by, AccessToken) and by.expires is not None and (expires is None or expires > by.expires):
        words = f"a token made with a token cannot outlive it: that one expires on {by.expires:%Y-%m-%d}"
        raise AccountError("Conflict", words, "Token")
    with transaction.atomic():
        # The person's row is the lock: two at once are two.
        User.objects.select_for_update().get(pk=user.pk)
        if user.access_tokens.count() >= MAX_TOKENS:
            raise AccountError("Conflict", f"at most {MAX_TOKENS} tokens a person; delete one first", "Token")
        text = PREFIX + secrets.token_urlsafe(32)
        token = AccessToken.objects.create(
            user=user,
            name=name,
            digest=digest_of(text),
            hint=text[: len(PREFIX) + 6],
            scope=scope,
            cluster=cluster,
            expires=expires,
        )
        audit.record("token-made", by=user, target=name, detail=_words(token))
    return token, text


def delete_token(*, user: User | None, token_id: int) -> None:
    """Delete a token; it stops working at once.

    Raises
    ------
    AccountError
        The person has no such token.
    """
    with transaction.atomic():
        token = AccessToken.objects.filter(pk=token_id, user=user).first()
        if user is None or token is None:
            raise AccountError("NotFound", f"token {token_id} not found", "Token")
        token.delete()
        audit.record("token-deleted", by=user, target=token.name)


def delete_tokens(*, user: User) -> int:
    """All of a person's tokens stop working; how many."""
    with transaction.atomic():
        names = list(user.access_tokens.values_list("name", flat=True))
        user.access_tokens.all().delete()
        for name in names:
            audit.record("token-deleted", by=user, target=name)
    return len(names)


def tokens_of(user: User) -> QuerySet[AccessToken]:
    """A person's tokens, newest first."""
    return user.access_tokens.order_by("-pk")


def digest_of(text: str) -> str:
    """The digest kept of a secret. 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def token_of(text: str, *, now: datetime.datetime | None = None) -> AccessToken | None:
    """The token of a text, with its owner; None if there is none, it has expired, or its owner may not log in.

    The owner's `token` is it, so what is found for them is what it reaches.
    `last_used` is written at most once a minute: reading must not make every request a write.
    """
    wall = now or timezone.now()
    token = AccessToken.objects.select_related("user").filter(digest=digest_of(text)).first()
    if token is None or not token.user.is_active or (token.expires is not None and token.expires <= wall):
        return None
    token.user.token = token
    if token.last_used is None or wall - token.last_used >= USED_STEP:
        AccessToken.objects.filter(pk=token.pk).update(last_used=wall)
    return token


def only_cluster(user: Any) -> str:
    """Public id of the only cluster that a person's request may see or change; empty: no token limits it so."""
    token = getattr(user, "token", None)
    return token.cluster if token is not None else ""


def only_reads(user: Any) -> bool:
    """Whether a person's request may change nothing."""
    token = getattr(user, "token", None)
    return token is not None and token.scope == TokenScope.READ


def beyond(token_cluster: str) -> str:
    """The refusal where a token of one cluster asks for anything else."""
    return f'This token is for cluster "{token_cluster}" and nothing else.'


def may_go_on(user: Any) -> bool:
    """Whether a request that is still being answered, as a watch is, may be: neither account nor token has ended.

    One query.
    """
    token = getattr(user, "token", None)
    if token is None:
        return User.objects.filter(pk=user.pk, is_active=True).exists()
    live = Q(expires=None) | Q(expires__gt=timezone.now())
    return AccessToken.objects.filter(live, pk=token.pk, user__is_active=True).exists()


def forget_expired(*, now: datetime.datetime | None = None) -> int:
    """Drop tokens that expired long ago; how many."""
    return AccessToken.objects.filter(expires__lt=(now or timezone.now()) - KEPT_EXPIRED).delete()[0]


def _words(token: AccessToken) -> str:
    until = "without expiry" if token.expires is None else f"until {token.expires:%Y-%m-%d}"
    return ", ".join(filter(None, (token.scope, token.cluster and f"cluster {token.cluster}", until)))
