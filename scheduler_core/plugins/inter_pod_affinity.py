"""The InterPodAffinity plugin at each extension point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.matching import Carriers, Matching, Stance
from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.selection import DomainCounts, PodSelector, Selection
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.config.args import Errors, PluginArgs
from scheduler_core.config.wire import Int32, keep
from scheduler_core.errors import invalid
from scheduler_core.framework import interface as fw
from scheduler_core.framework.amounts import Amount, Comparison
from scheduler_core.framework.cluster_event import QUEUE, SKIP, ClusterEventWithHint, QueueingHint, on
from scheduler_core.framework.domain_lanes import DomainRule
from scheduler_core.framework.status import Code, Verdicts
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import AffinityTerm, Pod

# --- Required terms: of the incoming pod about existing ones, and of existing ones about it.


Counts = NDArray[np.int64]

AFFINITY, ANTI_AFFINITY, EXISTING_ANTI_AFFINITY, PASSES = 1, 2, 3, 4
"""What a row fails, in the order upstream asks."""


def pod_selector(term: AffinityTerm) -> PodSelector:
    """The pods an incoming pod's term is about."""
    return PodSelector(term.selector, term.namespaces, term.namespace_selector)


@dataclass(slots=True)
class KeyCounts:
    """Pods that matter, by domain of one topology key.

    Attributes
    ----------
    n_affinity_terms : int
        Required affinity terms of the incoming pod with this key; 0 asks nothing of it.
    affinity : ndarray of shape (n_values,), int64, or None
        Pods that match all required affinity terms of the incoming pod.
    anti_affinity : ndarray of shape (n_values,), int64, or None
        Pods that match the incoming pod's required anti-affinity terms with this key, once for each.
    existing : ndarray of shape (n_values,), int64, or None
        Required anti-affinity terms with this key, carried by existing pods, that match the incoming one.
    """

    n_affinity_terms: int = 0
    affinity: Counts | None = None
    anti_affinity: Counts | None = None
    existing: Counts | None = None

    def failures(self, n_values: int, first_of_series: bool) -> NDArray[np.int8]:
        """What rows of each domain fail; the last place is for rows without the label."""
        failures = np.full(n_values + 1, PASSES, np.int8)
        if self.existing is not None:
            np.putmask(failures[:-1], self.existing > 0, EXISTING_ANTI_AFFINITY)
        if self.anti_affinity is not None:
            np.putmask(failures[:-1], self.anti_affinity > 0, ANTI_AFFINITY)
        if self.affinity is not None:
            if not first_of_series:
                np.putmask(failures[:-1], self.affinity <= 0, AFFINITY)
            failures[-1] = AFFINITY
        return failures


@dataclass(slots=True)
class RequiredTerms:
    """All required terms that have a say about an incoming pod.

    Attributes
    ----------
    pod_class : int
    by_key : dict of str to KeyCounts
    matches_all : Selection or None
        Pods that match all required affinity terms of the incoming pod; None when it has none.
    n_matched : int
        Matched (pod, term) pairs in the cluster whose topology key the pod's node has.
    matches_itself : bool
        The incoming pod matches all its required affinity terms.
    anti_affinity : list of (topology key, Selection)
        The incoming pod's required anti-affinity terms.
    """

    pod_class: int
    carriers: Carriers
    by_key: dict[str, KeyCounts] = field(default_factory=dict)
    matches_all: Selection | None = None
    n_matched: int = 0
    matches_itself: bool = False
    anti_affinity: list[tuple[str, Selection]] = field(default_factory=list)

    @classmethod
    def of(cls, pod: Pod, matching: Matching) -> RequiredTerms | None:
        """Count for an incoming pod; None when no term has a say."""
        pod_class = matching.pods.class_of(pod)
        existing = [
            (carriers.term.topology_key, counts)
            for carriers in matching.carriers.about(Stance.REQUIRES_ABSENCE, pod_class)
            if (counts := carriers.counts()).total
        ]
        if not existing and not pod.required_affinity and not pod.required_anti_affinity:
            return None
        found = cls(pod_class, matching.carriers)
        for key, counts in existing:
            at_key = found.at(key)
            at_key.existing = _sum(at_key.existing, counts.by_domain)
        if pod.required_affinity:
            selection = matching.selection(tuple([pod_selector(term) for term in pod.required_affinity]))
            found.matches_all = selection
            found.matches_itself = selection.selects_class(pod_class)
            for term in pod.required_affinity:
                counts = selection.counts(matching.topology.domains(term.topology_key))
                at_key = found.at(term.topology_key)
                at_key.affinity = counts.by_domain
                at_key.n_affinity_terms += 1
                found.n_matched += counts.total
        for term in pod.required_anti_affinity:
            selection = matching.selection((pod_selector(term),))
            counts = selection.counts(matching.topology.domains(term.topology_key))
            at_key = found.at(term.topology_key)
            at_key.anti_affinity = _sum(at_key.anti_affinity, counts.by_domain)
            found.anti_affinity.append((term.topology_key, selection))
        return found

    def at(self, key: str) -> KeyCounts:
        return self.by_key.setdefault(key, KeyCounts())

    def failures(self, nodes: NodeColumns, rows: Rows) -> NDArray[np.int8]:
        """The first thing each row fails, `PASSES` for none, as the cluster is."""
        first_of_series = self.matches_itself and self.n_matched == 0
        result: NDArray[np.int8] | None = None
        for key, counts in self.by_key.items():
            column = nodes.label_column(key)
            by_domain = counts.failures(len(nodes.vocabulary.label_values[key]), first_of_series)
            failures: NDArray[np.int8] = by_domain.take(column.take(rows))
            result = failures if result is None else np.minimum(result, failures)
        return np.full(len(rows), PASSES, np.int8) if result is None else result

    def compare(self, pod: Pod, snapshot: Snapshot) -> Iterator[Comparison]:
        """How many pods each term finds in the domain of each row, where it should find some or none."""
        nodes, rows = snapshot.nodes, snapshot.rows
        beside = "; ".join(_selected(term) for term in pod.required_affinity)
        for key, counts in sorted(self.by_key.items(), key=itemgetter(0)):
            own = nodes.label_column(key)[rows]
            values = nodes.vocabulary.label_values[key].values
            if counts.affinity is not None:
                yield Comparison(own < 0, (f"beside {beside}: no label {key}",))
                if not (self.matches_itself and self.n_matched == 0):
                    fails = (own >= 0) & (np.append(counts.affinity, 0)[own] <= 0)
                    yield Comparison(fails, (f"beside {beside}: none with {key}=", Amount(own, values)))
            if counts.existing is not None:
                found = np.append(counts.existing, 0)[own]
                fails = found > 0
                where = Amount(own, values)
                words = (f"kept away by the anti-affinity of pods with {key}=", where, ": ", Amount(found))
                yield Comparison(fails, words)
        for term, (key, selection) in zip(pod.required_anti_affinity, self.anti_affinity, strict=True):
            own = nodes.label_column(key)[rows]
            by_domain = selection.counts(snapshot.matching.topology.domains(key)).by_domain
            found = np.append(by_domain, 0)[own]
            fails = found > 0
            values = nodes.vocabulary.label_values[key].values
            yield Comparison(
                fails,
                (f"away from {_selected(term)}: ", Amount(found), f" with {key}=",
                 Amount(own, values)),
            )  # fmt: skip

    def domains(self, pod: Pod, matching: Matching) -> Iterator[DomainRule]:
        """What each kind of term finds in the domains of its topology key."""
        first_of_series = self.matches_itself and self.n_matched == 0
        beside = "; ".join(_selected(term) for term in pod.required_affinity)
        for key, counts in sorted(self.by_key.items(), key=itemgetter(0)):
            if (found := counts.affinity) is not None:
                yield DomainRule("affinity", key, beside, found, allowed=(found > 0) | first_of_series)
            if (found := counts.existing) is not None:
                yield DomainRule("anti-affinity of other pods", key, "", found, allowed=found <= 0)
        for term, (key, selection) in zip(pod.required_anti_affinity, self.anti_affinity, strict=True):
            found = selection.counts(matching.topology.domains(key)).by_domain
            yield DomainRule("anti-affinity", key, _selected(term), found, allowed=found <= 0)


class KeyWorlds:
    """`KeyCounts` seen from rows that are separate worlds, shape (n_rows,) each."""

    __slots__ = ("affinity", "anti_affinity", "existing", "has_label", "n_affinity_terms")

    def __init__(self, counts: KeyCounts, key: str, nodes: WhatIf) -> None:
        own = nodes.label_column(key)
        self.has_label = own >= 0
        self.n_affinity_terms = counts.n_affinity_terms
        self.affinity = _gathered(counts.affinity, own)
        self.anti_affinity = _gathered(counts.anti_affinity, own)
        self.existing = _gathered(counts.existing, own)


class Worlds:
    """`RequiredTerms` seen from rows that are separate worlds.

    Attributes
    ----------
    n_matched : ndarray of shape (n_rows,), int64
    """

    __slots__ = ("_answers", "_nodes", "by_key", "n_matched", "terms")

    def __init__(self, terms: RequiredTerms, nodes: WhatIf) -> None:
        self.terms = terms
        self._nodes = nodes
        self.by_key = {key: KeyWorlds(counts, key, nodes) for key, counts in terms.by_key.items()}
        self.n_matched: Counts = np.full(len(nodes.base_rows), terms.n_matched, np.int64)
        self._answers: dict[AffinityTerm, bool] = {}

    def change(self, rows: Rows, pod_ids: NDArray[np.intp], sign: int) -> None:
        """These pods came to (1) or left (-1) these rows."""
        pods = self._nodes.pods
        class_ids = pods.class_id[pod_ids]
        terms = self.terms
        if terms.matches_all is not None:
            matched = rows[terms.matches_all.selects_classes(class_ids)]
            if len(matched):
                for worlds in self.by_key.values():
                    if worlds.n_affinity_terms:
                        moved = matched[worlds.has_label[matched]]
                        worlds.affinity[moved] += sign
                        self.n_matched[moved] += sign * worlds.n_affinity_terms
        for key, selection in terms.anti_affinity:
            worlds = self.by_key[key]
            moved = rows[selection.selects_classes(class_ids) & worlds.has_label[rows]]
            worlds.anti_affinity[moved] += sign
        carried = terms.carriers.absence_ids(pod_ids)
        for absence_id in np.flatnonzero(np.bincount(carried + 1)[1:]).tolist():
            self._change_existing(rows[carried == absence_id], terms.carriers.absence_terms[absence_id], sign)
        # Nominated pods stand on no row, so what they carry is not interned yet.
        for place in np.flatnonzero(pods.row[pod_ids] < 0).tolist():
            pod = pods[int(pod_ids[place])]
            self._change_existing(rows[place : place + 1], pod.required_anti_affinity, sign)

    def _change_existing(self, rows: Rows, carried: tuple[AffinityTerm, ...], sign: int) -> None:
        """Each of these rows gained or lost one pod that carries these terms."""
        for term in carried:
            answer = self._answers.get(term)
            if answer is None:
                answer = self._answers[term] = self.terms.carriers.term_matches(term, self.terms.pod_class)
            if answer:
                key = term.topology_key
                worlds = self.by_key.get(key)
                if worlds is None:
                    worlds = self.by_key[key] = KeyWorlds(KeyCounts(), key, self._nodes)
                worlds.existing[rows[worlds.has_label[rows]]] += sign

    def failures(self, rows: Rows) -> NDArray[np.int8]:
        """The first thing each row fails in its world, `PASSES` for none."""
        result = np.full(len(rows), PASSES, np.int8)
        first_of_series = (
            (self.n_matched[rows] == 0) if self.terms.matches_itself else np.zeros(len(rows), np.bool_)
        )
        for worlds in self.by_key.values():
            has_label = worlds.has_label[rows]
            failures = np.full(len(rows), PASSES, np.int8)
            failures[worlds.existing[rows] > 0] = EXISTING_ANTI_AFFINITY
            failures[worlds.anti_affinity[rows] > 0] = ANTI_AFFINITY
            if worlds.n_affinity_terms:
                failures[~has_label | ((worlds.affinity[rows] <= 0) & ~first_of_series)] = AFFINITY
            result = np.minimum(result, failures)
        return result


@dataclass(slots=True)
class RequiredState:
    """Required terms, and the worlds they are asked about; None for the cluster as it is."""

    terms: RequiredTerms
    worlds: Worlds | None = None

    def failures(self, nodes: NodeColumns, rows: Rows) -> NDArray[np.int8]:
        """The first thing each row fails, `PASSES` for none."""
        return self.terms.failures(nodes, rows) if self.worlds is None else self.worlds.failures(rows)


def _sum(total: Counts | None, counts: Counts) -> Counts:
    return counts if total is None else total + counts


def _selected(term: AffinityTerm) -> str:
    return str(term.selector) or ("no pod" if term.selector.is_nothing else "any pod")


def _gathered(counts: Counts | None, domain: NDArray[np.int32]) -> Counts:
    """Counts of each row's domain, 0 without one."""
    if counts is None:
        return np.zeros(len(domain), np.int64)
    gathered: Counts = np.append(counts, 0)[domain]
    return gathered


# --- Preferred terms both ways, and required affinity of existing pods: what each domain is worth.


MAX_SCORE = 100


@dataclass(slots=True)
class DomainScores:
    """What pods in a domain make it worth to the incoming pod.

    Attributes
    ----------
    by_key : dict of str to ndarray of shape (n_values + 1,), int64
        By domain of each topology key; the last place, 0, is for rows without the label.
    """

    by_key: dict[str, fw.Scores]

    @classmethod
    def of(cls, pod: Pod, matching: Matching, hard_weight: int) -> DomainScores | None:
        """Sum up for an incoming pod; None when no term of any pod matches another."""
        found = cls({})
        for term, weight in _preferred(pod):
            found._add(term.topology_key, _counts_of(term, matching), weight)
        pod_class = matching.pods.class_of(pod)
        if hard_weight > 0:
            for carriers in matching.carriers.about(Stance.REQUIRES_PRESENCE, pod_class):
                found._add(carriers.term.topology_key, carriers.counts(), hard_weight)
        for carriers in matching.carriers.about(Stance.PREFERS, pod_class):
            found._add(carriers.term.topology_key, carriers.counts(), carriers.weight)
        return found if found.by_key else None

    def _add(self, key: str, counts: DomainCounts, weight: int) -> None:
        if not counts.total:
            return
        scores = self.by_key.get(key)
        if scores is None:
            scores = self.by_key[key] = np.zeros(len(counts.by_domain) + 1, np.int64)
        scores[:-1] += weight * counts.by_domain

    def scores(self, nodes: NodeColumns, rows: Rows) -> fw.Scores:
        """Raw scores: the sum over the domains of each row."""
        total: fw.Scores | None = None
        for key, by_domain in self.by_key.items():
            scores: fw.Scores = by_domain.take(nodes.label_column(key).take(rows))
            total = scores if total is None else total + scores
        return np.zeros(len(rows), np.int64) if total is None else total

    def domains(self, pod: Pod, matching: Matching) -> Iterator[DomainRule]:
        """What each preferred term of the pod finds, and what the terms of other pods add."""
        others = {key: by_domain[:-1].copy() for key, by_domain in self.by_key.items()}
        for term, weight in _preferred(pod):
            counts = _counts_of(term, matching).by_domain
            rule, key = "affinity" if weight > 0 else "anti-affinity", term.topology_key
            facts = {"weight": weight}
            yield DomainRule(rule, key, _selected(term), counts, points=weight * counts, facts=facts)
            if key in others:
                others[key] -= weight * counts
        for key, points in others.items():
            if points.any():
                yield DomainRule("affinity of other pods", key, "", points, points=points)


def _preferred(pod: Pod) -> list[tuple[AffinityTerm, int]]:
    """The pod's preferred terms with what each pod found is worth."""
    wanted = [(item.term, item.weight) for item in pod.preferred_affinity]
    return wanted + [(item.term, -item.weight) for item in pod.preferred_anti_affinity]


def _counts_of(term: AffinityTerm, matching: Matching) -> DomainCounts:
    selection = matching.selection((pod_selector(term),))
    return selection.counts(matching.topology.domains(term.topology_key))


def normalized(scores: fw.Scores) -> fw.Scores:
    """Scores spread out from 0 to 100, the lowest at 0."""
    if not len(scores):
        return scores
    least = int(scores.min())
    spread = int(scores.max()) - least
    if spread == 0:
        return np.zeros_like(scores)
    return (MAX_SCORE * ((scores - least) / spread)).astype(np.int64)


# --- When a pod rejected by InterPodAffinity is worth another try.


_PENDING_POD = SKIP.because("the other pod is on no node")
_MATCHES_NOW = QUEUE.because("a pod on a node matches the pod's affinity now")
_OUT_OF_THE_WAY = QUEUE.because("a pod on a node no longer matches the pod's anti-affinity")
_NO_CHANGE = SKIP.because("the other pod's change matters to no affinity term")
_FRIEND = QUEUE.because("a pod that matches the pod's affinity came to a node")
_STRANGER = SKIP.because("the new pod does not match the pod's affinity")
_OWN_LABELS = QUEUE.because("the pod's own labels changed")
_AVOIDER_GONE = QUEUE.because("a pod whose anti-affinity matches the pod is gone")
_RIVAL_GONE = QUEUE.because("a pod that matches the pod's anti-affinity is gone")
_NO_RIVAL = SKIP.because("the deleted pod does not match the pod's anti-affinity")
_DOMAIN = QUEUE.because("the node is in a topology domain the pod's affinity looks at")
_OTHER_DOMAIN = QUEUE.because("the node changed its topology domain")
_NEW_DOMAIN = QUEUE.because("a new node may be free of what the pod's anti-affinity avoids")
_NO_DOMAIN = SKIP.because("nothing changed about the topology domains of the pod's terms")


def after_node_change(pod: Pod, old: Node | None, new: Node) -> QueueingHint:
    for term in pod.required_affinity:
        key = term.topology_key
        if key in new.labels:
            if old is None or key not in old.labels:
                return _DOMAIN
            if old.labels[key] != new.labels[key]:
                return _OTHER_DOMAIN
    for term in pod.required_anti_affinity:
        key = term.topology_key
        if old is None:
            return _NEW_DOMAIN
        if key in old.labels and old.labels[key] != new.labels.get(key):
            return _OTHER_DOMAIN
    return _NO_DOMAIN


def _matches_all(terms: Sequence[AffinityTerm], other: Pod) -> bool:
    return all(
        (other.namespace in term.namespaces or term.namespace_selector.matches({}))
        and term.selector.matches(other.labels)
        for term in terms
    )


REASONS = (
    "",
    "node(s) didn't match pod affinity rules",
    "node(s) didn't match pod anti-affinity rules",
    "node(s) didn't satisfy existing pods anti-affinity rules",
)
"""By what a row fails."""
_CODES = np.zeros(PASSES + 1, np.int8)
_CODES[AFFINITY] = Code.UnschedulableAndUnresolvable
_CODES[ANTI_AFFINITY] = _CODES[EXISTING_ANTI_AFFINITY] = Code.Unschedulable


@dataclass(frozen=True, slots=True)
class InterPodAffinityArgs(PluginArgs):
    """Score of a required affinity of existing pods towards the incoming one."""

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = keep(False)

    def problems(self, path: str) -> Errors:
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= 100:
            return [invalid(f"{path}.hardPodAffinityWeight", weight, "not in valid range [0, 100]")]
        return []


class InterPodAffinity(
    fw.PreFilterPlugin[RequiredState],
    fw.FilterPlugin[RequiredState],
    fw.PreScorePlugin[DomainScores],
    fw.ScorePlugin[DomainScores],
):
    """Rejects rows by required terms, of the incoming pod and of existing ones; scores by preferred terms.

    Counts by domain are kept up to date in `cluster.matching`, so a cycle gathers them and compares.

    Source: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go, v1.34

    Examples
    --------
    A pod on n1 keeps its own kind out of its zone; n3 has no zone and so cannot be meant.

    >>> from types import SimpleNamespace
    >>> from scheduler_core.cluster.cache import Cache
    >>> from scheduler_core.objects.node import node_from
    >>> from scheduler_core.objects.pod import pod_from
    >>> cache = Cache()
    >>> for name, labels in (("n1", {"zone": "a"}), ("n2", {"zone": "b"}), ("n3", {})):
    ...     cache.set_node(node_from({"metadata": {"name": name, "labels": labels}}))
    >>> web = {"namespace": "default", "labels": {"app": "web"}}
    >>> term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    >>> apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    >>> spec = {"nodeName": "n1", "affinity": apart}
    >>> cache.add_pod(pod_from({"metadata": {"name": "p1", "uid": "p1", **web}, "spec": spec}))
    >>> pod = pod_from({"metadata": {"name": "p2", "uid": "p2", **web}, "spec": {}})
    >>> plugin, snapshot = InterPodAffinity(None, SimpleNamespace()), cache.snapshot()
    >>> state = plugin.pre_filter(pod, snapshot).state
    >>> [Code(code).name for code in plugin.filter(state, pod, snapshot.nodes, snapshot.rows).codes]
    ['Unschedulable', 'Success', 'Success']
    """

    name: ClassVar[str] = "InterPodAffinity"
    sentences: ClassVar[Sequence[str]] = REASONS
    compares: ClassVar[str] = "pod affinity"
    draw: ClassVar[tuple[str, int] | None] = ("I", 4)
    Args = InterPodAffinityArgs
    default_weight: ClassVar[int | None] = 2
    normalizes: ClassVar[bool] = True

    def __init__(self, args: Any, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self.hard_weight: int = 1 if args is None else args.hard_pod_affinity_weight
        self.ignores_preferred_of_existing: bool = (
            False if args is None else args.ignore_preferred_terms_of_existing_pods
        )

    def events(self) -> list[ClusterEventWithHint]:
        return [
            on("Pod", "Add|UpdatePodLabel|Delete", self.after_pod_change),
            on("Node", "Add|UpdateNodeLabel", after_node_change),
        ]

    def after_pod_change(self, pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        release = self.handle.release
        looks_both_ways = release.has("AffinityHintsBothWays")
        nominated_counts = release.has("NominatedPodsCountInHints")
        if looks_both_ways and old is not None and new is not None and new.uid == pod.uid:
            return _OWN_LABELS
        for other in (old, new):
            if other is None or other.node_name or (nominated_counts and other.nominated_node_name):
                continue
            return _PENDING_POD
        terms, anti_terms = pod.required_affinity, pod.required_anti_affinity
        # Both lists are looked at first: a term that cannot be read is an error whatever the event.
        has_terms, has_anti_terms = bool(terms), bool(anti_terms)
        if old is not None and new is not None:
            if has_terms and not _matches_all(terms, old) and _matches_all(terms, new):
                return _MATCHES_NOW
            if has_anti_terms and _matches_all(anti_terms, old) and not _matches_all(anti_terms, new):
                return _OUT_OF_THE_WAY
            return _NO_CHANGE
        if new is not None:
            return _FRIEND if has_terms and _matches_all(terms, new) else _STRANGER
        assert old is not None
        is_rival = any if release.has("AnyRivalGone") else all
        if has_anti_terms and is_rival([_matches_all((term,), old) for term in anti_terms]):
            return _RIVAL_GONE
        avoids = looks_both_ways and old.required_anti_affinity
        return _AVOIDER_GONE if avoids and _matches_all(old.required_anti_affinity, pod) else _NO_RIVAL

    # ---- filter

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> fw.PreFilterResult[RequiredState]:
        terms = RequiredTerms.of(pod, snapshot.matching)
        return fw.SKIP_FILTER if terms is None else fw.PreFilterResult(state=RequiredState(terms))

    def filter(self, state: RequiredState, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        failures = state.failures(nodes, rows)
        return Verdicts(_CODES.take(failures), failures.astype(np.int64))

    def compare(self, state: RequiredState, pod: Pod, snapshot: Snapshot) -> Iterator[Comparison]:
        return state.terms.compare(pod, snapshot)

    def filter_domains(self, state: RequiredState, pod: Pod, snapshot: Snapshot) -> Iterator[DomainRule]:
        return state.terms.domains(pod, snapshot.matching)

    def fork(self, state: RequiredState, nodes: WhatIf) -> RequiredState:
        return RequiredState(state.terms, Worlds(state.terms, nodes))

    def add_pods(
        self, state: RequiredState, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.intp]
    ) -> None:
        if state.worlds is not None:
            state.worlds.change(rows, pod_ids, 1)

    def remove_pods(
        self, state: RequiredState, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.intp]
    ) -> None:
        if state.worlds is not None:
            state.worlds.change(rows, pod_ids, -1)

    # ---- score

    def pre_score(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> fw.PreScoreResult[DomainScores]:
        if (
            self.ignores_preferred_of_existing
            and not pod.preferred_affinity
            and not pod.preferred_anti_affinity
        ):
            return fw.SKIP_SCORE
        scores = DomainScores.of(pod, snapshot.matching, self.hard_weight)
        return fw.SKIP_SCORE if scores is None else fw.PreScoreResult(state=scores)

    def score(self, state: DomainScores, pod: Pod, nodes: NodeColumns, rows: Rows) -> fw.Scores:
        return state.scores(nodes, rows)

    def score_domains(self, state: DomainScores, pod: Pod, snapshot: Snapshot) -> Iterator[DomainRule]:
        return state.domains(pod, snapshot.matching)

    def normalize(
        self, state: DomainScores, pod: Pod, nodes: NodeColumns, rows: Rows, scores: fw.Scores
    ) -> fw.Scores:
        return normalized(scores)
