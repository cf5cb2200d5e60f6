"""Dumps before they become clusters: what is in them, what becomes of their pending pods, and making the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from playground.api import examples
from playground.api.documentation import operation, query
from playground.api.queries import flag
from playground.api.serializers import drafts as answers
from playground.api.serializers.answers import MANIFEST
from playground.api.views.base import PlaygroundView, accepted, django_request
from playground.bodies import read_body
from playground.clusters import drafts

if TYPE_CHECKING:
    from playground.clusters.row_types import Draft

_QUEUED: Final = answers.EXAMPLE | {
    "state": "queued",
    "progress": {"doing": drafts.WAITING, "done": 0, "total": 0},
}
_PARAMETERS: Final = [
    query(
        "kubernetesRelease", "The release that decides, and that the cluster follows; not said: the newest."
    ),
    query(
        "withoutOwners",
        "Owners that the dump does not hold are not made from their pods.",
        type=OpenApiTypes.BOOL,
    ),
]


class Drafts(PlaygroundView):
    parser_classes: list[Any] = []

    @operation(
        "Preview an import",
        id="drafts_create",
        request={"application/yaml": OpenApiTypes.STR, "application/json": MANIFEST},
        answers_={202: answers.Draft},
        errors=(400, 409, 413, 415),
        parameters=_PARAMETERS,
        example=examples.MANIFESTS,
        example_media_type="application/yaml",
        answer_example=_QUEUED,
    )
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

    @operation(
        "Read the preview of an import",
        id="drafts_read",
        answers_={200: answers.Draft},
        errors=(400, 404),
        answer_example=answers.EXAMPLE,
        reads=True,
    )
    def get(self, request: Request, draft_id: str) -> Response:
        """As far as it is; all of it once `state` is done. After a commit `cluster` is what was made."""
        return Response(draft_document(request, drafts.get_draft(draft_id, self.person)))

    @operation(
        "Discard the preview of an import", id="drafts_discard", answers_={204: None}, errors=(400, 404)
    )
    def delete(self, request: Request, draft_id: str) -> Response:
        """The draft is gone, and a worker that is at it stops. A cluster that was made of it stays."""
        drafts.discard_draft(public_id=draft_id, owner=self.person)
        return Response(status=204)


class CommitDraft(PlaygroundView):
    @operation(
        "Make a cluster of a previewed import",
        id="drafts_commit",
        request=answers.DraftCommit,
        answers_={202: answers.Draft},
        errors=(400, 404, 409, 413, 415),
        example={"name": "production"},
        answer_example=_QUEUED | {"action": "import"},
    )
    def post(self, request: Request, draft_id: str) -> Response:
        """All of what was previewed or nothing, by a worker; read the draft for its `cluster`. Once."""
        asked = answers.DraftCommit(data=request.data or {})
        asked.is_valid(raise_exception=True)
        draft = drafts.commit_draft(public_id=draft_id, owner=self.person, **asked.validated_data)
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
