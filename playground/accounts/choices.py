"""The words of columns that have a choice of a few, as `clusters.choices` has them."""

from django.db.models import TextChoices


class Role(TextChoices):
    """A person's rights in a cluster; each role includes the ones below it."""

    OWNER = "owner"
    EDITOR = "editor"
    VIEWER = "viewer"


class TokenScope(TextChoices):
    """A token's rights: to look, or all of its owner's."""

    READ = "read"
    WRITE = "write"
