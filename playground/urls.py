"""Where each area of the site lives."""

from __future__ import annotations

import importlib.util

from django.urls import URLPattern, URLResolver, include, path

from playground.play import health

handler500 = "playground.web.home.failed"

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("healthz/", health.healthz),
    path("readyz", health.readyz, name="readyz"),
    path("readyz/", health.readyz),
    path("metrics", health.metrics, name="metrics"),
    path("metrics/", health.metrics),
]

for prefix, app in (
    ("api/v1/", "playground.api"),
    ("k8s/", "playground.kube_api"),
    ("account/", "playground.web.accounts"),
):
    # These arrive one after the other; each is taken in as soon as it has paths.
    if importlib.util.find_spec(app) and importlib.util.find_spec(f"{app}.urls"):
        urlpatterns.append(path(prefix, include(f"{app}.urls")))

urlpatterns.append(path("mock-extenders/", include("playground.clusters.extenders.views")))
urlpatterns.append(path("", include("playground.web.scenarios.urls")))
urlpatterns.append(path("", include("playground.web.urls")))
