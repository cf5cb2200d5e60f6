"""What was changed, and back again; one action on many objects; a branch's edits applied to its parent."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from playground.accounts.choices import Role
from playground.api.requests import whole_number
from playground.api.views.base import PlaygroundView
from playground.clusters.access import get_parent
from playground.clusters.branches import apply_branch
from playground.clusters.errors import InvalidInput
from playground.clusters.log.changes import KEPT
from playground.clusters.objects.actions import act_on_nodes, act_on_pods
from playground.scenarios.branch_difference import difference
from playground.scenarios.services import undo


class Changes(PlaygroundView):
    def get(self, request: Request, cluster_id: str) -> Response:
        """What people did to the cluster, newest first: the first one is what an undo would undo."""
        cluster = self.cluster(cluster_id)
        limit = whole_number(request, "limit", default=20, least=1, most=KEPT) or 20
        rows = cluster.changes.order_by("-id")[:limit]
        return Response(
            {
                "items": [
                    {"change": row.seq, "words": row.words, "program": row.program, "at": row.created}
                    for row in rows
                ]
            }
        )


class Undo(PlaygroundView):
    def post(self, request: Request, cluster_id: str) -> Response:
        """Undo changes; the scheduler's decisions since then go, too.

        Its log goes back to there, so that a share is what it would have been; resource versions go on, and watches
        are told to list anew. With `change` it is refused if something else was done meanwhile.
        """
        cluster = self.cluster(cluster_id)
        asked = self.body("Undo")
        undone = undo(cluster=cluster, seq=asked.get("change"))
        return Response({"undone": undone.words, "cycles": undone.cycles})


class Actions(PlaygroundView):
    def post(self, request: Request, cluster_id: str) -> Response:
        """Delete pods; cordon, uncordon, drain, taint, label or delete nodes: all of them or none, undone at once.

        A drain evicts what budgets let go and leaves the pods of DaemonSets; `held` names those that it leaves.
        """
        cluster = self.cluster(cluster_id)
        body = self.body("Action")
        if ("pods" in body) == ("nodes" in body):
            raise InvalidInput("nodes: name pods or nodes, and not both", field="nodes")
        if "pods" in body:
            acted = act_on_pods(cluster=cluster, action=body["action"], pods=body["pods"])
        else:
            acted = act_on_nodes(
                cluster=cluster, action=body["action"], nodes=body["nodes"], value=body["value"]
            )
        held = [{"pod": pod, "reason": reason} for pod, reason in acted.held]
        return Response({"done": acted.words, "changed": acted.n_changed, "held": held})


class Difference(PlaygroundView):
    def get(self, request: Request, cluster_id: str) -> Response:
        """Pods that are not where they are in the parent, and the first decision that differs, with why.

        Decisions stand beside each other if they are about the same attempt of the same pod since the branch was made.
        """
        branch = self.cluster(cluster_id)
        limit = whole_number(request, "limit", default=1000, least=1, most=5000) or 1000
        parent = get_parent(branch, self.person)
        found = difference(branch=branch, parent=parent)
        first = found.parting
        return Response(
            {
                "parent": parent.public_id,
                "counts": dict(found.counts),
                "same": found.n_same,
                "decisions": found.n_decisions,
                "pods": [
                    {
                        "kind": change.kind,
                        "pod": f"{change.namespace}/{change.name}",
                        "parent": change.was,
                        "branch": change.now,
                        "cycle": change.cycle,
                    }
                    for change in found.changes[:limit]
                ],
                "first": None
                if first is None
                else {
                    "pod": first.pair.pod,
                    "attempt": first.pair.nth,
                    "why": first.why,
                    "parentCycle": first.cycles[0] and first.cycles[0].number,
                    "branchCycle": first.cycles[1] and first.cycles[1].number,
                },
            }
        )


class ApplyToParent(PlaygroundView):
    def post(self, request: Request, cluster_id: str) -> Response:
        """What people did in the branch since it was made is written to its parent, all of it or nothing.

        The parent's scheduler decides anew. 409 names what the parent has changed in the meantime.
        """
        branch = self.cluster(cluster_id, at_least=Role.VIEWER)
        parent = get_parent(branch, self.person, at_least=Role.EDITOR)
        applied = apply_branch(branch=branch, parent=parent)
        return Response({"parent": parent.public_id, "done": applied.words, "edits": applied.n_edits})
