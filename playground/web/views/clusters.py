"""Clusters: new ones, node pools, and what can be done to one as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.conf import settings as site
from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.text import slugify
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from playground.bodies import in_parts
from playground.clusters.errors import ClusterError, InvalidInput
from playground.clusters.selectors.home_cards import figures_of
from playground.clusters.services.apply import ApplyResult, apply_documents
from playground.clusters.services.durations import job_duration, set_job_duration
from playground.clusters.services.lifecycle import (
    clone_cluster,
    create_cluster,
    delete_cluster,
    export_manifests,
    rename_cluster,
    reset_cluster,
)
from playground.clusters.services.pools import expand_pool
from playground.clusters.services.runs import unpark_cluster
from playground.web.access import get_cluster
from playground.web.forms.clusters import ClusterNameForm, NodePoolForm
from playground.web.htmx import HtmxHttpRequest
from playground.web.node_pools import preview as preview_pool
from playground.web.posted_yaml import yaml_of

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

READING = ["GET", "HEAD", "POST"]


@require_http_methods(READING)
def new_blank(request: HttpRequest) -> HttpResponse:
    """A cluster without nodes."""
    form = ClusterNameForm(request.POST or None, initial={"name": "my-cluster"})
    if request.method == "POST" and form.is_valid():
        try:
            cluster = create_cluster(
                name=form.cleaned_data["name"],
                kubernetes_release=form.cleaned_data["kubernetes_release"] or None,
                owner=_owner(request),
            )
        except ClusterError as error:
            form.add_error("name", error.message)
        else:
            return redirect("web:board", cluster.public_id)
    return render(request, "clusters/new_blank.html", {"form": form}, status=400 if form.errors else 200)


@require_http_methods(READING)
@vary_on_headers("HX-Request")
def new_pools(request: HtmxHttpRequest) -> HttpResponse:
    """A cluster made of a node pool."""
    return _pools(request, None)


@require_http_methods(READING)
@vary_on_headers("HX-Request")
def pools_into(request: HtmxHttpRequest, cluster_id: str) -> HttpResponse:
    """Another node pool for a cluster."""
    return _pools(request, get_cluster(request, cluster_id))


@require_safe
def settings(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """Rename, clone, reset, delete, export."""
    cluster = get_cluster(request, cluster_id)
    context = {
        "cluster": cluster,
        "tab": "settings",
        "figures": figures_of([cluster])[cluster.pk],
        "confirm": request.GET.get("confirm", ""),
        "keep_log_days": site.PLAYGROUND_KEEP_LOG_DAYS,
        "job_duration": job_duration(cluster),
    }
    return render(request, "clusters/settings.html", context)


@require_POST
def action(request: HttpRequest, cluster_id: str, action: str) -> HttpResponse:
    """Do one of: rename, clone, jobs, reset, delete, retry. Reset and delete ask once more first."""
    cluster = get_cluster(request, cluster_id)
    page = redirect("web:settings", cluster.public_id)
    name = request.POST.get("name", "").strip()
    if action in ("reset", "delete") and request.POST.get("sure") != "yes":
        return redirect(f"{reverse('web:settings', args=[cluster.public_id])}?confirm={action}#{action}")
    try:
        if action == "rename":
            rename_cluster(cluster=cluster, name=name)
            messages.success(request, f"The cluster is called {name} now.")
        elif action == "clone":
            clone = clone_cluster(cluster=cluster, name=name or f"{cluster.name} copy", owner=_owner(request))
            messages.success(request, f"{clone.name} is a copy of {cluster.name}.")
            return redirect("web:board", clone.public_id)
        elif action == "reset":
            reset_cluster(cluster=cluster)
            messages.success(
                request, "Back to the start: what you wrote is kept, what the engine did is gone."
            )
            return redirect("web:board", cluster.public_id)
        elif action == "delete":
            delete_cluster(cluster=cluster, by=_owner(request))
            messages.success(request, f"{cluster.name} is deleted.")
            return redirect("web:home")
        elif action == "jobs":
            lasting = set_job_duration(cluster=cluster, lasting=request.POST.get("duration", "").strip())
            words = "never end by themselves" if lasting == "never" else f"end {lasting} after they started"
            messages.success(request, f"Pods that Jobs make from now on {words}.")
        elif action == "retry":
            unpark_cluster(cluster=cluster)
            messages.success(request, "The engine tries again.")
        else:
            raise Http404(f'There is no "{action}" to do.')
    except ClusterError as error:
        messages.error(request, error.message)
    return page


@require_safe
def export(request: HttpRequest, cluster_id: str) -> StreamingHttpResponse:
    """Every object people can apply again, as a YAML file."""
    cluster = get_cluster(request, cluster_id)
    response = in_parts(request, export_manifests(cluster), "application/yaml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{slugify(cluster.name) or "cluster"}.yaml"'
    return response


def _pools(request: HtmxHttpRequest, cluster: Cluster | None) -> HttpResponse:
    posted = request.method == "POST"
    initial = {"cluster_name": "my-cluster"}
    form = NodePoolForm(request.POST if posted else None, initial=initial)
    shown = form if posted else NodePoolForm(_initial(form) | initial)
    nodes: list[dict[str, Any]] = []
    if shown.is_valid():
        data = shown.cleaned_data
        try:
            nodes = expand_pool(
                name=data["pool"],
                count=data["count"],
                cpu=data["cpu"],
                memory=data["memory"],
                pods=data["pods"],
                extended=data["extended"],
                labels=data["labels"],
                taints=data["taints"],
                zones=data["zones"],
            )
        except InvalidInput as error:
            shown.add_error({"name": "pool"}.get(error.field, error.field) or None, error.message)
    is_preview = request.POST.get("action") == "preview"
    if posted and nodes and not is_preview:
        try:
            target, _ = _apply(request, cluster, form.cleaned_data, objects=nodes)
        except ClusterError as error:
            form.add_error(None, error.message)
        else:
            messages.success(request, f"{len(nodes)} node{'' if len(nodes) == 1 else 's'} added.")
            return redirect("web:board", target.public_id)
    context = {
        "cluster": cluster,
        "form": form,
        "preview": preview_pool(nodes) if nodes else None,
        "sample": yaml_of(nodes[:1]) if nodes else "",
    }
    template = "clusters/pool_preview.html" if request.htmx else "clusters/pools.html"
    refused = posted and not is_preview and bool(form.errors)
    return render(request, template, context, status=400 if refused else 200)


def _apply(
    request: HttpRequest, cluster: Cluster | None, wanted: Mapping[str, Any], **manifests: Any
) -> tuple[Cluster, ApplyResult]:
    """Apply to the cluster, or to a new one that exists only if everything goes well."""
    if cluster is not None:
        return cluster, apply_documents(cluster=cluster, **manifests)
    with transaction.atomic():
        target = create_cluster(
            name=wanted["cluster_name"] or "my-cluster",
            kubernetes_release=wanted["kubernetes_release"] or None,
            owner=_owner(request),
        )
        return target, apply_documents(cluster=target, **manifests)


def _initial(form: NodePoolForm) -> dict[str, Any]:
    values = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    return {name: "" if value is None else value for name, value in values.items()}


def _owner(request: HttpRequest) -> Any:
    return request.user if request.user.is_authenticated else None
