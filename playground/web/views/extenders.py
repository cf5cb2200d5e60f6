"""Mock extenders: made, edited, asked by the configuration or not, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from playground.clusters.errors import ClusterError, InvalidManifest, NotFound
from playground.clusters.selectors import get_mock_extender
from playground.clusters.services.config import set_config
from playground.clusters.services.mock_extenders import (
    create_mock_extender,
    delete_mock_extender,
    mock_extender_url,
    update_mock_extender,
)
from playground.engine.mock_extender import VERBS
from playground.web.access import get_cluster
from playground.web.mock_extenders import EXAMPLE, read_rules, rules_text, unwired, wired, wiring_of
from playground.web.numbers import positive_int
from playground.web.posted_yaml import line_of
from playground.web.problems import problems_of

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster, MockExtender


@require_http_methods(["GET", "HEAD", "POST"])
def extender_new(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """A new mock extender from rules as YAML; refused rules come back with errors at their line."""
    cluster = get_cluster(request, cluster_id)
    if request.method != "POST":
        return _page(request, cluster, None, EXAMPLE)
    text, name = request.POST.get("text", ""), request.POST.get("name", "")
    try:
        made = create_mock_extender(cluster=cluster, rules=read_rules(text), name=name)
    except ClusterError as error:
        return _page(request, cluster, None, text, name=name, error=error)
    messages.success(request, "The mock extender is there. Say below what the scheduler asks it.")
    return redirect("web:extender", cluster.public_id, made.public_id)


@require_http_methods(["GET", "HEAD", "POST"])
def extender(request: HttpRequest, cluster_id: str, extender_id: str) -> HttpResponse:
    """One mock extender. POST with ``action``: ``save``, ``ask`` (by the configuration), ``leave``, ``delete``."""
    cluster = get_cluster(request, cluster_id)
    try:
        found = get_mock_extender(cluster, extender_id)
    except NotFound as error:
        raise Http404(error.message) from None
    if request.method != "POST":
        return _page(request, cluster, found, rules_text(found.rules))
    action = request.POST.get("action", "save")
    text = request.POST.get("text", "") if action == "save" else rules_text(found.rules)
    name = request.POST.get("name", "") if action == "save" else found.name
    try:
        said = _do(request, cluster, found, action, text)
    except ClusterError as error:
        return _page(request, cluster, found, text, name=name, error=error)
    messages.success(request, said)
    if action == "delete":
        return redirect(f"{reverse('web:config', args=[cluster.public_id])}#extenders")
    return redirect("web:extender", cluster.public_id, found.public_id)


def _do(request: HttpRequest, cluster: Cluster, found: MockExtender, action: str, text: str) -> str:
    """Do what was asked, and say so."""
    match action:
        case "ask":
            config = wired(
                cluster.config,
                found,
                verbs=request.POST.getlist("verbs"),
                weight=positive_int(request.POST.get("weight")) or 1,
                ignorable="ignorable" in request.POST,
            )
            set_config(cluster=cluster, config=config)
            return "The scheduler asks it from the next cycle on."
        case "leave":
            set_config(cluster=cluster, config=unwired(cluster.config, found))
            return "The scheduler does not ask it any more."
        case "delete":
            with transaction.atomic():
                if wiring_of(found, cluster.config).wired:
                    set_config(cluster=cluster, config=unwired(cluster.config, found))
                delete_mock_extender(extender=found)
            return "The mock extender is deleted."
    update_mock_extender(extender=found, rules=read_rules(text), name=request.POST.get("name", ""))
    return "The rules are saved; calls are counted from 0 again."


def _page(
    request: HttpRequest,
    cluster: Cluster,
    found: MockExtender | None,
    text: str,
    *,
    name: str | None = None,
    error: ClusterError | None = None,
) -> HttpResponse:
    if isinstance(error, InvalidManifest):
        for one in (error, *error.causes):
            one.line = one.line or line_of(text, one.path)
    context: dict[str, Any] = {
        "cluster": cluster,
        "tab": "config",
        "extender": found,
        "name": name if name is not None else (found.name if found else ""),
        "text": text,
        "problems": problems_of(error, text) if error else [],
        "verbs": VERBS,
    }
    if found is not None:
        context |= {
            "url": mock_extender_url(found),
            "wiring": wiring_of(found, cluster.config),
            "calls": [(verb, found.calls.get(verb, 0)) for verb in VERBS],
        }
    return render(request, "config/extender.html", context, status=error.status if error else 200)
