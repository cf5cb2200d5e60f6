"""Manifests: apply, export, node pools; dumps before they become clusters."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from playground.api.representations import shown
from playground.api.views.base import Call, accepted, django_request
from playground.bodies import in_parts, media_type, read_body
from playground.clusters import drafts
from playground.clusters.lifecycle import export_manifests
from playground.clusters.objects.actions import expand_pool
from playground.clusters.objects.apply import apply_documents
from playground.clusters.row_types import Cluster, Draft


def drafts_create(call: Call) -> Any:
    """Look at a dump (`kubectl get ... -o yaml`) before anything is made of it: what is in it, what is left out and
    missing, and what becomes of its pending pods.

    Nothing but the draft is kept, for six hours; of one person the newest five.
    """
    draft = drafts.start_preview(
        text=read_body(django_request(call.request)),
        owner=call.person,
        release=call.query("kubernetesRelease"),
        rebuild_owners=not call.query("withoutOwners"),
        keep=True,
    )
    return _document(call, draft)


def drafts_read(call: Call, draft_id: str) -> Any:
    """As far as it is; all of it once `state` is done. After a commit `cluster` is what was made."""
    return _document(call, drafts.get_draft(draft_id, call.person))


def drafts_discard(call: Call, draft_id: str) -> None:
    """The draft is gone, and a worker that is at it stops. A cluster that was made of it stays."""
    drafts.discard_draft(public_id=draft_id, owner=call.person)


def drafts_commit(call: Call, draft_id: str) -> Any:
    """All of what was previewed or nothing, by a worker; read the draft for its `cluster`. Once."""
    asked = call.body
    return _document(call, drafts.commit_draft(public_id=draft_id, owner=call.person, **asked))


def _document(call: Call, draft: Draft) -> dict[str, Any]:
    """A draft as this API writes it."""
    found = draft.answer
    preview = None
    if "import" in found:
        preview = {**found["import"], "facts": found.get("facts"), "decided": found.get("decided")}
    return shown(
        "Draft",
        draft,
        url=f"/api/v1/drafts/{draft.public_id}/",
        page=call.url(reverse("web:draft", args=[draft.public_id])),
        progress={"doing": draft.doing, "done": draft.done, "total": draft.total},
        causes=[_cause(problem) for problem in draft.problems],
        preview=preview,
    )


def _cause(problem: dict[str, Any]) -> dict[str, Any]:
    names = {"detail": "message", "line": "line", "field": "path", "kind": "kind", "name": "name"}
    facts = {name: problem[key] for name, key in names.items()}
    return {name: value for name, value in facts.items() if value not in (None, "")}


def clusters_apply(call: Call, cluster: Cluster) -> Any:
    """Create or update every object of the body: YAML or JSON, several documents, `kind: List`.

    All of it or nothing. Objects of undefined kinds are listed as ignored, by name; fields a kind does not
    have are dropped and told in `warnings`.

    202: the body has more than 2 MiB unpacked, and a worker reads and writes it. Read the draft until it is done;
    what became of the objects is in its `preview`.
    """
    inner = django_request(call.request)
    asked: dict[str, Any] = {
        "cluster": cluster,
        "text": read_body(inner),
        "content_type": media_type(inner),
        "dry_run": call.query("dryRun"),
        "field_validation": call.field_validation,
    }
    if drafts.is_large(asked["text"]):
        body = _document(call, drafts.import_into(owner=call.person, **asked))
        return accepted(body, body["url"])
    return apply_documents(**asked).as_dict()


def clusters_export(call: Call, cluster: Cluster) -> Any:
    """Everything that can be applied again, as YAML; Events and what every cluster has are left out."""
    wanted = [kind.strip() for kind in call.query("kind").split(",") if kind.strip()]
    parts = export_manifests(cluster, kind_names=wanted or None)
    response = in_parts(django_request(call.request), parts, "application/yaml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{cluster.public_id}.yaml"'
    return response


def clusters_add_nodes(call: Call, cluster: Cluster) -> Any:
    """Nodes of one shape, dealt to the zones in turn; applied like manifests."""
    nodes = expand_pool(**call.body)
    return apply_documents(cluster=cluster, objects=nodes, dry_run=call.query("dryRun")).as_dict()
