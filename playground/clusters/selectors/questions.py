"""Questions and their answers."""

import json
from collections.abc import Mapping
from typing import Any

from playground.clusters.errors import NotFound
from playground.clusters.models import Cluster, Question
from playground.engine import advise


def get_question(cluster: Cluster, public_id: str) -> Question:
    """One question of a cluster. One query.

    Raises
    ------
    NotFound
    """
    found = Question.objects.filter(cluster=cluster, public_id=public_id).first()
    if found is None:
        raise NotFound(f"question {public_id} not found", kind="Question", name=public_id)
    return found


def latest_question(cluster: Cluster, kind: str, params: Mapping[str, Any]) -> Question | None:
    """The newest time this was asked, whatever the cluster has become since. One query."""
    text = json.dumps(dict(params), sort_keys=True, separators=(",", ":"))
    return (
        Question.objects.filter(
            cluster=cluster, generation=cluster.generation, key=advise.question_key(kind, text)
        )
        .order_by("-pk")
        .first()
    )


def newest_question(cluster: Cluster, kind: str) -> Question | None:
    """The newest question of a kind since the last reset. One query."""
    rows = Question.objects.filter(cluster=cluster, generation=cluster.generation, kind=kind)
    return rows.order_by("-pk").first()


def newest_plans(cluster: Cluster) -> dict[str, Question]:
    """The newest question about the whole cluster by what it asks (``drain``), of the newest 60. One query."""
    rows = Question.objects.filter(
        cluster=cluster, generation=cluster.generation, kind=Question.Kind.PLAN
    ).order_by("-pk")
    newest: dict[str, Question] = {}
    for row in rows[:60]:
        newest.setdefault(row.params["ask"], row)
    return newest


def is_stale(cluster: Cluster, question: Question) -> bool:
    """Whether the log has moved on since the moment the question is about."""
    return bool(question.seq) and question.seq < cluster.last_seq
