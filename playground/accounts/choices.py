"""The words of columns that have a choice of a few, as `clusters.choices` has them."""

from django.db.models import TextChoices


class Role(TextChoices):
    """What a person may do with a cluster; each role may do what the ones below it may."""

    OWNER = "owner"
    EDITOR = "editor"
    VIEWER = "viewer"


class TokenScope(TextChoices):
    """What a token may do: look, or all that its owner may."""

    READ = "read"
    WRITE = "write"
