"""One scheduling cycle, step by step in call order: which node, or why none.

Source: pkg/scheduler/schedule_one.go, v1.34
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from scheduler_core.cluster.node_table import Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.extender.chain import ExtenderChain
from scheduler_core.extender.cycle import ExtendedAttempt, ExtenderFailure
from scheduler_core.extender.transport import ExtenderCall, no_transport
from scheduler_core.framework.attempt import NOT_EVALUATED, Attempt
from scheduler_core.framework.failure import PluginFailure
from scheduler_core.framework.interface import PostFilterResult
from scheduler_core.framework.runtime import Framework
from scheduler_core.objects.pod import Pod
from scheduler_core.randomness import Randomness

MIN_FEASIBLE_NODES = 100
MIN_FEASIBLE_PERCENTAGE = 5
TIE_STREAM = "selectHost"
_NO_ROWS: Rows = np.zeros(0, np.intp)


@dataclass(frozen=True, slots=True)
class AlgorithmOptions:
    """What is not a profile's business.

    Attributes
    ----------
    percentage_of_nodes_to_score : int
        The configuration's global value; 0 means not set.
    adaptive_sampling : bool
        Whether "not set" means upstream's adaptive share of the nodes. By default every node is evaluated.
    first_of_ties : bool
        Take the first name among the best instead of drawing one: for comparing with recordings.
    """

    percentage_of_nodes_to_score: int = 0
    adaptive_sampling: bool = False
    first_of_ties: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """What is known of a cycle that placed its pod: enough to replay it without deciding it.

    Attributes
    ----------
    uid : str
        The pod's.
    node_name : str
    n_evaluated, n_feasible : int
    n_tied : int
        Nodes that shared the best total; below two there was no draw.
    best_total : int or None
    """

    uid: str
    node_name: str
    n_evaluated: int
    n_feasible: int
    n_tied: int
    best_total: int | None


Recorded = Callable[[int], Placement | None]
"""What is known of a cycle by its number; None where nothing is, or it placed no pod."""


@dataclass(slots=True)
class Decision:
    """The outcome of a scheduling cycle.

    Attributes
    ----------
    node_name : str or None
        The node chosen.
    tied_rows : ndarray of intp
        Rows with the best total, ascending, when there were at least two feasible ones.
    best_total : int or None
    error : str or None
        The cycle ended in this error: no fit error, no preemption.
    failed_point : str
        The extension point that ended the cycle without a node; empty with one.
    failed_plugin : str
        The plugin that raised, when one did.
    fit_error : str or None
        Nothing is feasible: Kubernetes' message without PostFilter's part.
    post_filter : PostFilterResult or None
    n_evaluated : int
        Nodes that were looked at.
    extender_calls : list of ExtenderCall
        Of filter and prioritize, in the order made.
    extender_scores : list of (str, dict of str to int)
        What each extender added to the totals, by node name.
    known : Placement or None
        It was not decided now: `attempt` asked nothing, and `tied_rows` are not told.
    """

    attempt: Attempt
    node_name: str | None = None
    tied_rows: Rows = field(default_factory=lambda: _NO_ROWS)
    best_total: int | None = None
    error: str | None = None
    failed_point: str = ""
    failed_plugin: str = ""
    fit_error: str | None = None
    post_filter: PostFilterResult | None = None
    n_evaluated: int = 0
    extender_calls: list[ExtenderCall] = field(default_factory=list)
    extender_scores: list[tuple[str, dict[str, int]]] = field(default_factory=list)
    known: Placement | None = None

    @property
    def n_feasible(self) -> int:
        return len(self.attempt.feasible) if self.known is None else self.known.n_feasible

    @property
    def n_tied(self) -> int:
        """Nodes with the best total, where there were at least two feasible ones."""
        return len(self.tied_rows) if self.known is None else self.known.n_tied

    @property
    def ties(self) -> tuple[str, ...]:
        """Names of the nodes with the best total, in evaluation order."""
        attempt = self.attempt
        return tuple(attempt.name_of(row) for row in attempt.in_order(self.tied_rows).tolist())

    @property
    def message(self) -> str | None:
        """The whole FailedScheduling text."""
        if self.fit_error is None:
            return self.error
        said = self.post_filter.status.message if self.post_filter is not None else ""
        return with_post_filter(self.fit_error, said)


class Algorithm:
    """Finds a node for one pod at a time.

    Parameters
    ----------
    options : AlgorithmOptions
    randomness : Randomness
        Ties are drawn from its stream `selectHost`.
    extenders : ExtenderChain, optional
    """

    def __init__(
        self, options: AlgorithmOptions, randomness: Randomness, extenders: ExtenderChain | None = None
    ) -> None:
        self.options = options
        self.randomness = randomness
        self.extenders = extenders or ExtenderChain((), no_transport)
        self.next_start_node_index = 0
        self.make_attempt: Callable[[Framework, Pod, Snapshot], Attempt] = Attempt
        """To time extension points, a watched one is put in its place."""

    def schedule(
        self, framework: Framework, pod: Pod, snapshot: Snapshot, *, with_post_filter: bool = True
    ) -> Decision:
        """Decide about one pod; nothing in the cluster changes."""
        decision = Decision(self.make_attempt(framework, pod, snapshot))
        if not len(snapshot.order):
            decision.error, decision.failed_point = NO_NODES, "PreFilter"
            return decision
        extended = ExtendedAttempt(self.extenders, decision.attempt)
        try:
            with extended:
                self._find_nodes_that_fit(decision, extended)
                if decision.n_feasible:
                    self._choose(decision, extended)
                    return decision
            rejected = not decision.attempt.pre_filter_status.is_success
            decision.failed_point = "PreFilter" if rejected else "Filter"
            decision.fit_error = fit_error(decision.attempt)
            if framework.post_filter and with_post_filter:
                decision.post_filter = framework.run_post_filter(decision.attempt)
        except PluginFailure as failure:
            decision.error = str(failure)
            decision.failed_point, decision.failed_plugin = failure.point, failure.plugin
        except ExtenderFailure as failure:
            decision.error, decision.failed_point = str(failure), "Filter"
        finally:
            decision.extender_calls = extended.calls
            if decision.post_filter is not None:
                decision.extender_calls.extend(decision.post_filter.extender_calls)
            decision.extender_scores = extended.scores
        return decision

    def placed(self, framework: Framework, pod: Pod, snapshot: Snapshot, known: Placement) -> Decision | None:
        """The decision of a cycle that is known, as if it had been made now; None where it has to be made.

        What comes after the choice (Reserve, Permit, PreBind) may need what plugins found out before it, a nominated
        node is tried first, and extenders have answered: such cycles are decided.
        """
        row = snapshot.nodes.row_of.get(known.node_name, -1)
        if (
            known.uid != pod.uid
            or row < 0
            or not snapshot.nodes.alive[row]
            or pod.nominated_node_name
            or self.extenders
            or not framework.needs_no_attempt(pod, snapshot)
        ):
            return None
        if known.n_tied > 1 and not self.options.first_of_ties:
            self.randomness.stream(TIE_STREAM).skip()
        self.next_start_node_index = (self.next_start_node_index + known.n_evaluated) % len(snapshot.order)
        return Decision(
            Attempt(framework, pod, snapshot),
            node_name=known.node_name,
            best_total=known.best_total,
            n_evaluated=known.n_evaluated,
            known=known,
        )

    def failed(self, framework: Framework, pod: Pod, snapshot: Snapshot, plugin: str, error: str) -> Decision:
        """A cycle that ends before it began: the queue could not tell where the pod belongs."""
        attempt = Attempt(framework, pod, snapshot)
        return Decision(attempt, error=error, failed_point="QueueSort", failed_plugin=plugin)

    # ---- which nodes

    def _find_nodes_that_fit(self, decision: Decision, extended: ExtendedAttempt) -> None:
        attempt, snapshot = decision.attempt, decision.attempt.snapshot
        if not attempt.run_pre_filter().is_success:
            return
        # A nominated pod is tried on its node alone first: room was made for it there.
        name = attempt.pod.nominated_node_name
        row = snapshot.nodes.row_of.get(name, -1) if name else -1
        if row >= 0 and snapshot.nodes.alive[row]:
            try:
                if attempt.filter_nominated_node(row):
                    extended.filter()
                if len(attempt.feasible):
                    decision.n_evaluated = 1
                    return
            except (PluginFailure, ExtenderFailure):
                # Upstream logs what evaluating the nominated node raised and looks at all nodes.
                attempt.explicit.clear()
            else:
                attempt.look_at_all_nodes()
            extended.start_over()
        n_all = len(snapshot.order) if attempt.node_names is None else len(attempt.node_names)
        limit = self._n_feasible_to_find(attempt.framework, n_all)
        attempt.run_filter(limit, self.next_start_node_index)
        decision.n_evaluated = len(attempt.rows)
        if limit is not None and limit < n_all:
            decision.n_evaluated = int((attempt.stop != NOT_EVALUATED).sum())
        n_nodes = len(snapshot.order)
        self.next_start_node_index = (self.next_start_node_index + decision.n_evaluated) % n_nodes
        extended.filter()

    def _n_feasible_to_find(self, framework: Framework, n_nodes: int) -> int | None:
        """How many feasible nodes are enough; None for all. Source: schedule_one.go numFeasibleNodesToFind."""
        percentage = framework.percentage_of_nodes_to_score
        if percentage is None:
            percentage = self.options.percentage_of_nodes_to_score
        if percentage == 0:
            if not self.options.adaptive_sampling:
                return None
            percentage = max(50 - n_nodes // 125, MIN_FEASIBLE_PERCENTAGE)
        if n_nodes < MIN_FEASIBLE_NODES or percentage >= 100:
            return None
        return max(n_nodes * percentage // 100, MIN_FEASIBLE_NODES)

    # ---- which of them

    def _choose(self, decision: Decision, extended: ExtendedAttempt) -> None:
        attempt = decision.attempt
        rows = attempt.feasible
        if len(rows) == 1:
            decision.node_name = attempt.name_of(int(rows[0]))
            return
        if attempt.framework.score or self.extenders:
            attempt.run_pre_score()
            attempt.run_score()
            extended.score()
        else:
            attempt.total = np.ones(len(rows), np.int64)
        decision.best_total = int(attempt.total.max())
        decision.tied_rows = rows.take((attempt.total == decision.best_total).nonzero()[0])
        decision.node_name = attempt.name_of(self.select_host(decision.tied_rows, attempt))

    def select_host(self, tied_rows: Rows, attempt: Attempt) -> int:
        """One of the rows with the largest total, drawn by its place in evaluation order."""
        if len(tied_rows) == 1:
            return int(tied_rows[0])
        if self.options.first_of_ties:
            if attempt.guests:
                return int(min(tied_rows.tolist(), key=attempt.name_of))
            return attempt.snapshot.first_name(tied_rows)
        drawn = self.randomness.stream(TIE_STREAM).below(len(tied_rows))
        if attempt.guests:
            return int(attempt.in_order(tied_rows)[drawn])
        snapshot = attempt.snapshot
        if snapshot.rows is snapshot.order:
            return int(tied_rows[drawn])
        return int(snapshot.order[np.partition(snapshot.rank[tied_rows], drawn)[drawn]])


# --- The words Kubernetes finds for a pod that fits nowhere.


NO_NODES = "no nodes available to schedule pods"


def fit_error(attempt: Attempt) -> str:
    """`0/3 nodes are available: ...`, without what PostFilter has to add."""
    n_nodes = len(attempt.snapshot.order)
    message = f"0/{n_nodes} nodes are available:"
    if not attempt.pre_filter_status.is_success:
        words = attempt.pre_filter_status.message
        return f"{message} {words}." if words else message
    counts = attempt.reason_counts()
    n_outside = n_nodes - attempt.n_statuses
    if n_outside > 0 and attempt.node_names is not None:
        reason = attempt.absent_reason
        counts[reason] = counts.get(reason, 0) + n_outside
    if not counts:
        return message
    # Sorted as strings, counts and all: "10 ..." stands before "7 ...".
    return f"{message} {', '.join(sorted(f'{count} {reason}' for reason, count in counts.items()))}."


def with_post_filter(message: str, post_filter_message: str) -> str:
    """The text of the event and the pod's condition: the fit error, then what PostFilter said."""
    return f"{message} {post_filter_message}" if post_filter_message else message
