"""Where each area of the site lives."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from playground.play import health
from playground.web.routes import patterns

handler500 = "playground.web.home.failed"

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("healthz/", health.healthz),
    path("readyz", health.readyz, name="readyz"),
    path("readyz/", health.readyz),
    path("metrics", health.metrics, name="metrics"),
    path("metrics/", health.metrics),
    path("api/v1/", include("playground.api.urls")),
    path("k8s/", include("playground.kube_api.urls")),
    path("account/", include((patterns("accounts"), "accounts"))),
    path("mock-extenders/", include("playground.clusters.extenders.views")),
    path("", include((patterns("scenarios"), "scenarios"))),
    path("", include((patterns("web"), "web"))),
]
