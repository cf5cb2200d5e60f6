"""Forms over stored objects: the common fields; everything else is edited as YAML."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from playground.clusters.board.nodes import node_page
from playground.clusters.clock import virtual_now_ns
from playground.clusters.custom_kinds import table_of
from playground.clusters.errors import ClusterError, InvalidManifest
from playground.clusters.kinds import Kind
from playground.clusters.log.rows import row_of
from playground.clusters.objects.actions import NODE_ACTIONS, act_on_nodes, act_on_pods
from playground.clusters.objects.admission import FieldValidation, read_posted
from playground.clusters.objects.write import delete_object, patch_object, replace_object
from playground.clusters.row_types import Cluster
from playground.scenarios.services import forking
from playground.web.fields import ManifestForm, PairsField, QuantityField, TaintsField
from playground.web.listing import NODE_BUTTONS, Listing
from playground.web.objects import present
from playground.web.problems import problems_of, yaml_of
from playground.web.requests import done, next_page, positive_int
from scheduler_core.sim.load import LOAD


class PodLabelsForm(ManifestForm):
    """Fields of a pod that may change without making it another one."""

    AT = {"labels": "metadata.labels"}
    labels = PairsField(required=False, label="Labels", widget=forms.Textarea(attrs={"rows": 4}))


class NodeForm(ManifestForm):
    """Common fields of a node."""

    AT = {
        **{name: f"status.capacity.{name} status.allocatable.{name}" for name in ("cpu", "memory", "pods")},
        "labels": "metadata.labels",
        "taints": "spec.taints",
        "unschedulable": "spec.unschedulable",
    }
    cpu = QuantityField(label="CPU", initial="0")
    memory = QuantityField(example="32Gi or 512Mi", label="Memory", initial="0")
    pods = forms.IntegerField(min_value=0, max_value=100_000, label="pods", initial="0")
    labels = PairsField(required=False, label="Labels", widget=forms.Textarea(attrs={"rows": 4}))
    taints = TaintsField(
        required=False,
        label="Taints",
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="gpu=true:NoSchedule, one a line",
    )
    unschedulable = forms.BooleanField(required=False, label="Cordoned")

    def clean_pods(self) -> str:
        """The number as a quantity."""
        return str(self.cleaned_data["pods"])


FORMS: dict[str, type[ManifestForm]] = {"Node": NodeForm, "Pod": PodLabelsForm}
NO_NAMESPACE = "-"
CLASSES = ("PriorityClass", "PodDisruptionBudget")
"""Kinds whose page is the one of classes and budgets."""


def held(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Every kind the cluster has, how many objects, and which of them shape placement."""
    view = present.view_kinds(cluster, effect=request.GET.get("effect", ""), with_none="none" in request.GET)
    return render(request, "objects/kinds.html", {"view": view})


def of_kind(request: HttpRequest, cluster: Cluster, kind: str) -> HttpResponse:
    """The objects of one kind, a page of them."""
    view = present.view_objects(
        cluster, _kind(cluster, kind), named=request.GET.get("name", ""), after=request.GET.get("after", "")
    )
    return render(request, "objects/list.html", {"view": view})


def edit(request: HttpRequest, cluster: Cluster, kind: str, namespace: str, name: str) -> HttpResponse:
    """The object's manifest in an editor; saving replaces it unless it changed meanwhile."""
    known = _kind(cluster, kind)
    row = row_of(cluster, known, _namespace(namespace), name)
    if row is None:
        raise Http404(f'{known.resource} "{name}" not found')
    text = yaml_of([row.manifest])
    problems: list[Any] = []
    status = 200
    by_form = request.POST if request.POST.get("action") == "form" else None
    form = FORMS[kind](by_form, manifest=row.manifest) if kind in FORMS else None
    if form and form.is_bound and not form.is_valid():
        status = 400
    elif request.method == "POST":
        text = yaml_of([form.applied()]) if form and form.is_bound else request.POST.get("text", "")
        try:
            replace_object(
                cluster=cluster, manifest=_one(text, known, namespace, name), fields=FieldValidation("Strict")
            )
        except ClusterError as error:
            problems, status = problems_of(error, text), error.status
        else:
            return done(request, f"{known.kind} {name} saved.", *_page_after(cluster, known, namespace, name))
    context = {
        "kind": known.row_kind,
        "namespace": namespace,
        "name": name,
        "text": text,
        "problems": problems,
        "form": form,
        "resource_version": row.resource_version,
        "carries_load": kind in present.CARRIERS,
    }
    return render(request, "objects/edit.html", context, status=status)


def delete(request: HttpRequest, cluster: Cluster, kind: str, namespace: str, name: str) -> HttpResponse:
    """Delete the object, once that was confirmed."""
    known = _kind(cluster, kind)
    if request.POST.get("sure") != "yes":
        context = {"kind": known.row_kind, "namespace": namespace, "name": name}
        return render(request, "objects/confirm_delete.html", context)
    delete_object(cluster=cluster, kind=known, namespace=_namespace(namespace), name=name)
    end = ", or terminating for its grace period" if known.kind == "Pod" else ""
    where = "web:classes" if known.kind in CLASSES else "web:board"
    return done(request, f"{known.kind} {name} is deleted{end}.", where, cluster.public_id)


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


def _page_after(cluster: Cluster, kind: Kind, namespace: str, name: str) -> tuple[str, ...]:
    if kind.row_kind == "Pod":
        return "web:pod", cluster.public_id, namespace, name
    if kind.row_kind in CLASSES:
        return "web:classes", cluster.public_id
    if not kind.interpreted:
        return "web:objects-of-kind", cluster.public_id, kind.row_kind
    return "web:board", cluster.public_id


def load(request: HttpRequest, cluster: Cluster, kind: str, namespace: str, name: str) -> HttpResponse:
    """Draw what the pods of a workload use over time; saving writes the annotation."""
    known = table_of(cluster).by_row_kind(kind) if kind in present.CARRIERS else None
    row = None if known is None else row_of(cluster, known, namespace, name)
    if known is None or row is None:
        raise Http404(f'{kind} "{namespace}/{name}" has no load here')
    text, problem, status = None, "", 200
    if request.method == "POST":
        text = request.POST.get("text", "").strip()
        if text and "anchor" in request.POST:
            text = present.anchored(text, virtual_now_ns(cluster))
        patch = {"metadata": {"annotations": {LOAD: text or None}}}
        try:
            patch_object(cluster=cluster, kind=known, namespace=namespace, name=name, patch=patch)
        except ClusterError as error:
            problem, status = error.message, error.status
        else:
            words = f"The load of {name} is drawn." if text else f"{name} has no load any more."
            return done(request, words, "web:load", cluster.public_id, kind, namespace, name)
    view = present.view_load(cluster, known, row.manifest, text)
    problem = view["problem"] or problem
    context = {"kind": kind, "namespace": namespace, "name": name, "view": view, "problem": problem}
    return render(request, "objects/load.html", context, status=status)


SHOWN = 30
HELD_TOLD = 3


def changes(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """List changes that can be undone, newest first."""
    context = {
        "changes": list(cluster.changes.order_by("-id")[:SHOWN]),
        "next_cycle": cluster.next_cycle,
    }
    return render(request, "changes/page.html", context)


def undo(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Undo the change that was shown as the last one."""
    undone = forking.undo(cluster=cluster, seq=positive_int(request.POST.get("change")))
    n = undone.cycles
    since = f", with the {n:,} cycle{'' if n == 1 else 's'} decided since" if n else ""
    there = next_page(request) or reverse("web:changes", args=[cluster.public_id])
    return done(request, f"Undone: {undone.words}{since}.", there)


def node_list(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Nodes, found as the address says, to choose some and do one thing to all of them."""
    words = request.GET.get("q", "").strip()
    context = {
        "q": words,
        "found": node_page(cluster, words, page=positive_int(request.GET.get("page")) or 1),
        "address": Listing({"q": words}),
        "actions": NODE_BUTTONS,
    }
    return render(request, "nodes/list.html", context)


def act(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Do one thing to the chosen pods or nodes."""
    action, pods, nodes = (
        request.POST.get("action", ""),
        request.POST.getlist("pod"),
        request.POST.getlist("node"),
    )
    is_about_nodes = bool(nodes) or (
        not pods and action in NODE_ACTIONS and request.POST.get("of") == "nodes"
    )
    if is_about_nodes:
        value = request.POST.get(action, "") if action in ("taint", "label") else ""
        acted = act_on_nodes(cluster=cluster, action=action, nodes=nodes, value=value)
    else:
        acted = act_on_pods(cluster=cluster, action=action, pods=pods)
    page = reverse("web:nodes" if is_about_nodes else "web:pods", args=[cluster.public_id])
    words = f"{'Done' if acted.n_changed else 'Nothing to change'}: {acted.words}. Undo is one key: Z."
    back = done(request, words, next_page(request) or page)
    if acted.held:
        first = "; ".join(f"{pod}: {reason.rstrip('.')}" for pod, reason in acted.held[:HELD_TOLD])
        n = len(acted.held)
        more = f", and {n - HELD_TOLD} more" if n > HELD_TOLD else ""
        messages.warning(request, f"{n} pod{'' if n == 1 else 's'} stayed. {first}{more}.")
    return back
