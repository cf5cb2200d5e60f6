"""Objects as manifests: apply, export, node pools."""

from __future__ import annotations

from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from playground.api import examples
from playground.api.documentation import FIELD_VALIDATION, operation, query
from playground.api.queries import flag, one_of
from playground.api.serializers import answers, requests
from playground.api.serializers.drafts import Draft
from playground.api.views.base import PlaygroundView, accepted, django_request
from playground.api.views.drafts import draft_document
from playground.bodies import in_parts, media_type, read_body
from playground.clusters import drafts
from playground.clusters.lifecycle import export_manifests
from playground.clusters.objects.actions import expand_pool
from playground.clusters.objects.admission import MODES
from playground.clusters.objects.apply import apply_documents

DRY_RUN = query("dryRun", "Say what would happen, keep nothing.", type=OpenApiTypes.BOOL)


class Apply(PlaygroundView):
    parser_classes: list[Any] = []

    @operation(
        "Apply manifests",
        id="clusters_apply",
        request={"application/yaml": OpenApiTypes.STR, "application/json": answers.MANIFEST},
        answers_={200: answers.Applied, 202: Draft},
        errors=(400, 404, 409, 413, 415),
        parameters=[DRY_RUN, FIELD_VALIDATION],
        example=examples.MANIFESTS,
        example_media_type="application/yaml",
        answer_example=examples.APPLIED,
    )
    def post(self, request: Request, cluster_id: str) -> Response:
        """Create or update every object of the body: YAML or JSON, several documents, `kind: List`.

        All of it or nothing. Objects of undefined kinds are listed as ignored, by name; fields a kind does not
        have are dropped and told in `warnings`.

        202: the body has more than 2 MiB unpacked, and a worker reads and writes it. Read the draft until it is done;
        what became of the objects is in its `preview`.
        """
        cluster = self.cluster(cluster_id)
        inner = django_request(request)
        asked: dict[str, Any] = {
            "cluster": cluster,
            "text": read_body(inner),
            "content_type": media_type(inner),
            "dry_run": flag(request, "dryRun"),
            "field_validation": one_of(request, "fieldValidation", MODES, default="Warn"),
        }
        if drafts.is_large(asked["text"]):
            body = draft_document(request, drafts.import_into(owner=self.person, **asked))
            return accepted(body, body["url"])
        return Response(apply_documents(**asked).as_dict())


class Export(PlaygroundView):
    @operation(
        "Export a cluster as manifests",
        id="clusters_export",
        answers_={(200, "application/yaml"): OpenApiTypes.STR},
        errors=(400, 404),
        parameters=[query("kind", "Only these kinds: names with commas between.")],
        answer_example=examples.MANIFESTS,
        reads=True,
    )
    def get(self, request: Request, cluster_id: str) -> StreamingHttpResponse:
        """Everything that can be applied again, as YAML; Events and what every cluster has are left out."""
        cluster = self.cluster(cluster_id)
        wanted = [kind.strip() for kind in request.GET.get("kind", "").split(",") if kind.strip()]
        parts = export_manifests(cluster, kind_names=wanted or None)
        response = in_parts(django_request(request), parts, "application/yaml; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="{cluster.public_id}.yaml"'
        return response


class NodePools(PlaygroundView):
    @operation(
        "Add a pool of nodes",
        id="clusters_add_nodes",
        request=requests.NodePool,
        answers_={200: answers.Applied},
        errors=(400, 404, 409, 413, 415),
        parameters=[DRY_RUN],
        example=examples.POOL,
        answer_example=examples.APPLIED,
    )
    def post(self, request: Request, cluster_id: str) -> Response:
        """Nodes of one shape, dealt to the zones in turn; applied like manifests."""
        cluster = self.cluster(cluster_id)
        asked = requests.NodePool(data=request.data)
        asked.is_valid(raise_exception=True)
        nodes = expand_pool(**asked.validated_data)
        result = apply_documents(cluster=cluster, objects=nodes, dry_run=flag(request, "dryRun"))
        return Response(result.as_dict())
