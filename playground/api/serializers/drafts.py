"""What is answered about a dump before it becomes a cluster."""

from __future__ import annotations

from typing import Any

from playground.api.serializers.answers import Answer, Cause
from playground.api.serializers.requests import Strict, StrictString
from playground.api.serializers.shapes import by_name, flag, moment, text, texts, whole, word


class DraftChange(Answer):
    verb = word("create", "update", "unchanged", "ignored")
    name = text("`namespace/name`; of what is ignored its kind and name.")
    detail = text("What is special about it, or why it is ignored; often empty.")


class DraftKind(Answer):
    kind = text()
    count = whole()
    changes = DraftChange(many=True, help_text="The first forty.")


class DraftCounts(Answer):
    create = whole()  # type: ignore[assignment]  # a field, which Django REST framework takes off the class
    update = whole()  # type: ignore[assignment]  # a field, which Django REST framework takes off the class
    unchanged = whole()
    ignored = whole()


class DumpGroup(Answer):
    """Pending pods of one workload that are alike."""

    kind = text()
    namespace = text()
    name = text()
    priorityClass = text()
    requests = by_name(whole(), "Of one pod: cpu in thousandths, memory in bytes.")
    gated = flag("Whether a scheduling gate holds them back.")
    count = whole()
    pods = texts("`namespace/name` of each.")


class DumpPool(Answer):
    """Nodes of one pool and instance type."""

    pool = text()
    type = text()
    nodes = whole()
    zones = by_name(whole(), "Nodes by zone.")
    has = by_name(whole(), "Allocatable: cpu in thousandths, memory in bytes.")
    used = by_name(whole(), "Requested by pods that have a node.")


class DumpFacts(Answer):
    nodes = whole()
    placed = whole("Pods that have a node.")
    pending = whole()
    finished = whole()
    groups = DumpGroup(many=True, help_text="Pending pods, the largest group first.")
    moreGroups = whole("Groups that are not listed.")
    pools = DumpPool(many=True)
    morePools = whole("Pools that are not listed.")
    zones = by_name(whole(), "Nodes by zone.")
    budgets = whole("PodDisruptionBudgets.")
    claimsMissing = whole("PersistentVolumeClaims that pods name and the dump does not hold.")
    saidUnschedulable = texts("Pods for which the dump says that a scheduler found no node.")


class DumpCause(Answer):
    reason = text()
    nodes = whole("How many nodes it keeps the pod off.")


class DumpOutcome(Answer):
    node = text("Empty: it finds none.")
    message = text()
    causes = DumpCause(many=True)


class DumpDecided(Answer):
    pods = by_name(
        DumpOutcome(), "`namespace/name` -> what becomes of it; without those not reached in time."
    )
    evicted = texts("Pods that would have to go.")
    problem = text("Why nothing could be decided; else empty.")


class DraftPreview(Answer):
    kinds = DraftKind(many=True, help_text="What would be made, or after a commit was made.")
    ignored = DraftKind()
    counts = DraftCounts()
    leftOut = texts("Fields that no kind has.")
    missingOwners = by_name(whole(), "Kinds of owners that are not here -> pods that name them.")
    rebuilt = by_name(whole(), "Kinds of owners that are made again from their pods -> how many.")
    facts = DumpFacts(allow_null=True)
    decided = DumpDecided(
        allow_null=True,
        help_text="What becomes of pending pods; null until it is known, and where there are none.",
    )


class DraftProgress(Answer):
    doing = text("Empty when nothing is.")
    done = whole()
    total = whole()


class Draft(Answer):
    id = text()
    url = text()
    page = text("Address of the page.")
    action = word("preview", "import", words="`import` after a commit, and of a large body that is applied.")
    state = word("queued", "done", "failed", "cancelled")
    kubernetesRelease = text("The release that decides.")
    createdAt = moment()
    progress = DraftProgress()
    problem = text("Why it failed.", allow_null=True)
    causes = Cause(many=True, help_text="Of a failure: every place.")
    preview = DraftPreview(allow_null=True, help_text="Filled in as it is found out.")
    into = text(
        "Id of the cluster that is there and that it goes into; null: a new one is made.", allow_null=True
    )
    cluster = text("Id of the cluster that was made of it, or that it went into.", allow_null=True)


class DraftCommit(Strict):
    name = StrictString(required=False, default="imported", max_length=100, help_text="Of the cluster.")


EXAMPLE: dict[str, Any] = {
    "id": "d4w8kq2zsm",
    "url": "/api/v1/drafts/d4w8kq2zsm/",
    "page": "https://playground.example/new/import/d4w8kq2zsm/",
    "action": "preview",
    "state": "done",
    "kubernetesRelease": "1.36",
    "createdAt": "2026-01-02T00:00:00Z",
    "progress": {"doing": "", "done": 1, "total": 1},
    "problem": None,
    "causes": [],
    "preview": {
        "kinds": [
            {"kind": kind, "count": 1, "changes": [{"verb": "create", "name": name, "detail": ""}]}
            for kind, name in (("Node", "node-1"), ("Pod", "default/web-1"))
        ],
        "ignored": {"kind": "Ignored", "count": 0, "changes": []},
        "counts": {"create": 2, "update": 0, "unchanged": 0, "ignored": 0},
        "leftOut": [],
        "missingOwners": {},
        "rebuilt": {},
        "facts": {
            "nodes": 1,
            "placed": 0,
            "pending": 1,
            "finished": 0,
            "groups": [
                {
                    "kind": "Pod",
                    "namespace": "default",
                    "name": "web-1",
                    "priorityClass": "",
                    "requests": {"cpu": 500, "memory": 0},
                    "gated": False,
                    "count": 1,
                    "pods": ["default/web-1"],
                }
            ],
            "moreGroups": 0,
            "pools": [
                {
                    "pool": "node",
                    "type": "",
                    "nodes": 1,
                    "zones": {"": 1},
                    "has": {"cpu": 4000, "memory": 17179869184, "pods": 110},
                    "used": {},
                }
            ],
            "morePools": 0,
            "zones": {"": 1},
            "budgets": 0,
            "claimsMissing": 0,
            "saidUnschedulable": [],
        },
        "decided": {
            "pods": {"default/web-1": {"node": "node-1", "message": "", "causes": []}},
            "evicted": [],
            "problem": "",
        },
    },
    "into": None,
    "cluster": None,
}
