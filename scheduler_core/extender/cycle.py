"""The extenders' part in one scheduling cycle: their answers put into the attempt's columns.

Source: pkg/scheduler/schedule_one.go findNodesThatPassExtenders, prioritizeNodes, v1.34
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler_core.extender.chain import (
    FILTER,
    PRIORITIZE,
    ExtenderChain,
    ExtenderFilterResult,
    FeasibleNode,
)
from scheduler_core.extender.transport import ExtenderCall
from scheduler_core.framework.attempt import EXTENDER, Attempt
from scheduler_core.framework.status import Code


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
        if not self.chain.having(FILTER) or not len(attempt.feasible):
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
        if not self.chain.having(PRIORITIZE):
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
