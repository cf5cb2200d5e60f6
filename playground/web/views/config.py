"""The cluster's KubeSchedulerConfiguration."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from django.conf import settings as site
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from playground.clusters.errors import ClusterError, InvalidInput, InvalidManifest
from playground.clusters.selectors import list_mock_extenders
from playground.clusters.services.config import (
    checked_config,
    convert_config,
    set_assumed_expiry,
    set_config,
)
from playground.clusters.services.extenders import allow_extender_host, allowed_by_person, refused_hosts
from playground.engine.configuration import is_policy, without_effect
from playground.engine.plugins import problems as plugin_problems
from playground.engine.profiles import outline_and_problem
from playground.web.access import get_cluster
from playground.web.extension_points import edited, installed_plugins, view_profile
from playground.web.posted_yaml import line_of, read_configuration, yaml_of
from playground.web.problems import problems_of

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

DEFAULT_PROFILE = "default-scheduler"
EMPTY = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
"""


@require_http_methods(["GET", "HEAD", "POST"])
def config(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """Show the configuration as YAML; saving checks it, errors come back at their line."""
    cluster = get_cluster(request, cluster_id)
    text = yaml_of([cluster.config]) if cluster.config else EMPTY
    problems: list[Any] = []
    document: dict[str, Any] | None = None
    changes: tuple[Any, ...] = ()
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
        "cluster": cluster,
        "tab": "config",
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
