"""Clusters as a whole: what they are, what people changed, and new ones made of what there is."""

from __future__ import annotations

from typing import Any

from rest_framework.response import Response

from playground.accounts.choices import Role
from playground.api import representations
from playground.api.errors import PreconditionFailed
from playground.api.representations import shown
from playground.api.views.base import Call, tags_of
from playground.api.views.people import team_of
from playground.clusters import branches, demo, lifecycle
from playground.clusters.access import get_parent
from playground.clusters.board.overview import branches_overview, clusters_overview, with_counts
from playground.clusters.choices import ClockMode, QuestionKind
from playground.clusters.drive.runs import unpark_cluster
from playground.clusters.errors import InvalidInput
from playground.clusters.objects.actions import act_on_nodes, act_on_pods
from playground.clusters.objects.apply import apply_documents
from playground.clusters.row_types import Cluster, Question
from playground.engine.configuration import without_effect
from playground.scenarios import selectors
from playground.scenarios.branch_difference import difference
from playground.scenarios.row_types import Scenario
from playground.scenarios.services import forking, moments


def etag_of(cluster: Cluster) -> str:
    """Changes with every visible change of the cluster; a clock that runs changes it too."""
    return f'"{cluster.public_id}-{cluster.generation}-{cluster.version}"'


def answer(cluster: Cluster, status: int = 200) -> Response:
    """A cluster with its counts and its ETag."""
    counted: Any = with_counts(cluster)
    response = Response(representations.cluster(counted), status=status)
    # At 1x the answer's clock moves without a new version, so there the hash of the answer is the ETag.
    if cluster.clock_mode == ClockMode.PAUSED and not counted.is_running:
        response["ETag"] = etag_of(counted)
    if status == 201:
        response["Location"] = f"/api/v1/clusters/{cluster.public_id}/"
    return response


def check_if_match(call: Call, cluster: Cluster) -> None:
    """Refuse a change by a client that saw an older version.

    Raises
    ------
    PreconditionFailed
    """
    wanted = tags_of(call.request)
    if wanted and "*" not in wanted and etag_of(cluster) not in wanted:
        raise PreconditionFailed()


def clusters_list(call: Call) -> Any:
    """Newest first. `next` is the path of the next page, or null."""
    limit, before = call.query("limit", 50), call.query("before")
    last = call.cluster(before) if before else None
    found = clusters_overview(call.person, limit=limit + 1, before=last)
    return call.page(found, limit, representations.cluster, before="id")


def clusters_create(call: Call) -> Any:
    """A new cluster, paused, with only what every cluster has; `demo` adds the demo's nodes and pods."""
    wanted = call.body
    live, objects = wanted.pop("live"), demo.demo_objects() if wanted.pop("demo") else ()
    if live and objects:
        raise InvalidInput("a cluster that mirrors a live one has no demo", field="demo", value=True)
    team = team_of(wanted.pop("team", None), call.person)
    cluster = lifecycle.create_cluster(
        owner=call.person,
        team=team,
        kubernetes_release=wanted.pop("kubernetesRelease", None),
        feature_gates=wanted.pop("featureGates", None),
        live=live,
        **wanted,
    )
    if objects:
        apply_documents(cluster=cluster, objects=objects)
    made = answer(cluster, 201)
    made.data["withoutEffect"] = list(without_effect(cluster.config, cluster.release))
    return made


def clusters_read(call: Call, cluster: Cluster) -> Any:
    """Its name, clock and counts. The ETag of a paused cluster changes with every visible change of it."""
    return answer(cluster)


def clusters_rename(call: Call, cluster: Cluster) -> Any:
    """Rename a cluster; clock and configuration have other paths."""
    asked = call.body
    check_if_match(call, cluster)
    return answer(lifecycle.rename_cluster(cluster=cluster, **asked))


def clusters_delete(call: Call, cluster: Cluster) -> None:
    """The cluster and everything in it is gone; a run at work on it cannot commit afterwards."""
    check_if_match(call, cluster)
    lifecycle.delete_cluster(cluster=cluster, by=call.person)


def clusters_clone(call: Call, cluster: Cluster) -> Any:
    """A new cluster of yours with the objects of this one as they are now, bound pods included."""
    name = call.body.get("name") or f"{cluster.name[:95]} copy"
    return answer(lifecycle.clone_cluster(cluster=cluster, name=name, owner=call.person), 201)


def clusters_reset(call: Call, cluster: Cluster) -> Any:
    """Back to the start of its clock: what people wrote stays, what the engine did is forgotten."""
    return answer(lifecycle.reset_cluster(cluster=cluster))


def clusters_unpark(call: Call, cluster: Cluster) -> Any:
    """After repeated failures of its engine a cluster is set aside; this lets it try again."""
    return answer(unpark_cluster(cluster=cluster))


def changes_list(call: Call, cluster: Cluster) -> Any:
    """What people did to the cluster, newest first: the first one is what an undo would undo."""
    return [shown("Change", row) for row in cluster.changes.order_by("-id")[: call.query("limit", 20)]]


def changes_undo(call: Call, cluster: Cluster) -> Any:
    """Undo changes; the scheduler's decisions since then go, too.

    Its log goes back to there, so that a share is what it would have been; resource versions go on, and watches
    are told to list anew. With `change` it is refused if something else was done meanwhile.
    """
    undone = forking.undo(cluster=cluster, seq=call.body.get("change"))
    return {"undone": undone.words, "cycles": undone.cycles}


def actions_do(call: Call, cluster: Cluster) -> Any:
    """Delete pods; cordon, uncordon, drain, taint, label or delete nodes: all of them or none, undone at once.

    A drain evicts what budgets let go and leaves the pods of DaemonSets; `held` names those that it leaves.
    """
    body = call.body
    if ("pods" in body) == ("nodes" in body):
        raise InvalidInput("nodes: name pods or nodes, and not both", field="nodes")
    if "pods" in body:
        acted = act_on_pods(cluster=cluster, action=body["action"], pods=body["pods"])
    else:
        acted = act_on_nodes(cluster=cluster, action=body["action"], nodes=body["nodes"], value=body["value"])
    return shown("Acted", acted, held=[{"pod": pod, "reason": reason} for pod, reason in acted.held])


# ---- branches


def clusters_branches(call: Call, cluster: Cluster) -> Any:
    """Those you may see, newest first, the newest hundred: with the cycle each begins after."""
    return [
        representations.cluster(branch) | {"parent": {"id": cluster.public_id, "cycle": branch.parent_cycle}}
        for branch in branches_overview(cluster, call.person)
    ]


def clusters_branch(call: Call, cluster: Cluster) -> Any:
    """A new cluster of yours with the objects as they were after a cycle, and an edit (manifests as YAML).

    An edit that cannot be applied makes no cluster. Its own log begins there.
    """
    return answer(moments.branch(cluster=cluster, owner=call.person, **call.body), 201)


def scenarios_fork(call: Call, scenario: Scenario) -> Any:
    """A new cluster of yours that begins as the scenario does; its steps wait to be done one by one (`steps`).

    Where its author chose a moment (`opensAt`) it begins there, as `branch` does. Recorded answers of
    extenders stay behind: its scheduler asks the extender itself.
    """
    return answer(moments.fork(scenario=scenario, owner=call.person, **call.body), 201)


def scenarios_branch(call: Call, scenario: Scenario) -> Any:
    """A new cluster of yours with the objects as they were after a cycle, bound pods included, and an edit."""
    return answer(moments.branch(scenario=scenario, owner=call.person, **call.body), 201)


def questions_branch(call: Call, cluster: Cluster, question: Question) -> Any:
    """A new cluster of yours with this one's objects and one proven edit (`rank`, from 1, or 0 for the best;
    of fix and group), or with the steps of a plan done. It runs until idle.
    """
    rank = call.body.get("rank")
    if question.kind == QuestionKind.PLAN:
        if rank is not None:
            raise InvalidInput("a plan is done as a whole", field="rank", value=rank)
        return answer(branches.branch_of_plan(question=question, owner=call.person), 201)
    return answer(
        branches.branch_with_edit(question=question, rank=1 if rank is None else rank, owner=call.person), 201
    )


def branches_difference(call: Call, cluster: Cluster) -> Any:
    """Pods that are not where they are in the parent, and the first decision that differs, with why.

    Decisions stand beside each other if they are about the same attempt of the same pod since the branch was made.
    """
    limit = call.query("limit", 1000)
    parent = get_parent(cluster, call.person)
    found = difference(branch=cluster, parent=parent)
    first = found.parting
    return {
        "parent": parent.public_id,
        "counts": dict(found.counts),
        "same": found.n_same,
        "decisions": found.n_decisions,
        "pods": [
            shown("DifferentPod", change, pod=f"{change.namespace}/{change.name}")
            for change in found.changes[:limit]
        ],
        "first": first
        and {
            "pod": first.pair.pod,
            "attempt": first.pair.nth,
            "why": first.why,
            "parentCycle": first.cycles[0] and first.cycles[0].number,
            "branchCycle": first.cycles[1] and first.cycles[1].number,
        },
    }


def branches_apply(call: Call, cluster: Cluster) -> Any:
    """What people did in the branch since it was made is written to its parent, all of it or nothing.

    The parent's scheduler decides anew. 409 names what the parent has changed in the meantime.
    """
    parent = get_parent(cluster, call.person, at_least=Role.EDITOR)
    applied = branches.apply_branch(branch=cluster, parent=parent)
    return {"parent": parent.public_id, "done": applied.words, "edits": applied.n_edits}


def steps_read(call: Call, cluster: Cluster) -> Any:
    """The steps of the scenario the cluster was forked from, and which comes next; none of another cluster."""
    state = selectors.origin_state(cluster, call.person)
    if state is None:
        return {"scenario": None, "nextStep": 0, "next": None, "steps": []}
    return {
        "scenario": state.scenario_id or None,
        "nextStep": state.origin.next_step,
        "next": state.next_words or None,
        "steps": [str(step["words"]) for step in state.steps],
    }


def steps_next(call: Call, cluster: Cluster) -> Any:
    """One that runs the scheduler starts a run; the next step comes after it (409 until then)."""
    forking.do_next_step(cluster=cluster)
    return steps_read(call, cluster)
