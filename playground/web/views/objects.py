"""All objects by kind, those of one kind, and one as YAML: edit, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from playground.clusters.custom_kinds import table_of
from playground.clusters.errors import ClusterError, InvalidManifest
from playground.clusters.kinds import Kind
from playground.clusters.rows import row_of
from playground.clusters.services.fields import FieldValidation
from playground.clusters.services.objects import delete_object, replace_object
from playground.clusters.services.posted import read_posted
from playground.web.access import get_cluster
from playground.web.forms.objects import FORMS, NodeForm, PodLabelsForm
from playground.web.load import CARRIERS
from playground.web.objects import view_kinds, view_objects
from playground.web.posted_yaml import yaml_of
from playground.web.problems import problems_of

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

NO_NAMESPACE = "-"
CLASSES = ("PriorityClass", "PodDisruptionBudget")
"""Kinds whose page is the one of classes and budgets."""


@require_safe
def held(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """Every kind the cluster has, how many objects, and which of them shape placement."""
    cluster = get_cluster(request, cluster_id)
    view = view_kinds(cluster, effect=request.GET.get("effect", ""), with_none="none" in request.GET)
    return render(
        request, "objects/kinds.html", {"cluster": cluster, "tab": "config", "sub": "objects", "view": view}
    )


@require_safe
def of_kind(request: HttpRequest, cluster_id: str, kind: str) -> HttpResponse:
    """The objects of one kind, a page of them."""
    cluster = get_cluster(request, cluster_id)
    view = view_objects(
        cluster, _kind(cluster, kind), named=request.GET.get("name", ""), after=request.GET.get("after", "")
    )
    return render(
        request, "objects/list.html", {"cluster": cluster, "tab": "config", "sub": "objects", "view": view}
    )


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, cluster_id: str, kind: str, namespace: str, name: str) -> HttpResponse:
    """The object's manifest in an editor; saving replaces it unless it changed meanwhile."""
    cluster = get_cluster(request, cluster_id)
    known = _kind(cluster, kind)
    row = row_of(cluster, known, _namespace(namespace), name)
    if row is None:
        raise Http404(f'{known.resource} "{name}" not found')
    text = yaml_of([row.manifest])
    problems: list[Any] = []
    status = 200
    form = _form(request, known, row.manifest)
    by_form = request.POST.get("action") == "form" and form is not None
    if by_form and form is not None and not form.is_valid():
        status = 400
    elif request.method == "POST":
        text = yaml_of([form.applied(row.manifest)]) if by_form and form else request.POST.get("text", "")
        try:
            replace_object(
                cluster=cluster, manifest=_one(text, known, namespace, name), fields=FieldValidation("Strict")
            )
        except ClusterError as error:
            problems, status = problems_of(error, text), error.status
        else:
            messages.success(request, f"{known.kind} {name} saved.")
            return _back(cluster.public_id, known, namespace, name)
    context = {
        "cluster": cluster,
        "kind": known.row_kind,
        "namespace": namespace,
        "name": name,
        "text": text,
        "problems": problems,
        "form": form,
        "resource_version": row.resource_version,
        "carries_load": kind in CARRIERS,
    }
    return render(request, "objects/edit.html", context, status=status)


@require_POST
def delete(request: HttpRequest, cluster_id: str, kind: str, namespace: str, name: str) -> HttpResponse:
    """Delete the object, once that was confirmed."""
    cluster = get_cluster(request, cluster_id)
    known = _kind(cluster, kind)
    if request.POST.get("sure") != "yes":
        context = {"cluster": cluster, "kind": known.row_kind, "namespace": namespace, "name": name}
        return render(request, "objects/confirm_delete.html", context)
    try:
        delete_object(cluster=cluster, kind=known, namespace=_namespace(namespace), name=name)
    except ClusterError as error:
        messages.error(request, error.message)
    else:
        end = ", or terminating for its grace period" if known.kind == "Pod" else ""
        messages.success(request, f"{known.kind} {name} is deleted{end}.")
    return redirect("web:classes" if known.kind in CLASSES else "web:board", cluster.public_id)


def _form(request: HttpRequest, kind: Kind, manifest: dict[str, Any]) -> NodeForm | PodLabelsForm | None:
    """The form over the common fields, for kinds that have one."""
    form_class = FORMS.get(kind.kind)
    if form_class is None:
        return None
    if request.POST.get("action") == "form":
        return form_class(request.POST)
    return form_class(initial=form_class.values_of(manifest))


def _one(text: str, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
    posted = read_posted(text)
    if len(posted) != 1:
        raise InvalidManifest(f"expected one object, found {len(posted)}")
    manifest = posted[0].manifest
    meta = manifest.get("metadata") or {}
    same_place = not kind.namespaced or (meta.get("namespace") or "default") == namespace
    if manifest.get("kind") != kind.kind or meta.get("name") != name or not same_place:
        raise InvalidManifest(
            "kind, namespace and name stay as they are; submit another object to make a new one",
            path="metadata.name",
            value=meta.get("name"),
        )
    return dict(manifest)


def _kind(cluster: Cluster, name: str) -> Kind:
    kind = table_of(cluster).by_row_kind(name)
    if kind is None:
        raise Http404(f'There is no kind "{name}".')
    return kind


def _namespace(namespace: str) -> str:
    return "" if namespace == NO_NAMESPACE else namespace


def _back(cluster_id: str, kind: Kind, namespace: str, name: str) -> HttpResponse:
    if kind.row_kind == "Pod":
        return redirect("web:pod", cluster_id, namespace, name)
    if kind.row_kind in CLASSES:
        return redirect("web:classes", cluster_id)
    if not kind.interpreted:
        return redirect("web:objects-of-kind", cluster_id, kind.row_kind)
    return redirect("web:board", cluster_id)
