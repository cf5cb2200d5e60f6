"""Topology domains behind what a plugin says of a pod: how many pods each has, and what this pod would make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scheduler_core.cluster.node_table import Bool, Rows
    from scheduler_core.cluster.snapshot import Snapshot

Counts = NDArray[np.int64]

EACH: Final = 12
"""Domains up to which each is a lane; of more, those with as many pods are one."""
NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class DomainRule:
    """A constraint or a term, seen by domain; arrays are of shape (n_values,), by id of the key's label value.

    Attributes
    ----------
    rule : str
        ``spread``, ``affinity``, ``anti-affinity``, ``anti-affinity of other pods`` or ``affinity of other pods``.
    selector : str
        The pods it counts, in words.
    counts : ndarray of int64
        Pods it counts; everything else follows from their number.
    allowed : ndarray of bool, or None
        Whether a filter lets the pod in; None for a rule that only scores.
    skew : ndarray of int64, or None
        The skew with this pod, as `maxSkew` limits it.
    points : ndarray of int64, or None
        Its part in the raw score, rounded.
    is_counted : ndarray of bool, or None
        Domains with a node that the rule counts; None for all.
    facts : dict
        More about the rule: `maxSkew`, `minimum`, `weight`.
    """

    rule: str
    key: str
    selector: str
    counts: Counts
    allowed: Bool | None = None
    skew: Counts | None = None
    points: Counts | None = None
    is_counted: Bool | None = None
    facts: Mapping[str, int] = field(default_factory=dict)


def lanes_of(
    rule: DomainRule, plugin: str, snapshot: Snapshot, feasible: Rows, scores: Counts | None, chosen: int
) -> dict[str, Any]:
    """What a record keeps of a rule.

    Parameters
    ----------
    scores : ndarray of shape (n_feasible,), or None
        The plugin's scores, 0 to 100, of a rule that scores.
    chosen : int
        Row of the chosen node; -1 for none.

    Returns
    -------
    dict
        {plugin, rule, key, selector, domains, unlabelled, notCounted, lanes} and the rule's facts; `unlabelled` nodes
        lack the label, `notCounted` are in domains the rule does not count. A lane is {domains, names, pods, nodes,
        feasible, chosen} and, where the rule has them, {allowed, skew, points, score: [lowest, highest]}; with few
        domains each is one, by name, else those with equally many pods, the fewest first.
    """
    nodes, rows = snapshot.nodes, snapshot.rows
    column = nodes.label_column(rule.key)
    size = len(rule.counts) + 1
    n_nodes = np.bincount(column[rows] + 1, minlength=size)
    n_fit = np.bincount(column[feasible] + 1, minlength=size)[1:]
    counted = np.ones(size - 1, np.bool_) if rule.is_counted is None else rule.is_counted
    present = np.flatnonzero((n_nodes[1:] > 0) & counted)
    values = nodes.vocabulary.label_values[rule.key].values
    chosen_id = int(column[chosen]) if chosen >= 0 else -1
    low, high = np.full(size, 101), np.full(size, -1)
    if scores is not None:
        np.minimum.at(low, column[feasible] + 1, scores)
        np.maximum.at(high, column[feasible] + 1, scores)
    if len(present) <= EACH:
        groups = [np.array([place], np.intp) for place in sorted(present.tolist(), key=values.__getitem__)]
    else:
        _, group = np.unique(2 * rule.counts[present] + (present == chosen_id), return_inverse=True)
        by_group = present[np.argsort(group, kind="stable")]
        groups = np.split(by_group, np.cumsum(np.bincount(group))[:-1])
    lanes = []
    for members in groups:
        first = int(members[0])
        lane: dict[str, Any] = {
            "domains": len(members),
            "names": nsmallest(NAMED, [values[place] for place in members.tolist()]),
            "pods": int(rule.counts[first]),
            "nodes": int(n_nodes[1:][members].sum()),
            "feasible": int(n_fit[members].sum()),
            "chosen": bool((members == chosen_id).any()),
        }
        if rule.allowed is not None:
            lane["allowed"] = bool(rule.allowed[first])
        if rule.skew is not None:
            lane["skew"] = int(rule.skew[first])
        if rule.points is not None:
            lane["points"] = int(rule.points[first])
        if high[1:][members].max() >= 0:
            lane["score"] = [int(low[1:][members].min()), int(high[1:][members].max())]
        lanes.append(lane)
    return {
        "plugin": plugin,
        "rule": rule.rule,
        "key": rule.key,
        "selector": rule.selector,
        "domains": len(present),
        "unlabelled": int(n_nodes[0]),
        "notCounted": int(n_nodes[1:][~counted].sum()),
        "lanes": lanes,
        **rule.facts,
    }
