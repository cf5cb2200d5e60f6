"""Where people are logged in: sessions that know whose they are, so that their owner sees and ends them.

The name and the salt of the store are Django's.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.backends import db
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone

from playground.accounts import audit
from playground.accounts.addresses import client_address
from playground.accounts.models import Session, User

SEEN_EVERY: Final = timedelta(minutes=10)
_ORIGIN: Final = "origin"
_SEEN: Final = "seen"


class SessionStore(db.SessionStore):
    """Django's sessions in the database, with columns for what their owner sees of them."""

    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        row = super().create_model_instance(data)
        assert isinstance(row, Session)
        origin = data.get(_ORIGIN) or {}
        row.user_id = user_id_of(data)
        row.address, row.browser = origin.get("address", ""), origin.get("browser", "")
        row.began, row.seen = _time(origin.get("began")), _time(data.get(_SEEN))
        return row


def user_id_of(data: Mapping[str, Any]) -> Any:
    """The id of a session's user, from its data; None while no one is logged in."""
    found = data.get(SESSION_KEY)
    return None if found is None else get_user_model()._meta.pk.to_python(found)


@receiver(user_logged_in, dispatch_uid="accounts.sessions")
def _begin(sender: object, request: HttpRequest, **kwargs: object) -> None:
    now = timezone.now().isoformat()
    browser = request.META.get("HTTP_USER_AGENT", "")[:200]
    request.session[_ORIGIN] = {"address": client_address(request), "browser": browser, "began": now}
    request.session[_SEEN] = now


def keep_seen(request: HttpRequest) -> None:
    """Note that a session is used, every few minutes."""
    seen, now = _time(request.session.get(_SEEN)), timezone.now()
    if seen is None or not now - SEEN_EVERY < seen <= now:
        request.session[_SEEN] = now.isoformat()


def sessions_of(user: User) -> list[Session]:
    """A person's sessions, the newest first."""
    return list(user.sessions.filter(expire_date__gt=timezone.now()).order_by("-began", "session_key"))


def end_session(*, user: User, handle: str) -> bool:
    """End one session of a person by its `handle`; False when they have none such."""
    found = next((row for row in sessions_of(user) if row.handle == handle), None)
    if found is None:
        return False
    found.delete()
    audit.record("session-ended", by=user, target=found.browser, address=found.address)
    return True


def end_other_sessions(*, user: User, but: str | None) -> int:
    """End all sessions of a person but the one with that key; how many."""
    ended, _ = user.sessions.exclude(session_key=but or "").delete()
    if ended:
        audit.record("session-ended", by=user, target=f"{ended} others")
    return ended


def end_sessions(*, user: User) -> None:
    """End all sessions of a person."""
    user.sessions.all().delete()


def _time(text: Any) -> datetime | None:
    if not isinstance(text, str):
        return None
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
