"""Judging another scheduler: beside each of its decisions, the one we would have taken on that very state.

A `Judge` is told every change of a cluster's objects, as a scheduler's informers are, and asked at the moment of a
decision: what the other scheduler saw is what was written by then. It runs whole cycles and keeps nothing
of them. Extenders are not called: a verdict must be the same tomorrow. `judged` goes through a stretch of log.
"""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from scheduler_core.clock import Clock
from scheduler_core.event_handlers import EventHandlers
from scheduler_core.events import ObjectChanged
from scheduler_core.framework.record import BOUND, ERROR, PREEMPTING, CycleTrace
from scheduler_core.installed_plugins import known
from scheduler_core.objects.kinds import is_read, parse
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.queue.queued_pod_info import QueuedPodInfo
from scheduler_core.randomness import Randomness
from scheduler_core.releases import OLDEST, Release, release_from
from scheduler_core.schedule_one import Decision
from scheduler_core.scheduler import Scheduler, SchedulerOptions
from scheduler_core.sim.options import load

BIND: Final = "bind"
PREEMPT: Final = "preempt"
NO_NODE: Final = "no-node"

AGREE: Final = "agree"
TIE: Final = "tie"
DIFFERENT: Final = "different"
INFEASIBLE: Final = "infeasible"
UNKNOWN: Final = "unknown"
VERDICTS: Final = (AGREE, TIE, DIFFERENT, INFEASIBLE, UNKNOWN)
"""`unknown`: our own cycle ends in an error, or the pod is not there. Not counted in a percentage."""

ALL_NODES: Final = 100
Manifest = Mapping[str, Any]
Key = tuple[str, str, str]
"""Kind, namespace and name."""
WeightRange = tuple[str, float, float]
"""A score plugin, and from which weight to which their node would be the best."""
_DEFAULT_PROFILE: Final = "default-scheduler"
CACHE, NODES, FILTER, WEIGHT, SCORE, NO_CAUSE = "cache", "nodes", "filter", "weight", "score", ""


@dataclass(frozen=True, slots=True)
class CauseOfDifference:
    """Why another scheduler decided otherwise than ours would on what the API server had.

    Attributes
    ----------
    kind : str
        ``cache`` (for a moment it had not seen some changes; then it agrees on the state before them), ``nodes`` (it
        sees no changes of nodes), ``filter`` (it leaves one out), ``weight`` or ``score`` (its configuration has
        another); empty: it is not known.
    plugin : str
        Whose rules are others; with ``cache`` which one parts the nodes on the newest state.
    weights : tuple
        Plugins with whole weights, each from and to: any of them explains it; without a kind, would explain this one.
    n_changes, age_ns : int
        What it had not seen: how many changes, and how long before the decision the oldest of them was.
    unseen : tuple of Key
        What they were about, the newest `MOST_UNSEEN`.
    node : str
        With ``cache``: ours on the newest state.
    """

    kind: str = NO_CAUSE
    plugin: str = ""
    weights: tuple[tuple[str, int, int], ...] = ()
    n_changes: int = 0
    age_ns: int = 0
    unseen: tuple[Key, ...] = ()
    node: str = ""


MOST_UNSEEN: Final = 3


@dataclass(frozen=True, slots=True)
class ForeignDecision:
    """What another scheduler decided about a pod.

    Attributes
    ----------
    kind : str
        ``bind``, ``preempt`` (it nominated the pod to a node and evicts pods there) or ``no-node``.
    node : str
        Empty for ``no-node``.
    victims : tuple of str
        `namespace/name` of the pods it evicts.
    gone : frozenset of str
        Pods that its cache may still have had: that it evicts them is not seen.
    """

    kind: str
    node: str = ""
    victims: tuple[str, ...] = ()
    gone: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Judgement:
    """A foreign decision beside ours.

    Attributes
    ----------
    verdict : str
        One of `VERDICTS`.
    trace : CycleTrace or None
        Our cycle with every verdict and score.
    node : str
        Ours: chosen, or nominated; empty for none.
    points, our_points : int or None
        Totals of their node and of ours, where both were scored.
    n_tied : int
        Nodes with our best total, where that is more than one.
    plugin : str
        Who parts them: the score plugin that takes most of the difference, the filter that rejects their node, or
        the criterion (`fewestVictims`, ...) or `victims` for preemptions; where neither found a node, the last filter
        that rejects some.
    score, our_score : int or None
        What that score plugin gave both nodes, out of 100 (before its weight).
    reasons : tuple of str
        The filter's own words; of our cycle where it ended in an error.
    victims : tuple of str
        Ours.
    key : int
        Of the `Asked` that it answers.
    cause : CauseOfDifference or None
        Why it differs, or would on the newest state; None where it does not, or none was looked for.
    weights : tuple
        Where their node is another: of each score plugin the weights with which it would be ours.
    """

    verdict: str
    trace: CycleTrace | None = None
    node: str = ""
    points: int | None = None
    our_points: int | None = None
    n_tied: int = 0
    plugin: str = ""
    score: int | None = None
    our_score: int | None = None
    reasons: tuple[str, ...] = ()
    victims: tuple[str, ...] = ()
    key: int = 0
    cause: CauseOfDifference | None = None
    weights: tuple[WeightRange, ...] = ()

    @property
    def outcome(self) -> str:
        """Of our cycle; empty where none was run."""
        return "" if self.trace is None else self.trace.outcome

    @property
    def agrees(self) -> bool:
        return self.verdict in (AGREE, TIE)


class _NoQueue:
    """Takes what a queue takes: a judge asks about the pods it is asked about, and about no others."""

    def move_all(self, *args: Any, **options: Any) -> None: ...

    add = update = delete = move_all


class Judge:
    """A scheduler that knows a cluster, and decides nothing but what it is asked.

    Parameters
    ----------
    config : mapping or None
        The configuration to judge by; its extenders are left out.
    release : Release
    objects : iterable of mapping
        What is there at the beginning; kinds that no scheduler reads are passed over.
    now_ns : int
        Virtual time.
    seed : int
        Ties are drawn by it and by the number of the question, so answers do not depend on what was asked before.
    traces : bool
        Verdicts have their whole traces, which take as long as the decision.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        release: Release = OLDEST,
        objects: Iterable[Mapping[str, Any]] = (),
        now_ns: int = 0,
        seed: int = 0,
        traces: bool = True,
    ) -> None:
        self._traces = traces
        self._typed: dict[tuple[str, str, str], Any] = {}
        self._clock = Clock(now_ns)
        self._seed = seed
        self.configure(config, release)
        for manifest in objects:
            self.write(manifest)

    def configure(self, config: Mapping[str, Any] | None, release: Release) -> None:
        """Judge by another configuration from here on.

        Raises
        ------
        ConfigurationError
        """
        bare = None if config is None else {key: value for key, value in config.items() if key != "extenders"}
        loaded = load(bare, release=release)
        options = SchedulerOptions(all_preemption_candidates=True)
        self._scheduler = Scheduler(
            loaded, self._clock, Randomness(self._seed), registry=known(), options=options
        )
        scheduler = self._scheduler
        queue: Any = _NoQueue()
        # Every pod's nomination counts, whichever scheduler it waits for.
        scheduler.event_handlers = EventHandlers(
            scheduler.cache,
            queue,
            scheduler.nominator,
            scheduler.waiting_pods,
            scheduler.pod_groups,
            lambda pod: True,
        )
        for (kind, _, _), typed in self._typed.items():
            scheduler.handle(ObjectChanged(kind, None, typed))

    # ---- what happens

    def at(self, now_ns: int) -> None:
        """Virtual time goes on; never back."""
        self._clock.move_to(now_ns)

    def write(self, manifest: Mapping[str, Any]) -> None:
        """An object is now this."""
        if not is_read(manifest):
            return
        parsed = parse(manifest)
        self.put((parsed.kind, parsed.namespace, parsed.name), parsed.typed)

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """An object is gone; twice is once."""
        self.put((kind, namespace, name), None)

    def put(self, key: Key, typed: Any) -> Any:
        """An object as it is read, or None for none, in place of the one that is returned."""
        old = self._typed.pop(key, None) if typed is None else self._typed.get(key)
        if typed is not None:
            self._typed[key] = typed
        if old is not typed:
            self._scheduler.handle(ObjectChanged(key[0], old, typed))
        return old

    def typed(self, key: Key) -> Any:
        """An object as it is read; None if there is none."""
        return self._typed.get(key)

    # ---- judging

    def manifest(self, kind: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """An object as it is now; None if there is none, or of a kind of which only what schedulers read is known."""
        typed = self._typed.get((kind, namespace, name))
        found: Mapping[str, Any] | None = getattr(typed, "manifest", None)
        return found

    def keys(self, kind: str) -> Sequence[tuple[str, str]]:
        """Namespace and name of the objects of a kind, in order of creation."""
        return [(namespace, name) for known, namespace, name in self._typed if known == kind]

    def profile_for(self, pod: Pod) -> str:
        """The profile that judges: the pod's own if we have it, else the default scheduler's or the first."""
        profiles = self._scheduler.profiles
        if pod.scheduler_name in profiles:
            return pod.scheduler_name
        return _DEFAULT_PROFILE if _DEFAULT_PROFILE in profiles else next(iter(profiles))

    def judge(self, manifest: Mapping[str, Any], decision: ForeignDecision, *, number: int = 0) -> Judgement:
        """What we would have decided about a pod, beside what another scheduler did.

        Parameters
        ----------
        manifest : mapping
            The pod as it was when it was decided about; it need not be written.
        number : int
            Of the question.
        """
        pod = pod_from(manifest)
        if pod.node_name:
            said = f"the pod was on {pod.node_name} already"
            return Judgement(UNKNOWN, reasons=(said,))
        scheduler = self._scheduler
        # Which candidates there were, and why others were none, is in the trace alone.
        scheduler.options = replace(scheduler.options, full_traces=self._traces or decision.kind == PREEMPT)
        trace, made = self._consider(pod, number)
        if trace.outcome == ERROR:
            return Judgement(UNKNOWN, trace, reasons=(trace.error or "",))
        if decision.kind == BIND and pod.nominated_node_name and trace.node not in (None, decision.node):
            # Room was made elsewhere, where we looked alone: their node is compared with all.
            trace, made = self._consider(replace(pod, nominated_node_name=""), number)
        match decision.kind:
            case "bind":
                return self._bind(decision, trace, made)
            case "preempt":
                return _preemption(decision, trace, lambda pod: pod in decision.gone or self._ends(pod))
        return _no_node(trace, made)

    def _ends(self, pod: str) -> bool:
        """Whether a pod (`namespace/name`) is terminating: a scheduler does not evict it once more."""
        namespace, _, name = pod.partition("/")
        typed = self._typed.get(("Pod", namespace, name))
        return typed is not None and typed.is_terminating

    def _consider(self, pod: Pod, number: int) -> tuple[CycleTrace, Decision]:
        scheduler = self._scheduler
        framework = copy.copy(scheduler.profiles[self.profile_for(pod)])
        # Theirs may be a node that a sample would leave out.
        framework.percentage_of_nodes_to_score = ALL_NODES
        scheduler.algorithm.next_start_node_index = 0
        scheduler.randomness.restore(Randomness(self._seed + number).state())
        info = QueuedPodInfo(pod, pod.key, self._clock.now_ns, attempts=1)
        return scheduler.considered(info, framework)

    def _bind(self, decision: ForeignDecision, trace: CycleTrace, made: Decision) -> Judgement:
        attempt = made.attempt
        ours = trace.node or ""
        n_tied = trace.n_tied
        row = attempt.snapshot.nodes.row_of.get(decision.node, -1)
        there = row >= 0 and bool(attempt.snapshot.nodes.alive[row])
        feasible = attempt.feasible.tolist()
        if not there or row not in feasible:
            plugin, reasons = _rejection(made, row) if there else ("", (f"there is no node {decision.node}",))
            return Judgement(INFEASIBLE, trace, ours, n_tied=n_tied, plugin=plugin, reasons=reasons)
        best = trace.best_total
        if decision.node == ours:
            return Judgement(AGREE, trace, ours, best, best, n_tied)
        if row in made.tied_rows.tolist():
            return Judgement(TIE, trace, ours, best, best, n_tied)
        attempt.gather_scores()
        own = feasible.index(row)
        chosen = [attempt.name_of(item) for item in feasible].index(ours)
        weights = attempt.framework.weights
        differences = [
            (int(scores[chosen] - scores[own]) * weights[name], name)
            for name, scores in attempt.scores.items()
        ]
        # The first of equals, in the profile's order.
        most = max((item[0] for item in differences), default=0)
        plugin = next((name for amount, name in differences if amount == most), "")
        scores = attempt.scores.get(plugin)
        return Judgement(
            DIFFERENT,
            trace,
            ours,
            int(attempt.total[own]),
            best,
            n_tied,
            plugin,
            None if scores is None else int(scores[own]),
            None if scores is None else int(scores[chosen]),
            weights=weight_ranges(attempt.scores, weights, attempt.total, own),
        )


def weight_ranges(
    scores: Mapping[str, Any], weights: Mapping[str, int], total: Any, own: int
) -> tuple[WeightRange, ...]:
    """Of each score plugin whose weight alone would make a node the best: the weights that do.

    Parameters
    ----------
    scores
        By plugin, of the feasible nodes, before the weight.
    total
        Of these nodes.
    own
        The place of the node among them.
    """
    found = []
    for name, points in scores.items():
        lead = points[own] - points
        needed = total - total[own] + weights[name] * lead
        if np.any(needed[lead == 0] > 0):
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            bounds = needed / lead
        low = float(np.max(bounds[lead > 0], initial=-np.inf))
        high = float(np.min(bounds[lead < 0], initial=np.inf))
        if low <= high:
            found.append((name, low, high))
    return tuple(found)


def _rejection(made: Decision, row: int) -> tuple[str, tuple[str, ...]]:
    """Who rejects a node, and why."""
    attempt = made.attempt
    status = attempt.pre_filter_status
    if not status.is_success:
        return status.plugin or "PreFilter", tuple(sorted(status.reasons))
    places = np.flatnonzero(attempt.rows == row)
    said = attempt.verdict(int(places[0])) if len(places) else None
    if said is None:
        return "PreFilter", (attempt.narrowed_reason,)
    return said[0], said[2]


def _ours(trace: CycleTrace, verdict: str = DIFFERENT, **more: Any) -> Judgement:
    """Ours placed the pod, preempts, or finds no node either."""
    if trace.outcome == BOUND:
        return Judgement(verdict, trace, trace.node or "", our_points=trace.best_total)
    return Judgement(verdict, trace, trace.nominated_node or "", victims=tuple(trace.victims), **more)


def _no_node(trace: CycleTrace, made: Decision) -> Judgement:
    if trace.outcome in (BOUND, PREEMPTING):
        return _ours(trace)
    # The last of them rejects the nodes that all others would take.
    plugin = next(reversed(made.attempt.rejecting_plugins()), "")
    return Judgement(AGREE, trace, plugin=plugin)


def _preemption(decision: ForeignDecision, trace: CycleTrace, ends: Callable[[str], bool]) -> Judgement:
    if trace.outcome == BOUND:
        return _ours(trace)
    found: Mapping[str, Any] = trace.preemption or {}
    by_node = {str(item["node"]): item for item in found.get("candidates") or ()}
    theirs = by_node.get(decision.node)
    if trace.outcome != PREEMPTING or theirs is None:
        reasons = _no_candidate(found, decision.node)
        return _ours(trace, INFEASIBLE, plugin="DefaultPreemption", reasons=reasons)
    # A client may nominate alone, and evict later or never: then the node is what it decided.
    evicted = sorted(str(victim) for victim in theirs["victims"] if not ends(str(victim)))
    if decision.victims and sorted(decision.victims) != evicted:
        return _ours(trace, plugin="victims")
    is_ours = decision.node == (trace.nominated_node or "")
    if is_ours or theirs["eliminatedAt"] is None:
        return _ours(trace, AGREE if is_ours else TIE, n_tied=int(found.get("nTied") or 0))
    return _ours(trace, plugin=str(theirs["eliminatedAt"]))


def _no_candidate(found: Mapping[str, Any], node: str) -> tuple[str, ...]:
    """Why evicting pods of a node helps nothing, or may not be done."""
    if found.get("ineligibleReason"):
        return (str(found["ineligibleReason"]),)
    for group in found.get("notCandidates") or ():
        if node in group["nodes"]:
            return tuple(map(str, group["reasons"]))
    return (f"there is no node {node}",)


def share_of_agreement(verdicts: Iterable[str]) -> float | None:
    """Per cent of the decisions that agree or tie; None without any that was judged."""
    counted = [verdict for verdict in verdicts if verdict in VERDICTS and verdict != UNKNOWN]
    if not counted:
        return None
    return 100 * sum(verdict in (AGREE, TIE) for verdict in counted) / len(counted)


# ---- a stretch of log

NOT_THERE: Final = "the pod is not there"
NOT_TRIED: Final = (
    "too many decisions differ to try each on the states of a moment before (--config says the rules)"
)
LAG_STATES: Final = 12
"""So many changes a scheduler's cache may be behind in the states that are tried."""
OLD_STATES: Final = 96
"""So many changes of nodes it may not have seen at all."""
STATES: Final = 20
"""States that are tried for each decision in the long run; where that is of more nodes than this, fewer, but one."""
NODES_TRIED: Final = 10_000
SAVED: Final = 150
"""What so many decisions did not need is there for the next."""
_END: Final = 2**63
_UNDONE: Final = 1024
"""Entries that a judge can take back: a burst and those before it that may not have reached its author."""


class Entry(Protocol):
    """An entry of a log: `write`, `delete` or `config`, with the payload it has in a cluster's log."""

    @property
    def seq(self) -> int: ...

    @property
    def kind(self) -> str: ...

    @property
    def payload(self) -> Mapping[str, Any]: ...

    @property
    def at_ns(self) -> int: ...


class _Taken(NamedTuple):
    """A change that was taken: of what, and what was there before."""

    seq: int
    at_ns: int
    key: Key
    before: Any


@dataclass(frozen=True, slots=True)
class Start:
    """A cluster at some moment of its log.

    Attributes
    ----------
    seq
        Entries after it are not in it, but inputs after `read_seq` are not either.
    """

    seq: int = 0
    read_seq: int = 0
    config: Mapping[str, Any] | None = None
    release: Mapping[str, Any] | None = None
    objects: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A decision to judge, taken just before the entry `seq`.

    Attributes
    ----------
    burst
        Decisions of the same number were taken one after another by one author, in an order that their entries may not
        have.
    earlier
        Entries that may not have reached its author yet, in order.
    author
        Who decided.
    """

    seq: int
    key: int
    burst: int
    at_ns: int
    kind: str
    namespace: str
    name: str
    uid: str
    node: str
    victims: tuple[str, ...]
    earlier: tuple[int, ...] = ()
    author: str = ""


def judged(
    start: Start,
    entries: Iterable[Entry],
    asked: Iterable[Asked],
    *,
    seed: int,
    goes_on: Callable[[], bool] = lambda: True,
) -> Iterator[Judgement]:
    """Judge decisions in the order of the log.

    Parameters
    ----------
    entries
        Writes, deletes and configurations after the start, in order: inputs after `read_seq`, outcomes after `seq`.
    asked
        By seq; bursts whole.
    goes_on
        Asked after each burst; False ends it early.
    """
    yield from Following(start, seed).through(entries, asked, goes_on)


class Explaining(Protocol):
    """What is known of the authors of decisions: which decisions of theirs have one cause."""

    def agreed(self, author: str) -> None:
        """A decision is as ours, or would be on a state a moment before."""

    def overlooks(self, author: str) -> bool:
        """Whether an author does not see what becomes of nodes."""

    def explained(self, author: str, found: tuple[Judgement, Judgement | None]) -> Judgement | None:
        """The verdict, or that on nodes of long before, by a known cause; None where none explains it."""

    def differs(self, author: str, found: tuple[Judgement, Judgement | None]) -> Judgement:
        """The verdict on a decision that no moment before explains."""


class Following:
    """A judge that goes through a log, stretch by stretch.

    Parameters
    ----------
    suspects
        What is known of the authors of decisions; without it a verdict follows from the log before it alone.
    """

    def __init__(
        self, start: Start, seed: int, *, traces: bool = True, suspects: Explaining | None = None
    ) -> None:
        self._config, self._release = start.config, start.release
        release = release_from(start.release)
        self._judge = Judge(start.config, release=release, objects=start.objects, seed=seed, traces=traces)
        self._entries: Iterator[Entry] = iter(())
        self._next: Entry | None = None
        self._taken: deque[_Taken] = deque(maxlen=_UNDONE)
        self._suspects = suspects
        self._states_left = math.inf
        self._last_depth = LAG_STATES
        self._n_nodes = sum(item["kind"] == "Node" for item in start.objects)

    def through(
        self, entries: Iterable[Entry], asked: Iterable[Asked], goes_on: Callable[[], bool] = lambda: True
    ) -> Iterator[Judgement]:
        """Verdicts of a stretch; `finish` takes the entries after the last of them."""
        self._entries = iter(entries)
        self._next = next(self._entries, None)
        for _, burst in groupby(asked, key=lambda item: item.burst):
            yield from self._burst(list(burst))
            if not goes_on():
                return

    def finish(self) -> None:
        """Take what is left of the stretch."""
        self._take_until(_END)

    def _burst(self, asked: list[Asked]) -> Iterator[Judgement]:
        """Judge decisions that one author took one after another.

        In the order of their entries; and where that does not agree, in the orders a scheduler's queue may have had. If
        more of them agree so, that is how they were decided.
        """
        while asked:
            self._take_until(asked[0].seq)
            # A pod that came later, or a cluster that changed under them, begins another burst.
            together, held, rest = [asked[0]], [list[Entry]()], list[Entry]()
            for item in asked[1:]:
                if self._pod(item) is None:
                    break
                between = self._held(item.seq)
                if not all(map(_changes_no_room, between)):
                    rest = between
                    break
                together.append(item)
                held.append(between)
            for item, verdict in zip(together, self._together(together, held), strict=True):
                yield self._blamed(item, verdict)
            for entry in rest:
                self._take(entry)
            asked = asked[len(together) :]

    def _together(self, asked: list[Asked], held: list[list[Entry]]) -> list[Judgement]:
        """Verdicts on decisions before each of which these entries came, all about pods that were there."""
        judge = self._judge
        pods = {item.key: self._pod(item) for item in asked}
        touched: dict[Key, Any] = {}
        arrived = []
        for item, between in zip(asked, held, strict=True):
            for entry in between:
                key = _key(entry)
                touched.setdefault(key, judge.typed(key))
                self._take(entry)
            arrived.append(self._verdict(item))
        if len(asked) == 1 or all(item.agrees or item.verdict == UNKNOWN for item in arrived):
            return arrived
        present = {key: judge.typed(key) for key in touched}
        best = arrived
        for queued in self._orders(asked, pods):
            if queued == asked or _n_agreed(best) == len(best):
                continue
            _put(judge, touched)
            found = {}
            bound: dict[Key, Any] = {}
            for item in queued:
                found[item.key] = self._verdict(item)
                pod = pods[item.key]
                if item.kind == "bind" and pod is not None:
                    key = ("Pod", item.namespace, item.name)
                    bound[key] = judge.typed(key)
                    judge.write({**pod, "spec": {**pod["spec"], "nodeName": item.node}})
            _put(judge, {**bound, **present})
            if _n_agreed(found.values()) > _n_agreed(best):
                best = [found[item.key] for item in asked]
        return best

    def _orders(self, asked: list[Asked], pods: Mapping[int, Manifest | None]) -> Iterator[list[Asked]]:
        """Orders in which a queue gives these pods out (PrioritySort): as they were created, and as an API server lists
        them to who comes later, by namespace and name."""
        turns = {key: turn for turn, key in enumerate(self._judge.keys("Pod"))}

        def priority(item: Asked) -> int:
            spec = (pods[item.key] or {}).get("spec") or {}
            return int(spec.get("priority") or 0)

        yield sorted(asked, key=lambda item: (-priority(item), turns.get((item.namespace, item.name), 0)))
        yield sorted(asked, key=lambda item: (-priority(item), item.namespace, item.name))

    def _blamed(self, asked: Asked, verdict: Judgement) -> Judgement:
        """A verdict, or our agreement on a state of a moment before; what differs is named by its author's cause."""
        suspects, author = self._suspects, asked.author
        gained = min(STATES, max(1, NODES_TRIED / max(1, self._n_nodes)))
        self._states_left = min(SAVED * gained, self._states_left + gained)
        if suspects is None:
            return (self._behind(asked, verdict) if asked.earlier and not verdict.agrees else None) or verdict
        if verdict.verdict not in (DIFFERENT, INFEASIBLE):
            suspects.agreed(author)
            return verdict
        before = self._long_before(asked, verdict) if suspects.overlooks(author) else None
        known = suspects.explained(author, (verdict, before))
        if known is not None:
            return known
        if self._states_left < LAG_STATES:
            return Judgement(UNKNOWN, plugin=verdict.plugin, reasons=(NOT_TRIED,), key=verdict.key)
        found = self._behind(asked, verdict) if asked.earlier else None
        if found is not None:
            suspects.agreed(author)
            return found
        return suspects.differs(author, (verdict, before or self._long_before(asked, verdict)))

    def _long_before(self, asked: Asked, verdict: Judgement) -> Judgement | None:
        """The verdict by nodes of long before, if on those ours decides as their author did: it does not see them."""
        judge = self._judge
        taken = [one for one in reversed(self._taken) if one.seq < asked.seq and one.key[0] == "Node"]
        taken = taken[:OLD_STATES]
        undone = self._undone(asked)
        now = {one.key: judge.typed(one.key) for one in taken}
        found = None
        for depth in sorted(range(1, len(taken) + 1), key=lambda depth: abs(depth - self._last_depth)):
            if self._states_left < 1:
                break
            _put(judge, now | {one.key: one.before for one in taken[:depth]})
            if self._tried(asked).agrees:
                self._last_depth = depth
                found = self._overlooked(asked, verdict, taken[:depth])
                break
        _put(judge, now)
        self._redo(undone)
        return found

    def _overlooked(self, asked: Asked, verdict: Judgement, unseen: Sequence[_Taken]) -> Judgement:
        """The verdict by the filter that keeps our node away on the state that they saw."""
        plugin = verdict.plugin
        if verdict.verdict != INFEASIBLE and verdict.node:
            ours = self._tried(replace(asked, kind=BIND, node=verdict.node, victims=()))
            plugin = ours.plugin if ours.verdict == INFEASIBLE else plugin
        cause = _unseen(NODES, asked, verdict, unseen)
        return replace(verdict, plugin=plugin, score=None, our_score=None, cause=cause)

    def _tried(self, asked: Asked, gone: frozenset[str] = frozenset()) -> Judgement:
        """The verdict on a state that is tried, in which these pods are there again."""
        self._states_left -= 1
        return self._verdict(asked, gone)

    def _behind(self, asked: Asked, verdict: Judgement) -> Judgement | None:
        """Our agreement on a state that its author's cache may have had: its informers bring nodes, and all else, late.

        What was known of an object since then is not taken back.
        """
        earlier = frozenset(asked.earlier)
        undone = self._undone(asked)
        late: tuple[list[_Taken], list[_Taken]] = ([], [])
        kept: set[Key] = {("Pod", asked.namespace, asked.name)}
        for one in reversed(self._taken):
            if one.seq >= asked.seq:
                continue
            if one.seq < asked.earlier[0] or sum(map(len, late)) == LAG_STATES:
                break
            if one.seq in earlier and one.key not in kept:
                late[one.key[0] != "Node"].append(one)
            else:
                kept.add(one.key)
        found = self._late_state(asked, verdict, *late, undone)
        self._redo(undone)
        return found

    def _undone(self, asked: Asked) -> list[tuple[Key, Any]]:
        """Take back what was taken since a decision; what `_redo` puts in its place again."""
        undone = []
        for one in reversed(self._taken):
            if one.seq < asked.seq:
                break
            undone.append((one.key, self._judge.put(one.key, one.before)))
        return undone

    def _redo(self, undone: Sequence[tuple[Key, Any]]) -> None:
        for key, typed in reversed(undone):
            self._judge.put(key, typed)

    def _late_state(
        self,
        asked: Asked,
        newest: Judgement,
        nodes: Sequence[_Taken],
        others: Sequence[_Taken],
        undone: list[tuple[Key, Any]],
    ) -> Judgement | None:
        judge = self._judge
        for n_nodes in range(len(nodes) + 1):
            if n_nodes:
                late = nodes[n_nodes - 1]
                undone.append((late.key, judge.put(late.key, late.before)))
            put_back: list[tuple[Key, Any]] = []
            gone = frozenset[str]()
            found: Judgement | None = None
            for n_others in range(len(others) + 1):
                if n_others:
                    late = others[n_others - 1]
                    put_back.append((late.key, judge.put(late.key, late.before)))
                    if late.key[0] == "Pod" and put_back[-1][1] is None:
                        gone |= {f"{late.key[1]}/{late.key[2]}"}
                if n_nodes or n_others:
                    verdict = self._tried(asked, gone)
                    if verdict.agrees:
                        unseen = (*nodes[:n_nodes], *others[:n_others])
                        found = replace(verdict, cause=_unseen(CACHE, asked, newest, unseen))
                        break
            for key, typed in reversed(put_back):
                judge.put(key, typed)
            if found:
                return found
        return None

    def _take_one(self, entry: Entry, key: Key, typed: Any) -> None:
        before = self._judge.put(key, typed)
        if key[0] == "Node":
            self._n_nodes += (typed is not None) - (before is not None)
        if _matters(key[0], before, typed):
            self._taken.append(_Taken(entry.seq, entry.at_ns, key, before))

    def _pod(self, asked: Asked) -> Manifest | None:
        """The pod that was decided about, as it is now."""
        pod = self._judge.manifest("Pod", asked.namespace, asked.name)
        return None if pod is None or (pod["metadata"].get("uid") or "") != asked.uid else pod

    def _verdict(self, asked: Asked, gone: frozenset[str] = frozenset()) -> Judgement:
        judge = self._judge
        judge.at(asked.at_ns)
        manifest = self._pod(asked)
        if manifest is None:
            return Judgement(UNKNOWN, reasons=(NOT_THERE,), key=asked.key)
        decision = ForeignDecision(asked.kind, asked.node, asked.victims, gone)
        return replace(judge.judge(manifest, decision, number=asked.seq), key=asked.key)

    def _held(self, seq: int) -> list[Entry]:
        found = []
        while self._next is not None and self._next.seq < seq:
            found.append(self._next)
            self._next = next(self._entries, None)
        return found

    def _take_until(self, seq: int) -> None:
        for entry in self._held(seq):
            self._take(entry)

    def _take(self, entry: Entry) -> None:
        payload = entry.payload
        if entry.kind == "config":
            if payload.get("release") is not None:
                self._release = payload["release"]
            else:
                self._config = payload["document"]
            self._judge.configure(self._config, release_from(self._release))
        elif entry.kind == "delete" and payload.get("gone", True):
            key = (payload["kind"], payload.get("namespace") or "", payload["name"])
            self._take_one(entry, key, None)
        elif entry.kind in ("write", "delete") and is_read(payload["manifest"]):
            parsed = parse(payload["manifest"])
            key = (parsed.kind, parsed.namespace, parsed.name)
            self._take_one(entry, key, parsed.typed)


def _unseen(kind: str, asked: Asked, newest: Judgement, changes: Sequence[_Taken]) -> CauseOfDifference:
    """That an author had not seen these changes; `newest` is the verdict with them."""
    changes = sorted(changes, key=lambda one: -one.seq)
    return CauseOfDifference(
        kind,
        newest.plugin,
        n_changes=len(changes),
        age_ns=max(0, asked.at_ns - changes[-1].at_ns),
        unseen=tuple(dict.fromkeys(one.key for one in changes))[:MOST_UNSEEN],
        node=newest.node,
    )


def _key(entry: Entry) -> Key:
    meta = entry.payload["manifest"]["metadata"]
    return (str(entry.payload["manifest"]["kind"]), str(meta.get("namespace") or ""), str(meta["name"]))


def _matters(kind: str, before: Any, after: Any) -> bool:
    """Whether a change may change a decision: no heartbeat of a node, no news of a pod that stays where it is."""
    if before is None or after is None:
        return before is not after
    if kind == "Pod":
        return bool(_of_a_pod(before) != _of_a_pod(after))
    if kind == "Node":
        return bool(_of_a_node(before.manifest) != _of_a_node(after.manifest))
    return True


def _of_a_pod(pod: Pod) -> tuple[Any, ...]:
    place = (pod.node_name, pod.nominated_node_name, pod.is_terminating, pod.is_terminal)
    return (*place, pod.uid, pod.labels, pod.requests)


def _of_a_node(node: Manifest) -> tuple[Any, ...]:
    status = node.get("status") or {}
    return (
        node["metadata"].get("labels"), node["metadata"].get("annotations"), node.get("spec"),
        status.get("allocatable"), status.get("images"), status.get("declaredFeatures"),
    )  # fmt: skip


def _changes_no_room(entry: Entry) -> bool:
    """Whether it is a change of a pod that stays: a Binding, a status."""
    return entry.kind == "write" and entry.payload["manifest"]["kind"] == "Pod"


def _put(judge: Judge, objects: Mapping[Key, Any]) -> None:
    for key, typed in objects.items():
        judge.put(key, typed)


def _n_agreed(verdicts: Iterable[Judgement]) -> int:
    return sum(item.agrees for item in verdicts)
