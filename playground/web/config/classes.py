"""Forms of PriorityClasses and PodDisruptionBudgets, over the manifests they stand for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from playground.clusters import kinds
from playground.clusters.board import pods
from playground.clusters.errors import ClusterError, InvalidInput
from playground.clusters.log.rows import row_of
from playground.clusters.objects.queries import label_selector_of, selector_text
from playground.clusters.objects.write import create_object, replace_object
from playground.clusters.row_types import Cluster
from playground.web.fields import ManifestForm, NameField
from playground.web.looks import PriorityScale, priority_scale
from playground.web.requests import done
from scheduler_core.sim.admission import SYSTEM_PREFIX

POLICIES = (("PreemptLowerPriority", "PreemptLowerPriority"), ("Never", "Never"))
RULES = ("minAvailable", "maxUnavailable")
UNHEALTHY = (("", "not set"), ("IfHealthyBudget", "IfHealthyBudget"), ("AlwaysAllow", "AlwaysAllow"))


class PriorityClassForm(ManifestForm):
    """A class; value and policy of one that exists may not be changed, as in Kubernetes."""

    API_VERSION, KIND = "scheduling.k8s.io/v1", "PriorityClass"
    AT = {
        "version": "metadata.resourceVersion",
        "name": "metadata.name",
        "value": "value",
        "policy": "preemptionPolicy",
        "is_default": "globalDefault",
        "description": "description",
    }
    version = forms.CharField(required=False, widget=forms.HiddenInput)
    name = NameField(label="Name")
    value = forms.IntegerField(label="Value", help_text="up to 1,000,000,000")
    policy = forms.ChoiceField(choices=POLICIES, label="Preemption", initial=POLICIES[0][0])
    is_default = forms.BooleanField(required=False, label="Global default")
    description = forms.CharField(required=False, max_length=1000, label="Description")

    def __init__(self, *args: Any, manifest: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, manifest=manifest, auto_id="class-%s", **kwargs)
        if manifest is not None:
            # Django takes their initial value whatever is sent.
            for fixed in ("name", "value", "policy"):
                self.fields[fixed].disabled = True
            self.fields["value"].help_text = "fixed once the class exists"
        if self.is_built_in:
            self.fields["is_default"].disabled = True

    @property
    def is_built_in(self) -> bool:
        """Whether every cluster has the class: it stays, and is no default."""
        return self.manifest is not None and self.manifest["metadata"]["name"].startswith(SYSTEM_PREFIX)

    def standing(self, cluster: Cluster, view: pods.ClassesView) -> dict[str, Any]:
        """The place of the class among the others; empty while no value is named."""
        text = str(self["value"].value() or "")
        if not re.fullmatch(r"-?[0-9]{1,10}", text) or not -(2**31) <= int(text) < 2**31:
            return {}
        value = int(text)
        others = [use.row for use in view.classes if use.row.name != self["name"].value()]
        above = [row.name for row in others if row.value > value]
        return {
            "equal": next((row.name for row in others if row.value == value), ""),
            "above": above[-1] if above else "",
            "below": next((row.name for row in others if row.value < value), ""),
            "never": self["policy"].value() == "Never",
            "n_below": pods.pods_below(cluster, value),
        }


class SelectorField(forms.CharField):
    """Labels as kubectl takes them after -l; cleans to a LabelSelector."""

    def prepare_value(self, value: Any) -> Any:
        return selector_text(value) if isinstance(value, dict) else value

    def clean(self, value: Any) -> dict[str, Any]:
        try:
            return label_selector_of(super().clean(value) or "")
        except InvalidInput as error:
            raise forms.ValidationError(error.message) from None


class BudgetForm(ManifestForm):
    """A budget: which pods, and how many of them must stay or may be missing."""

    API_VERSION, KIND = "policy/v1", "PodDisruptionBudget"
    AT = {
        "version": "metadata.resourceVersion",
        "name": "metadata.name",
        "namespace": "metadata.namespace",
        "selector": "spec.selector",
        "unhealthy": "spec.unhealthyPodEvictionPolicy",
    }
    version = forms.CharField(required=False, widget=forms.HiddenInput)
    name = NameField(label="Name")
    namespace = NameField(label="Namespace", initial="default")
    selector = SelectorField(
        required=False, label="Selector", help_text="app=web,tier!=db; empty = every pod there"
    )
    rule = forms.ChoiceField(choices=[(rule, rule) for rule in RULES], label="Rule")
    amount = forms.CharField(max_length=20, strip=True, label="Number or %", help_text="2 or 50%")
    unhealthy = forms.ChoiceField(choices=UNHEALTHY, required=False, label="Unhealthy pods")

    def __init__(self, *args: Any, manifest: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, manifest=manifest, auto_id="budget-%s", **kwargs)
        if manifest is not None:
            self.fields["name"].disabled = self.fields["namespace"].disabled = True
            written = (manifest.get("spec") or {}).items()
            self.initial.update(
                next(({"rule": key, "amount": of} for key, of in written if key in RULES), {})
            )

    def applied(self) -> dict[str, Any]:
        made, amount = super().applied(), self.cleaned_data["amount"]
        for rule in RULES:
            made["spec"].pop(rule, None)
        made["spec"][self.cleaned_data["rule"]] = (
            int(amount) if re.fullmatch(r"-?[0-9]{1,18}", amount) else amount
        )
        return made

    def selecting(self, cluster: Cluster) -> dict[str, Any]:
        """The pods the budget would cover; empty while nothing is written."""
        if not self.is_bound and self.manifest is None:
            return {}
        namespace = str(self["namespace"].value() or "")
        try:
            selector = label_selector_of(str(self["selector"].value() or ""))
        except InvalidInput as error:
            return {"problem": error.message}
        n_pods, n_nodes = pods.pods_selected(cluster, namespace, selector)
        return {"namespace": namespace, "n_pods": n_pods, "n_nodes": n_nodes}


F = TypeVar("F", bound=ManifestForm)
MOST_MARKS = 24


def class_rows(view: pods.ClassesView, scale: PriorityScale) -> list[dict[str, Any]]:
    """The classes with their marks; shares of the bar are percents of the pods that name a class."""
    named = max(1, view.n_pods - view.n_unnamed)
    rows: list[dict[str, Any]] = []
    start = 0.0
    for use in view.classes:
        share = 100 * use.n_pods / named
        rows.append(
            {
                "use": use,
                "mark": scale.mark(use.row.value, use.row.name),
                "built_in": use.row.name.startswith(SYSTEM_PREFIX),
                "share": round(share, 2),
                "start": round(start, 2),
            }
        )
        start += share
    return rows


def budget_row(use: pods.BudgetUse) -> dict[str, Any]:
    """One budget: its selector as text, and ranges to draw a mark a pod by.

    Pods that must stay, that may go, and that are not healthy though the budget expects them.
    """
    row = use.row
    go = min(row.disruptions_allowed, row.current_healthy)
    marks = {
        "stay": row.current_healthy - go,
        "go": go,
        "missing": max(0, row.expected_pods - row.current_healthy),
    }
    scale = min(1.0, MOST_MARKS / (sum(marks.values()) or 1))
    drawn = {key: range(max(1, round(n * scale)) if n > 0 else 0) for key, n in marks.items()}
    return {"use": use, "selector": selector_text(row.selector), **drawn}


BUDGETS_SHOWN = 200


def classes(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Both tables and both forms; `?class=` and `?budget=` open one of them in its form, a POST saves a form.

    `?stands=class` and `?stands=budget` answer with what the form says of its fields, which the query holds.
    """
    action = request.POST.get("action", "")
    class_form = _form(PriorityClassForm, request, cluster, "class")
    budget_form = _form(BudgetForm, request, cluster, "budget")
    view = pods.class_uses(cluster)
    context: dict[str, Any] = {"class_form": class_form, "budget_form": budget_form}
    if request.method != "POST" and "stands" in request.GET:
        about_class = request.GET["stands"] == "class"
        stands = class_form.standing(cluster, view) if about_class else budget_form.selecting(cluster)
        return render(request, "config/stands.html", {"stands": stands})
    status = 200
    for form in (class_form, budget_form):
        if request.method != "POST" or not form.is_bound:
            continue
        status = 400
        if form.is_valid():
            manifest = form.applied()
            meta = manifest["metadata"]
            save = create_object if form.manifest is None else replace_object
            try:
                save(cluster=cluster, manifest=manifest)
            except ClusterError as error:
                form.add_error(None, error.message)
                status = error.status
            else:
                words = f"{form.KIND} {meta['name']} is saved; it counts from the next cycle on."
                anchor = "-".join((f"#{action}", *filter(None, (meta.get("namespace"), meta["name"]))))
                return done(request, words, "web:classes", cluster.public_id, anchor=anchor)
    uses = pods.budget_uses(cluster)
    context |= {
        "able": [use.row.name for use in view.classes if use.may_evict],
        "held": [
            use.row for use in uses if use.row.counted and not use.row.disruptions_allowed and use.n_pods
        ],
        "classes": class_rows(view, priority_scale(cluster)),
        "n_named": view.n_pods - view.n_unnamed,
        "n_unnamed": view.n_unnamed,
        "budgets": [budget_row(use) for use in uses[:BUDGETS_SHOWN]],
        "n_budgets": len(uses),
        "class_stands": class_form.standing(cluster, view),
        "budget_stands": budget_form.selecting(cluster),
    }
    return render(request, "config/classes.html", context, status=status)


def _form(form: type[F], request: HttpRequest, cluster: Cluster, action: str) -> F:
    """The form of the object that the query names, or an empty one; 404 for an object that is not there."""
    asks = request.method != "POST" and request.GET.get("stands") == action
    data = request.GET if asks else request.POST if request.POST.get("action") == action else None
    place = request.GET.get(action, "")
    namespace, _, name = place.rpartition("/")
    kind = kinds.named(form.KIND)
    row = row_of(cluster, kind, namespace or "default", name) if name else None
    if name and row is None:
        raise Http404(f'{kind.resource} "{place}" not found')
    return form(data, manifest=None if row is None else row.manifest)
