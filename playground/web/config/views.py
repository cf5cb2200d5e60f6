"""The form of a rule: a CEL expression that filters or scores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from django import forms
from django.conf import settings as site
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from playground.clusters import questions
from playground.clusters.choices import QuestionKind
from playground.clusters.drive import config as driving
from playground.clusters.drive import extender_calls
from playground.clusters.errors import ClusterError, InvalidInput, NotFound
from playground.clusters.extenders import mock
from playground.clusters.objects.queries import list_mock_extenders
from playground.clusters.questions import get_question
from playground.clusters.row_types import Cluster, MockExtender, Question
from playground.engine import configuration, rules
from playground.engine.plugins import problems as plugin_problems
from playground.engine.releases import release_outlines
from playground.web.config import present
from playground.web.listing import alike
from playground.web.problems import problems_of, read_configuration, yaml_of
from playground.web.questions.views import question_context
from playground.web.requests import done, positive_int, posted_gates
from scheduler_core.extender.chain import Extender
from scheduler_core.releases import release_from
from scheduler_core.scenario.mock_extender import VERBS

if TYPE_CHECKING:
    from scheduler_core.config.construction import ProfilePlan
    from scheduler_core.config.load import LoadedConfiguration

AREA = {"rows": 3, "spellcheck": "false", "autocapitalize": "off"}


class RuleForm(forms.Form):
    """One rule; what its expressions mean is checked as a configuration would be."""

    name = forms.CharField(max_length=63, label="Name", help_text="such as fast-disk")
    filter = forms.CharField(
        required=False, strip=False, label="Filter: true where the pod may run",
        widget=forms.Textarea(attrs=AREA), help_text='such as node.metadata.labels.?disk.orValue("") == "ssd"',
    )  # fmt: skip
    reason = forms.CharField(
        required=False, max_length=256, label="Reason, shown where it may not",
        help_text="such as: node(s) had no fast disk",
    )  # fmt: skip
    score = forms.CharField(
        required=False, strip=False, label="Score: a number, 0 to 100 unless it is normalized",
        widget=forms.Textarea(attrs=AREA), help_text="such as 100 * free.memory / allocatable.memory",
    )  # fmt: skip
    normalize = forms.ChoiceField(
        required=False,
        choices=[
            ("None", "as it is"),
            ("Highest", "the highest gets 100"),
            ("Lowest", "the lowest gets 100"),
        ],
        label="Normalize",
    )
    weight = forms.IntegerField(required=False, min_value=1, max_value=100, initial=1, label="Weight")
    pod = forms.CharField(
        required=False, max_length=320, label="Try it for the pod", help_text="namespace/name; empty: any pod"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["auto_id"] = "rule-%s"
        super().__init__(*args, **kwargs)
        self.label_suffix = ""

    def clean_name(self) -> str:
        """A name that a plugin may have behind `Rule/`."""
        name: str = self.cleaned_data["name"].removeprefix(f"{rules.FAMILY}/")
        if not rules.is_name(name):
            raise forms.ValidationError(
                "letters, digits, - _ and . only, with a letter or digit first and last"
            )
        return name

    def clean(self) -> dict[str, Any]:
        """Errors of the expressions, at their fields."""
        cleaned: dict[str, Any] = super().clean() or {}
        if not self.errors:
            for item in rules.problems(self.rule_args(cleaned)):
                field = item.field if item.field in self.fields else None
                self.add_error(field, item.detail)
        return cleaned

    @staticmethod
    def rule_args(cleaned: dict[str, Any]) -> dict[str, str]:
        """The rule's arguments in a configuration."""
        return {field: str(cleaned.get(field) or "") for field in rules.FIELDS} | {
            "normalize": str(cleaned.get("normalize") or "None")
        }


def config(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Show the configuration as YAML; saving checks it, errors come back at their line."""
    text = yaml_of([cluster.config or present.EMPTY])
    problems: list[Any] = []
    document: dict[str, Any] | None = None
    changes: Any = ()
    status = 200
    if request.method == "POST" and "host" in request.POST:
        return _allow_host(request, cluster)
    if request.method == "POST" and request.POST.get("action") == "expiry":
        return _set_expiry(request, cluster)
    is_conversion = request.POST.get("action") == "convert"
    if request.method == "POST":
        text = request.POST.get("text", "")
        try:
            document = _asked_for(request, cluster)
            if is_conversion and document:
                document, changes = driving.convert_config(cluster=cluster, config=document)
            text = yaml_of([document or present.EMPTY])
            if is_conversion:
                driving.checked_config(document, cluster.release)
            else:
                driving.set_config(cluster=cluster, config=document)
        except ClusterError as error:
            problems, status = problems_of(error, text, by_path=True), error.status
        if not problems and not is_conversion:
            words = "The default configuration is used" if document is None else "The configuration is saved"
            query = f"?profile={quote(_profile_name(request))}"
            return done(
                request, f"{words} from the next cycle on.", "web:config", cluster.public_id, anchor=query
            )
    running, unusable = configuration.loaded_and_problem(cluster.config, cluster.release)
    profile = _profile(request, running)
    context = {
        "profiles": [p.scheduler_name for p in running.plans],
        "profile": present.view_profile(profile, cluster.release),
        "installed": present.installed_plugins(profile),
        "plugin_problems": plugin_problems(),
        "extenders": [Extender.from_config(one) for one in running.configuration.extenders],
        "mocks": list_mock_extenders(cluster),
        "text": text,
        "problems": problems,
        "is_default": cluster.config is None,
        "changes": changes,
        "is_convertible": bool(
            problems and document and driving.convert_config(cluster=cluster, config=document)[1]
        ),
        "unusable": unusable,
        "without_effect": configuration.without_effect(cluster.config, cluster.release),
        "refused_hosts": extender_calls.refused_hosts(cluster),
        "allowed_hosts": sorted(extender_calls.allowed_by_person(cluster)),
        "embedded": site.EMBEDDED,
        "expiry_s": cluster.assumed_expiry_ns / 1e9,
    }
    return render(request, "config/page.html", context, status=status)


def _allow_host(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Let this server call an extender inside the network, or no longer."""
    host, allowed = request.POST["host"], request.POST.get("action") != "forbid"
    extender_calls.allow_extender_host(cluster=cluster, host=host, allowed=allowed)
    words = f"{host} may {'be called from now on' if allowed else 'no longer be called'}."
    return done(request, words, "web:config", cluster.public_id, anchor="#extenders")


def _set_expiry(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Say after how long assumed pods expire."""
    written = request.POST.get("expiry", "").strip()
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{0,9})?", written):
        raise InvalidInput(f"{written!r} is no number of seconds; nothing was changed.", field="expiry")
    seconds = float(written)
    driving.set_assumed_expiry(cluster=cluster, after_ns=round(seconds * 1e9))
    said = f"expire after {seconds:g} s without news" if seconds else "never expire, as in kube-scheduler"
    words = f"Assumed pods {said}, from now on."
    return done(request, words, "web:config", cluster.public_id, anchor="#assumed")


def _profile_name(request: HttpRequest) -> str:
    return request.POST.get("profile") or request.GET.get("profile") or present.DEFAULT


def _profile(request: HttpRequest, running: LoadedConfiguration) -> ProfilePlan:
    named = [one for one in running.plans if one.scheduler_name == _profile_name(request)]
    return next(iter(named), running.plans[0])


def _asked_for(request: HttpRequest, cluster: Cluster) -> dict[str, Any] | None:
    """The document a POST asks for: the default, the written one, or the one in use with other switches."""
    action = request.POST.get("action")
    if action == "default":
        return None
    if action != "points":
        return read_configuration(request.POST.get("text", ""))
    if configuration.is_policy(cluster.config):
        raise InvalidInput("a Policy has no profiles to switch: change its text, or write a configuration")
    running, unusable = configuration.loaded_and_problem(cluster.config, cluster.release)
    if unusable:
        raise InvalidInput(f"the configuration cannot be used, so nothing in it can be switched: {unusable}")
    return present.edited(cluster.config, _profile(request, running), request.POST.dict(), cluster.release)


def release(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Choose a release and switch its gates; the page of another release than the cluster's only shows it."""
    outlines = release_outlines()
    wanted = request.POST.get("release") or request.GET.get("release") or cluster.kubernetes_release
    shown = next((one for one in outlines if one.name == wanted), None)
    problems = []
    status = 200
    if request.method == "POST":
        try:
            driving.set_release(cluster=cluster, name=wanted, gates=posted_gates(request))
        except ClusterError as error:
            problems, status = problems_of(error, ""), error.status
        else:
            words = f"{release_from(cluster.release).title} decides from the next cycle on."
            return done(request, words, "web:release", cluster.public_id)
    shown = shown or next(one for one in outlines if one.name == cluster.kubernetes_release)
    is_own = shown.name == cluster.kubernetes_release
    switched = cluster.feature_gates if is_own else {}
    changed = {one.name: one for one in shown.differences}
    rows: list[dict[str, Any]] = [
        {"name": name, "gate": gate, "difference": changed.get(name), "switched": switched.get(name)}
        for name, gate in sorted(shown.gates.items())
    ]
    context = {
        "releases": outlines,
        "shown": shown,
        "is_own": is_own,
        "gates": sorted(
            alike((row for row in rows if not row["gate"].locked), _is_news), key=lambda part: not part.key
        ),
        "locked_gates": [row for row in rows if row["gate"].locked],
        "problems": problems,
    }
    return render(request, "config/release.html", context, status=status)


def _is_news(row: Mapping[str, Any]) -> bool:
    """Whether a gate is new, has another default than in the release before, or is switched."""
    return row["difference"] is not None or row["switched"] is not None


def rule_page(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """The rules of a profile and the form of one; POST tries, saves or deletes one."""
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
        "profile": profile,
        "rules": known,
        "form": form,
        "names": rules.NAMES,
        "is_policy": configuration.is_policy(cluster.config),
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
    """Initial values of the form: the rule that was tried, or an existing one."""
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
    driving.write_rule(cluster=cluster, profile=profile, name=name, args=args, weight=weight)
    words = f"The rule {name} is saved; it counts from the next cycle on."
    return done(request, words, f"{page}?{urlencode({'profile': profile, 'rule': name})}")


def _delete(request: HttpRequest, cluster: Cluster, profile: str) -> HttpResponse:
    name = request.POST.get("name", "")
    driving.delete_rule(cluster=cluster, profile=profile, name=name)
    query = f"?{urlencode({'profile': profile})}"
    return done(request, f"The rule {name} is deleted.", "web:rules", cluster.public_id, anchor=query)


def extender(request: HttpRequest, cluster: Cluster, extender: MockExtender | None = None) -> HttpResponse:
    """A mock extender, or a new one from rules as YAML; refused rules come back with errors at their line.

    POST with ``action``: ``save``, ``ask`` (by the configuration), ``leave``, ``delete``.
    """
    action = request.POST.get("action", "save")
    text = present.EXAMPLE if extender is None else present.rules_text(extender.rules)
    name = "" if extender is None else extender.name
    problems, status = [], 200
    if request.method == "POST":
        if action == "save":
            text, name = request.POST.get("text", ""), request.POST.get("name", "")
        try:
            made, said = _do(request, cluster, extender, action, text)
        except ClusterError as error:
            problems, status = problems_of(error, text, by_path=True), error.status
        else:
            if action == "delete":
                return done(request, said, "web:config", cluster.public_id, anchor="#extenders")
            return done(request, said, "web:extender", cluster.public_id, made.public_id)
    context: dict[str, Any] = {"name": name, "text": text, "problems": problems, "verbs": VERBS}
    if extender is not None:
        context |= {
            "url": mock.mock_extender_url(extender),
            "wiring": present.wiring_of(extender, cluster.config),
            "calls": [(verb, extender.calls.get(verb, 0)) for verb in VERBS],
        }
    return render(request, "config/extender.html", context, status=status)


def _do(
    request: HttpRequest, cluster: Cluster, found: MockExtender | None, action: str, text: str
) -> tuple[MockExtender, str]:
    """Do what was asked, and say so."""
    name = request.POST.get("name", "")
    if found is None:
        made = mock.create_mock_extender(cluster=cluster, rules=present.read_rules(text), name=name)
        return made, "The mock extender is there. Say below what the scheduler asks it."
    match action:
        case "ask":
            config = present.wired(
                cluster.config,
                found,
                verbs=request.POST.getlist("verbs"),
                weight=positive_int(request.POST.get("weight")) or 1,
                ignorable="ignorable" in request.POST,
            )
            driving.set_config(cluster=cluster, config=config)
            return found, "The scheduler asks it from the next cycle on."
        case "leave":
            driving.set_config(cluster=cluster, config=present.unwired(cluster.config, found))
            return found, "The scheduler does not ask it any more."
        case "delete":
            with transaction.atomic():
                if present.wiring_of(found, cluster.config)["wired"]:
                    driving.set_config(cluster=cluster, config=present.unwired(cluster.config, found))
                mock.delete_mock_extender(extender=found)
            return found, "The mock extender is deleted."
    mock.update_mock_extender(extender=found, rules=present.read_rules(text), name=name)
    return found, "The rules are saved; calls are counted from 0 again."
