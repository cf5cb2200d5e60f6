"""People, the teams they form, and the tokens their tools carry."""

import hashlib
from collections.abc import Iterable
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.utils.module_loading import import_string

from playground.accounts.choices import Role, TokenScope

M = TypeVar("M", bound=models.Model)


# ---- Columns and constraints of all apps


def optional(model: type[M], related_name: str, **more: Any) -> "models.ForeignKey[M | None, M | None]":
    """A column that may name a row of a model; it is emptied where that row goes, unless `on_delete` is another."""
    more = {"on_delete": models.SET_NULL, **more}
    return models.ForeignKey(model, null=True, blank=True, related_name=related_name, **more)


def person(related_name: str, **more: Any) -> "models.ForeignKey[User | None, User | None]":
    """A column that may name a person; as `optional`."""
    more = {"on_delete": models.SET_NULL, **more}
    return models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, related_name=related_name, **more
    )


def holds(name: str, condition: models.Q | None = None, **columns: Any) -> models.CheckConstraint:
    """A constraint: a condition holds, given whole or by columns."""
    return models.CheckConstraint(condition=condition or models.Q(**columns), name=name)


def one_of(column: str, words: Iterable[str], name: str) -> models.CheckConstraint:
    """A constraint: the column holds one of some words."""
    return holds(name, models.Q(**{f"{column}__in": list(words)}))


def once(name: str, *fields: str, condition: models.Q | None = None) -> models.UniqueConstraint:
    """A constraint: no two rows, or none of those that meet the condition, have all these columns alike."""
    return models.UniqueConstraint(fields=fields, condition=condition, name=name)


def index(name: str, *fields: str, condition: models.Q | None = None) -> models.Index:
    """An index of some columns, perhaps only of the rows that meet a condition."""
    return models.Index(fields=fields, condition=condition, name=name)


# ---- People and teams


class User(AbstractUser):
    """A person of a team. Embedded mode has none: the person at the machine owns it.

    `shared_bytes` is what their shares and comparisons take (`scenarios.services.storage`), for quotas.
    `token` is what a request was made with (None: a login); it narrows what selectors hand out (`accounts.tokens`).
    """

    token: "AccessToken | None" = None
    shared_bytes = models.BigIntegerField(default=0)


class Team(models.Model):
    """Several people who own clusters together."""

    name = models.CharField(max_length=100, unique=True)
    created = models.DateTimeField(auto_now_add=True)
    members = models.ManyToManyField(
        settings.AUTH_USER_MODEL, through="Membership", through_fields=("team", "user"), related_name="teams"
    )

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """One person's role in one team."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=8, choices=Role.choices, default=Role.EDITOR)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            once("membership_once", "team", "user"),
            one_of("role", Role.values, "membership_role_known"),
        ]


class AccessToken(models.Model):
    """A personal token for tools. Only its digest is kept: who reads the table cannot use it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="access_tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)  # SHA-256 of the token, hex
    hint = models.CharField(max_length=16)  # its first characters, for people to tell theirs apart
    scope = models.CharField(max_length=5, choices=TokenScope.choices, default=TokenScope.WRITE)
    cluster = models.CharField(max_length=24, blank=True, default="")  # public id; empty: all of its owner's
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField(null=True, blank=True)
    last_used = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [one_of("scope", TokenScope.values, "token_scope_known")]


class KeptAnswer(models.Model):
    """The answer to a POST with an `Idempotency-Key`; see `idempotency`."""

    person = person("kept_answers", on_delete=models.CASCADE)
    whose = models.CharField(max_length=24)  # the person's number, or what stands for the local one
    key = models.CharField(max_length=255)
    digest = models.CharField(max_length=64)  # SHA-256 of what was asked
    created = models.DateTimeField(db_index=True)
    status = models.IntegerField(default=0)  # 0: being answered
    headers = models.JSONField(default=dict)
    body = models.BinaryField(default=bytes)

    class Meta:
        constraints = [once("kept_answer_once", "whose", "key")]


class Invitation(models.Model):
    """A link that takes one person into a team, or only onto the site, once. Only its digest is kept."""

    team = optional(Team, "invitations", on_delete=models.CASCADE)
    role = models.CharField(max_length=8, choices=Role.choices, default=Role.EDITOR)
    digest = models.CharField(max_length=64, unique=True)  # SHA-256 of the link's secret, hex
    email = models.EmailField(blank=True, default="")  # where it was sent
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="invitations_made"
    )
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField(db_index=True)
    accepted = models.DateTimeField(null=True, blank=True)
    accepted_by = person("invitations_accepted")

    class Meta:
        constraints = [one_of("role", Role.values, "invitation_role_known")]


class AuditEntry(models.Model):
    """One action on an account, a team, a token or a cluster's sharing, and its author; see `audit`.

    Names are kept beside the rows they name, which may be gone.
    """

    at = models.DateTimeField(db_index=True)
    action = models.CharField(max_length=32)  # a key of `audit.ACTIONS`
    actor = person("audit_done")
    actor_name = models.CharField(max_length=150, blank=True, default="")
    about = person("audit_about")
    about_name = models.CharField(max_length=150, blank=True, default="")
    team = optional(Team, "audit_entries")
    team_name = models.CharField(max_length=100, blank=True, default="")
    target = models.CharField(max_length=300, blank=True, default="")  # a token's name, a cluster's
    detail = models.CharField(max_length=300, blank=True, default="")
    address = models.CharField(max_length=45, blank=True, default="")

    class Meta:
        indexes = [index("audit_known_address", "about", "action", "address")]


class Session(AbstractBaseSession):
    """The session behind a browser's cookie, and its user; see `sessions`."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="sessions"
    )
    began = models.DateTimeField(null=True)
    seen = models.DateTimeField(null=True)
    address = models.CharField(max_length=45, blank=True, default="")
    browser = models.CharField(max_length=200, blank=True, default="")  # what it says it is

    class Meta(AbstractBaseSession.Meta):
        indexes = [index("session_of_user", "user", "expire_date")]

    @classmethod
    def get_session_store_class(cls) -> type[SessionBase]:
        found: type[SessionBase] = import_string(f"{settings.SESSION_ENGINE}.SessionStore")
        return found

    @property
    def handle(self) -> str:
        """A name of it that is no secret, as its key is."""
        return hashlib.sha256(self.session_key.encode()).hexdigest()[:20]


class Tally(models.Model):
    """A count in its present window; see `limits`."""

    key = models.CharField(max_length=100, primary_key=True)
    started = models.BigIntegerField(db_index=True)  # of the window, seconds since the epoch
    number = models.IntegerField()

    class Meta:
        constraints = [holds("tally_positive", number__gte=1)]
