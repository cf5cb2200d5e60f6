"""The form of a rule: a CEL expression that filters or scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from django import forms
from django.conf import settings as site
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from playground.clusters import questions
from playground.clusters.choices import QuestionKind
from playground.clusters.drive.config import (
    checked_config,
    convert_config,
    delete_rule,
    set_assumed_expiry,
    set_config,
    set_release,
    write_rule,
)
from playground.clusters.drive.extender_calls import allow_extender_host, allowed_by_person, refused_hosts
from playground.clusters.errors import ClusterError, InvalidInput, InvalidManifest, NotFound
from playground.clusters.extenders.mock import (
    create_mock_extender,
    delete_mock_extender,
    mock_extender_url,
    update_mock_extender,
)
from playground.clusters.objects.queries import list_mock_extenders
from playground.clusters.questions import get_question
from playground.engine import rules
from playground.engine.configuration import is_policy, outline_and_problem, without_effect
from playground.engine.plugins import problems as plugin_problems
from playground.engine.releases import GateOutline, ReleaseOutline, release_outlines, title_of
from playground.web.config.present import (
    EXAMPLE,
    edited,
    installed_plugins,
    read_rules,
    rules_text,
    unwired,
    view_profile,
    wired,
    wiring_of,
)
from playground.web.problems import line_of, problems_of, read_configuration, yaml_of
from playground.web.questions.views import question_context
from playground.web.requests import positive_int
from scheduler_core.scenario.mock_extender import VERBS

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster, MockExtender, Question

AREA = {"rows": 3, "spellcheck": "false", "autocapitalize": "off"}


class RuleForm(forms.Form):
    """One rule; what its expressions mean is checked as a configuration would be."""

    name = forms.CharField(max_length=63, label="Name", help_text="such as fast-disk")
    filter = forms.CharField(
        required=False, strip=False, label="Filter: true where the pod may run",
        widget=forms.Textarea(attrs=AREA), help_text='such as node.metadata.labels.?disk.orValue("") == "ssd"',
    )  # fmt: skip
    reason = forms.CharField(
        required=False, max_length=256, label="Reason, told where it may not",
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
        """What a configuration writes of it."""
        return {field: str(cleaned.get(field) or "") for field in rules.FIELDS} | {
            "normalize": str(cleaned.get("normalize") or "None")
        }


DEFAULT_PROFILE = "default-scheduler"
EMPTY = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
"""


def config(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Show the configuration as YAML; saving checks it, errors come back at their line."""
    text = yaml_of([cluster.config]) if cluster.config else EMPTY
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
                document, changes = convert_config(cluster=cluster, config=document)
            text = yaml_of([document]) if document else EMPTY
            if is_conversion:
                checked_config(document, cluster.release)
            else:
                set_config(cluster=cluster, config=document)
        except ClusterError as error:
            if isinstance(error, InvalidManifest):
                for one in (error, *error.causes):
                    one.line = one.line or line_of(text, one.path)
            problems, status = problems_of(error, text), error.status
        if not problems and not is_conversion:
            words = "The default configuration is used" if document is None else "The configuration is saved"
            messages.success(request, f"{words} from the next cycle on.")
            back = reverse("web:config", args=[cluster.public_id])
            return redirect(f"{back}?profile={quote(_profile_name(request))}")
    running, unusable = outline_and_problem(cluster.config, cluster.release)
    profile = next(
        (p for p in running.profiles if p.scheduler_name == _profile_name(request)), running.profiles[0]
    )
    context = {
        "profiles": [p.scheduler_name for p in running.profiles],
        "profile": view_profile(profile),
        "installed": installed_plugins(profile),
        "plugin_problems": plugin_problems(),
        "extenders": running.extenders,
        "mocks": list_mock_extenders(cluster),
        "text": text,
        "problems": problems,
        "is_default": cluster.config is None,
        "changes": changes,
        "is_convertible": bool(problems and document and convert_config(cluster=cluster, config=document)[1]),
        "unusable": unusable,
        "without_effect": without_effect(cluster.config, cluster.release),
        "refused_hosts": refused_hosts(cluster),
        "allowed_hosts": sorted(allowed_by_person(cluster)),
        "embedded": site.EMBEDDED,
        "expiry_s": cluster.assumed_expiry_ns / 1e9,
    }
    return render(request, "config/page.html", context, status=status)


def _allow_host(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Let this server call an extender inside the network, or no longer."""
    host, allowed = request.POST["host"], request.POST.get("action") != "forbid"
    try:
        allow_extender_host(cluster=cluster, host=host, allowed=allowed)
    except ClusterError as error:
        messages.error(request, error.message)
    else:
        messages.success(
            request, f"{host} may {'be called from now on' if allowed else 'no longer be called'}."
        )
    return redirect(f"{reverse('web:config', args=[cluster.public_id])}#extenders")


def _set_expiry(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Say after how long assumed pods expire."""
    written = request.POST.get("expiry", "").strip()
    try:
        seconds = float(written)
        if not math.isfinite(seconds) or seconds < 0:
            raise ValueError(written)
        set_assumed_expiry(cluster=cluster, after_ns=round(seconds * 1e9))
    except ValueError:
        messages.error(request, f"{written!r} is no number of seconds; nothing was changed.")
    except ClusterError as error:
        messages.error(request, f"{written} seconds: {error.message}; nothing was changed.")
    else:
        said = f"expire after {seconds:g} s without news" if seconds else "never expire, as in kube-scheduler"
        messages.success(request, f"Assumed pods {said}, from now on.")
    return redirect(f"{reverse('web:config', args=[cluster.public_id])}#assumed")


def _profile_name(request: HttpRequest) -> str:
    return request.POST.get("profile") or request.GET.get("profile") or DEFAULT_PROFILE


def _asked_for(request: HttpRequest, cluster: Cluster) -> dict[str, Any] | None:
    """The document a POST asks for: the default, the written one, or the one in use with other switches."""
    action = request.POST.get("action")
    if action == "default":
        return None
    if action != "points":
        return read_configuration(request.POST.get("text", ""))
    if is_policy(cluster.config):
        raise InvalidInput("a Policy has no profiles to switch: change its text, or write a configuration")
    running, unusable = outline_and_problem(cluster.config, cluster.release)
    if unusable:
        raise InvalidInput(f"the configuration cannot be used, so nothing in it can be switched: {unusable}")
    profiles = running.profiles
    profile = next((p for p in profiles if p.scheduler_name == _profile_name(request)), profiles[0])
    return edited(cluster.config, profile, request.POST.dict())


ON, OFF = "on", "off"


@dataclass(frozen=True)
class GateRow:
    """A gate of the release a page shows, and how it is switched."""

    gate: GateOutline
    switched: bool | None

    @property
    def is_flipped(self) -> bool:
        """Whether its default is another than in the release before."""
        return self.gate.before is not None and self.gate.before is not self.gate.default

    @property
    def is_on(self) -> bool:
        """What holds."""
        return self.gate.default if self.switched is None else self.switched


def release(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Choose a release and switch its gates; the page of another release than the cluster's only shows it."""
    outlines = release_outlines()
    wanted = request.POST.get("release") or request.GET.get("release") or cluster.kubernetes_release
    shown = next((one for one in outlines if one.name == wanted), None)
    problems = []
    status = 200
    if request.method == "POST":
        gates = _posted_gates(request, shown)
        try:
            set_release(cluster=cluster, name=wanted, gates=gates)
        except ClusterError as error:
            problems, status = problems_of(error, ""), error.status
        else:
            messages.success(request, f"{title_of(cluster.release)} is followed from the next cycle on.")
            return redirect("web:release", cluster.public_id)
    shown = shown or next(one for one in outlines if one.name == cluster.kubernetes_release)
    is_own = shown.name == cluster.kubernetes_release
    switched = cluster.feature_gates if is_own else {}
    rows = [GateRow(gate, switched.get(gate.name)) for gate in shown.gates]
    context = {
        "releases": outlines,
        "shown": shown,
        "is_own": is_own,
        "open_gates": [row for row in rows if not row.gate.locked],
        "locked_gates": [row for row in rows if row.gate.locked],
        "problems": problems,
    }
    return render(request, "config/release.html", context, status=status)


def _posted_gates(request: HttpRequest, shown: ReleaseOutline | None) -> dict[str, bool]:
    """The gates that were switched: `gate:NAME` is on or off, empty leaves it at its default."""
    gates = {}
    for gate in shown.gates if shown else ():
        value = request.POST.get(f"gate:{gate.name}", "")
        if value in (ON, OFF):
            gates[gate.name] = value == ON
    return gates


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


def extender_new(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """A new mock extender from rules as YAML; refused rules come back with errors at their line."""
    if request.method != "POST":
        return _page(request, cluster, None, EXAMPLE)
    text, name = request.POST.get("text", ""), request.POST.get("name", "")
    try:
        made = create_mock_extender(cluster=cluster, rules=read_rules(text), name=name)
    except ClusterError as error:
        return _page(request, cluster, None, text, name=name, error=error)
    messages.success(request, "The mock extender is there. Say below what the scheduler asks it.")
    return redirect("web:extender", cluster.public_id, made.public_id)


def extender(request: HttpRequest, cluster: Cluster, extender: MockExtender) -> HttpResponse:
    """One mock extender. POST with ``action``: ``save``, ``ask`` (by the configuration), ``leave``, ``delete``."""
    found = extender
    if request.method != "POST":
        return _page(request, cluster, found, rules_text(found.rules))
    action = request.POST.get("action", "save")
    text = request.POST.get("text", "") if action == "save" else rules_text(found.rules)
    name = request.POST.get("name", "") if action == "save" else found.name
    try:
        said = _do(request, cluster, found, action, text)
    except ClusterError as error:
        return _page(request, cluster, found, text, name=name, error=error)
    messages.success(request, said)
    if action == "delete":
        return redirect(f"{reverse('web:config', args=[cluster.public_id])}#extenders")
    return redirect("web:extender", cluster.public_id, found.public_id)


def _do(request: HttpRequest, cluster: Cluster, found: MockExtender, action: str, text: str) -> str:
    """Do what was asked, and say so."""
    match action:
        case "ask":
            config = wired(
                cluster.config,
                found,
                verbs=request.POST.getlist("verbs"),
                weight=positive_int(request.POST.get("weight")) or 1,
                ignorable="ignorable" in request.POST,
            )
            set_config(cluster=cluster, config=config)
            return "The scheduler asks it from the next cycle on."
        case "leave":
            set_config(cluster=cluster, config=unwired(cluster.config, found))
            return "The scheduler does not ask it any more."
        case "delete":
            with transaction.atomic():
                if wiring_of(found, cluster.config).wired:
                    set_config(cluster=cluster, config=unwired(cluster.config, found))
                delete_mock_extender(extender=found)
            return "The mock extender is deleted."
    update_mock_extender(extender=found, rules=read_rules(text), name=request.POST.get("name", ""))
    return "The rules are saved; calls are counted from 0 again."


def _page(
    request: HttpRequest,
    cluster: Cluster,
    found: MockExtender | None,
    text: str,
    *,
    name: str | None = None,
    error: ClusterError | None = None,
) -> HttpResponse:
    if isinstance(error, InvalidManifest):
        for one in (error, *error.causes):
            one.line = one.line or line_of(text, one.path)
    context: dict[str, Any] = {
        "extender": found,
        "name": name if name is not None else (found.name if found else ""),
        "text": text,
        "problems": problems_of(error, text) if error else [],
        "verbs": VERBS,
    }
    if found is not None:
        context |= {
            "url": mock_extender_url(found),
            "wiring": wiring_of(found, cluster.config),
            "calls": [(verb, found.calls.get(verb, 0)) for verb in VERBS],
        }
    return render(request, "config/extender.html", context, status=error.status if error else 200)
