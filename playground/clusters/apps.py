"""Django's entry for the clusters."""

import gc
from typing import Final

from django.apps import AppConfig
from django.conf import settings

COLLECTOR: Final = (50_000, 20, 50)
"""Thresholds of the garbage collector. A worker holds millions of small objects that live as long as their cluster, and
next to no cycles among them: looking for garbage as often as Python does by itself costs it a ninth of its time."""


class ClustersConfig(AppConfig):
    name = "playground.clusters"
    label = "clusters"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Clusters"

    def ready(self) -> None:
        from playground.engine import plugins

        gc.set_threshold(*COLLECTOR)
        plugins.use(settings.PLAYGROUND_PLUGINS, settings.PLAYGROUND_PLUGIN_SECONDS)
