"""Soft constraints: the fewer matching pods the domains of a node have, the better.

Source: pkg/scheduler/framework/plugins/podtopologyspread/scoring.go, v1.34
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.matching import Matching
from scheduler_core.cluster.node_table import Bool, Int32, NodeColumns, Rows
from scheduler_core.cluster.selection import Selection
from scheduler_core.objects.node import LABEL_HOSTNAME
from scheduler_core.objects.pod import Pod, TopologySpreadConstraint
from scheduler_core.plugins.pod_topology_spread.constraints import counted_nodes, selection_of

MAX_SCORE = 100
Scores = NDArray[np.int64]


@dataclass(slots=True)
class SoftConstraint:
    """One ScheduleAnyway constraint.

    Attributes
    ----------
    by_domain : ndarray of shape (n_values + 1,), float64, or None
        What a row of each domain gets; the last place is for rows without the label. None counts the pods of
        each row by itself (hostname).
    selection : Selection or None
        The pods to count row by row; None when no pod is counted.
    weight : float
    tolerance : float
        maxSkew - 1, which waters small differences down.
    """

    key: str
    by_domain: NDArray[np.float64] | None
    selection: Selection | None
    weight: float
    tolerance: float

    def points(self, domain: Int32, rows: Rows) -> NDArray[np.float64]:
        """What the constraint gives each row, unrounded."""
        if self.by_domain is not None:
            points: NDArray[np.float64] = self.by_domain.take(domain)
            return points
        if self.selection is None:
            points = np.full(len(rows), self.tolerance)
        else:
            points = self.selection.column.take(rows).astype(np.float64) * self.weight + self.tolerance
        points[domain < 0] = 0.0
        return points


@dataclass(slots=True)
class SoftState:
    """All soft constraints of an incoming pod, for some candidate rows.

    Attributes
    ----------
    require_all : bool
        Rows that lack a topology label are left out: they end with 0.
    rows : ndarray of shape (n,), int64
        The candidates.
    domains : list of ndarray of shape (n,), int32
        The candidates' domains for each constraint, -1 without the label.
    """

    constraints: list[SoftConstraint]
    require_all: bool
    rows: Rows
    domains: list[Int32]

    @classmethod
    def of(
        cls,
        constraints: tuple[TopologySpreadConstraint, ...],
        pod: Pod,
        matching: Matching,
        rows: Rows,
        *,
        require_all: bool,
    ) -> SoftState:
        """Count for an incoming pod and its candidate rows."""
        nodes = matching.nodes
        keys = tuple([item.topology_key for item in constraints])
        state = cls([], require_all, rows, [nodes.label_column(key).take(rows) for key in keys])
        ignored = state.ignored(nodes, rows)
        n_scored = len(rows) if ignored is None else len(rows) - int(np.count_nonzero(ignored))
        for constraint, domain in zip(constraints, state.domains, strict=True):
            selection: Selection | None = None
            if not constraint.selector.is_everything:
                selection = selection_of(constraint, pod, matching)
            tolerance = float(constraint.max_skew - 1)
            key = constraint.topology_key
            if key == LABEL_HOSTNAME:
                weight = normalizing_weight(n_scored)
                state.constraints.append(SoftConstraint(key, None, selection, weight, tolerance))
                continue
            among = counted_nodes(constraint, pod, keys if require_all else (), not require_all)
            domains = matching.topology.domains(key, among)
            scored = domain if ignored is None else domain[~ignored]
            weight = normalizing_weight(
                _n_domains(scored, domains.n_values, nodes.vocabulary.label_values[key].find(""))
            )
            by_domain = np.zeros(domains.n_values + 1)
            if selection is None:
                by_domain[:-1] = tolerance
            else:
                by_domain[:-1] = selection.counts(domains).by_domain * weight + tolerance
            state.constraints.append(SoftConstraint(key, by_domain, selection, weight, tolerance))
        return state

    def ignored(self, nodes: NodeColumns, rows: Rows) -> Bool | None:
        """Rows left out; None for none."""
        if not self.require_all:
            return None
        ignored: Bool | None = None
        for domain in self._domains_of(nodes, rows):
            lacking = domain < 0
            ignored = lacking if ignored is None else ignored | lacking
        return ignored if ignored is not None and ignored.any() else None

    def scores(self, nodes: NodeColumns, rows: Rows) -> Scores:
        """Raw scores: the higher, the more crowded."""
        domains = self._domains_of(nodes, rows)
        if len(self.constraints) == 1 and self.constraints[0].by_domain is not None:
            # Rounding a domain's points once is the same as rounding them at each of its rows.
            scores: Scores = _rounded(self.constraints[0].by_domain).take(domains[0])
            return scores
        total = np.zeros(len(rows))
        for constraint, domain in zip(self.constraints, domains, strict=True):
            total += constraint.points(domain, rows)
        scores = _rounded(total)
        ignored = self.ignored(nodes, rows)
        if ignored is not None:
            scores[ignored] = 0
        return scores

    def normalized(self, nodes: NodeColumns, rows: Rows, scores: Scores) -> Scores:
        """Scores from 0 to 100: the higher, the emptier."""
        ignored = self.ignored(nodes, rows)
        scored = scores if ignored is None else scores[~ignored]
        if not len(scored):
            return np.zeros(len(rows), np.int64)
        least, most = int(scored.min()), max(0, int(scored.max()))
        if most == 0:
            result = np.full(len(rows), MAX_SCORE, np.int64)
        else:
            result = MAX_SCORE * (most + least - scores)
            if least < 0:
                result = np.sign(result) * (np.abs(result) // most)
            else:
                result //= most
        if ignored is not None:
            result[ignored] = 0
        # Upstream marks ignored nodes with -1 and takes a raw score of -1 for such a mark.
        if least < 0:
            result[scores == -1] = 0
        return result

    def _domains_of(self, nodes: NodeColumns, rows: Rows) -> list[Int32]:
        if rows is self.rows or not self.constraints:
            return self.domains
        return [nodes.label_column(constraint.key)[rows] for constraint in self.constraints]


def _n_domains(domain: Int32, n_values: int, empty: int) -> int:
    """How many domains these are; rows without the label make up the domain of the empty value."""
    n_rows = np.bincount(domain + 1, minlength=n_values + 1)
    n_domains = int(np.count_nonzero(n_rows))
    if empty >= 0 and n_rows[0] and n_rows[empty + 1]:
        n_domains -= 1
    return n_domains


def _rounded(values: NDArray[np.float64]) -> Scores:
    """Nearest integers, halves away from zero (`math.Round`)."""
    whole = np.trunc(values)
    rest = values - whole
    return (whole + (rest >= 0.5) - (rest <= -0.5)).astype(np.int64)


_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_L1, _L2, _L3, _L4 = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
)
_L5, _L6, _L7 = 1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01


def normalizing_weight(n_domains: int) -> float:
    """`log(n_domains + 2)` to the last bit as Go computes it.

    Examples
    --------
    >>> normalizing_weight(3)
    1.6094379124341003
    """
    fraction, exponent = math.frexp(n_domains + 2)
    if fraction < math.sqrt(2) / 2:
        fraction *= 2
        exponent -= 1
    f = fraction - 1
    s = f / (2 + f)
    s2 = s * s
    s4 = s2 * s2
    t1 = s2 * (_L1 + s4 * (_L3 + s4 * (_L5 + s4 * _L7)))
    t2 = s4 * (_L2 + s4 * (_L4 + s4 * _L6))
    half = 0.5 * f * f
    return exponent * _LN2_HIGH - ((half - (s * (half + (t1 + t2)) + exponent * _LN2_LOW)) - f)
