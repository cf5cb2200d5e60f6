"""The scenarios app."""

from django.apps import AppConfig


class ScenariosConfig(AppConfig):
    """Shares, their proofs, comparisons, and moments of the past."""

    name = "playground.scenarios"
    label = "scenarios"
