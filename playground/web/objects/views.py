"""Forms over stored objects: the common fields; everything else is edited as YAML."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from playground.clusters.board.nodes import node_page
from playground.clusters.clock import virtual_now_ns
from playground.clusters.custom_kinds import table_of
from playground.clusters.errors import ClusterError, InvalidManifest
from playground.clusters.kinds import Kind
from playground.clusters.log.rows import row_of
from playground.clusters.objects.actions import NODE_ACTIONS, Acted, act_on_nodes, act_on_pods
from playground.clusters.objects.admission import FieldValidation, read_posted
from playground.clusters.objects.write import delete_object, patch_object, replace_object
from playground.scenarios.services import forking
from playground.web.fields import PairsField, QuantityField, TaintsField
from playground.web.listing import NODE_BUTTONS, Listing
from playground.web.objects.present import (
    CARRIERS,
    EXAMPLE,
    HEIGHT,
    WIDTH,
    anchored,
    view_kinds,
    view_load,
    view_objects,
)
from playground.web.problems import problems_of, yaml_of
from playground.web.requests import positive_int
from scheduler_core.sim.load import LOAD

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster


class NodeForm(forms.Form):
    """What people change of a node."""

    cpu = QuantityField(label="cpu")
    memory = QuantityField(example="32Gi or 512Mi", label="memory")
    pods = forms.IntegerField(min_value=0, max_value=100_000, label="pods")
    labels = PairsField(required=False, label="Labels", widget=forms.Textarea(attrs={"rows": 4}))
    taints = TaintsField(
        required=False,
        label="Taints",
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="gpu=true:NoSchedule, one a line",
    )
    unschedulable = forms.BooleanField(required=False, label="Cordoned")

    @staticmethod
    def values_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a stored node."""
        spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
        allocatable = status.get("allocatable") or status.get("capacity") or {}
        return {
            "cpu": allocatable.get("cpu", "0"),
            "memory": allocatable.get("memory", "0"),
            "pods": allocatable.get("pods", "0"),
            "labels": _lines((manifest.get("metadata") or {}).get("labels")),
            "taints": "\n".join(
                f"{t['key']}{'=' + t['value'] if t.get('value') else ''}:{t['effect']}"
                for t in spec.get("taints") or []
            ),
            "unschedulable": bool(spec.get("unschedulable")),
        }

    def applied(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """The node with the form's fields; the form is valid."""
        data = self.cleaned_data
        made = copy.deepcopy(dict(manifest))
        made["metadata"] = {**made["metadata"], "labels": data["labels"]}
        spec = {**(made.get("spec") or {}), "taints": data["taints"], "unschedulable": data["unschedulable"]}
        made["spec"] = {key: value for key, value in spec.items() if value or key not in _OPTIONAL}
        amounts = {"cpu": data["cpu"], "memory": data["memory"], "pods": str(data["pods"])}
        status = dict(made.get("status") or {})
        for held in ("capacity", "allocatable"):
            status[held] = {**(status.get(held) or {}), **amounts}
        made["status"] = status
        return made


class PodLabelsForm(forms.Form):
    """What may change of a pod without making it another one."""

    labels = PairsField(required=False, label="Labels", widget=forms.Textarea(attrs={"rows": 4}))

    @staticmethod
    def values_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a stored pod."""
        return {"labels": _lines((manifest.get("metadata") or {}).get("labels"))}

    def applied(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """The pod with the form's labels; the form is valid."""
        made = copy.deepcopy(dict(manifest))
        made["metadata"] = {**made["metadata"], "labels": self.cleaned_data["labels"]}
        return made


_OPTIONAL = ("taints", "unschedulable")
FORMS: dict[str, type[NodeForm] | type[PodLabelsForm]] = {"Node": NodeForm, "Pod": PodLabelsForm}


def _lines(pairs: Mapping[str, Any] | None) -> str:
    return "\n".join(f"{key}={value}" for key, value in (pairs or {}).items())


NO_NAMESPACE = "-"
CLASSES = ("PriorityClass", "PodDisruptionBudget")
"""Kinds whose page is the one of classes and budgets."""


def held(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Every kind the cluster has, how many objects, and which of them shape placement."""
    view = view_kinds(cluster, effect=request.GET.get("effect", ""), with_none="none" in request.GET)
    return render(request, "objects/kinds.html", {"view": view})


def of_kind(request: HttpRequest, cluster: Cluster, kind: str) -> HttpResponse:
    """The objects of one kind, a page of them."""
    view = view_objects(
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
            return _page_after(cluster, known, namespace, name)
    context = {
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


def delete(request: HttpRequest, cluster: Cluster, kind: str, namespace: str, name: str) -> HttpResponse:
    """Delete the object, once that was confirmed."""
    known = _kind(cluster, kind)
    if request.POST.get("sure") != "yes":
        context = {"kind": known.row_kind, "namespace": namespace, "name": name}
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


def _page_after(cluster: Cluster, kind: Kind, namespace: str, name: str) -> HttpResponse:
    if kind.row_kind == "Pod":
        return redirect("web:pod", cluster.public_id, namespace, name)
    if kind.row_kind in CLASSES:
        return redirect("web:classes", cluster.public_id)
    if not kind.interpreted:
        return redirect("web:objects-of-kind", cluster.public_id, kind.row_kind)
    return redirect("web:board", cluster.public_id)


def load(request: HttpRequest, cluster: Cluster, kind: str, namespace: str, name: str) -> HttpResponse:
    """What the pods of a workload use over time; saving writes the annotation."""
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
        "kind": kind, "namespace": namespace, "name": name,
        "view": view, "problem": view["problem"] or problem, "width": WIDTH, "height": HEIGHT, "example": EXAMPLE,
    }  # fmt: skip
    return render(request, "objects/load.html", context, status=status)


SHOWN = 30
HELD_TOLD = 3


def changes(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """What can be undone, newest first."""
    context = {
        "changes": list(cluster.changes.order_by("-id")[:SHOWN]),
        "next_cycle": cluster.next_cycle,
    }
    return render(request, "changes/page.html", context)


def undo(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Undo the change that was shown as the last one."""
    back = _back(request, "web:changes", cluster)
    try:
        undone = forking.undo(cluster=cluster, seq=positive_int(request.POST.get("change")))
    except ClusterError as error:
        messages.error(request, f"{error.message[:1].upper()}{error.message[1:]}.")
        return back
    since = "" if not undone.cycles else f", with the {_cycles(undone.cycles)} decided since"
    messages.success(request, f"Undone: {undone.words}{since}.")
    return back


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
