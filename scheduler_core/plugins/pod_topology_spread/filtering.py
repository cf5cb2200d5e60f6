"""Hard constraints: how many matching pods a domain may have over the emptiest one.

Source: pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, v1.34
Differs: upstream keeps two critical paths a constraint; as only one domain of a world changes, their smaller
one is exactly the global minimum, which is what is computed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.matching import Matching
from scheduler_core.cluster.node_table import Bool, NodeColumns, Rows
from scheduler_core.cluster.selection import Selection
from scheduler_core.cluster.topology import Domains
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.framework.amounts import Amount, Comparison
from scheduler_core.framework.status import Code
from scheduler_core.objects.pod import Pod, TopologySpreadConstraint
from scheduler_core.plugins.pod_topology_spread.constraints import counted_nodes, selection_of

NO_DOMAIN_MINIMUM = 2**31 - 1
"""The global minimum over no domain at all (`math.MaxInt32` upstream)."""


@dataclass(slots=True)
class HardConstraint:
    """One DoNotSchedule constraint and how its pods are spread.

    Attributes
    ----------
    counts : ndarray of shape (domains.n_values,), int64
        Counted pods of each domain.
    max_skew : int
        As written.
    limit : int
        Most pods a domain may have, the incoming one left out, over the global minimum.
    few_domains : bool
        There are fewer domains than `minDomains`: the global minimum is 0.
    """

    key: str
    domains: Domains
    selection: Selection
    counts: NDArray[np.int64]
    max_skew: int
    limit: int
    few_domains: bool

    @classmethod
    def of(
        cls, constraint: TopologySpreadConstraint, pod: Pod, keys: tuple[str, ...], matching: Matching
    ) -> HardConstraint:
        """Count for an incoming pod whose hard constraints have these topology keys."""
        domains = matching.topology.domains(constraint.topology_key, counted_nodes(constraint, pod, keys))
        selection = selection_of(constraint, pod, matching)
        if constraint.selector.is_everything:
            # Upstream counts no pod for an empty selector, though it lets it match in every other place.
            counts = np.zeros(domains.n_values, np.int64)
        else:
            counts = selection.counts(domains).by_domain
        min_domains = 1 if constraint.min_domains is None else constraint.min_domains
        matches_itself = selection.selects_class(matching.pods.class_of(pod))
        return cls(
            key=constraint.topology_key,
            domains=domains,
            selection=selection,
            counts=counts,
            max_skew=constraint.max_skew,
            limit=constraint.max_skew - int(matches_itself),
            few_domains=len(domains.present) < min_domains,
        )

    @property
    def minimum(self) -> int:
        """Pods of the emptiest domain."""
        if self.few_domains:
            return 0
        present = self.counts[self.domains.present]
        return int(present.min()) if len(present) else NO_DOMAIN_MINIMUM

    def codes(self, nodes: NodeColumns, rows: Rows) -> NDArray[np.int8]:
        """The constraint's verdict on each row as the cluster is."""
        by_domain = np.empty(len(self.counts) + 1, np.int8)
        np.multiply(self.counts > self.limit + self.minimum, np.int8(Code.Unschedulable), out=by_domain[:-1])
        # A row without the label has domain -1, the last place.
        by_domain[-1] = Code.UnschedulableAndUnresolvable
        codes: NDArray[np.int8] = by_domain.take(nodes.label_column(self.key).take(rows))
        return codes

    def compare(self, nodes: NodeColumns, rows: Rows) -> Iterator[Comparison]:
        """The skew there would be on each row as the cluster is."""
        own = nodes.label_column(self.key)[rows]
        yield Comparison(own < 0, (f"no label {self.key}",))
        counts, minimum = np.append(self.counts, 0)[own], self.minimum
        fails = (own >= 0) & (counts > self.limit + minimum)
        values = nodes.vocabulary.label_values[self.key].values
        skew = counts + (self.max_skew - self.limit) - minimum
        emptiest = "fewer domains than minDomains, so 0" if self.few_domains else f"the emptiest {minimum}"
        words = (
            f"{self.key}=", Amount(own, values), " holds ", Amount(counts),
            f", {emptiest}: with this pod a skew of ", Amount(skew), f", maxSkew {self.max_skew}",
        )  # fmt: skip
        yield Comparison(fails, words)


class ConstraintWorlds:
    """One hard constraint seen from rows that each live in a world of their own.

    Only the row's own domain can change in its world, and with it its part in the global minimum.
    """

    __slots__ = ("constraint", "counted", "counts", "has_label", "in_minimum", "others_minimum")

    def __init__(self, constraint: HardConstraint, nodes: WhatIf) -> None:
        self.constraint = constraint
        domains = constraint.domains
        own = nodes.label_column(constraint.key)
        self.has_label: Bool = own >= 0
        self.counted: Bool = domains.of_row[nodes.base_rows] >= 0
        self.counts: NDArray[np.int64] = np.append(constraint.counts, 0)[own]
        self.in_minimum: Bool = np.append(domains.is_present, False)[own]
        present = constraint.counts[domains.present]
        padded = np.append(present, (NO_DOMAIN_MINIMUM, NO_DOMAIN_MINIMUM))
        smallest, second = np.partition(padded, 1)[:2]
        emptiest = int(domains.present[present.argmin()]) if len(present) else -1
        self.others_minimum: NDArray[np.int64] = np.where(own == emptiest, second, smallest)

    def change(self, rows: Rows, class_ids: NDArray[np.integer], sign: int) -> None:
        """Pods of these classes came to (1) or left (-1) these rows."""
        matched = self.constraint.selection.selects_classes(class_ids)
        # As upstream, terminating pods are moved although they were never counted.
        moved = rows[matched & self.counted[rows]]
        self.counts[moved] += sign

    def codes(self, rows: Rows) -> NDArray[np.int8]:
        """The constraint's verdict on each row in its world."""
        counts = self.counts[rows]
        if self.constraint.few_domains:
            rejected = counts > self.constraint.limit
        else:
            others = self.others_minimum[rows]
            minimum = np.where(self.in_minimum[rows], np.minimum(others, counts), others)
            rejected = counts - minimum > self.constraint.limit
        codes = rejected * np.int8(Code.Unschedulable)
        codes[~self.has_label[rows]] = Code.UnschedulableAndUnresolvable
        return codes


@dataclass(slots=True)
class HardState:
    """All hard constraints of an incoming pod.

    Attributes
    ----------
    worlds : list of ConstraintWorlds or None
        Aligned with `constraints`; None for the cluster as it is.
    """

    constraints: list[HardConstraint]
    worlds: list[ConstraintWorlds] | None = None

    def codes(self, nodes: NodeColumns, rows: Rows) -> NDArray[np.int8]:
        """For each row the verdict of the first constraint that rejects it."""
        codes: NDArray[np.int8] | None = None
        for index, constraint in enumerate(self.constraints):
            verdict = constraint.codes(nodes, rows) if self.worlds is None else self.worlds[index].codes(rows)
            codes = verdict if codes is None else np.where(codes == 0, verdict, codes)
        return np.zeros(len(rows), np.int8) if codes is None else codes
