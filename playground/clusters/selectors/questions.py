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


def is_stale(cluster: Cluster, question: Question) -> bool:
    """Whether the log has moved on since the moment the question is about."""
    return bool(question.seq) and question.seq < cluster.last_seq
