"""Clusters: new ones, node pools, and what can be done to one as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings as site
from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.text import slugify

from playground.bodies import in_parts
from playground.clusters import drafts, lanes, lifecycle
from playground.clusters.board.overview import figures_of
from playground.clusters.branches import apply_branch, edits_of
from playground.clusters.drive.config import job_duration, set_job_duration
from playground.clusters.drive.runs import unpark_cluster
from playground.clusters.errors import ClusterError, InvalidInput
from playground.clusters.objects.actions import expand_pool
from playground.clusters.objects.apply import ApplyResult, apply_documents
from playground.clusters.objects.queries import current_run
from playground.clusters.row_types import Cluster, Draft
from playground.clusters.trouble import why_waiting
from playground.scenarios.branch_difference import KINDS
from playground.scenarios.branch_difference import difference as difference_of
from playground.web.clusters import present
from playground.web.clusters.forms import ClusterNameForm, ImportForm, NodePoolForm
from playground.web.problems import problems_of, yaml_of
from playground.web.requests import (
    HtmxHttpRequest,
    done,
    get_cluster,
    positive_int,
    site_user,
    visible_clusters,
)


def new_blank(request: HttpRequest) -> HttpResponse:
    """A cluster without nodes."""
    form = ClusterNameForm(request.POST or None, initial={"name": "my-cluster"})
    if request.method == "POST" and form.is_valid():
        try:
            cluster = lifecycle.create_cluster(
                name=form.cleaned_data["name"],
                kubernetes_release=form.cleaned_data["kubernetes_release"] or None,
                owner=site_user(request),
            )
        except ClusterError as error:
            form.add_error("name", error.message)
        else:
            return redirect("web:board", cluster.public_id)
    return render(request, "clusters/new_blank.html", {"form": form}, status=400 if form.errors else 200)


def settings(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Rename, clone, reset, delete, export."""
    context = {
        "figures": figures_of([cluster])[cluster.pk],
        "confirm": request.GET.get("confirm", ""),
        "keep_log_days": site.PLAYGROUND_KEEP_LOG_DAYS,
        "job_duration": job_duration(cluster),
    }
    return render(request, "clusters/settings.html", context)


def action(request: HttpRequest, cluster: Cluster, action: str) -> HttpResponse:
    """Do one of: rename, clone, jobs, reset, delete, retry. Reset and delete ask once more first."""
    name = request.POST.get("name", "").strip()
    if action in ("reset", "delete") and request.POST.get("sure") != "yes":
        return redirect(f"{reverse('web:settings', args=[cluster.public_id])}?confirm={action}#{action}")
    match action:
        case "rename":
            lifecycle.rename_cluster(cluster=cluster, name=name)
            words = f"The cluster is called {name} now."
        case "clone":
            owner = site_user(request)
            clone = lifecycle.clone_cluster(cluster=cluster, name=name or f"{cluster.name} copy", owner=owner)
            words = f"{clone.name} is a copy of {cluster.name}."
            return done(request, words, "web:board", clone.public_id)
        case "reset":
            lifecycle.reset_cluster(cluster=cluster)
            words = "Back to the start: what you wrote is kept, what the engine did is gone."
            return done(request, words, "web:board", cluster.public_id)
        case "delete":
            lifecycle.delete_cluster(cluster=cluster, by=site_user(request))
            return done(request, f"{cluster.name} is deleted.", "web:home")
        case "jobs":
            lasting = set_job_duration(cluster=cluster, lasting=request.POST.get("duration", "").strip())
            end = "never end by themselves" if lasting == "never" else f"end {lasting} after they started"
            words = f"Pods that Jobs make from now on {end}."
        case "retry":
            unpark_cluster(cluster=cluster)
            words = "The engine tries again."
        case _:
            raise Http404(f'There is no "{action}" to do.')
    return done(request, words, "web:settings", cluster.public_id)


def export(request: HttpRequest, cluster: Cluster) -> StreamingHttpResponse:
    """Every object people can apply again, as a YAML file."""
    response = in_parts(request, lifecycle.export_manifests(cluster), "application/yaml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{slugify(cluster.name) or "cluster"}.yaml"'
    return response


POOL = ("count", "cpu", "memory", "pods", "extended", "labels", "taints", "zones")


def pools(request: HtmxHttpRequest, cluster: Cluster | None = None) -> HttpResponse:
    """A node pool for a cluster, or a new cluster of one."""
    posted = request.method == "POST"
    initial = {"cluster_name": "my-cluster"}
    form = NodePoolForm(request.POST if posted else None, initial=initial)
    shown = form if posted else NodePoolForm(_initial(form) | initial)
    nodes: list[dict[str, Any]] = []
    if shown.is_valid():
        data = shown.cleaned_data
        try:
            nodes = expand_pool(name=data["pool"], **{key: data[key] for key in POOL})
        except InvalidInput as error:
            shown.add_error({"name": "pool"}.get(error.field, error.field) or None, error.message)
    is_preview = request.POST.get("action") == "preview"
    if posted and nodes and not is_preview:
        try:
            target, _ = _apply(request, cluster, form.cleaned_data, objects=nodes)
        except ClusterError as error:
            form.add_error(None, error.message)
        else:
            words = f"{len(nodes)} node{'' if len(nodes) == 1 else 's'} added."
            return done(request, words, "web:board", target.public_id)
    context = {
        "cluster": cluster,
        "form": form,
        "preview": present.preview(nodes) if nodes else None,
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
        target = lifecycle.create_cluster(
            name=wanted["cluster_name"] or "my-cluster",
            kubernetes_release=wanted["kubernetes_release"] or None,
            owner=site_user(request),
        )
        return target, apply_documents(cluster=target, **manifests)


def _initial(form: NodePoolForm) -> dict[str, Any]:
    values = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    return {name: "" if value is None else value for name, value in values.items()}


TOLD_AT_ONCE = 5


def draft(request: HtmxHttpRequest, draft: Draft) -> HttpResponse:
    """Show the progress of a preview or a large import; lead to the cluster's board once it is made."""
    found = draft
    if found.made is not None:
        if request.htmx:
            # Several looks may be under way: what was made is told by the page they lead to, and once.
            return HttpResponse(headers={"HX-Redirect": request.path})
        _tell(request, found.answer["import"])
        return redirect("web:board", found.made.public_id)
    into = found.wanted.get("into")
    context: dict[str, Any] = {
        "cluster": get_cluster(request, into) if into else None,
        "form": ImportForm(initial={"cluster_name": "imported"}),
        "here": _form_of(found),
    }
    return _render(request, context | _of_draft(found))


def draft_commit(request: HttpRequest, draft: Draft) -> HttpResponse:
    """A cluster of what was previewed, with the best fix made in it or as it is; the draft's page leads there."""
    drafts.commit_draft(
        public_id=draft.public_id,
        owner=site_user(request),
        name=request.POST.get("cluster_name", "").strip()[:100] or "my-cluster",
        fixed=request.POST.get("action") == "fix",
    )
    return redirect("web:draft", draft.public_id)


def draft_cancel(request: HttpRequest, draft: Draft) -> HttpResponse:
    """No more is wanted."""
    drafts.cancel_draft(public_id=draft.public_id, owner=site_user(request))
    return redirect(_form_of(draft))


def _form_of(draft: Draft) -> str:
    """Address of the page the text was posted on."""
    into = draft.wanted.get("into")
    return reverse("web:import", args=[into]) if into else reverse("web:new-import")


def manifests(request: HtmxHttpRequest, cluster: Cluster | None = None) -> HttpResponse:
    """Pasted or uploaded manifests into a cluster, or as a new one."""
    posted = request.method == "POST"
    initial = {"cluster_name": "imported"}
    form = ImportForm(request.POST, request.FILES) if posted else ImportForm(initial=initial)
    context: dict[str, Any] = {"cluster": cluster, "form": form, "here": request.path}
    status = 200
    if posted and form.is_valid():
        data = form.cleaned_data
        try:
            found = _bring(request, cluster, data, is_preview=request.POST.get("action") == "preview")
            if isinstance(found, HttpResponse):
                return found
            context |= found
        except ClusterError as error:
            context["problems"] = problems_of(error, data["manifests"])
            status = error.status
    elif posted:
        status = 400
    return _render(request, context, 200 if request.htmx else status)


def _render(request: HtmxHttpRequest, context: dict[str, Any], status: int = 200) -> HttpResponse:
    template = "clusters/dump.html" if request.htmx else "clusters/dump_page.html"
    context |= {
        "tab": "import",
        "dump_line": present.DUMP_LINE,
        "hint": present.import_hint(context.get("problems") or ()),
    }
    return render(request, template, context, status=status)


def _bring(
    request: HttpRequest, cluster: Cluster | None, data: Mapping[str, Any], *, is_preview: bool
) -> HttpResponse | dict[str, Any]:
    """Apply manifests, and where that leads; or what would happen, as far as it is known at once."""
    if is_preview and (before := request.POST.get("draft")):
        drafts.cancel_draft(public_id=before, owner=site_user(request))
    given = {"text": data["manifests"], "rebuild_owners": not data["without_owners"]}
    is_large, owner, release = drafts.is_large(given["text"]), site_user(request), data["kubernetes_release"]
    if cluster is not None and is_large:
        found = drafts.import_into(cluster=cluster, owner=owner, dry_run=is_preview, **given)
    elif cluster is None and is_preview:
        found = drafts.start_preview(owner=owner, release=release, keep=True, **given)
    elif cluster is None and is_large:
        name = data["cluster_name"] or "my-cluster"
        found = drafts.start_import(owner=owner, release=release, name=name, **given)
    elif cluster is not None and is_preview:
        # Without a transaction: a text takes up to a second, and others want to write meanwhile.
        result = apply_documents(cluster=cluster, dry_run=True, **given)
        return {"preview": present.view_import(drafts.summary_of(result))}
    else:
        cluster, result = _apply(request, cluster, data, **given)
        _tell(request, drafts.summary_of(result))
        return redirect("web:board", cluster.public_id)
    return _of_draft(found) if is_preview else redirect("web:draft", found.public_id)


def _of_draft(found: Draft) -> dict[str, Any]:
    context: dict[str, Any] = {"draft": found, "polls": found.is_open}
    if found.is_open:
        context["why_waiting"] = why_waiting(lanes.ASK, found.touched)
    if found.problems:
        context["problems"] = problems_of(drafts.error_from(found.problems), drafts.text_of(found))
    elif "import" in found.answer:
        context["preview"] = present.view_import(found.answer["import"], found.answer)
    return context


def _tell(request: HttpRequest, summary: Mapping[str, Any]) -> None:
    """Say on the next page what was done."""
    counts = summary["counts"]
    verbs = (("create", "created"), ("update", "updated"), ("unchanged", "unchanged"), ("ignored", "ignored"))
    words = ", ".join(f"{counts[key]:,} {verb}" for key, verb in verbs if counts[key])
    kinds = sorted({row["name"].partition(" ")[0] for row in summary["ignored"]["changes"]})
    ignored = f" Ignored kinds: {', '.join(kinds)}." if kinds else ""
    messages.success(request, f"{words}.{ignored}")
    if said := present.rebuilt_words(summary["rebuilt"]):
        messages.info(request, said)
    if missing := present.missing_words(summary["missingOwners"]):
        messages.warning(request, f"Owners are missing. {missing}")
    if summary["leftOut"]:
        messages.warning(request, f"Left out: {'; '.join(summary['leftOut'][:TOLD_AT_ONCE])}.")


SHOWN = 50


def difference(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Compare a branch with its parent: who moved, who waits, and the first decision that differs."""
    parent, since = _parent_of(request, cluster), cluster.parent_seq
    found = difference_of(branch=cluster, parent=parent, place=positive_int(request.GET.get("n")) or 1)
    kind = request.GET.get("kind", "")
    chosen = [change for change in found.changes if kind in ("", change.kind)]
    run = current_run(cluster)
    context = {
        "parent": parent,
        "found": found,
        "kinds": [(name, found.counts[name]) for name in KINDS if found.counts.get(name)],
        "kind": kind,
        "changes": chosen if request.GET.get("all") else chosen[:SHOWN],
        "n_chosen": len(chosen),
        "edits": list(edits_of(cluster)),
        "is_running": run is not None and run.is_open,
        "was_run": cluster.next_cycle > 1,
        "n_since": 0 if since is None else edits_of(parent, since=since).count(),
    }
    return render(request, "difference/page.html", context)


def apply(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """Apply the edits of a branch to its parent, of which one must be an editor."""
    branch = visible_clusters(request).filter(public_id=cluster_id).first()
    if branch is None:
        raise Http404(f'There is no cluster "{cluster_id}".')
    parent = get_cluster(request, _parent_of(request, branch).public_id)
    n = apply_branch(branch=branch, parent=parent).n_edits
    words = (
        f"{n:,} write{'' if n == 1 else 's'} of {branch.name} applied here. Run it to see what is decided;"
        " undo is one key: Z."
    )
    return done(request, words, "web:board", parent.public_id)


def _parent_of(request: HttpRequest, branch: Cluster) -> Cluster:
    parent = visible_clusters(request).filter(pk=branch.parent_id).first() if branch.parent_id else None
    if parent is None:
        raise Http404(f"{branch.name} is no branch of a cluster that is here.")
    return parent
