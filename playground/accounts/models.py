"""People, the teams they form, and the tokens their tools carry."""

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """A person of a team. Embedded mode has none: everybody at the machine is its owner.

    Our own model although it adds nothing yet: a user model cannot be changed once tables refer to it.
    """


class Team(models.Model):
    """Several people who own clusters together."""

    name = models.CharField(max_length=100, unique=True)
    created = models.DateTimeField(auto_now_add=True)
    members = models.ManyToManyField(
        settings.AUTH_USER_MODEL, through="Membership", through_fields=("team", "user"), related_name="teams"
    )

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    """What somebody may do with a cluster; each role may do what the ones below it may."""

    OWNER = "owner"
    EDITOR = "editor"
    VIEWER = "viewer"


class Membership(models.Model):
    """One person's role in one team."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=8, choices=Role.choices, default=Role.EDITOR)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "user"], name="membership_once"),
            models.CheckConstraint(
                condition=models.Q(role__in=["owner", "editor", "viewer"]), name="membership_role_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.team}"


class AccessToken(models.Model):
    """A personal token for tools. Only its digest is kept: whoever reads the table cannot use it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="access_tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)  # SHA-256 of the token, hex
    hint = models.CharField(max_length=16)  # its first characters, for people to tell theirs apart
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField(null=True, blank=True)
    last_used = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.hint}... of {self.user}"


class Tally(models.Model):
    """How often something happened in its present window; see `limits`."""

    key = models.CharField(max_length=100, primary_key=True)
    started = models.BigIntegerField(db_index=True)  # of the window, seconds since the epoch
    number = models.IntegerField()

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(number__gte=1), name="tally_positive")]

    def __str__(self) -> str:
        return f"{self.key}: {self.number}"
