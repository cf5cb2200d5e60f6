"""A branch beside its parent, and its edits applied there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from playground.clusters.errors import ClusterError
from playground.clusters.selectors.objects import current_run
from playground.clusters.services.applying_branches import apply_branch, edits_of
from playground.scenarios.branch_difference import KINDS
from playground.scenarios.branch_difference import difference as difference_of
from playground.web.access import get_cluster, visible_clusters
from playground.web.numbers import positive_int

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

SHOWN = 50


@require_safe
def difference(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """What a branch came to beside its parent: who moved, who waits, and the first decision that differs."""
    branch = get_cluster(request, cluster_id)
    parent = _parent_of(request, branch)
    found = difference_of(branch=branch, parent=parent, place=positive_int(request.GET.get("n")) or 1)
    kind = request.GET.get("kind", "")
    chosen = [change for change in found.changes if kind in ("", change.kind)]
    run = current_run(branch)
    edits = list(edits_of(branch))
    since = branch.parent_seq
    context = {
        "cluster": branch,
        "tab": "difference",
        "parent": parent,
        "found": found,
        "kinds": [(name, found.counts[name]) for name in KINDS if found.counts.get(name)],
        "kind": kind,
        "changes": chosen if request.GET.get("all") else chosen[:SHOWN],
        "n_chosen": len(chosen),
        "edits": edits,
        "is_running": run is not None and run.is_open,
        "was_run": branch.next_cycle > 1,
        "n_since": 0 if since is None else edits_of(parent, since=since).count(),
    }
    return render(request, "difference/page.html", context)


@require_POST
def apply(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """Apply the edits of a branch to its parent, of which one must be an editor."""
    branch = visible_clusters(request).filter(public_id=cluster_id).first()
    if branch is None:
        raise Http404(f'There is no cluster "{cluster_id}".')
    parent = get_cluster(request, _parent_of(request, branch).public_id)
    try:
        applied = apply_branch(branch=branch, parent=parent)
    except ClusterError as error:
        messages.error(request, f"{error.message[:1].upper()}{error.message[1:]}.")
        return redirect("web:difference", branch.public_id)
    n = applied.n_edits
    messages.success(
        request,
        f"{n:,} write{'' if n == 1 else 's'} of {branch.name} applied here. Run it to see what is decided;"
        " undo is one key: Z.",
    )
    return redirect("web:board", parent.public_id)


def _parent_of(request: HttpRequest, branch: Cluster) -> Cluster:
    parent = visible_clusters(request).filter(pk=branch.parent_id).first() if branch.parent_id else None
    if parent is None:
        raise Http404(f"{branch.name} is no branch of a cluster that is here.")
    return parent
