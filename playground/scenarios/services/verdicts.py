"""Answers about a cluster, shared as pages."""

from __future__ import annotations

import hashlib
from typing import Any

from django.db import transaction

from playground.clusters.errors import Conflict
from playground.clusters.kinds import KINDS
from playground.clusters.log.rows import rows_of
from playground.clusters.models import Cluster, Question
from playground.clusters.packed import pack
from playground.clusters.questions import is_stale
from playground.scenarios.choices import Visibility
from playground.scenarios.models import Verdict
from playground.scenarios.services.audience import checked_audience
from playground.scenarios.services.storage import check_share, count_stored
from scheduler_core.version import ENGINE_VERSION
from scheduler_core.whatif.answers import answer_text


def share_verdict(
    *, question: Question, owner: Any = None, visibility: str = Visibility.UNLISTED, team: str = ""
) -> Verdict:
    """Freeze an answer with the objects it was asked of; asked twice it is one page.

    Raises
    ------
    Conflict
        There is no answer, the cluster has moved on since, or no more may be shared.
    """
    answer = question.answer
    if question.kind != Question.Kind.PLAN or answer is None:
        raise Conflict("there is no answer yet to share", kind="Question")
    cluster = question.cluster
    assert cluster is not None  # of a plan
    whose = checked_audience(visibility, team, owner, None)
    digest = hashlib.sha256(answer_text(answer).encode()).hexdigest()
    same = Verdict.objects.filter(
        cluster=cluster, owner=owner, seq=question.seq, digest=digest, visibility=visibility, team=whose
    ).first()
    if same is not None:
        return same
    if is_stale(cluster, question):
        raise Conflict("the cluster has moved on since; ask again, and share that", kind="Question")
    state = {"apiVersion": "v1", "kind": "List", "items": objects_of(cluster)}
    with transaction.atomic():
        check_share(owner, len(pack(answer)) + len(pack(state)))
        made = Verdict.objects.create(
            owner=owner,
            visibility=visibility,
            team=whose,
            cluster=cluster,
            cluster_name=cluster.name,
            seq=question.seq,
            engine_version=ENGINE_VERSION,
            sentence=answer["verdict"][:1000],
            digest=digest,
            answer=answer,
            state=state,
        )
        count_stored(made.owner_id)
    return made


def objects_of(cluster: Cluster) -> list[dict[str, Any]]:
    """What scheduling reads of a cluster, as it is now, in the order in which it can be applied."""
    return [
        row.manifest
        for kind in sorted(KINDS, key=lambda item: item.apply_rank)
        if kind.interpreted
        for row in rows_of(cluster, kind).order_by("resource_version")
    ]


def end_verdict(*, verdict: Verdict) -> None:
    """The link is not to be read any more."""
    owner_id = verdict.owner_id
    verdict.delete()
    count_stored(owner_id)
