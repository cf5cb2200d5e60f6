"""Clusters as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.request import Request
from rest_framework.response import Response

from playground.accounts.choices import Role
from playground.api import representations
from playground.api.errors import PreconditionFailed
from playground.api.requests import next_page, whole_number
from playground.api.views.base import PlaygroundView, tags_of
from playground.api.views.people import team_of
from playground.clusters import demo
from playground.clusters.board.overview import cluster_summary, clusters_overview
from playground.clusters.choices import ClockMode
from playground.clusters.drive.runs import unpark_cluster
from playground.clusters.lifecycle import (
    clone_cluster,
    create_cluster,
    delete_cluster,
    rename_cluster,
    reset_cluster,
)
from playground.clusters.objects.apply import apply_documents
from playground.engine.configuration import without_effect

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster


def etag_of(cluster: Cluster) -> str:
    """Changes with every visible change of the cluster; a clock that runs changes it too."""
    return f'"{cluster.public_id}-{cluster.generation}-{cluster.version}"'


def answer(cluster: Cluster, status: int = 200) -> Response:
    """A cluster with its counts and its ETag."""
    summary = cluster_summary(cluster)
    response = Response(representations.cluster(summary), status=status)
    # At 1x the answer's clock moves without a new version, so there the hash of the answer is the ETag.
    if cluster.clock_mode == ClockMode.PAUSED and not summary.running:
        response["ETag"] = etag_of(summary.cluster)
    if status == 201:
        response["Location"] = f"/api/v1/clusters/{cluster.public_id}/"
    return response


def check_if_match(request: Request, cluster: Cluster) -> None:
    """Refuse a change by a client that saw an older version.

    Raises
    ------
    PreconditionFailed
    """
    wanted = tags_of(request)
    if wanted and "*" not in wanted and etag_of(cluster) not in wanted:
        raise PreconditionFailed()


class Clusters(PlaygroundView):
    one_cluster_reads = True

    def get(self, request: Request) -> Response:
        """Newest first. `next` is the path of the next page, or null."""
        limit = whole_number(request, "limit", default=50, least=1, most=100) or 50
        before = request.GET.get("before")
        last = self.cluster(before) if before else None
        found = clusters_overview(self.person, limit=limit + 1, before=last)
        items = [representations.cluster(summary) for summary in found[:limit]]
        more = items[-1]["id"] if len(found) > limit else None
        return Response({"items": items, "next": next_page(request, before=more)})

    def post(self, request: Request) -> Response:
        """A new cluster, paused, with only what every cluster has; `demo` adds the demo's nodes and pods."""
        wanted = self.body("ClusterCreate")
        objects = demo.demo_objects() if wanted.pop("demo") else ()
        team = team_of(wanted.pop("team", None), self.person)
        cluster = create_cluster(
            owner=self.person,
            team=team,
            kubernetes_release=wanted.pop("kubernetesRelease", None),
            feature_gates=wanted.pop("featureGates", None),
            **wanted,
        )
        if objects:
            apply_documents(cluster=cluster, objects=objects)
        made = answer(cluster, 201)
        made.data["withoutEffect"] = list(without_effect(cluster.config, cluster.release))
        return made


class OneCluster(PlaygroundView):
    def get(self, request: Request, cluster_id: str) -> Response:
        """Its name, clock and counts. The ETag of a paused cluster changes with every visible change of it."""
        return answer(self.cluster(cluster_id))

    def patch(self, request: Request, cluster_id: str) -> Response:
        """Rename a cluster; clock and configuration have other paths."""
        cluster = self.cluster(cluster_id)
        asked = self.body("ClusterRename")
        check_if_match(request, cluster)
        return answer(rename_cluster(cluster=cluster, **asked))

    def delete(self, request: Request, cluster_id: str) -> Response:
        """The cluster and everything in it is gone; a run at work on it cannot commit afterwards."""
        cluster = self.cluster(cluster_id, at_least=Role.OWNER)
        check_if_match(request, cluster)
        delete_cluster(cluster=cluster, by=self.person)
        return Response(status=204)


class Clone(PlaygroundView):
    def post(self, request: Request, cluster_id: str) -> Response:
        """A new cluster of yours with the objects of this one as they are now, bound pods included."""
        source = self.cluster(cluster_id, at_least=Role.VIEWER)
        asked = self.body("ClusterClone")
        name = asked.get("name") or f"{source.name[:95]} copy"
        return answer(clone_cluster(cluster=source, name=name, owner=self.person), 201)


class Reset(PlaygroundView):
    def post(self, request: Request, cluster_id: str) -> Response:
        """Back to the start of its clock: what people wrote stays, what the engine did is forgotten."""
        return answer(reset_cluster(cluster=self.cluster(cluster_id)))


class Unpark(PlaygroundView):
    def post(self, request: Request, cluster_id: str) -> Response:
        """After repeated failures of its engine a cluster is set aside; this lets it try again."""
        return answer(unpark_cluster(cluster=self.cluster(cluster_id)))
