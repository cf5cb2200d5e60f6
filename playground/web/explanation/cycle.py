"""One cycle page, from the explanation dictionary alone."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from playground.web.explanation.filter_matrix import FilterView, view_filter
from playground.web.explanation.outcomes import Outcome, outcome_of
from playground.web.explanation.passes import PassesView, view_passes
from playground.web.explanation.pipeline import Point, derived_points, view_pipeline
from playground.web.explanation.preemption import PreemptionView, view_preemption
from playground.web.explanation.reason_matrix import ReasonMatrix, view_reason_matrix
from playground.web.explanation.score_table import ScoreView, view_scores

# Source: pkg/scheduler/schedule_one.go minFeasibleNodesToFind, v1.34.
MIN_FEASIBLE_NODES_TO_FIND = 100


@dataclass(frozen=True)
class ExtenderCall:
    """A call to an extender; ``request`` and ``answer`` are text ready to show."""

    url: str
    verb: str
    status: str
    duration_ms: float | None
    took_ms: float | None = field(default=None, kw_only=True)
    error: str
    request: str
    answer: str
    answers_nodes: bool = field(default=False, kw_only=True)
    """Whether a filter's answer is whole nodes, which count as empty ones from there on."""


@dataclass(frozen=True)
class PermitVerdict:
    """What one Permit plugin said."""

    plugin: str
    decision: str
    timeout_s: float | None
    reason: str


@dataclass(frozen=True)
class CycleView:
    """Everything a cycle page shows; a panel that has nothing to say is None or empty.

    Attributes
    ----------
    blamed
        Who failed, of a cycle that ended in an error: a plugin, an extender, or a cluster without nodes.
    """

    number: int | None
    pod: str
    namespace: str
    name: str
    uid: str
    profile: str
    attempt: int | None
    at: str
    outcome: Outcome
    node: str | None
    sentence: tuple[tuple[str, bool], ...]
    n_nodes: int
    n_evaluated: int
    n_feasible: int
    pipeline: tuple[Point, ...]
    blamed: str
    pre_filter: str
    pre_filter_plugin: str
    filter: FilterView | None
    passes: PassesView | None
    scores: ScoreView | None
    preemption: PreemptionView | None
    reasons: ReasonMatrix | None
    extenders: tuple[ExtenderCall, ...]
    permit: tuple[PermitVerdict, ...]
    message: str
    error: str
    single_node: str | None
    emulates: str
    engine: str
    digest: str

    @property
    def is_narrowed(self) -> bool:
        """Whether not every node was filtered: a sample, the nominated node alone, or what PreFilter left."""
        return 0 < self.n_evaluated < self.n_nodes

    @property
    def is_sampled(self) -> bool:
        """Whether the scheduler stopped as soon as it had found nodes enough."""
        return self.is_narrowed and self.n_evaluated >= MIN_FEASIBLE_NODES_TO_FIND


def view_cycle(explanation: Mapping[str, Any], *, part: str | None = None, page: int = 1) -> CycleView:
    """Turn the explanation of a cycle into what its page shows.

    Parameters
    ----------
    explanation : mapping
        As served by the API; every key but ``pod`` may be missing, its panel is then left out.
    part, page
        See `view_filter`.
    """
    pod = str(explanation.get("pod") or "")
    namespace, _, name = pod.rpartition("/")
    outcome = outcome_of(explanation.get("outcome") or _guess(explanation))
    verdicts = explanation.get("filter") or {}
    feasible: Sequence[str] = explanation.get("feasible") or ()
    nodes = explanation.get("nodes") or list(verdicts)
    pre_filter = explanation.get("preFilter") or {}
    rejected_early = pre_filter.get("code") not in (None, "Success", "Skip")
    node = explanation.get("node")
    n_feasible = explanation.get("nFeasible")
    scored = bool(explanation.get("total"))
    sentence = str(
        explanation.get("sentence") or f"{_headline(pod, outcome.key, node, len(feasible), explanation)}."
    )
    message = str(explanation.get("message") or explanation.get("fitError") or "")
    points = explanation.get("points") or derived_points(explanation)
    blamed = _blamed(explanation, points) if outcome.key == "error" else ""
    early_plugin = str(pre_filter.get("plugin") or "") if rejected_early else ""
    if message:
        # The whole message stands below; a headline of five lines says nothing.
        why = f"{early_plugin} rejected it in PreFilter" if early_plugin else blamed
        headline = explanation.get("headline") or _headline(
            pod, outcome.key, node, len(feasible), explanation
        )
        sentence = f"{headline}: {why}." if why else f"{headline}."
    return CycleView(
        number=explanation.get("cycle"),
        pod=pod,
        namespace=namespace or "default",
        name=name,
        uid=str(explanation.get("uid") or ""),
        profile=str(explanation.get("profile") or ""),
        attempt=explanation.get("attempt"),
        at=str(explanation.get("at") or ""),
        outcome=outcome,
        node=node,
        sentence=emphasise(sentence, (pod, name, str(node or ""), *_nominated(explanation))),
        n_nodes=int(explanation.get("nNodes") or len(nodes)),
        n_evaluated=int(explanation.get("nodesEvaluated") or len(verdicts)),
        n_feasible=len(feasible) if n_feasible is None else int(n_feasible),
        pipeline=view_pipeline(points, outcome=outcome.key),
        blamed=blamed,
        pre_filter=", ".join(pre_filter.get("reasons") or ()) if rejected_early else "",
        pre_filter_plugin=early_plugin,
        filter=view_filter(explanation, part=part, page=page),
        passes=view_passes(explanation),
        scores=view_scores(explanation),
        preemption=view_preemption(explanation),
        reasons=view_reason_matrix(explanation),
        extenders=tuple(_call(c) for c in explanation.get("extenders") or ()),
        permit=tuple(_permit(p) for p in explanation.get("permit") or ()),
        message=message,
        error=str(explanation.get("error") or ""),
        single_node=feasible[0] if len(feasible) == 1 and not scored else None,
        emulates=str(explanation.get("emulates") or ""),
        engine=str(explanation.get("engine") or ""),
        digest=str(explanation.get("digest") or ""),
    )


def emphasise(sentence: str, names: tuple[str, ...]) -> tuple[tuple[str, bool], ...]:
    """Split a sentence into (text, is_name) so that a template can set the names in bold.

    >>> emphasise("default/web-1 bound to b3: 2 points.", ("default/web-1", "b3"))
    (('default/web-1', True), (' bound to ', False), ('b3', True), (': 2 points.', False))
    """
    known = sorted({name for name in names if name}, key=len, reverse=True)
    if not known:
        return ((sentence, False),)
    alternatives = "|".join(re.escape(name) for name in known)
    # A name ends where no further name character follows: node-1 must not match inside node-10.
    pattern = re.compile(rf"(?<![\w./-])({alternatives})(?![\w/-]|\.\w)")
    return tuple((text, i % 2 == 1) for i, text in enumerate(pattern.split(sentence)) if text)


def _nominated(explanation: Mapping[str, Any]) -> tuple[str, ...]:
    preemption = explanation.get("preemption") or {}
    victims = [v if isinstance(v, str) else str(v.get("pod", "")) for v in preemption.get("victims") or ()]
    return (str(preemption.get("nominatedNode") or ""), *victims, *(v.rpartition("/")[2] for v in victims))


def _blamed(explanation: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> str:
    """Who failed in a cycle that ended in an error, in words; "" when its record does not say."""
    if explanation.get("nNodes") == 0:
        return "the cluster has no node"
    calls = [c for c in explanation.get("extenders") or () if c.get("error") and not c.get("ignored")]
    if calls:
        return f"an extender failed to {calls[0].get('verb')}"
    at = next((point.get("point") for point in points if point.get("state") == "failed"), None)
    plugin = explanation.get("failedPlugin")
    return f"{plugin} failed in {at}" if plugin and at else ""


def _guess(explanation: Mapping[str, Any]) -> str:
    """Tell the outcome of an explanation that does not name it (a bare conformance expectation)."""
    if explanation.get("error"):
        return "error"
    if explanation.get("feasible"):
        return "bound"
    return "preempting" if (explanation.get("preemption") or {}).get("nominatedNode") else "unschedulable"


def _headline(pod: str, outcome: str, node: Any, n_feasible: int, explanation: Mapping[str, Any]) -> str:
    if outcome == "bound":
        return f"{pod} bound to {node or (explanation.get('best') or ['a node'])[0]} of {n_feasible} feasible"
    if outcome == "preempting":
        return f"{pod} fits on no node; evicting frees {explanation['preemption']['nominatedNode']}"
    return f"{pod}: {outcome}"


def _call(call: Mapping[str, Any]) -> ExtenderCall:
    status = call.get("status")
    return ExtenderCall(
        url=str(call.get("url") or ""),
        verb=str(call.get("verb") or ""),
        status="" if status is None else str(status),
        duration_ms=call.get("durationMs"),
        error=str(call.get("error") or ""),
        request=_pretty(call.get("request")),
        answer=_pretty(call.get("answer")),
        answers_nodes=call.get("verb") == "filter"
        and not call.get("error")
        and _has_nodes(call.get("answer")),
    )


def _has_nodes(answer: Any) -> bool:
    """Whether a filter's answer holds whole nodes; keys match in any case."""
    try:
        found = json.loads(answer) if isinstance(answer, str) else answer
    except ValueError:
        return False
    return isinstance(found, Mapping) and any(
        str(key).lower() == "nodes" and isinstance(value, Mapping) for key, value in found.items()
    )


def _permit(answer: Mapping[str, Any]) -> PermitVerdict:
    return PermitVerdict(
        plugin=str(answer.get("plugin") or ""),
        decision=str(answer.get("decision") or ""),
        timeout_s=answer.get("timeoutS"),
        reason=str(answer.get("reason") or ""),
    )


def _pretty(body: Any) -> str:
    if body is None:
        return ""
    return body if isinstance(body, str) else json.dumps(body, indent=2, ensure_ascii=False)
