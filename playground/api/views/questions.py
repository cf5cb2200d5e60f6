"""Questions, asked here and answered by a worker: about decisions, whole clusters, and runs made again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.conf import settings
from django.http import HttpResponse

from playground.api.documentation import declared
from playground.api.representations import shown
from playground.api.views.base import Call, django_request
from playground.api.views.clusters import answer
from playground.api.views.scenarios import shared_answer
from playground.bodies import media_type, read_body
from playground.clusters import questions
from playground.clusters.choices import QuestionKind
from playground.clusters.errors import Conflict, InvalidInput, NotFound
from playground.clusters.questions import is_stale, questions_of
from playground.clusters.row_types import Cluster, Question
from playground.scenarios.services import verdicts
from playground.scenarios.services.questions import branch_of_upgrade, share_upgrade
from scheduler_core.whatif.answers import answer_text
from scheduler_core.whatif.questions import ASKS

MOST_TRIED_BYTES: Final = 3 * 2**20
"""Of the body that holds a pod to try: far more than one object may have."""


def questions_read(call: Call, cluster: Cluster, question: Question) -> Any:
    """Its state, progress, and the answer once `state` is done."""
    return shown(
        "Question",
        question,
        url=f"/api/v1/clusters/{cluster.public_id}/questions/{question.public_id}/",
        progress={"done": question.done, "total": question.total, "doing": question.doing},
        stale=is_stale(cluster, question),
    )


def questions_cancel(call: Call, cluster: Cluster, question: Question) -> Any:
    """No answer is wanted any more: a worker that is at it stops within about a second. Twice is once."""
    questions.cancel(cluster.questions.filter(pk=question.pk))
    question.refresh_from_db()
    return questions_read(call, cluster, question)


def _ask(call: Call, cluster: Cluster, kind: str, **params: Any) -> Any:
    """A question that was asked: 202, and where its answer will be."""
    return questions_read(call, cluster, questions.ask(cluster=cluster, kind=kind, params=params))


def clusters_fix(call: Call, cluster: Cluster) -> Any:
    """Why a `pod` (NAMESPACE/NAME), a `workload` (KIND NAMESPACE/NAME) or all that is pending (neither) waits, and the
    fixes: what keeps what was asked for first, then what changes it, then what harms others, each with its cost and
    harm and proved by a run on a copy of the cluster.

    Equal questions about an unchanged cluster are one: the answer may be there at once.
    """
    return _ask(call, cluster, "fix", **call.body)


def pods_why_not(call: Call, cluster: Cluster, namespace: str, pod: str) -> Any:
    """Every filter with the values it compared, also past the first that fails; score by score why it loses."""
    return _ask(call, cluster, "why-not", namespace=namespace, name=pod, node=call.query("node"))


def cycles_why_not(call: Call, cluster: Cluster, number: int) -> Any:
    """Ask the same about a recorded cycle, from the cluster just before it."""
    return _ask(call, cluster, "why-not", cycle=number, node=call.query("node"))


def cycles_devices(call: Call, cluster: Cluster, number: int) -> Any:
    """Claims, requests and constraints; each device of a node with what first stood against it and every check;
    each node's verdict.
    """
    return _ask(call, cluster, "devices", cycle=number, node=call.query("node"))


def cycles_weights(call: Call, cluster: Cluster, number: int) -> Any:
    """For each score plugin the exact points where the winner of this cycle switches; the whole weights on either
    side are run again. With the draw, if the cycle hung on one.
    """
    return _ask(call, cluster, "weights", cycle=number)


def groups_ask(call: Call, cluster: Cluster, namespace: str, group: str) -> Any:
    """Who of it fits where, how far it is from being scheduled, and what was proved to place it."""
    return _ask(call, cluster, "group", namespace=namespace, name=group)


def clusters_try(call: Call, cluster: Cluster) -> Any:
    """The cycle the first Pod of the body would have if it were submitted now and came first. Nothing is kept."""
    inner = django_request(call.request)
    text = read_body(inner, limit_bytes=min(MOST_TRIED_BYTES, settings.PLAYGROUND_MAX_UPLOAD_BYTES))
    manifest = questions.admitted_pod(cluster=cluster, text=text, content_type=media_type(inner))
    return _ask(call, cluster, "try", manifest=manifest)


def clusters_try_rule(call: Call, cluster: Cluster) -> Any:
    """What a rule, a CEL expression that filters or scores, would say of every node for a pod. Nothing is kept; a
    configuration names one `Rule/NAME`.
    """
    rule = call.body
    return _ask(call, cluster, "try-rule", pod=rule.pop("pod", ""), rule=rule)


def clusters_seeds(call: Call, cluster: Cluster) -> Any:
    """Run the cluster's whole log again with other seeds, and count how it ends."""
    return _ask(call, cluster, "seeds", seeds=call.query("seeds", questions.N_SEEDS))


def clusters_plan(call: Call, cluster: Cluster) -> Any:
    """What nodes may be drained or lost, how many more pods fit, which nodes are wanted or spare. `ask` is one of
    drain, lose (`nodes`, `label: KEY=VALUE`), any-node, any-domain (`label: KEY`), headroom (`workload: KIND
    NAMESPACE/NAME` or `pod`), backlog, consolidate (`prices`), deschedule (`policy`), autoscale (`autoscaler`,
    `prices`; of `nodes` or a `label`: when they go), compare (`variants`, `time`, `prices`). Nothing of the cluster
    changes.

    Equal questions about an unchanged cluster are one: the answer may be there at once.
    """
    asked = call.request.data
    if not isinstance(asked, dict):
        raise InvalidInput(f"a question says what is asked: ask, one of {', '.join(ASKS)}", field="ask")
    return questions_read(call, cluster, questions.ask(cluster=cluster, kind="plan", params=dict(asked)))


def plan_answer(call: Call, cluster: Cluster, question: Question) -> Any:
    """The answer alone, byte for byte what `python -m scheduler_core plan --json` prints of the same objects."""
    if question.kind != QuestionKind.PLAN or question.answer is None:
        raise Conflict("there is no answer yet", kind="Question", name=question.public_id)
    return HttpResponse(answer_text(question.answer), content_type="application/json")


def plan_share(call: Call, cluster: Cluster, question: Question) -> Any:
    """Freeze the question, the answer and the objects it was asked of. Who has the link may read it."""
    made = verdicts.share_verdict(question=question, owner=call.person)
    body = shown("SharedVerdict", made, page=call.url(f"/v/{made.public_id}/"))
    return call.made(body, body["page"])


# ---- what a run of the whole answers, of a cluster or a share: formal model, joint placement, luck, upgrades


SEARCHES: Final[Mapping[str, Mapping[str, str]]] = declared()["searches"]
_SAID: Final[Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    "optimum": lambda body: {"cycle": body.get("cycle"), "time_limit_s": body["timeLimitS"]},
    "luck": lambda body: {"seeds": body["seeds"]},
    "upgrade": lambda body: {"name": body["kubernetesRelease"], "gates": body.get("featureGates")},
}
"""The question's parameters from a valid body; of those that have one."""


def _fields(kind: str, row: Any) -> dict[str, Any]:
    """What an answer has besides the attributes of the question."""
    if kind != "luck":
        return {"progress": row.progress or 0.0}
    state = "queued" if row.is_open else row.state
    return {"state": state, "progress": {"done": row.done, "total": row.params["seeds"]}}


def _of(path: Mapping[str, Any]) -> dict[str, Any]:
    """Whom a question of a run is about."""
    return {"cluster": path["cluster"]} if "cluster" in path else {"share": path["scenario"]}


def _newest(kind: str, path: Mapping[str, Any]) -> Any:
    row = questions_of(kind, **_of(path)).order_by("-pk").first()
    if row is None:
        raise NotFound(SEARCHES[kind]["missing"], kind="Question")
    return row


def _searches(kind: str, search: Mapping[str, str], of: str, page: str) -> dict[str, Callable[..., Any]]:
    """The operations of a kind of question of a cluster or a share, by their ids."""

    def document(call: Call, row: Any, path: Mapping[str, Any]) -> dict[str, Any]:
        (about,) = path.values()
        where = f"/{page}/{about.public_id}/{search.get('page', kind)}/"
        url = f"/api/v1/{of}/{about.public_id}/{kind}/"
        return shown(search["shape"], row, page=call.url(where), url=url, **_fields(kind, row))

    def read(call: Call, **path: Any) -> Any:
        return document(call, _newest(kind, path), path)

    def ask(call: Call, **path: Any) -> Any:
        params = _SAID[kind](call.body) if kind in _SAID else {}
        return document(call, questions.ask(kind=kind, params=params, **_of(path)), path)

    def cancel(call: Call, **path: Any) -> Any:
        """It is not wanted any more: a worker that is at it stops within about a second. Twice is once."""
        row = _newest(kind, path)
        questions.cancel(questions_of(kind, **_of(path)))
        row.refresh_from_db()
        return document(call, row, path)

    read.__doc__, ask.__doc__ = search["finds"], search["does"]
    return {
        f"{of}_{kind}_{name}": does
        for name, does in (("read", read), (search["asks"], ask), ("cancel", cancel))
    }


def upgrade_share(call: Call, **path: Any) -> Any:
    """The cluster's run up to then as a share, with what was found of it."""
    upgrade = _newest("upgrade", path)
    return shared_answer(call, share_upgrade(upgrade=upgrade, owner=call.person))


def upgrade_branch(call: Call, **path: Any) -> Any:
    """A new cluster of yours that begins as the run did, on the release that was previewed; steps wait."""
    made = branch_of_upgrade(upgrade=_newest("upgrade", path), owner=call.person)
    return answer(made, 201)


MORE: Final[dict[str, Callable[..., Any]]] = {}
"""Operations that are the same of a cluster and of a share."""
for of, page in (("clusters", "c"), ("scenarios", "s")):
    for kind, search in SEARCHES.items():
        MORE.update(_searches(kind, search, of, page))
    MORE.update({f"{of}_upgrade_share": upgrade_share, f"{of}_upgrade_branch": upgrade_branch})
