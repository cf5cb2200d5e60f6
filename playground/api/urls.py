"""Paths of the REST API. An endpoint is a view, a line here and a test (README.md).

Every path answers with and without its trailing slash, without a redirect; the one written here is documented.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.urls import URLPattern, path, re_path

from playground.api.views import (
    asked_for,
    boards,
    clusters,
    events,
    forks,
    judge,
    manifests,
    objects,
    openapi,
    people,
    questions,
    runs,
    scenarios,
    settings,
    site,
    what_if,
)
from playground.clusters import kinds

app_name = "api"


def both(route: str, view: Callable[..., Any], name: str) -> list[URLPattern]:
    """The route, and its twin with or without the slash."""
    twin = route.removesuffix("/") if route.endswith("/") else f"{route}/"
    return [path(route, view, name=name), path(twin, view)]


def _of(view: type[objects.ObjectView], kind_name: str) -> Callable[..., Any]:
    return view.as_view(kind=kinds.by_kind(kind_name))


def _search(search: asked_for.Search, of: str) -> Callable[..., Any]:
    return asked_for.view_of(search, of).as_view()


_SHARE_OF_UPGRADE: Final = {of: forks.upgrade_views(of) for of in ("cluster", "scenario")}
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
    *both("tokens/", people.Tokens.as_view(), "tokens"),
    *both("tokens/<int:token_id>/", people.OneToken.as_view(), "token"),
    *both("teams/", people.Teams.as_view(), "teams"),
    *both("teams/<str:team>/", people.OneTeam.as_view(), "team"),
    *both("teams/<str:team>/members/<str:user>/", people.OneMember.as_view(), "member"),
    *both("teams/<str:team>/invitations/", people.Invitations.as_view(), "invitations"),
    *both("teams/<str:team>/invitations/<int:invitation_id>/", people.OneInvitation.as_view(), "invitation"),
    *both("quota", people.Quota.as_view(), "quota"),
    *both("audit/", people.Audit.as_view(), "audit"),
    *both("drafts/", manifests.Drafts.as_view(), "drafts"),
    *both("drafts/<str:draft_id>/", manifests.OneDraft.as_view(), "draft"),
    *both("drafts/<str:draft_id>/commit", manifests.CommitDraft.as_view(), "draft-commit"),
    *both("clusters/", clusters.Clusters.as_view(), "clusters"),
    *both(_CLUSTER, clusters.OneCluster.as_view(), "cluster"),
    *both(f"{_CLUSTER}clone", clusters.Clone.as_view(), "clone"),
    *both(f"{_CLUSTER}reset", clusters.Reset.as_view(), "reset"),
    *both(f"{_CLUSTER}changes/", what_if.Changes.as_view(), "changes"),
    *both(f"{_CLUSTER}undo", what_if.Undo.as_view(), "undo"),
    *both(f"{_CLUSTER}actions", what_if.Actions.as_view(), "actions"),
    *both(f"{_CLUSTER}difference", what_if.Difference.as_view(), "difference"),
    *both(f"{_CLUSTER}apply-to-parent", what_if.ApplyToParent.as_view(), "apply-to-parent"),
    *both(f"{_CLUSTER}unpark", clusters.Unpark.as_view(), "unpark"),
    *both(f"{_CLUSTER}apply", manifests.Apply.as_view(), "apply"),
    *both(f"{_CLUSTER}export", manifests.Export.as_view(), "export"),
    *both(f"{_CLUSTER}node-pools/", manifests.NodePools.as_view(), "node-pools"),
    *both(f"{_CLUSTER}run", runs.StartRun.as_view(), "run"),
    *both(f"{_CLUSTER}events", events.ClusterEvents.as_view(), "events"),
    *both(f"{_CLUSTER}runs/<str:run_id>/events", events.RunEvents.as_view(), "run-events"),
    *both(f"{_CLUSTER}runs/", runs.Runs.as_view(), "runs"),
    *both(f"{_CLUSTER}runs/<str:run_id>/", runs.OneRun.as_view(), "one-run"),
    *both(f"{_CLUSTER}cycles/", runs.Cycles.as_view(), "cycles"),
    *both(f"{_CLUSTER}cycles/<int:number>/", runs.OneCycle.as_view(), "cycle"),
    *both(f"{_CLUSTER}metrics", runs.Metrics.as_view(), "metrics"),
    *both(f"{_CLUSTER}queue/", runs.Queue.as_view(), "queue"),
    *both(f"{_CLUSTER}nodes/", _of(objects.ObjectList, "Node"), "nodes"),
    *both(f"{_CLUSTER}nodes/<str:node>/", _of(objects.OneObject, "Node"), "node"),
    *both(f"{_CLUSTER}pods/", _of(objects.ObjectList, "Pod"), "pods"),
    *both(f"{_CLUSTER}pods/<str:namespace>/<str:pod>/", _of(objects.OneObject, "Pod"), "pod"),
    *both(f"{_CLUSTER}pods/<str:namespace>/<str:pod>/story", runs.PodStory.as_view(), "pod-story"),
    *both(f"{_CLUSTER}priorityclasses/", _of(objects.ObjectList, "PriorityClass"), "priority-classes"),
    *both(
        f"{_CLUSTER}priorityclasses/<str:priority_class>/",
        _of(objects.OneObject, "PriorityClass"),
        "priority-class",
    ),
    *both(f"{_CLUSTER}poddisruptionbudgets/", _of(objects.ObjectList, "PodDisruptionBudget"), "budgets"),
    *both(
        f"{_CLUSTER}poddisruptionbudgets/<str:namespace>/<str:budget>/",
        _of(objects.OneObject, "PodDisruptionBudget"),
        "budget",
    ),
    *both(f"{_CLUSTER}permits/<str:namespace>/<str:pod>/", runs.Permits.as_view(), "permit"),
    *both(f"{_CLUSTER}config/", settings.Config.as_view(), "config"),
    *both(f"{_CLUSTER}config/convert/", settings.ConvertedConfig.as_view(), "config-convert"),
    *both(f"{_CLUSTER}release/", settings.Release.as_view(), "release"),
    *both(f"{_CLUSTER}clock/", settings.Clock.as_view(), "clock"),
    *both(f"{_CLUSTER}assumed-pods/", settings.AssumedPods.as_view(), "assumed-pods"),
    *both(f"{_CLUSTER}mock-extenders/", settings.MockExtenders.as_view(), "mock-extenders"),
    *both(
        f"{_CLUSTER}mock-extenders/<str:extender_id>/",
        settings.OneMockExtender.as_view(),
        "mock-extender",
    ),
    *both(f"{_CLUSTER}scenario", scenarios.ClusterScenario.as_view(), "cluster-scenario"),
    *both(f"{_CLUSTER}upgrade/", _search(asked_for.UPGRADE, "cluster"), "cluster-upgrade"),
    *both(f"{_SCENARIO}upgrade/", _search(asked_for.UPGRADE, "scenario"), "scenario-upgrade"),
    *both(f"{_CLUSTER}model/", _search(asked_for.MODEL, "cluster"), "cluster-model"),
    *both(f"{_CLUSTER}optimum/", _search(asked_for.OPTIMUM, "cluster"), "cluster-optimum"),
    *both(f"{_SCENARIO}optimum/", _search(asked_for.OPTIMUM, "scenario"), "scenario-optimum"),
    *both(f"{_SCENARIO}model/", _search(asked_for.MODEL, "scenario"), "scenario-model"),
    *both(f"{_SCENARIO}luck/", _search(asked_for.LUCK, "scenario"), "scenario-luck"),
    *both(f"{_CLUSTER}branch", forks.BranchOfCluster.as_view(), "branch"),
    *both(f"{_CLUSTER}steps/", forks.DraftSteps.as_view(), "steps"),
    *both(f"{_CLUSTER}board", boards.ClusterBoard.as_view(), "board"),
    *both(f"{_CLUSTER}upgrade/share", _SHARE_OF_UPGRADE["cluster"][0].as_view(), "cluster-upgrade-share"),
    *both(f"{_CLUSTER}upgrade/branch", _SHARE_OF_UPGRADE["cluster"][1].as_view(), "cluster-upgrade-branch"),
    *both(f"{_SCENARIO}upgrade/share", _SHARE_OF_UPGRADE["scenario"][0].as_view(), "scenario-upgrade-share"),
    *both(
        f"{_SCENARIO}upgrade/branch", _SHARE_OF_UPGRADE["scenario"][1].as_view(), "scenario-upgrade-branch"
    ),
    *both(f"{_SCENARIO}fork", forks.Fork.as_view(), "scenario-fork"),
    *both(f"{_SCENARIO}branch", forks.BranchOfScenario.as_view(), "scenario-branch"),
    *both(f"{_SCENARIO}board", boards.ScenarioBoard.as_view(), "scenario-board"),
    *both(f"{_SCENARIO}cycles/", boards.ScenarioCycles.as_view(), "scenario-cycles"),
    *both(f"{_SCENARIO}cycles/<int:number>/", boards.ScenarioCycle.as_view(), "scenario-cycle"),
    *both(f"{_SCENARIO}cycles/<int:number>/whole", boards.WholeCycle.as_view(), "scenario-whole-cycle"),
    *both("gallery/", scenarios.Gallery.as_view(), "gallery"),
    *both("gallery/at-scale/make", scenarios.AtScale.as_view(), "gallery-at-scale"),
    *both("gallery/<str:name>/", scenarios.OneLesson.as_view(), "lesson"),
    *both("gallery/<str:name>/open", scenarios.OpenLesson.as_view(), "lesson-open"),
    *both("verdicts/<str:verdict_id>/", scenarios.OneVerdict.as_view(), "verdict"),
    *both("verdicts/<str:verdict_id>/objects", scenarios.VerdictObjects.as_view(), "verdict-objects"),
    *both("people/", people.AllPeople.as_view(), "people"),
    *both("people/invitations/", people.SiteInvitations.as_view(), "people-invitations"),
    *both("people/invitations/<int:invitation_id>/", people.OneSiteInvitation.as_view(), "people-invitation"),
    *both("people/<int:user_id>/", people.OnePerson.as_view(), "person"),
    *both(f"{_CLUSTER}objects/", objects.Kinds.as_view(), "kinds"),
    *both(f"{_CLUSTER}objects/<str:kind>/", objects.OfKind.as_view(), "of-kind"),
    *both(
        f"{_CLUSTER}objects/<str:kind>/<str:namespace>/<str:name>/", objects.AnyObject.as_view(), "any-object"
    ),
    *both(f"{_CLUSTER}groups/<str:namespace>/<str:group>/ask", questions.Group.as_view(), "group"),
    *both(f"{_CLUSTER}config/rules/<str:rule>/", settings.Rule.as_view(), "rule"),
    *both(f"{_CLUSTER}config/extender-hosts/<str:host>/", settings.ExtenderHost.as_view(), "extender-host"),
    *both(f"{_CLUSTER}job-duration/", settings.JobDuration.as_view(), "job-duration"),
    *both(
        f"{_CLUSTER}questions/<str:question_id>/branch", forks.BranchOfQuestion.as_view(), "question-branch"
    ),
    *both("scenarios/", scenarios.Scenarios.as_view(), "scenarios"),
    *both("scenarios/<str:scenario_id>/", scenarios.OneScenario.as_view(), "scenario"),
    *both("scenarios/<str:scenario_id>/link", scenarios.Link.as_view(), "scenario-link"),
    *both("scenarios/<str:scenario_id>/replay", scenarios.Replay.as_view(), "scenario-replay"),
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
    *both(f"{_CLUSTER}schedulers/", judge.Seen.as_view(), "schedulers"),
    *both(f"{_CLUSTER}judge/", judge.Judge.as_view(), "judge"),
    *both(f"{_CLUSTER}judge/<int:seq>/<slug:kind>/", judge.OneDecision.as_view(), "judged"),
    *both(f"{_CLUSTER}plan", questions.Plan.as_view(), "plan"),
    *both(
        f"{_CLUSTER}questions/<str:question_id>/answer.json", questions.PlanAnswer.as_view(), "plan-answer"
    ),
    *both(f"{_CLUSTER}questions/<str:question_id>/share", questions.ShareVerdict.as_view(), "plan-share"),
    *both(f"{_CLUSTER}questions/<str:question_id>/", questions.OneQuestion.as_view(), "question"),
    re_path(r"^(?P<rest>.*)$", site.Nothing.as_view()),
]
