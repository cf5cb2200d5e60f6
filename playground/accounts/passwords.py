"""Passwords: changed by their owner, set anew by a link that works once."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.db import transaction
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from playground.accounts import audit
from playground.accounts.models import User
from playground.accounts.sessions import end_sessions
from playground.accounts.teams import AccountError
from playground.accounts.tokens import delete_tokens


def may_mail() -> bool:
    """Whether this site can send mail, so that people reset their passwords themselves."""
    return bool(settings.PLAYGROUND_MAIL)


def change_password(
    *, user: User, password: str, how: str = "password-changed", address: str = "", end_tokens: bool = False
) -> None:
    """Set a new password: every session ends (who changes it begins a new one), and no device is known any more.

    Parameters
    ----------
    how
        ``password-changed`` or ``password-reset``, for the audit list.
    end_tokens
        Whether tokens stop working, too.
    """
    with transaction.atomic():
        user.set_password(password)
        user.save(update_fields=["password"])
        end_sessions(user=user)
        audit.record(how, by=user, address=address)
        if end_tokens:
            delete_tokens(user=user)


def change_email(*, user: User, email: str) -> None:
    """Set the address that reset links go to."""
    with transaction.atomic():
        user.email = email
        user.save(update_fields=["email"])
        audit.record("email-changed", by=user)


def reset_path(*, user: User) -> str:
    """Path of a link with which a password is set once; `PASSWORD_RESET_TIMEOUT` bounds it."""
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    return reverse("accounts:reset-confirm", args=[uid, default_token_generator.make_token(user)])


def hand_out_reset(*, by: Any, user: User) -> str:
    """A reset link for an administrator to pass on by hand; its path.

    A team's owner is not asked: a member's account also opens that member's own clusters and other teams.

    Raises
    ------
    AccountError
    """
    _check_administrator(by)
    if not user.is_active:
        raise AccountError("Conflict", f'the account "{user.get_username()}" is closed')
    audit.record("reset-link-made", by=by, about=user)
    return reset_path(user=user)


def set_active(*, by: Any, user: User, active: bool) -> None:
    """Close an account (nothing of it works any more, nothing is deleted), or open it again.

    Raises
    ------
    AccountError
    """
    _check_administrator(by)
    if by.pk == user.pk:
        raise AccountError("Conflict", "you cannot close your own account")
    with transaction.atomic():
        user.is_active = active
        user.save(update_fields=["is_active"])
        if not active:
            end_sessions(user=user)
        audit.record("account-opened" if active else "account-closed", by=by, about=user)


def _check_administrator(person: Any) -> None:
    if not person.is_superuser:
        raise AccountError("Forbidden", "only an administrator of this site may do that")
