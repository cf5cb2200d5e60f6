"""Django's entry for the clusters."""

from django.apps import AppConfig
from django.conf import settings


class ClustersConfig(AppConfig):
    name = "playground.clusters"
    label = "clusters"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Clusters"

    def ready(self) -> None:
        from playground.engine import plugins

        plugins.use(settings.PLAYGROUND_PLUGINS, settings.PLAYGROUND_PLUGIN_SECONDS)
