"""The scenarios app."""

from django.apps import AppConfig


class ScenariosConfig(AppConfig):
    """Shares, their proofs, comparisons, and moments of the past."""

    name = "playground.scenarios"
    label = "scenarios"

    def ready(self) -> None:
        # They add their kinds of work and of questions to the tables of the clusters.
        from playground.scenarios.services import errands, proof, questions  # noqa: F401
