"""Django's entry for the clusters."""

from django.apps import AppConfig


class ClustersConfig(AppConfig):
    name = "playground.clusters"
    label = "clusters"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Clusters"
