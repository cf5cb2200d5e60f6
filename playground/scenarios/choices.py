"""The words of columns that have a choice of a few, as `clusters.choices` has them."""

from django.db.models import TextChoices


class Visibility(TextChoices):
    """From everybody to the person alone."""

    PUBLIC = "public"
    UNLISTED = "unlisted"
    TEAM = "team"
    PRIVATE = "private"


class ScenarioState(TextChoices):
    """How far the recording of a share is."""

    QUEUED = "queued"  # not run yet
    RECORDED = "recorded"
    FAILED = "failed"


class ResultState(TextChoices):
    """How far a proof or a comparison is."""

    QUEUED = "queued"
    DONE = "done"
    FAILED = "failed"
