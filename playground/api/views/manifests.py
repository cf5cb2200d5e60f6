"""Manifests: apply, export, node pools; dumps before they become clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import StreamingHttpResponse
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from playground.api.requests import flag, one_of
from playground.api.views.base import PlaygroundView, accepted, django_request
from playground.bodies import in_parts, media_type, read_body
from playground.clusters import drafts
from playground.clusters.lifecycle import export_manifests
from playground.clusters.objects.actions import expand_pool
from playground.clusters.objects.admission import MODES
from playground.clusters.objects.apply import apply_documents

if TYPE_CHECKING:
    from playground.clusters.row_types import Draft


class Drafts(PlaygroundView):
    parser_classes: list[Any] = []

    def post(self, request: Request) -> Response:
        """Look at a dump (`kubectl get ... -o yaml`) before anything is made of it: what is in it, what is left out and
        missing, and what becomes of its pending pods.

        Nothing but the draft is kept, for six hours; of one person the newest five.
        """
        draft = drafts.start_preview(
            text=read_body(django_request(request)),
            owner=self.person,
            release=request.GET.get("kubernetesRelease", ""),
            rebuild_owners=not flag(request, "withoutOwners"),
            keep=True,
        )
        body = draft_document(request, draft)
        return accepted(body, body["url"])


class OneDraft(PlaygroundView):
    one_cluster_reads = True

    def get(self, request: Request, draft_id: str) -> Response:
        """As far as it is; all of it once `state` is done. After a commit `cluster` is what was made."""
        return Response(draft_document(request, drafts.get_draft(draft_id, self.person)))

    def delete(self, request: Request, draft_id: str) -> Response:
        """The draft is gone, and a worker that is at it stops. A cluster that was made of it stays."""
        drafts.discard_draft(public_id=draft_id, owner=self.person)
        return Response(status=204)


class CommitDraft(PlaygroundView):
    def post(self, request: Request, draft_id: str) -> Response:
        """All of what was previewed or nothing, by a worker; read the draft for its `cluster`. Once."""
        asked = self.body("DraftCommit")
        draft = drafts.commit_draft(public_id=draft_id, owner=self.person, **asked)
        body = draft_document(request, draft)
        return accepted(body, body["url"])


def draft_document(request: Request, draft: Draft) -> dict[str, Any]:
    """A draft as this API writes it."""
    found = draft.answer
    preview = None
    if "import" in found:
        preview = {**found["import"], "facts": found.get("facts"), "decided": found.get("decided")}
    return {
        "id": draft.public_id,
        "url": f"/api/v1/drafts/{draft.public_id}/",
        "page": request.build_absolute_uri(reverse("web:draft", args=[draft.public_id])),
        "action": draft.action,
        "state": draft.state,
        "kubernetesRelease": draft.wanted["release"],
        "createdAt": draft.created,
        "progress": {"doing": draft.doing, "done": draft.done, "total": draft.total},
        "problem": draft.error or None,
        "causes": [_cause(problem) for problem in draft.problems],
        "preview": preview,
        "into": draft.wanted.get("into"),
        "cluster": draft.made.public_id if draft.made else None,
    }


def _cause(problem: dict[str, Any]) -> dict[str, Any]:
    facts = {
        "detail": problem["message"],
        "line": problem["line"],
        "field": problem["path"],
        "kind": problem["kind"],
        "name": problem["name"],
    }
    return {name: value for name, value in facts.items() if value not in (None, "")}


class Apply(PlaygroundView):
    parser_classes: list[Any] = []

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
    def get(self, request: Request, cluster_id: str) -> StreamingHttpResponse:
        """Everything that can be applied again, as YAML; Events and what every cluster has are left out."""
        cluster = self.cluster(cluster_id)
        wanted = [kind.strip() for kind in request.GET.get("kind", "").split(",") if kind.strip()]
        parts = export_manifests(cluster, kind_names=wanted or None)
        response = in_parts(django_request(request), parts, "application/yaml; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="{cluster.public_id}.yaml"'
        return response


class NodePools(PlaygroundView):
    def post(self, request: Request, cluster_id: str) -> Response:
        """Nodes of one shape, dealt to the zones in turn; applied like manifests."""
        cluster = self.cluster(cluster_id)
        asked = self.body("NodePool")
        nodes = expand_pool(**asked)
        result = apply_documents(cluster=cluster, objects=nodes, dry_run=flag(request, "dryRun"))
        return Response(result.as_dict())
