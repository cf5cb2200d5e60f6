"""New clusters made of what there is: forks of shares, branches of the past, branches in which an answer was done."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from playground.accounts.choices import Role
from playground.api import representations
from playground.api.views.asked_for import UPGRADE, found_of
from playground.api.views.base import PlaygroundView
from playground.api.views.clusters import answer
from playground.api.views.scenarios import Reads, shared_answer
from playground.clusters import branches
from playground.clusters.board.overview import branches_overview
from playground.clusters.branches import branch_of_plan
from playground.clusters.choices import QuestionKind
from playground.clusters.errors import InvalidInput
from playground.clusters.questions import get_question
from playground.scenarios import selectors, services


def cluster_made(cluster: Any) -> Response:
    """A new cluster, and where it is."""
    return answer(cluster, 201)


class Fork(Reads):
    def post(self, request: Request, scenario_id: str) -> Response:
        """A new cluster of yours that begins as the scenario does; its steps wait to be done one by one (`steps`).

        Recorded answers of extenders stay behind: its scheduler asks the extender itself.
        """
        scenario = selectors.get_scenario(scenario_id, request.user)
        asked = self.body("Named")
        return cluster_made(services.fork(scenario=scenario, owner=self.person, **asked))


class BranchOfScenario(Reads):
    def post(self, request: Request, scenario_id: str) -> Response:
        """A new cluster of yours with the objects as they were after a cycle, bound pods included, and an edit."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        asked = self.body("BranchAfter")
        return cluster_made(services.branch(scenario=scenario, owner=self.person, **asked))


class BranchOfCluster(PlaygroundView):
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

    def post(self, request: Request, cluster_id: str) -> Response:
        """A new cluster of yours with the objects as they were after a cycle, and an edit (manifests as YAML).

        An edit that cannot be applied makes no cluster. Its own log begins there.
        """
        cluster = self.cluster(cluster_id, at_least=Role.VIEWER)
        asked = self.body("BranchAfter")
        return cluster_made(services.branch(cluster=cluster, owner=self.person, **asked))


class BranchOfQuestion(PlaygroundView):
    def post(self, request: Request, cluster_id: str, question_id: str) -> Response:
        """A new cluster of yours with this one's objects and one proven edit (`rank`, from 1; of what-would-it-take and
        group), or with the steps of a plan done. It runs until idle.
        """
        cluster = self.cluster(cluster_id, at_least=Role.VIEWER)
        found = get_question(cluster, question_id)
        asked = self.body("Rank")
        rank = asked.get("rank")
        if found.kind == QuestionKind.PLAN:
            if rank is not None:
                raise InvalidInput("a plan is done as a whole", field="rank", value=rank)
            return cluster_made(branch_of_plan(question=found, owner=self.person))
        return cluster_made(branches.branch_with_edit(question=found, rank=rank or 1, owner=self.person))


class DraftSteps(PlaygroundView):
    def get(self, request: Request, cluster_id: str) -> Response:
        """The steps of the scenario the cluster was forked from, and which comes next; none of another cluster."""
        return Response(self._steps(self.cluster(cluster_id), self.person))

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

    class Base(PlaygroundView if of == "cluster" else Reads):  # type: ignore[misc]  # one of two
        told_once = True

        def found(self, path: dict[str, str]) -> Any:
            return UPGRADE.newest(found_of(self, self.request, of, path[f"{of}_id"]), of)

    class Share(Base):
        def post(self, request: Request, **path: str) -> Response:
            """The cluster's run up to then as a share, with what was found of it."""
            shared = services.share_upgrade(upgrade=self.found(path), owner=self.person)
            return shared_answer(request, shared)

    class Branch(Base):
        def post(self, request: Request, **path: str) -> Response:
            """A new cluster of yours that begins as the run did, on the release that was previewed; steps wait."""
            return cluster_made(services.branch_of_upgrade(upgrade=self.found(path), owner=self.person))

    return Share, Branch
