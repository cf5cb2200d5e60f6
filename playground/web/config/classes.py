"""Forms of PriorityClasses and PodDisruptionBudgets, over the manifests they stand for."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from playground.clusters import kinds
from playground.clusters.board.pods import (
    BudgetUse,
    ClassesView,
    ClassUse,
    budget_uses,
    class_uses,
    pods_below,
    pods_selected,
)
from playground.clusters.errors import ClusterError, InvalidInput
from playground.clusters.log.rows import row_of
from playground.clusters.objects.queries import label_selector_of, selector_text
from playground.clusters.objects.write import create_object, replace_object
from playground.web.fields import NameField
from playground.web.looks import PriorityScale, priority_scale
from scheduler_core.sim.admission import SYSTEM_PREFIX

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster, PodDisruptionBudget

POLICIES = (("PreemptLowerPriority", "PreemptLowerPriority"), ("Never", "Never"))
RULES = (("minAvailable", "minAvailable"), ("maxUnavailable", "maxUnavailable"))
UNHEALTHY = (("", "not set"), ("IfHealthyBudget", "IfHealthyBudget"), ("AlwaysAllow", "AlwaysAllow"))


class ObjectForm(forms.Form):
    """What both forms have: the version that was read, so that another user's change is not undone."""

    KIND = ""
    version = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, manifest: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        self.manifest = manifest
        if manifest is not None:
            kwargs.setdefault("initial", self.values_of(manifest))
        kwargs["auto_id"] = f"{self.KIND}-%s"
        super().__init__(*args, **kwargs)
        self.label_suffix = ""

    @staticmethod
    def values_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a stored object."""
        raise NotImplementedError

    def _made(self, kind: str, api_version: str) -> dict[str, Any]:
        if self.manifest is None:
            return {"apiVersion": api_version, "kind": kind, "metadata": {"name": self.cleaned_data["name"]}}
        made: dict[str, Any] = copy.deepcopy(dict(self.manifest))
        made["metadata"]["resourceVersion"] = self.cleaned_data["version"]
        return made


class PriorityClassForm(ObjectForm):
    """A class; value and policy of one that exists may not be changed, as in Kubernetes."""

    KIND = "class"
    name = NameField(label="Name")
    value = forms.IntegerField(label="Value", help_text="up to 1,000,000,000")
    policy = forms.ChoiceField(choices=POLICIES, label="Preemption")
    is_default = forms.BooleanField(required=False, label="Global default")
    description = forms.CharField(required=False, max_length=1000, label="Description")

    def __init__(self, *args: Any, manifest: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, manifest=manifest, **kwargs)
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

    @staticmethod
    def values_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
        meta = manifest["metadata"]
        return {
            "name": meta["name"],
            "version": meta.get("resourceVersion", ""),
            "value": manifest.get("value"),
            "policy": manifest.get("preemptionPolicy") or "PreemptLowerPriority",
            "is_default": bool(manifest.get("globalDefault")),
            "description": manifest.get("description") or "",
        }

    def applied(self) -> dict[str, Any]:
        """The class the form asks for; the form is valid."""
        data = self.cleaned_data
        made = self._made("PriorityClass", "scheduling.k8s.io/v1")
        made |= {
            "value": data["value"],
            "preemptionPolicy": data["policy"],
            "globalDefault": data["is_default"],
        }
        made["description"] = data["description"]
        return made if data["description"] else {k: v for k, v in made.items() if k != "description"}


class SelectorField(forms.CharField):
    """Labels as kubectl takes them after -l; cleans to a LabelSelector."""

    def clean(self, value: Any) -> dict[str, Any]:
        try:
            return label_selector_of(super().clean(value) or "")
        except InvalidInput as error:
            raise forms.ValidationError(error.message) from None


class BudgetForm(ObjectForm):
    """A budget: which pods, and how many of them must stay or may be missing."""

    KIND = "budget"
    name = NameField(label="Name")
    namespace = NameField(label="Namespace", initial="default")
    selector = SelectorField(
        required=False, label="Selector", help_text="app=web,tier!=db; empty = every pod there"
    )
    rule = forms.ChoiceField(choices=RULES, label="Rule")
    amount = forms.CharField(max_length=20, strip=True, label="Number or %", help_text="2 or 50%")
    unhealthy = forms.ChoiceField(choices=UNHEALTHY, required=False, label="Unhealthy pods")

    def __init__(self, *args: Any, manifest: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, manifest=manifest, **kwargs)
        if manifest is not None:
            self.fields["name"].disabled = self.fields["namespace"].disabled = True

    @staticmethod
    def values_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
        meta, spec = manifest["metadata"], manifest.get("spec") or {}
        rule = "maxUnavailable" if spec.get("maxUnavailable") is not None else "minAvailable"
        amount = spec.get(rule)
        return {
            "name": meta["name"],
            "namespace": meta.get("namespace") or "default",
            "version": meta.get("resourceVersion", ""),
            "selector": selector_text(spec.get("selector")),
            "rule": rule,
            "amount": "" if amount is None else str(amount),
            "unhealthy": spec.get("unhealthyPodEvictionPolicy") or "",
        }

    def applied(self) -> dict[str, Any]:
        """The budget the form asks for; the form is valid."""
        data = self.cleaned_data
        made = self._made("PodDisruptionBudget", "policy/v1")
        made["metadata"]["namespace"] = data["namespace"]
        spec = {
            k: v for k, v in (made.get("spec") or {}).items() if k not in ("minAvailable", "maxUnavailable")
        }
        if not (self.manifest is not None and spec.get("selector") is None and not data["selector"]):
            spec["selector"] = data["selector"]
        amount = data["amount"]
        spec[data["rule"]] = int(amount) if re.fullmatch(r"-?[0-9]{1,18}", amount) else amount
        spec["unhealthyPodEvictionPolicy"] = data["unhealthy"]
        made["spec"] = {key: value for key, value in spec.items() if value != ""}
        return made


MOST_MARKS = 24
NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


def class_rows(view: ClassesView, scale: PriorityScale) -> list[dict[str, Any]]:
    """The classes with their marks; shares of the bar are percents of the pods that name a class.

    `evicts` and `why` say what a pod of the class could evict now.
    """
    named = max(1, sum(use.n_pods for use in view.classes))
    rows: list[dict[str, Any]] = []
    start = 0.0
    for use in view.classes:
        share = 100 * use.n_pods / named
        evicts, why = _evictions(use)
        rows.append(
            {
                "use": use,
                "mark": scale.mark(use.row.value, use.row.name),
                "built_in": use.row.name.startswith(SYSTEM_PREFIX),
                "evicts": evicts,
                "why": why,
                "share": round(share, 2),
                "start": round(start, 2),
            }
        )
        start += share
    return rows


def _evictions(use: ClassUse) -> tuple[str, str]:
    if use.row.preemption_policy == "Never":
        if not use.n_below:
            return "none", "its policy is Never, and no pod on a node stands below it"
        return "none", f"its policy is Never; {_pods(use.n_below)} {_below(use)}"
    if not use.n_below:
        return "none", "no pod on a node stands below it"
    return _pods(use.n_below), _below(use)


def _below(use: ClassUse) -> str:
    return "on a node stands below it" if use.n_below == 1 else "on nodes stand below it"


def rule_of(row: PodDisruptionBudget) -> str:
    """The rule as its manifest has it.

    >>> rule_of(PodDisruptionBudget(min_available="50%"))
    'minAvailable: 50%'
    """
    if row.max_unavailable:
        return f"maxUnavailable: {row.max_unavailable}"
    return f"minAvailable: {row.min_available}" if row.min_available else "no rule"


def budget_row(use: BudgetUse) -> dict[str, Any]:
    """One budget: rule and selector as text, a mark a pod, and why it allows what it allows.

    `stay`, `go` and `missing` are ranges to draw marks by: pods that must stay, that may go, and that are not healthy
    though the budget expects them.
    """
    row = use.row
    why, tone = why_allowed(use)
    go = min(row.disruptions_allowed, row.current_healthy)
    missing = max(0, row.expected_pods - row.current_healthy)
    whole = row.current_healthy + missing
    scale = min(1.0, MOST_MARKS / whole) if whole else 1.0
    return {
        "use": use,
        "rule": rule_of(row),
        "selector": "selects nothing" if row.selector is None else selector_text(row.selector) or "every pod",
        "stay": range(_marks(row.current_healthy - go, scale)),
        "go": range(_marks(go, scale)),
        "missing": range(_marks(missing, scale)),
        "why": why,
        "tone": tone,
    }


def _marks(count: int, scale: float) -> int:
    return max(1, round(count * scale)) if count > 0 else 0


def why_allowed(use: BudgetUse) -> tuple[str, str]:
    """What a budget allows now and why, as a sentence, and its tone: ok, bad or empty."""
    row = use.row
    if not row.counted:
        return "not counted yet: the cluster has not run since it was written", ""
    allowed = row.disruptions_allowed
    end = ""
    if row.disrupted_pods:
        end = f"; {_pods(len(row.disrupted_pods))} on the way out already"
    if use.n_shared:
        end += (
            f"; {_pods(use.n_shared)} also under {', '.join(use.shared_with)}:"
            " Kubernetes refuses to evict a pod of two budgets"
        )
    if row.given:
        return f"as its manifest says, which came with a status; it is not counted here{end}", _tone(allowed)
    if row.failure:
        return f"cannot be counted: {row.failure}{end}", "bad"
    if not use.n_pods:
        return "matches no pod", ""
    if not row.min_available and not row.max_unavailable:
        return f"it has no rule, and so allows nothing{end}", "bad"
    where = f"on {use.n_nodes:,} node{_s(use.n_nodes)}"
    counts = f"{row.current_healthy:,} healthy, {row.desired_healthy:,} must stay"
    if row.expected_pods <= 0:
        return f"{_pods(use.n_pods)}, none with a controller to count by: nothing is allowed{end}", "bad"
    if not allowed:
        return f"{counts}: holds up a drain of {use.n_nodes:,} node{_s(use.n_nodes)}{end}", "bad"
    return f"{counts}; {where}, drains go {allowed:,} at a time{end}", "ok"


def headline(view: ClassesView, budgets: Sequence[BudgetUse]) -> tuple[tuple[str, bool], ...]:
    """The sentence above the page, as (text, whether it is a name)."""
    able = [use.row.name for use in view.classes if use.may_evict]
    n = len(view.classes)
    parts: list[tuple[str, bool]] = [(f"{_number(n)} class{'' if n == 1 else 'es'}, ", False)]
    if not able:
        parts.append(("none of which may evict a pod now; ", False))
    elif len(able) == n:
        parts.append(("any of which may evict pods now; " if n > 1 else "which may evict pods now; ", False))
    elif len(able) <= 2:
        parts.append(("of which only ", False))
        for place, name in enumerate(able):
            parts += [(" and ", False)] * bool(place) + [(name, True)]
        parts.append((" may evict pods now; ", False))
    else:
        parts.append((f"of which {_number(len(able)).lower()} may evict pods now; ", False))
    held = [use.row for use in budgets if use.row.counted and not use.row.disruptions_allowed and use.n_pods]
    m = len(budgets)
    if not m:
        parts.append(("no disruption budget", False))
    elif not held:
        each = "which allows" if m == 1 else "each of which allows"
        none = "which holds up no eviction" if m == 1 else "none of which holds up an eviction"
        parts.append((f"{_number(m).lower()} budget{_s(m)}, {none}", False))
        if any(use.row.counted and use.row.disruptions_allowed for use in budgets) and all(
            use.row.disruptions_allowed for use in budgets
        ):
            parts[-1] = (f"{_number(m).lower()} budget{_s(m)}, {each} evictions", False)
    elif m == 1:
        parts += [("one budget, ", False), (f"{held[0].namespace}/{held[0].name}", True)]
        parts.append((", which allows no eviction at all", False))
    else:
        parts.append((f"{_number(m).lower()} budgets, of which ", False))
        if len(held) <= 2:
            for place, row in enumerate(held):
                parts += [(" and ", False)] * bool(place) + [(f"{row.namespace}/{row.name}", True)]
        else:
            parts.append((f"{len(held):,}", False))
        parts.append((f" allow{'s' if len(held) == 1 else ''} no eviction at all", False))
    return (*parts, (".", False))


def standing(view: ClassesView, name: str, value: int, *, never: bool, n_below: int) -> str:
    """The place of a class of that value among the others, and what a pod of it could evict now."""
    others = [use.row for use in view.classes if use.row.name != name]
    above = [row.name for row in others if row.value > value]
    below = [row.name for row in others if row.value < value]
    equal = [row.name for row in others if row.value == value]
    if equal:
        place = f"It stands level with {equal[0]}"
    elif above and below:
        place = f"It stands between {above[-1]} and {below[0]}"
    else:
        place = (
            f"It stands below {above[-1]}"
            if above
            else f"It stands above {below[0]}"
            if below
            else "It stands alone"
        )
    if never:
        return f"{place}; its policy is Never, so a pod of it evicts none."
    if not n_below:
        return f"{place}; no pod on a node stands below it, so there is none to evict."
    evicts = "one pod" if n_below == 1 else f"any of {_pods(n_below)}"
    return f"{place}; a pod of it could evict {evicts}."


def selecting(namespace: str, n_pods: int, n_nodes: int) -> str:
    """Whom a budget would cover.

    >>> selecting("default", 3, 1)
    'It selects 3 pods on 1 node.'
    """
    if not n_pods:
        return f"It selects no pod in {namespace}."
    return f"It selects {_pods(n_pods)} on {n_nodes:,} node{_s(n_nodes)}."


def _tone(allowed: int) -> str:
    return "ok" if allowed else "bad"


def _number(count: int) -> str:
    return NUMBERS[count] if count < len(NUMBERS) else f"{count:,}"


def _pods(count: int) -> str:
    return f"{count:,} pod{_s(count)}"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


BUDGETS_SHOWN = 200


def classes(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Both tables and both forms; `?class=` and `?budget=` open one of them in its form, a POST saves a form.

    `?stands=class` and `?stands=budget` answer with what the form says of its fields, which the query holds.
    """
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
        "headline": headline(view, uses),
        "classes": class_rows(view, scale),
        "n_named": view.n_pods - view.n_unnamed,
        "n_unnamed": view.n_unnamed,
        "budgets": [budget_row(use) for use in uses[:BUDGETS_SHOWN]],
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
    kind = kinds.named("PriorityClass" if action == "class" else "PodDisruptionBudget")
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
    """The place of the class in the form; "" while the form names no value."""
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
