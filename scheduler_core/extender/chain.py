"""One HTTP extender, and all extenders of a scheduler as the scheduling cycle asks them.

Filter and preempt go from one extender to the next, each seeing what the one before left. Prioritize asks all
of them at once. Every method returns values, errors among them; what an error means is the cycle's business.

Source: pkg/scheduler/extender.go,
pkg/scheduler/schedule_one.go findNodesThatPassExtenders, prioritizeNodes, extendersBinding,
pkg/scheduler/framework/preemption/preemption.go callExtenders, v1.34
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.config import types as config
from scheduler_core.config.load import LoadedConfiguration
from scheduler_core.errors import InvalidObject
from scheduler_core.extender import wire
from scheduler_core.extender.go_json import DecodeProblem
from scheduler_core.extender.transport import (
    HTTP_OK,
    ExtenderAnswer,
    ExtenderCall,
    ExtenderRequest,
    Transport,
    effective_tls,
)
from scheduler_core.framework.attempt import EXTENDER, Attempt
from scheduler_core.framework.interface import ExtendersLeft, Victims
from scheduler_core.framework.status import Code
from scheduler_core.objects.fields import Document, mapping, mappings
from scheduler_core.objects.node import Node, node_from
from scheduler_core.objects.pod import Pod

DEFAULT_TIMEOUT_NS = 5_000_000_000

FILTER, PRIORITIZE, PREEMPT, BIND = "filter", "prioritize", "preempt", "bind"


@dataclass(frozen=True, slots=True)
class Extender:
    """An extender of the configuration.

    Attributes
    ----------
    index : int
        Its place in the configuration.
    name : str
        Its URL prefix as configured: upstream names extenders by it.
    verbs : dict of str to str
        `filter`, `prioritize`, `preempt`, `bind` -> the last part of the URL; only those it offers.
    weight : int
        Of its scores.
    node_cache_capable : bool
        It knows the nodes and is given names only.
    managed_resources : tuple of str
        It cares for pods that name one of these; for all pods when empty.
    ignorable : bool
        Its failures do not fail the cycle.
    lower_case_wire : bool
        It is sent `pod` and `nodes`, not `Pod` and `Nodes`.
    """

    index: int
    name: str
    verbs: dict[str, str]
    weight: int
    timeout_ns: int
    tls: config.ExtenderTLSConfig | None
    node_cache_capable: bool
    managed_resources: tuple[str, ...]
    ignorable: bool
    lower_case_wire: bool = False

    @classmethod
    def from_config(
        cls, extender: config.Extender, *, index: int = 0, lower_case_wire: bool = False
    ) -> Extender:
        """An extender of a loaded configuration."""
        verbs = {
            FILTER: extender.filter_verb,
            PRIORITIZE: extender.prioritize_verb,
            PREEMPT: extender.preempt_verb,
            BIND: extender.bind_verb,
        }
        return cls(
            index=index,
            name=extender.url_prefix,
            verbs={name: verb for name, verb in verbs.items() if verb},
            weight=extender.weight,
            timeout_ns=extender.http_timeout_ns or DEFAULT_TIMEOUT_NS,
            tls=effective_tls(extender.tls_config, extender.enable_https),
            node_cache_capable=extender.node_cache_capable,
            managed_resources=tuple(resource.name for resource in extender.managed_resources),
            ignorable=extender.ignorable,
            lower_case_wire=lower_case_wire,
        )

    @property
    def timeout_s(self) -> float:
        """How long it may take to answer, in seconds."""
        return self.timeout_ns / 1e9

    def is_interested(self, pod: Pod) -> bool:
        """Whether a container or init container names a managed resource, in its requests or limits."""
        if not self.managed_resources:
            return True
        spec = mapping(pod.manifest, "spec", "")
        return any(
            name in self.managed_resources
            for key in ("containers", "initContainers")
            for path, container in mappings(spec, key, "spec")
            for name in _resource_names(container, path)
        )

    def url(self, verb: str) -> str:
        return f"{self.name.rstrip('/')}/{self.verbs[verb]}"

    def request(self, verb: str, body: Document) -> ExtenderRequest:
        return ExtenderRequest(self.url(verb), body, self.timeout_ns, self.tls, verb, self.index)

    def transport_error(self, verb: str, answer: ExtenderAnswer) -> str | None:
        """Why an answer cannot even be read, None when it can."""
        if answer.error is not None:
            return answer.error
        if answer.status != HTTP_OK:
            return f"failed {self.verbs[verb]} with extender at URL {self.url(verb)}, code {answer.status}"
        return None


def _resource_names(container: Document, path: str) -> list[str]:
    resources = mapping(container, "resources", path)
    return [name for key in ("requests", "limits") for name in mapping(resources, key, f"{path}.resources")]


def build_extenders(extenders: Sequence[config.Extender], *, lower_case_wire: bool = False) -> list[Extender]:
    """The extenders of a configuration in the order they are asked: ignorable ones after all others.

    Source: pkg/scheduler/scheduler.go buildExtenders, v1.34
    """
    built = [
        Extender.from_config(extender, index=index, lower_case_wire=lower_case_wire)
        for index, extender in enumerate(extenders)
    ]
    return sorted(built, key=lambda extender: extender.ignorable)


MAX_NODE_SCORE = 100
MAX_EXTENDER_PRIORITY = 10
_SCALE = MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY
_PRINTED_SLACK = 1000


@dataclass(frozen=True, slots=True)
class FeasibleNode:
    """A node the pod may go to, as the chain hands it on.

    Attributes
    ----------
    node : Node
    is_answered : bool
        An extender answered with this object: from here on it stands for a node without pods and images,
        whatever the cluster holds under its name, if anything.
    """

    node: Node
    is_answered: bool = False


@dataclass(slots=True)
class ExtenderFilterResult:
    """What the filter calls left.

    Attributes
    ----------
    candidates : list of FeasibleNode
        In the order of the last answer; a name comes twice when an extender said it twice.
    failed : dict of str to (Code, str)
        Node name -> verdict, for any name an extender gave, even of a node it also let pass or that is unknown.
        A candidate that is neither left nor in here vanished: no reason, and not resolvable by preemption.
    error : str or None
        The cycle ends in it; `candidates` and `failed` do not matter then.
    calls : list of ExtenderCall
    """

    candidates: list[FeasibleNode]
    failed: dict[str, tuple[Code, str]] = field(default_factory=dict)
    error: str | None = None
    calls: list[ExtenderCall] = field(default_factory=list)


@dataclass(slots=True)
class ExtenderScores:
    """What the prioritize calls add.

    Attributes
    ----------
    total : dict of str to int
        Node name -> points to add (score x weight x 10, not clamped); absent = 0. May name unknown nodes.
    by_extender : list of (str, dict of str to int)
        Each extender's name (its URL prefix) and its part, in the order asked; one that failed gives nothing.
    """

    total: dict[str, int] = field(default_factory=dict)
    by_extender: list[tuple[str, dict[str, int]]] = field(default_factory=list)
    calls: list[ExtenderCall] = field(default_factory=list)


@dataclass(slots=True)
class ExtenderBinding:
    """Whether an extender has taken the binding over, and how it went.

    Attributes
    ----------
    handled : bool
        False: bind plugins are to be run.
    error : str or None
        Only when handled.
    """

    handled: bool
    error: str | None = None
    calls: list[ExtenderCall] = field(default_factory=list)


class ExtenderChain:
    """The extenders of a scheduler and their transport.

    Parameters
    ----------
    extenders : sequence of Extender
        In the order asked (`build_extenders`).
    transport : Transport

    Attributes
    ----------
    verbs : frozenset of str
        What any of them is asked for.
    """

    def __init__(self, extenders: Sequence[Extender], transport: Transport) -> None:
        self.extenders = tuple(extenders)
        self.verbs = frozenset(verb for item in self.extenders for verb in item.verbs)
        self.transport = transport
        self._printed: dict[str, tuple[Node, Document]] = {}

    def __bool__(self) -> bool:
        return bool(self.extenders)

    def having(self, verb: str, pod: Pod) -> list[Extender]:
        """Those that have a verb, and are interested in the pod."""
        return [item for item in self.extenders if verb in item.verbs and item.is_interested(pod)]

    # ---- filter

    def filter_nodes(self, pod: Pod, nodes: Sequence[Node]) -> ExtenderFilterResult:
        """Have the feasible nodes (in evaluation order) filtered."""
        result = ExtenderFilterResult([FeasibleNode(node) for node in nodes])
        for extender in self.having(FILTER, pod):
            if not result.candidates:
                break
            error = self._filter(extender, pod, result)
            if error is not None and not extender.ignorable:
                result.error = error
                break
        return result

    def _filter(self, extender: Extender, pod: Pod, result: ExtenderFilterResult) -> str | None:
        request = extender.request(FILTER, self._candidates_body(extender, pod, result.candidates))
        reply, error = self._ask(extender, FILTER, request)
        left: list[FeasibleNode] = []
        if error is None:
            try:
                said = wire.filter_answer(reply.text)
                error = said.error or None
                if error is None:
                    left, error = _understood(extender, said, result.candidates)
            except (DecodeProblem, InvalidObject) as problem:
                error = f"invalid answer from {request.url}: {problem}"
        result.calls.append(_call(extender, request, reply, error))
        if error is not None:
            return error
        for name, reason in said.failed_and_unresolvable.items():
            result.failed[name] = (Code.UnschedulableAndUnresolvable, reason)
        for name, reason in said.failed.items():
            if name not in said.failed_and_unresolvable:
                result.failed[name] = (Code.Unschedulable, reason)
        result.candidates = left
        return None

    # ---- prioritize

    def prioritize(self, pod: Pod, candidates: Sequence[FeasibleNode]) -> ExtenderScores:
        """Ask all interested extenders at once for scores. Their errors do not matter: no score then."""
        scores = ExtenderScores()
        asked = self.having(PRIORITIZE, pod)
        if not asked:
            return scores
        requests = [item.request(PRIORITIZE, self._candidates_body(item, pod, candidates)) for item in asked]
        for extender, request, reply in zip(asked, requests, self._carry(requests), strict=True):
            error = extender.transport_error(PRIORITIZE, reply)
            entries: list[tuple[str, int]] = []
            if error is None:
                try:
                    entries = wire.prioritize_answer(reply.text)
                except DecodeProblem as problem:
                    error = f"invalid answer from {request.url}: {problem}"
            scores.calls.append(ExtenderCall(request, reply, error, ignored=error is not None))
            if error is not None:
                continue
            part: dict[str, int] = {}
            for name, score in entries:
                points = _int64(score * extender.weight * _SCALE)
                part[name] = _int64(part.get(name, 0) + points)
                scores.total[name] = _int64(scores.total.get(name, 0) + points)
            scores.by_extender.append((extender.name, part))
        return scores

    # ---- preempt

    def preempt(self, pod: Pod, candidates: Mapping[str, Victims], snapshot: Snapshot) -> ExtendersLeft:
        """Let extenders take back candidates, or change their victims.

        Parameters
        ----------
        candidates : mapping of str to Victims
            Node name -> victims in order, number of PodDisruptionBudget violations.
        """
        result = ExtendersLeft(dict(candidates))
        for extender in self.having(PREEMPT, pod):
            if not result.candidates:
                break
            body = wire.preemption_body(
                wire.pod_document(pod),
                result.candidates,
                by_uid=extender.node_cache_capable,
                lower_case=extender.lower_case_wire,
            )
            request = extender.request(PREEMPT, body)
            reply, error = self._ask(extender, PREEMPT, request)
            left: dict[str, Victims] = {}
            if error is None:
                try:
                    left, error = _victims(extender, wire.preemption_answer(reply.text), snapshot)
                except DecodeProblem as problem:
                    error = f"invalid answer from {request.url}: {problem}"
            result.calls.append(_call(extender, request, reply, error))
            if error is None:
                result.candidates = left
            elif not extender.ignorable:
                result.error = error
                break
        return result

    # ---- bind

    def binders(self, pod: Pod) -> list[Extender]:
        """Extenders that bind this pod: the first that does not fail, or is not ignorable, decides."""
        return self.having(BIND, pod) if BIND in self.verbs else []

    def bind(self, pod: Pod, node_name: str) -> ExtenderBinding:
        """Have an extender bind the pod, if one does."""
        calls: list[ExtenderCall] = []
        for extender in self.binders(pod):
            request = bind_request(extender, pod, node_name)
            reply = self._carry([request])[0]
            error = parse_bind_answer(extender, reply)
            calls.append(_call(extender, request, reply, error))
            if error is None or not extender.ignorable:
                return ExtenderBinding(True, error, calls)
        return ExtenderBinding(False, None, calls)

    # ---- inside

    def _candidates_body(self, extender: Extender, pod: Pod, candidates: Sequence[FeasibleNode]) -> Document:
        names = nodes = None
        if extender.node_cache_capable:
            names = [candidate.node.name for candidate in candidates]
        else:
            if len(self._printed) > 2 * len(candidates) + _PRINTED_SLACK:
                # Most of them are of nodes that are gone, or not asked about any more.
                self._printed.clear()
            nodes = [self._printed_node(candidate) for candidate in candidates]
        return wire.candidates_body(wire.pod_document(pod), names, nodes, lower_case=extender.lower_case_wire)

    def _printed_node(self, candidate: FeasibleNode) -> Document:
        """Printed forms are kept: a node changes far less often than it is asked about."""
        node = candidate.node
        if candidate.is_answered:
            return wire.node_document(node, answered=True)
        kept = self._printed.get(node.name)
        if kept is None or kept[0] is not node:
            kept = self._printed[node.name] = (node, wire.node_document(node))
        return kept[1]

    def _ask(
        self, extender: Extender, verb: str, request: ExtenderRequest
    ) -> tuple[ExtenderAnswer, str | None]:
        reply = self._carry([request])[0]
        return reply, extender.transport_error(verb, reply)

    def _carry(self, requests: Sequence[ExtenderRequest]) -> Sequence[ExtenderAnswer]:
        answers = self.transport(requests)
        if len(answers) != len(requests):
            raise RuntimeError(f"the transport gave {len(answers)} answers to {len(requests)} requests")
        return answers


def extender_chain(loaded: LoadedConfiguration, transport: Transport) -> ExtenderChain:
    """The extenders of a configuration, or of a Policy, over a transport."""
    extenders = build_extenders(loaded.configuration.extenders, lower_case_wire=loaded.lower_case_wire)
    return ExtenderChain(extenders, transport)


def bind_request(extender: Extender, pod: Pod, node_name: str) -> ExtenderRequest:
    """The request that asks an extender to bind a pod."""
    return extender.request(BIND, wire.binding_body(pod, node_name))


def parse_bind_answer(extender: Extender, answer: ExtenderAnswer) -> str | None:
    """Why a binding failed, None when the pod is bound."""
    error = extender.transport_error(BIND, answer)
    if error is not None:
        return error
    try:
        return wire.binding_answer(answer.text) or None
    except DecodeProblem as problem:
        return f"invalid answer from {extender.url(BIND)}: {problem}"


def _call(
    extender: Extender, request: ExtenderRequest, answer: ExtenderAnswer, error: str | None
) -> ExtenderCall:
    return ExtenderCall(request, answer, error, ignored=error is not None and extender.ignorable)


def _understood(
    extender: Extender, said: wire.FilterAnswer, before: Sequence[FeasibleNode]
) -> tuple[list[FeasibleNode], str | None]:
    """The candidates a filter answer leaves, or what is wrong with it."""
    if extender.node_cache_capable and said.node_names is not None:
        known = {candidate.node.name: candidate for candidate in before}
        for name in said.node_names:
            if name not in known:
                return [], (
                    f'extender "{extender.name}" claims a filtered node "{name}" '
                    "which is not found in the input node list"
                )
        return [known[name] for name in said.node_names], None
    # Upstream makes a node info of the bare object: no pods, and images are the cache's business.
    nodes = [dataclasses.replace(node_from(manifest), images=()) for manifest in said.nodes or ()]
    return [FeasibleNode(node, is_answered=True) for node in nodes], None


def _victims(
    extender: Extender, said: Mapping[str, wire.MetaVictims], snapshot: Snapshot
) -> tuple[dict[str, Victims], str | None]:
    """Pods in place of uids; nothing else of the answer is checked."""
    nodes = snapshot.nodes
    victims: dict[str, Victims] = {}
    for name, (uids, n_violations) in said.items():
        row = nodes.row_of.get(name)
        if row is None or not nodes.alive[row]:
            return {}, f'nodeinfo not found for node name "{name}"'
        by_uid = {snapshot.pods[pod_id].uid: snapshot.pods[pod_id] for pod_id in nodes.pods_on(row)}
        for uid in uids:
            if uid not in by_uid:
                return {}, (
                    f"extender: {extender.name} claims to preempt pod (UID: &{{{uid}}}) on node: {name}, "
                    "but the pod is not found on that node"
                )
        victims[name] = (tuple(by_uid[uid] for uid in uids), n_violations)
    for name in [name for name, (pods, _) in victims.items() if not pods]:
        if not extender.ignorable:
            return {}, f'expected at least one victim pod on node "{name}"'
        del victims[name]
    return victims, None


def _int64(number: int) -> int:
    """Go's arithmetic wraps around."""
    return (number + 2**63) % 2**64 - 2**63


# ---- The extenders' part in one scheduling cycle: their answers put into the attempt's columns


class ExtenderFailure(Exception):
    """An extender that may not be ignored failed: the cycle ends in this error."""


class ExtendedAttempt:
    """One attempt and the extenders that have a say in it.

    Use it in a `with` statement around everything that asks plugins about the attempt's feasible rows: on leaving,
    rows of node objects that extenders answered with are taken back. Their names stay in `attempt.guests`.

    Attributes
    ----------
    calls : list of ExtenderCall
        Of filter and prioritize, in the order made.
    scores : list of (str, dict of str to int)
        Points each extender adds, by node name (`ExtenderScores.by_extender`).
    """

    def __init__(self, chain: ExtenderChain, attempt: Attempt) -> None:
        self.chain = chain
        self.attempt = attempt
        self.calls: list[ExtenderCall] = []
        self.scores: list[tuple[str, dict[str, int]]] = []
        self._candidates: Sequence[FeasibleNode] | None = None
        self._guest_rows: list[int] = []

    def __enter__(self) -> ExtendedAttempt:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._remove_guests()

    def filter(self) -> None:
        """Have the attempt's feasible rows filtered.

        Raises
        ------
        ExtenderFailure
        """
        attempt = self.attempt
        if FILTER not in self.chain.verbs or not len(attempt.feasible):
            return
        nodes = attempt.snapshot.nodes
        rows = attempt.feasible[np.argsort(attempt.snapshot.rank[attempt.feasible], kind="stable")]
        result = self.chain.filter_nodes(attempt.pod, [nodes.node(row) for row in rows.tolist()])
        self.calls.extend(result.calls)
        if result.error is not None:
            attempt.feasible = attempt.feasible[:0]
            raise ExtenderFailure(result.error)
        if any(call.error is None for call in result.calls):
            self._apply(result)

    def start_over(self) -> None:
        """Drop the extenders' answers about the nominated node before all nodes are tried."""
        self._remove_guests()
        self.attempt.guests = {}
        self.attempt.extenders_took_nodes = False
        self._candidates = None

    def score(self) -> None:
        """Add the extenders' points to the attempt's totals."""
        if PRIORITIZE not in self.chain.verbs:
            return
        attempt = self.attempt
        candidates = self._candidates
        if candidates is None:
            nodes = attempt.snapshot.nodes
            rows = attempt.feasible[np.argsort(attempt.snapshot.rank[attempt.feasible], kind="stable")]
            candidates = [FeasibleNode(nodes.node(row)) for row in rows.tolist()]
        scores = self.chain.prioritize(attempt.pod, candidates)
        self.calls.extend(scores.calls)
        self.scores = scores.by_extender
        if scores.total:
            names = [self.name_of(row) for row in attempt.feasible.tolist()]
            attempt.total = attempt.total + np.array([scores.total.get(name, 0) for name in names], np.int64)

    def name_of(self, row: int) -> str:
        """The name of the node of a feasible row."""
        guest = self.attempt.guests.get(row)
        return self.attempt.snapshot.nodes.name(row) if guest is None else guest

    def _apply(self, result: ExtenderFilterResult) -> None:
        attempt = self.attempt
        nodes = attempt.snapshot.nodes
        before = attempt.feasible
        attempt.extenders_took_nodes = len(result.candidates) != len(before)
        rows = []
        for candidate in result.candidates:
            if candidate.is_answered:
                row = nodes.add_guest(candidate.node)
                self._guest_rows.append(row)
                attempt.guests[row] = candidate.node.name
            else:
                row = nodes.row_of[candidate.node.name]
            rows.append(row)
        attempt.feasible = np.sort(np.array(rows, np.intp))
        self._candidates = result.candidates
        left = {candidate.node.name for candidate in result.candidates}
        taken = [row for row in before.tolist() if nodes.name(row) not in left]
        attempt.own_verdicts()
        places = np.isin(attempt.rows, np.array(taken, np.intp))
        attempt.stop[places] = EXTENDER
        attempt.code[places] = Code.UnschedulableAndUnresolvable
        for index, (name, (code, reason)) in enumerate(result.failed.items()):
            row = nodes.row_of.get(name, -1)
            known = row >= 0 and bool(nodes.alive[row])
            attempt.explicit[row if known else -1 - index] = ("", code, (reason,))
            if known and name not in left:
                places = attempt.rows == row
                attempt.stop[places] = EXTENDER
                attempt.code[places] = code

    def _remove_guests(self) -> None:
        for row in self._guest_rows:
            self.attempt.snapshot.nodes.remove_guest(row)
        self._guest_rows = []
