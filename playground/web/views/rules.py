"""Rules: filters and scores written on a page as CEL expressions, tried on the cluster before they are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from playground.clusters.choices import QuestionKind
from playground.clusters.errors import ClusterError, NotFound
from playground.clusters.selectors.questions import get_question
from playground.clusters.services import questions
from playground.clusters.services.config import delete_rule, write_rule
from playground.engine import rules
from playground.engine.configuration import is_policy
from playground.web.access import get_cluster
from playground.web.forms.rules import RuleForm
from playground.web.views.advice import question_context

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster, Question


@require_http_methods(["GET", "HEAD", "POST"])
def rule_page(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """The rules of a profile and the form of one; POST tries, saves or deletes one."""
    cluster = get_cluster(request, cluster_id)
    profile = request.POST.get("profile") or request.GET.get("profile") or rules.DEFAULT_PROFILE
    known = rules.rules_of(cluster.config, profile)
    status = 200
    asked = _asked(request, cluster)
    if request.method == "POST":
        if request.POST.get("action") == "delete":
            return _delete(request, cluster, profile)
        form = RuleForm(request.POST)
        if form.is_valid():
            try:
                return _done(request, cluster, profile, form)
            except ClusterError as error:
                form.add_error(None, error.message)
                status = error.status
        else:
            status = 400
    else:
        form = RuleForm(initial=_initial(request, known, asked))
    context = {
        "cluster": cluster,
        "tab": "config",
        "sub": "rules",
        "profile": profile,
        "rules": known,
        "form": form,
        "names": rules.NAMES,
        "is_policy": is_policy(cluster.config),
        "tried": asked,
        "answer": None if asked is None else asked.answer,
    }
    if asked is not None:
        context |= question_context(request, cluster, asked)
    return render(request, "config/rules.html", context, status=status)


def _asked(request: HttpRequest, cluster: Cluster) -> Question | None:
    public_id = request.GET.get("tried", "")
    if not public_id:
        return None
    try:
        found = get_question(cluster, public_id)
    except NotFound:
        return None
    return found if found.kind == QuestionKind.RULE else None


def _initial(request: HttpRequest, known: list[rules.RuleView], asked: Question | None) -> dict[str, Any]:
    """What stands in the form: what was tried, or a rule there is."""
    given = {"name": request.GET.get("rule", ""), "weight": request.GET.get("weight") or 1}
    if asked is not None:
        return {**given, **asked.params["rule"], "pod": asked.params["pod"]}
    found = next((rule for rule in known if rule.name == given["name"]), None)
    return given if found is None else {**found.args, "name": found.name, "weight": found.weight or 1}


def _done(request: HttpRequest, cluster: Cluster, profile: str, form: RuleForm) -> HttpResponse:
    page = reverse("web:rules", args=[cluster.public_id])
    name, args = form.cleaned_data["name"], form.rule_args(form.cleaned_data)
    weight = form.cleaned_data.get("weight") or 1
    if request.POST.get("action") == "try":
        asked = questions.ask(
            cluster=cluster, kind="try-rule", params={"rule": args, "pod": form.cleaned_data["pod"]}
        )
        query = {"profile": profile, "rule": name, "weight": weight, "tried": asked.public_id}
        return redirect(f"{page}?{urlencode(query)}#tried")
    write_rule(cluster=cluster, profile=profile, name=name, args=args, weight=weight)
    messages.success(request, f"The rule {name} is saved; it counts from the next cycle on.")
    return redirect(f"{page}?{urlencode({'profile': profile, 'rule': name})}")


def _delete(request: HttpRequest, cluster: Cluster, profile: str) -> HttpResponse:
    name = request.POST.get("name", "")
    try:
        delete_rule(cluster=cluster, profile=profile, name=name)
    except ClusterError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, f"The rule {name} is deleted.")
    return redirect(f"{reverse('web:rules', args=[cluster.public_id])}?{urlencode({'profile': profile})}")
