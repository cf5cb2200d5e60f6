"""Paths of the REST API. An endpoint is a view, a line here and a test (README.md).

Every path answers with and without its trailing slash, without a redirect; the one written here is documented.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from django.urls import URLPattern, path, re_path

from playground.api.views import (
    asked_for,
    audit,
    clusters,
    manifests,
    mock_extenders,
    objects,
    openapi,
    plans,
    questions,
    runs,
    scenarios,
    scheduling,
    settings,
    site,
    teams,
    tokens,
    upgrades,
)

app_name = "api"

_ALIASES: Final[set[str]] = set()


def both(route: str, view: Callable[..., Any], name: str) -> list[URLPattern]:
    """The route, and its twin with or without the slash."""
    twin = route.removesuffix("/") if route.endswith("/") else f"{route}/"
    _ALIASES.add("/api/v1/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", twin))
    return [path(route, view, name=name), path(twin, view)]


def documented_only(endpoints: list[tuple[str, str, str, Any]]) -> list[tuple[str, str, str, Any]]:
    """For the OpenAPI document: this API's paths, one of each pair of twins."""
    return [
        endpoint
        for endpoint in endpoints
        if endpoint[0].startswith("/api/v1/") and endpoint[0] not in _ALIASES and "{rest}" not in endpoint[0]
    ]


def _search(search: asked_for.Search, of: str) -> Callable[..., Any]:
    return asked_for.view_of(search, of).as_view()


_CLUSTER: Final = "clusters/<str:cluster_id>/"
_SCENARIO: Final = "scenarios/<str:scenario_id>/"

urlpatterns: list[URLPattern] = [
    path("", site.Index.as_view(), name="index"),
    *both("version", site.Version.as_view(), "version"),
    *both("problems/", site.Problems.as_view(), "problems"),
    *both("releases/", site.Releases.as_view(), "releases"),
    *both("problems/<str:reason>/", site.OneProblem.as_view(), "problem"),
    *both("openapi.json", openapi.DocumentJSON.as_view(), "openapi-json"),
    *both("openapi.yaml", openapi.DocumentYAML.as_view(), "openapi-yaml"),
    *both("docs/", openapi.docs, "docs"),
    *both("tokens/", tokens.Tokens.as_view(), "tokens"),
    *both("tokens/<int:token_id>/", tokens.OneToken.as_view(), "token"),
    *both("teams/", teams.Teams.as_view(), "teams"),
    *both("teams/<str:team>/", teams.OneTeam.as_view(), "team"),
    *both("teams/<str:team>/members/<str:user>/", teams.OneMember.as_view(), "member"),
    *both("teams/<str:team>/invitations/", teams.Invitations.as_view(), "invitations"),
    *both("teams/<str:team>/invitations/<int:invitation_id>/", teams.OneInvitation.as_view(), "invitation"),
    *both("quota", tokens.Quota.as_view(), "quota"),
    *both("audit/", audit.Audit.as_view(), "audit"),
    *both("clusters/", clusters.Clusters.as_view(), "clusters"),
    *both(_CLUSTER, clusters.OneCluster.as_view(), "cluster"),
    *both(f"{_CLUSTER}clone", clusters.Clone.as_view(), "clone"),
    *both(f"{_CLUSTER}reset", clusters.Reset.as_view(), "reset"),
    *both(f"{_CLUSTER}unpark", clusters.Unpark.as_view(), "unpark"),
    *both(f"{_CLUSTER}apply", manifests.Apply.as_view(), "apply"),
    *both(f"{_CLUSTER}export", manifests.Export.as_view(), "export"),
    *both(f"{_CLUSTER}node-pools/", manifests.NodePools.as_view(), "node-pools"),
    *both(f"{_CLUSTER}run", runs.StartRun.as_view(), "run"),
    *both(f"{_CLUSTER}runs/", runs.Runs.as_view(), "runs"),
    *both(f"{_CLUSTER}runs/<str:run_id>/", runs.OneRun.as_view(), "one-run"),
    *both(f"{_CLUSTER}cycles/", scheduling.Cycles.as_view(), "cycles"),
    *both(f"{_CLUSTER}cycles/<int:number>/", scheduling.OneCycle.as_view(), "cycle"),
    *both(f"{_CLUSTER}metrics", scheduling.Metrics.as_view(), "metrics"),
    *both(f"{_CLUSTER}queue/", scheduling.Queue.as_view(), "queue"),
    *both(f"{_CLUSTER}nodes/", objects.Nodes.as_view(), "nodes"),
    *both(f"{_CLUSTER}nodes/<str:node>/", objects.OneNode.as_view(), "node"),
    *both(f"{_CLUSTER}pods/", objects.Pods.as_view(), "pods"),
    *both(f"{_CLUSTER}pods/<str:namespace>/<str:pod>/", objects.OnePod.as_view(), "pod"),
    *both(f"{_CLUSTER}pods/<str:namespace>/<str:pod>/story", scheduling.PodStory.as_view(), "pod-story"),
    *both(f"{_CLUSTER}priorityclasses/", objects.PriorityClasses.as_view(), "priority-classes"),
    *both(
        f"{_CLUSTER}priorityclasses/<str:priority_class>/",
        objects.OnePriorityClass.as_view(),
        "priority-class",
    ),
    *both(f"{_CLUSTER}poddisruptionbudgets/", objects.PodDisruptionBudgets.as_view(), "budgets"),
    *both(
        f"{_CLUSTER}poddisruptionbudgets/<str:namespace>/<str:budget>/",
        objects.OnePodDisruptionBudget.as_view(),
        "budget",
    ),
    *both(f"{_CLUSTER}permits/<str:namespace>/<str:pod>/", scheduling.Permits.as_view(), "permit"),
    *both(f"{_CLUSTER}config/", settings.Config.as_view(), "config"),
    *both(f"{_CLUSTER}release/", settings.Release.as_view(), "release"),
    *both(f"{_CLUSTER}clock/", settings.Clock.as_view(), "clock"),
    *both(f"{_CLUSTER}assumed-pods/", settings.AssumedPods.as_view(), "assumed-pods"),
    *both(f"{_CLUSTER}mock-extenders/", mock_extenders.MockExtenders.as_view(), "mock-extenders"),
    *both(
        f"{_CLUSTER}mock-extenders/<str:extender_id>/",
        mock_extenders.OneMockExtender.as_view(),
        "mock-extender",
    ),
    *both(f"{_CLUSTER}scenario", scenarios.ClusterScenario.as_view(), "cluster-scenario"),
    *both(f"{_CLUSTER}upgrade/", upgrades.ClusterUpgrade.as_view(), "cluster-upgrade"),
    *both(f"{_CLUSTER}model/", _search(asked_for.MODEL, "cluster"), "cluster-model"),
    *both(f"{_CLUSTER}optimum/", _search(asked_for.OPTIMUM, "cluster"), "cluster-optimum"),
    *both(f"{_SCENARIO}optimum/", _search(asked_for.OPTIMUM, "scenario"), "scenario-optimum"),
    *both(f"{_SCENARIO}model/", _search(asked_for.MODEL, "scenario"), "scenario-model"),
    *both(f"{_SCENARIO}luck/", _search(asked_for.LUCK, "scenario"), "scenario-luck"),
    *both("scenarios/", scenarios.Scenarios.as_view(), "scenarios"),
    *both("scenarios/<str:scenario_id>/", scenarios.OneScenario.as_view(), "scenario"),
    *both("scenarios/<str:scenario_id>/verify", scenarios.Verify.as_view(), "scenario-verify"),
    *both("comparisons/", scenarios.Comparisons.as_view(), "comparisons"),
    *both("comparisons/<str:comparison_id>/", scenarios.OneComparison.as_view(), "comparison"),
    *both(
        f"{_CLUSTER}pods/<str:namespace>/<str:pod>/what-would-it-take",
        questions.WhatWouldItTake.as_view(),
        "what-would-it-take",
    ),
    *both(f"{_CLUSTER}pods/<str:namespace>/<str:pod>/why-not", questions.WhyNot.as_view(), "why-not"),
    *both(f"{_CLUSTER}cycles/<int:number>/why-not", questions.WhyNotThen.as_view(), "why-not-then"),
    *both(f"{_CLUSTER}cycles/<int:number>/devices", questions.Devices.as_view(), "devices"),
    *both(f"{_CLUSTER}cycles/<int:number>/weights", questions.Weights.as_view(), "weights"),
    *both(f"{_CLUSTER}try", questions.Try.as_view(), "try"),
    *both(f"{_CLUSTER}try-rule", questions.TryRule.as_view(), "try-rule"),
    *both(f"{_CLUSTER}seeds", questions.Seeds.as_view(), "seeds"),
    *both(f"{_CLUSTER}plan", plans.Plan.as_view(), "plan"),
    *both(f"{_CLUSTER}questions/<str:question_id>/answer.json", plans.PlanAnswer.as_view(), "plan-answer"),
    *both(f"{_CLUSTER}questions/<str:question_id>/share", plans.ShareVerdict.as_view(), "plan-share"),
    *both(f"{_CLUSTER}questions/<str:question_id>/", questions.OneQuestion.as_view(), "question"),
    re_path(r"^(?P<rest>.*)$", site.Nothing.as_view()),
]
