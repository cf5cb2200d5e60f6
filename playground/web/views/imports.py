"""Imports: what a text holds before anything is made of it, and making it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from playground.clusters import lanes
from playground.clusters.errors import ClusterError, NotFound
from playground.clusters.services import drafts
from playground.clusters.services.apply import ApplyResult, apply_documents
from playground.clusters.services.lifecycle import create_cluster
from playground.clusters.trouble import why_waiting
from playground.web.access import get_cluster
from playground.web.forms.clusters import ImportForm
from playground.web.htmx import HtmxHttpRequest
from playground.web.import_preview import (
    DUMP_LINE,
    import_hint,
    missing_words,
    progress_of,
    rebuilt_words,
    view_import,
)
from playground.web.problems import problems_of

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster, Draft

READING = ["GET", "HEAD", "POST"]
TOLD_AT_ONCE = 5


@require_http_methods(READING)
@vary_on_headers("HX-Request")
def new_import(request: HtmxHttpRequest) -> HttpResponse:
    """A cluster from pasted or uploaded manifests."""
    return _import(request, None)


@require_http_methods(READING)
@vary_on_headers("HX-Request")
def import_into(request: HtmxHttpRequest, cluster_id: str) -> HttpResponse:
    """Manifests into a cluster."""
    return _import(request, get_cluster(request, cluster_id))


@require_safe
@vary_on_headers("HX-Request")
def draft(request: HtmxHttpRequest, draft_id: str) -> HttpResponse:
    """How far a preview or a large import is; the board of the cluster once it is made."""
    found = _get_draft(request, draft_id)
    if found.made is not None:
        if request.htmx:
            # Several looks may be under way: what was made is told by the page they lead to, and once.
            return HttpResponse(headers={"HX-Redirect": request.path})
        _tell(request, found.answer["import"])
        return redirect("web:board", found.made.public_id)
    into = found.wanted.get("into")
    context: dict[str, Any] = {
        "cluster": get_cluster(request, into) if into else None,
        "tab": "import",
        "form": ImportForm(initial={"cluster_name": "imported"}),
        "dump_line": DUMP_LINE,
        "here": _form_of(found),
    }
    return _render(request, context | _of_draft(found))


@require_POST
def draft_cancel(request: HttpRequest, draft_id: str) -> HttpResponse:
    """No more is wanted."""
    found = _get_draft(request, draft_id)
    drafts.cancel_draft(public_id=found.public_id, owner=_owner(request))
    return redirect(_form_of(found))


def _form_of(draft: Draft) -> str:
    """Address of the page the text was posted on."""
    into = draft.wanted.get("into")
    return reverse("web:import", args=[into]) if into else reverse("web:new-import")


def _get_draft(request: HttpRequest, draft_id: str) -> Draft:
    try:
        return drafts.get_draft(draft_id, _owner(request))
    except NotFound as error:
        raise Http404(error.message) from None


def _import(request: HtmxHttpRequest, cluster: Cluster | None) -> HttpResponse:
    posted = request.method == "POST"
    initial = {"cluster_name": "imported"}
    form = ImportForm(request.POST, request.FILES) if posted else ImportForm(initial=initial)
    context: dict[str, Any] = {
        "cluster": cluster,
        "tab": "import",
        "form": form,
        "dump_line": DUMP_LINE,
        "here": request.path,
    }
    status = 200
    if posted and form.is_valid():
        data = form.cleaned_data
        try:
            if request.POST.get("action") == "preview":
                context |= _preview(request, cluster, data)
            else:
                return _make(request, cluster, data)
        except ClusterError as error:
            context["problems"] = problems_of(error, data["manifests"])
            status = error.status
    elif posted:
        status = 400
    return _render(request, context, 200 if request.htmx else status)


def _render(request: HtmxHttpRequest, context: dict[str, Any], status: int = 200) -> HttpResponse:
    template = "clusters/dump.html" if request.htmx else "clusters/dump_page.html"
    context["hint"] = import_hint(context.get("problems") or ())
    return render(request, template, context, status=status)


def _preview(request: HttpRequest, cluster: Cluster | None, data: Mapping[str, Any]) -> dict[str, Any]:
    """What would happen, as far as it is known at once."""
    if before := request.POST.get("draft"):
        drafts.cancel_draft(public_id=before, owner=_owner(request))
    text, rebuild_owners = data["manifests"], not data["without_owners"]
    if cluster is not None and drafts.is_large(text):
        return _of_draft(
            drafts.import_into(
                cluster=cluster,
                text=text,
                owner=_owner(request),
                rebuild_owners=rebuild_owners,
                dry_run=True,
            )
        )
    if cluster is not None:
        # Without a transaction: a text takes up to a second, and others want to write meanwhile.
        result = apply_documents(cluster=cluster, text=text, dry_run=True, rebuild_owners=rebuild_owners)
        return {"preview": view_import(drafts.summary_of(result))}
    found = drafts.start_preview(
        text=text,
        owner=_owner(request),
        release=data["kubernetes_release"],
        rebuild_owners=rebuild_owners,
    )
    return _of_draft(found)


def _of_draft(found: Draft) -> dict[str, Any]:
    context: dict[str, Any] = {"draft": found, "percent": progress_of(found), "polls": found.is_open}
    if found.is_open:
        context["why_waiting"] = why_waiting(lanes.ASK, found.touched)
    if found.problems:
        context["problems"] = problems_of(drafts.error_from(found.problems), drafts.text_of(found))
    elif "import" in found.answer:
        context["preview"] = view_import(found.answer["import"], found.answer)
    return context


def _make(request: HttpRequest, cluster: Cluster | None, data: Mapping[str, Any]) -> HttpResponse:
    text = data["manifests"]
    name = data["cluster_name"] or "my-cluster"
    rebuild_owners = not data["without_owners"]
    if cluster is not None and drafts.is_large(text):
        started = drafts.import_into(
            cluster=cluster, text=text, owner=_owner(request), rebuild_owners=rebuild_owners
        )
        return redirect("web:draft", started.public_id)
    if cluster is not None:
        result = apply_documents(cluster=cluster, text=text, rebuild_owners=rebuild_owners)
    elif drafts.is_large(text):
        started = drafts.start_import(
            text=text,
            owner=_owner(request),
            name=name,
            release=data["kubernetes_release"],
            rebuild_owners=rebuild_owners,
        )
        return redirect("web:draft", started.public_id)
    else:
        cluster, result = _new_cluster(request, name, data)
    _tell(request, drafts.summary_of(result))
    return redirect("web:board", cluster.public_id)


def _new_cluster(request: HttpRequest, name: str, data: Mapping[str, Any]) -> tuple[Cluster, ApplyResult]:
    """A cluster that exists only if everything goes well."""
    with transaction.atomic():
        cluster = create_cluster(
            name=name, kubernetes_release=data["kubernetes_release"] or None, owner=_owner(request)
        )
        result = apply_documents(
            cluster=cluster, text=data["manifests"], rebuild_owners=not data["without_owners"]
        )
        return cluster, result


def _tell(request: HttpRequest, summary: Mapping[str, Any]) -> None:
    """Say on the next page what was done."""
    counts = summary["counts"]
    verbs = (("create", "created"), ("update", "updated"), ("unchanged", "unchanged"), ("ignored", "ignored"))
    words = ", ".join(f"{counts[key]:,} {verb}" for key, verb in verbs if counts[key])
    kinds = sorted({row["name"].partition(" ")[0] for row in summary["ignored"]["changes"]})
    ignored = f" Ignored kinds: {', '.join(kinds)}." if kinds else ""
    messages.success(request, f"{words}.{ignored}")
    if said := rebuilt_words(summary["rebuilt"]):
        messages.info(request, said)
    if missing := missing_words(summary["missingOwners"]):
        messages.warning(request, f"Owners are missing. {missing}")
    if summary["leftOut"]:
        messages.warning(request, f"Left out: {'; '.join(summary['leftOut'][:TOLD_AT_ONCE])}.")


def _owner(request: HttpRequest) -> Any:
    return request.user if request.user.is_authenticated else None
