"""New clusters made of what there is: forks of shares, branches of the past, branches in which an answer was done."""

from __future__ import annotations

from typing import Any, Final

from rest_framework.request import Request
from rest_framework.response import Response

from playground.accounts.choices import Role
from playground.api import examples, representations
from playground.api.documentation import operation
from playground.api.serializers import answers, requests
from playground.api.serializers import scenarios as shares
from playground.api.serializers.answers import Answer
from playground.api.serializers.shapes import text, texts, whole
from playground.api.views.asked_for import UPGRADE, found_of
from playground.api.views.base import PlaygroundView
from playground.api.views.clusters import answer
from playground.api.views.scenarios import SHARED, Reads, shared_answer
from playground.clusters import branches
from playground.clusters.board.overview import branches_overview
from playground.clusters.branches import branch_of_plan
from playground.clusters.choices import QuestionKind
from playground.clusters.errors import InvalidInput
from playground.clusters.questions import get_question
from playground.scenarios import selectors, services

BRANCHED: Final = examples.CLUSTER | {"name": "demo after 1"}
MADE: Final = {201: answers.Cluster}
BRANCH_ERRORS: Final = (400, 403, 404, 409, 413, 415)
CYCLE: Final = {"cycle": 1, "name": "what if"}


def cluster_made(cluster: Any) -> Response:
    """A new cluster, and where it is."""
    return answer(cluster, 201)


class Fork(Reads):
    @operation(
        "Fork a scenario",
        id="scenarios_fork",
        request=requests.Named,
        answers_=MADE,
        errors=BRANCH_ERRORS,
        example={"name": "mine"},
        answer_example=examples.CLUSTER,
        tag="scenarios",
    )
    def post(self, request: Request, scenario_id: str) -> Response:
        """A new cluster of yours that begins as the scenario does; its steps wait to be done one by one (`steps`).

        Recorded answers of extenders stay behind: its scheduler asks the extender itself.
        """
        scenario = selectors.get_scenario(scenario_id, request.user)
        asked = requests.Named(data=request.data)
        asked.is_valid(raise_exception=True)
        return cluster_made(services.fork(scenario=scenario, owner=self.person, **asked.validated_data))


class BranchOfScenario(Reads):
    @operation(
        "Branch off a scenario after a cycle",
        id="scenarios_branch",
        request=requests.BranchAfter,
        answers_=MADE,
        errors=BRANCH_ERRORS,
        example=CYCLE,
        answer_example=BRANCHED,
        tag="scenarios",
    )
    def post(self, request: Request, scenario_id: str) -> Response:
        """A new cluster of yours with the objects as they were after a cycle, bound pods included, and an edit."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        asked = requests.BranchAfter(data=request.data)
        asked.is_valid(raise_exception=True)
        return cluster_made(services.branch(scenario=scenario, owner=self.person, **asked.validated_data))


class BranchOfCluster(PlaygroundView):
    @operation(
        "List a cluster's branches",
        id="clusters_branches",
        answers_={200: answers.Branches},
        errors=(400, 404),
        answer_example={"items": [BRANCHED | {"parent": {"id": "k7m2qw9xtr", "cycle": 1}}]},
        reads=True,
    )
    def get(self, request: Request, cluster_id: str) -> Response:
        """Those you may see, newest first, the newest hundred: with the cycle each begins after."""
        found = branches_overview(self.cluster(cluster_id), self.person)
        return Response(
            {
                "items": [
                    representations.cluster(summary)
                    | {"parent": {"id": cluster_id, "cycle": summary.cluster.parent_cycle}}
                    for summary in found
                ]
            }
        )

    @operation(
        "Branch off a cluster after a cycle",
        id="clusters_branch",
        request=requests.BranchAfter,
        answers_=MADE,
        errors=BRANCH_ERRORS,
        example=CYCLE,
        answer_example=BRANCHED,
    )
    def post(self, request: Request, cluster_id: str) -> Response:
        """A new cluster of yours with the objects as they were after a cycle, and an edit (manifests as YAML).

        An edit that cannot be applied makes no cluster. Its own log begins there.
        """
        cluster = self.cluster(cluster_id, at_least=Role.VIEWER)
        asked = requests.BranchAfter(data=request.data)
        asked.is_valid(raise_exception=True)
        return cluster_made(services.branch(cluster=cluster, owner=self.person, **asked.validated_data))


class BranchOfQuestion(PlaygroundView):
    @operation(
        "Make a branch in which an answer is done",
        id="questions_branch",
        request=requests.Rank,
        answers_=MADE,
        errors=BRANCH_ERRORS,
        example={"rank": 1},
        answer_example=BRANCHED | {"name": "demo: Lower the cpu request from 5 to 2.4"},
        tag="scheduling",
    )
    def post(self, request: Request, cluster_id: str, question_id: str) -> Response:
        """A new cluster of yours with this one's objects and one proven edit (`rank`, from 1; of what-would-it-take and
        group), or with the steps of a plan done. It runs until idle.
        """
        cluster = self.cluster(cluster_id, at_least=Role.VIEWER)
        found = get_question(cluster, question_id)
        asked = requests.Rank(data=request.data)
        asked.is_valid(raise_exception=True)
        rank = asked.validated_data.get("rank")
        if found.kind == QuestionKind.PLAN:
            if rank is not None:
                raise InvalidInput("a plan is done as a whole", field="rank", value=rank)
            return cluster_made(branch_of_plan(question=found, owner=self.person))
        return cluster_made(branches.branch_with_edit(question=found, rank=rank or 1, owner=self.person))


class Steps(Answer):
    scenario = text("Id of the share it comes from, or was shared as.", allow_null=True)
    nextStep = whole("How many steps are done.")
    next = text("The next step in words; null: none is left.", allow_null=True)
    steps = texts("All steps, in words.")


_STEPS: Final = {
    "scenario": "k3fq9abc2mxy",
    "nextStep": 1,
    "next": "run until idle",
    "steps": ["apply 2 objects", "run until idle"],
}


class DraftSteps(PlaygroundView):
    @operation(
        "Read the steps of a fork",
        id="steps_read",
        answers_={200: Steps},
        errors=(400, 404),
        answer_example=_STEPS,
        tag="scenarios",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str) -> Response:
        """The steps of the scenario the cluster was forked from, and which comes next; none of another cluster."""
        return Response(self._steps(self.cluster(cluster_id), self.person))

    @operation(
        "Do the next step of a fork",
        id="steps_next",
        answers_={200: Steps},
        errors=(400, 403, 404, 409, 413),
        answer_example=_STEPS,
        tag="scenarios",
    )
    def post(self, request: Request, cluster_id: str) -> Response:
        """One that runs the scheduler starts a run; the next step comes after it (409 until then)."""
        cluster = self.cluster(cluster_id)
        services.do_next_step(cluster=cluster)
        return Response(self._steps(cluster, self.person))

    @staticmethod
    def _steps(cluster: Any, person: Any) -> dict[str, Any]:
        state = selectors.origin_state(cluster, person)
        if state is None:
            return {"scenario": None, "nextStep": 0, "next": None, "steps": []}
        return {
            "scenario": state.scenario_id or None,
            "nextStep": state.origin.next_step,
            "next": state.next_words or None,
            "steps": [str(step["words"]) for step in state.steps],
        }


def upgrade_views(of: str) -> tuple[type[PlaygroundView], type[PlaygroundView]]:
    """What can be done with a previewed upgrade of a cluster or a scenario: share it, branch off."""
    collection = f"{of}s"
    base = PlaygroundView if of == "cluster" else Reads
    tag = "scheduling" if of == "cluster" else "scenarios"

    def share(self: Any, request: Request, **path: str) -> Response:
        found = found_of(self, request, of, path[f"{of}_id"])
        return shared_answer(
            request, services.share_upgrade(upgrade=UPGRADE.newest(found, of), owner=self.person)
        )

    def branch(self: Any, request: Request, **path: str) -> Response:
        found = found_of(self, request, of, path[f"{of}_id"])
        return cluster_made(services.branch_of_upgrade(upgrade=UPGRADE.newest(found, of), owner=self.person))

    share.__doc__ = "The cluster's run up to then as a share, with what was found of it."
    branch.__doc__ = (
        "A new cluster of yours that begins as the run did, on the release that was previewed; steps wait."
    )
    shared = operation(
        "Share a previewed upgrade",
        id=f"{collection}_upgrade_share",
        answers_={201: shares.SharedScenario, 200: shares.SharedScenario},
        errors=(400, 403, 404, 409, 413),
        answer_example=SHARED,
        tag=tag,
    )(share)
    branched = operation(
        "Branch off with a previewed upgrade",
        id=f"{collection}_upgrade_branch",
        answers_=MADE,
        errors=(400, 403, 404, 409, 413),
        answer_example=examples.CLUSTER | {"name": "demo on 1.36"},
        tag=tag,
    )(branch)
    name = of.capitalize()
    also = {"told_once": True, "__module__": __name__}
    return (
        type(f"{name}UpgradeShare", (base,), {"post": shared, **also}),
        type(f"{name}UpgradeBranch", (base,), {"post": branched, **also}),
    )
