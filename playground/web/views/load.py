"""The load drawn on a workload: shown, and written as points."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from playground.clusters.clock import virtual_now_ns
from playground.clusters.custom_kinds import table_of
from playground.clusters.errors import ClusterError
from playground.clusters.rows import row_of
from playground.clusters.services.objects import patch_object
from playground.engine.load import LOAD
from playground.web.access import get_cluster
from playground.web.load import CARRIERS, EXAMPLE, HEIGHT, WIDTH, anchored, view_load


@require_http_methods(["GET", "HEAD", "POST"])
def load(request: HttpRequest, cluster_id: str, kind: str, namespace: str, name: str) -> HttpResponse:
    """What the pods of a workload use over time; saving writes the annotation."""
    cluster = get_cluster(request, cluster_id)
    known = table_of(cluster).by_row_kind(kind) if kind in CARRIERS else None
    row = None if known is None else row_of(cluster, known, namespace, name)
    if known is None or row is None:
        raise Http404(f'{kind} "{namespace}/{name}" has no load here')
    text, problem, status = None, "", 200
    if request.method == "POST":
        text = request.POST.get("text", "").strip()
        if text and "anchor" in request.POST:
            text = anchored(text, virtual_now_ns(cluster))
        patch = {"metadata": {"annotations": {LOAD: text or None}}}
        try:
            patch_object(cluster=cluster, kind=known, namespace=namespace, name=name, patch=patch)
        except ClusterError as error:
            problem, status = error.message, error.status
        else:
            messages.success(
                request, f"The load of {name} is drawn." if text else f"{name} has no load any more."
            )
            return redirect("web:load", cluster.public_id, kind, namespace, name)
    view = view_load(cluster, known, row.manifest, text)
    context = {
        "cluster": cluster, "tab": "config", "sub": "objects", "kind": kind, "namespace": namespace, "name": name,
        "view": view, "problem": view.problem or problem, "width": WIDTH, "height": HEIGHT, "example": EXAMPLE,
    }  # fmt: skip
    return render(request, "objects/load.html", context, status=status)
