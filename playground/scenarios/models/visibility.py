"""Who may read what was shared: one list for scenarios and comparisons."""

from django.db import models


def visibility_constraints(table: str) -> list[models.CheckConstraint]:
    """A known visibility, and a team exactly if it is the team's."""
    return [
        models.CheckConstraint(
            condition=models.Q(visibility__in=["public", "unlisted", "team", "private"]),
            name=f"{table}_visibility_known",
        ),
        models.CheckConstraint(
            condition=models.Q(visibility="team", team__isnull=False)
            | (~models.Q(visibility="team") & models.Q(team__isnull=True)),
            name=f"{table}_team_if_team_only",
        ),
    ]
