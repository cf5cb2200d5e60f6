"""PriorityClasses and PodDisruptionBudgets: who uses them, what they allow, and forms to make and change them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from playground.clusters import kinds
from playground.clusters.errors import ClusterError, InvalidInput
from playground.clusters.rows import row_of
from playground.clusters.selection import label_selector_of
from playground.clusters.selectors.classes import (
    ClassesView,
    budget_uses,
    class_uses,
    pods_below,
    pods_selected,
)
from playground.clusters.services.objects import create_object, replace_object
from playground.web.access import get_cluster
from playground.web.board import priority_scale
from playground.web.classes import budget_rows, class_rows, headline, selecting, standing
from playground.web.forms.classes import BudgetForm, ObjectForm, PriorityClassForm

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

BUDGETS_SHOWN = 200


@require_http_methods(["GET", "HEAD", "POST"])
def classes(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """Both tables and both forms; `?class=` and `?budget=` open one of them in its form, a POST saves a form.

    `?stands=class` and `?stands=budget` answer with what the form says of its fields, which the query holds.
    """
    cluster = get_cluster(request, cluster_id)
    forms: dict[str, ObjectForm] = {
        "class": _form(cluster, "class", request.GET.get("class", "")),
        "budget": _form(cluster, "budget", request.GET.get("budget", "")),
    }
    asked = request.GET.get("stands", "")
    if request.method != "POST" and asked in forms:
        form = _form(cluster, asked, "", data=request.GET)
        said = (
            _standing(cluster, class_uses(cluster), form) if asked == "class" else _selecting(cluster, form)
        )
        return render(request, "config/stands.html", {"stands": said})
    problem, status = "", 200
    action = request.POST.get("action", "")
    if request.method == "POST" and action in forms:
        form = forms[action] = _form(cluster, action, request.GET.get(action, ""), data=request.POST)
        if form.is_valid():
            manifest = form.applied()  # type: ignore[attr-defined]
            try:
                _save(cluster, manifest, new=form.manifest is None)
            except ClusterError as error:
                form.add_error(None, error.message)
                status = error.status
            else:
                name = manifest["metadata"]["name"]
                messages.success(
                    request, f"{manifest['kind']} {name} is saved; it counts from the next cycle on."
                )
                anchor = (
                    f"class-{name}"
                    if action == "class"
                    else f"budget-{manifest['metadata']['namespace']}-{name}"
                )
                return redirect(f"{reverse('web:classes', args=[cluster.public_id])}#{anchor}")
        else:
            status = 400
        problem = action
    view = class_uses(cluster)
    uses = budget_uses(cluster)
    scale = priority_scale(cluster)
    context = {
        "cluster": cluster,
        "tab": "config",
        "sub": "classes",
        "headline": headline(view, uses),
        "classes": class_rows(view, scale),
        "n_named": view.n_pods - view.n_unnamed,
        "n_unnamed": view.n_unnamed,
        "budgets": budget_rows(uses[:BUDGETS_SHOWN]),
        "n_budgets": len(uses),
        "class_form": forms["class"],
        "budget_form": forms["budget"],
        "class_stands": _standing(cluster, view, forms["class"]),
        "budget_stands": _selecting(cluster, forms["budget"]),
        "problem": problem,
    }
    return render(request, "config/classes.html", context, status=status)


def _form(cluster: Cluster, action: str, place: str, data: Any = None) -> ObjectForm:
    """The form of one object, or an empty one; 404 for an object that is not there."""
    namespace, _, name = place.rpartition("/")
    kind = kinds.by_kind("PriorityClass" if action == "class" else "PodDisruptionBudget")
    assert kind is not None
    row = row_of(cluster, kind, namespace or "default", name) if name else None
    if name and row is None:
        raise Http404(f'{kind.resource} "{place}" not found')
    form = PriorityClassForm if action == "class" else BudgetForm
    return form(data, manifest=None if row is None else row.manifest)


def _save(cluster: Cluster, manifest: dict[str, Any], *, new: bool) -> None:
    if new:
        create_object(cluster=cluster, manifest=manifest)
    else:
        replace_object(cluster=cluster, manifest=manifest)


def _standing(cluster: Cluster, view: ClassesView, form: ObjectForm) -> str:
    """Where the class in the form stands; "" while the form names no value."""
    try:
        value = int(str(form["value"].value() or ""))
    except ValueError:
        return ""
    never = form["policy"].value() == "Never"
    name = str(form["name"].value() or "")
    if not -(2**31) <= value < 2**31:
        return ""
    return standing(view, name, value, never=never, n_below=pods_below(cluster, value))


def _selecting(cluster: Cluster, form: ObjectForm) -> str:
    """Whom the budget in the form would cover; "" while nothing is written, or no selector."""
    if not form.is_bound and form.manifest is None:
        return ""
    namespace = str(form["namespace"].value() or "")
    try:
        selector = label_selector_of(str(form["selector"].value() or ""))
    except InvalidInput as error:
        return error.message
    return selecting(namespace, *pods_selected(cluster, namespace, selector))
