"""What was changed in a cluster, and back again; one action on the pods or nodes that were chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from playground.clusters.errors import ClusterError
from playground.clusters.selectors.node_lists import node_page
from playground.clusters.services.actions import NODE_ACTIONS, Acted, act_on_nodes, act_on_pods
from playground.scenarios import services as scenarios
from playground.web.access import get_cluster
from playground.web.choosing import NODE_BUTTONS
from playground.web.listing import Listing
from playground.web.numbers import positive_int

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

SHOWN = 30
HELD_TOLD = 3


@require_safe
def changes(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """What can be undone, newest first."""
    cluster = get_cluster(request, cluster_id)
    context = {
        "cluster": cluster,
        "tab": "changes",
        "changes": list(cluster.changes.order_by("-id")[:SHOWN]),
        "next_cycle": cluster.next_cycle,
    }
    return render(request, "changes/page.html", context)


@require_POST
def undo(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """Undo the change that was shown as the last one."""
    cluster = get_cluster(request, cluster_id)
    back = _back(request, "web:changes", cluster)
    try:
        undone = scenarios.undo(cluster=cluster, seq=positive_int(request.POST.get("change")))
    except ClusterError as error:
        messages.error(request, f"{error.message[:1].upper()}{error.message[1:]}.")
        return back
    since = "" if not undone.cycles else f", with the {_cycles(undone.cycles)} decided since"
    messages.success(request, f"Undone: {undone.words}{since}.")
    return back


@require_safe
def node_list(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """Nodes, found as the address says, to choose some and do one thing to all of them."""
    cluster = get_cluster(request, cluster_id)
    words = request.GET.get("q", "").strip()
    context = {
        "cluster": cluster,
        "tab": "board",
        "q": words,
        "found": node_page(cluster, words, page=positive_int(request.GET.get("page")) or 1),
        "address": Listing({"q": words}),
        "actions": NODE_BUTTONS,
    }
    return render(request, "nodes/list.html", context)


@require_POST
def act(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """Do one thing to the chosen pods or nodes."""
    cluster = get_cluster(request, cluster_id)
    action, pods, nodes = (
        request.POST.get("action", ""),
        request.POST.getlist("pod"),
        request.POST.getlist("node"),
    )
    is_about_nodes = bool(nodes) or (
        not pods and action in NODE_ACTIONS and request.POST.get("of") == "nodes"
    )
    back = _back(request, "web:nodes" if is_about_nodes else "web:pods", cluster)
    try:
        if is_about_nodes:
            value = request.POST.get(action, "") if action in ("taint", "label") else ""
            acted = act_on_nodes(cluster=cluster, action=action, nodes=nodes, value=value)
        else:
            acted = act_on_pods(cluster=cluster, action=action, pods=pods)
    except ClusterError as error:
        messages.error(request, f"{error.message[:1].upper()}{error.message[1:]}. Nothing was done.")
        return back
    _tell(request, acted)
    return back


def _tell(request: HttpRequest, acted: Acted) -> None:
    words = f"Done: {acted.words}."
    if not acted.n_changed:
        words = f"Nothing to change: {acted.words}."
    messages.success(request, f"{words} Undo is one key: Z.")
    if acted.held:
        first = "; ".join(f"{pod}: {reason.rstrip('.')}" for pod, reason in acted.held[:HELD_TOLD])
        n = len(acted.held)
        more = f", and {n - HELD_TOLD} more" if n > HELD_TOLD else ""
        messages.warning(request, f"{n} pod{'' if n == 1 else 's'} stayed. {first}{more}.")


def _cycles(n: int) -> str:
    return f"{n:,} cycle" if n == 1 else f"{n:,} cycles"


def _back(request: HttpRequest, name: str, cluster: Cluster) -> HttpResponse:
    """Where the form was, if that is a page of this site."""
    there = request.POST.get("next", "")
    if there.startswith("/") and url_has_allowed_host_and_scheme(there, allowed_hosts=None):
        return redirect(there)
    return redirect(reverse(name, args=[cluster.public_id]))
