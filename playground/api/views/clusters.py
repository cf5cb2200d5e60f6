"""Clusters as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from playground.accounts.choices import Role
from playground.api import examples, representations
from playground.api.documentation import number, operation, query
from playground.api.errors import PreconditionFailed
from playground.api.pages import next_page
from playground.api.queries import whole_number
from playground.api.serializers import answers, requests
from playground.api.views.base import PlaygroundView, tags_of
from playground.api.views.teams import team_of
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

IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, description="Only if the cluster still has this ETag."
)


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

    @operation(
        "List your clusters",
        id="clusters_list",
        answers_={200: answers.ClusterPage},
        errors=(400, 404),
        parameters=[
            number("limit", "How many at most.", least=1, most=100),
            query("before", "The id of a cluster: only older ones."),
        ],
        answer_example={"items": [examples.CLUSTER], "next": None},
        reads=True,
    )
    def get(self, request: Request) -> Response:
        """Newest first. `next` is the path of the next page, or null."""
        limit = whole_number(request, "limit", default=50, least=1, most=100) or 50
        before = request.GET.get("before")
        last = self.cluster(before) if before else None
        found = clusters_overview(self.person, limit=limit + 1, before=last)
        items = [representations.cluster(summary) for summary in found[:limit]]
        more = items[-1]["id"] if len(found) > limit else None
        return Response({"items": items, "next": next_page(request, before=more)})

    @operation(
        "Create a cluster",
        id="clusters_create",
        request=requests.ClusterCreate,
        answers_={201: answers.NewCluster},
        errors=(400, 404, 413, 415),
        example={"name": "demo"},
        answer_example=examples.CLUSTER | {"withoutEffect": []},
    )
    def post(self, request: Request) -> Response:
        """A new cluster, paused, with only what every cluster has; `demo` adds the demo's nodes and pods."""
        asked = requests.ClusterCreate(data=request.data)
        asked.is_valid(raise_exception=True)
        wanted = dict(asked.validated_data)
        objects = demo.demo_objects() if wanted.pop("demo") else ()
        team = team_of(wanted.pop("team", None), self.person)
        cluster = create_cluster(owner=self.person, team=team, **wanted)
        if objects:
            apply_documents(cluster=cluster, objects=objects)
        made = answer(cluster, 201)
        made.data["withoutEffect"] = list(without_effect(cluster.config, cluster.release))
        return made


class OneCluster(PlaygroundView):
    @operation(
        "Read a cluster",
        id="clusters_read",
        answers_={200: answers.Cluster},
        errors=(400, 404),
        answer_example=examples.CLUSTER,
        reads=True,
    )
    def get(self, request: Request, cluster_id: str) -> Response:
        """Its name, clock and counts. The ETag of a paused cluster changes with every visible change of it."""
        return answer(self.cluster(cluster_id))

    @operation(
        "Rename a cluster",
        id="clusters_rename",
        request=requests.ClusterRename,
        answers_={200: answers.Cluster},
        errors=(400, 404, 412, 413, 415),
        parameters=[IF_MATCH],
        example={"name": "storefront"},
        answer_example=examples.CLUSTER | {"name": "storefront"},
    )
    def patch(self, request: Request, cluster_id: str) -> Response:
        """The name is all that can be changed here; clock and configuration have paths of their own."""
        cluster = self.cluster(cluster_id)
        asked = requests.ClusterRename(data=request.data)
        asked.is_valid(raise_exception=True)
        check_if_match(request, cluster)
        return answer(rename_cluster(cluster=cluster, **asked.validated_data))

    @operation(
        "Delete a cluster",
        id="clusters_delete",
        answers_={204: None},
        errors=(400, 404, 412),
        parameters=[IF_MATCH],
    )
    def delete(self, request: Request, cluster_id: str) -> Response:
        """The cluster and everything in it is gone; a run at work on it cannot commit afterwards."""
        cluster = self.cluster(cluster_id, at_least=Role.OWNER)
        check_if_match(request, cluster)
        delete_cluster(cluster=cluster, by=self.person)
        return Response(status=204)


class Clone(PlaygroundView):
    @operation(
        "Clone a cluster",
        id="clusters_clone",
        request=requests.ClusterClone,
        answers_={201: answers.Cluster},
        errors=(400, 404, 413, 415),
        example={"name": "what if"},
        answer_example=examples.CLUSTER | {"name": "what if"},
    )
    def post(self, request: Request, cluster_id: str) -> Response:
        """A new cluster of yours with the objects of this one as they are now, bound pods included."""
        source = self.cluster(cluster_id, at_least=Role.VIEWER)
        asked = requests.ClusterClone(data=request.data)
        asked.is_valid(raise_exception=True)
        name = asked.validated_data.get("name") or f"{source.name[:95]} copy"
        return answer(clone_cluster(cluster=source, name=name, owner=self.person), 201)


class Reset(PlaygroundView):
    @operation(
        "Reset a cluster",
        id="clusters_reset",
        answers_={200: answers.Cluster},
        errors=(400, 404),
        answer_example=examples.CLUSTER,
    )
    def post(self, request: Request, cluster_id: str) -> Response:
        """Back to the start of its clock: what people wrote stays, what the engine did is forgotten."""
        return answer(reset_cluster(cluster=self.cluster(cluster_id)))


class Unpark(PlaygroundView):
    @operation(
        "Let a parked cluster try again",
        id="clusters_unpark",
        answers_={200: answers.Cluster},
        errors=(400, 404),
        answer_example=examples.CLUSTER,
    )
    def post(self, request: Request, cluster_id: str) -> Response:
        """After repeated failures of its engine a cluster is set aside; this lets it try again."""
        return answer(unpark_cluster(cluster=self.cluster(cluster_id)))
