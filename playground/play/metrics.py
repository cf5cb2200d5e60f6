"""`/metrics` for Prometheus."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from playground.clusters.selectors.metrics import metrics_text


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Sums over all clusters; nothing in them names a cluster or a person."""
    return HttpResponse(metrics_text(), content_type="text/plain; version=0.0.4; charset=utf-8")
