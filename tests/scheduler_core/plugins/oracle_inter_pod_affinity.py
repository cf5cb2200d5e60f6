"""InterPodAffinity one node at a time, as upstream's Go is written: the twin the columns are compared with.

Source: pkg/scheduler/framework/plugins/interpodaffinity, v1.34
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence

from scheduler_core.cluster.listers import Listers
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import AffinityTerm, Pod
from tests.scheduler_core.plugins.shared_domain_clusters import NodeInfo

AFFINITY = ("UnschedulableAndUnresolvable", "node(s) didn't match pod affinity rules")
ANTI_AFFINITY = ("Unschedulable", "node(s) didn't match pod anti-affinity rules")
EXISTING = ("Unschedulable", "node(s) didn't satisfy existing pods anti-affinity rules")


class Term:
    """A term as Kubernetes' AffinityTerm holds it."""

    def __init__(self, term: AffinityTerm, listers: Listers | None = None) -> None:
        self.key = term.topology_key
        self.selector = term.selector
        self.namespaces = set(term.namespaces)
        self.namespace_selector = term.namespace_selector
        # mergeAffinityTermNamespacesIfNotEmpty is given a copy: the names arrive, the selector stays.
        if listers is not None and not term.namespace_selector.is_everything:
            self.namespaces |= {
                namespace.meta.name
                for namespace in listers.all("Namespace")
                if term.namespace_selector.matches(namespace.meta.labels)
            }

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
        if pod.namespace in self.namespaces or self.namespace_selector.matches(namespace_labels):
            return self.selector.matches(pod.labels)
        return False


def matches_all(terms: Sequence[Term], pod: Pod) -> bool:
    return bool(terms) and all(term.matches(pod, {}) for term in terms)


class FilterTwin:
    """PreFilter's state, and Filter, AddPod and RemovePod on it."""

    def __init__(self, pod: Pod, infos: Sequence[NodeInfo], listers: Listers) -> None:
        self.pod = pod
        self.affinity_terms = [Term(term, listers) for term in pod.required_affinity]
        self.anti_affinity_terms = [Term(term, listers) for term in pod.required_anti_affinity]
        self.namespace_labels = listers.namespace_labels(pod.namespace) or {}
        self.affinity: Counter[tuple[str, str]] = Counter()
        self.anti_affinity: Counter[tuple[str, str]] = Counter()
        self.existing: Counter[tuple[str, str]] = Counter()
        for info in infos:
            for existing in info.pods:
                self.update(existing, info.node, 1)

    @property
    def skips(self) -> bool:
        return not self.existing and not self.affinity_terms and not self.anti_affinity_terms

    def clone(self) -> FilterTwin:
        clone = copy.copy(self)
        clone.affinity, clone.anti_affinity = Counter(self.affinity), Counter(self.anti_affinity)
        clone.existing = Counter(self.existing)
        return clone

    def update(self, pod: Pod, node: Node, change: int) -> None:
        for term in map(Term, pod.required_anti_affinity):
            if term.matches(self.pod, self.namespace_labels):
                _move(self.existing, node, term.key, change)
        if matches_all(self.affinity_terms, pod):
            for term in self.affinity_terms:
                _move(self.affinity, node, term.key, change)
        for term in self.anti_affinity_terms:
            if term.matches(pod, {}):
                _move(self.anti_affinity, node, term.key, change)

    def filter(self, node: Node) -> tuple[str, str] | None:
        if not self._satisfies_affinity(node):
            return AFFINITY
        for term in self.anti_affinity_terms:
            if term.key in node.labels and self.anti_affinity[(term.key, node.labels[term.key])] > 0:
                return ANTI_AFFINITY
        if any(self.existing[pair] > 0 for pair in node.labels.items()):
            return EXISTING
        return None

    def _satisfies_affinity(self, node: Node) -> bool:
        pods_exist = True
        for term in self.affinity_terms:
            if term.key not in node.labels:
                return False
            if self.affinity[(term.key, node.labels[term.key])] <= 0:
                pods_exist = False
        if pods_exist:
            return True
        return not any(self.affinity.values()) and matches_all(self.affinity_terms, self.pod)


class ScoreTwin:
    """PreScore's state, Score and NormalizeScore."""

    def __init__(
        self, pod: Pod, infos: Sequence[NodeInfo], listers: Listers, hard_weight: int, ignores_existing: bool
    ) -> None:
        self.points: dict[tuple[str, str], int] = {}
        self.skips = False
        if ignores_existing and not pod.preferred_affinity and not pod.preferred_anti_affinity:
            self.skips = True
            return
        mine = [
            *((Term(item.term, listers), item.weight) for item in pod.preferred_affinity),
            *((Term(item.term, listers), -item.weight) for item in pod.preferred_anti_affinity),
        ]
        namespace_labels = listers.namespace_labels(pod.namespace) or {}
        for info in infos:
            for existing in info.pods:
                for term, weight in mine:
                    if term.matches(existing, {}):
                        self._add(info.node, term.key, weight)
                theirs = [
                    *((Term(item.term), item.weight) for item in existing.preferred_affinity),
                    *((Term(item.term), -item.weight) for item in existing.preferred_anti_affinity),
                ]
                if hard_weight > 0:
                    theirs += [(Term(term), hard_weight) for term in existing.required_affinity]
                for term, weight in theirs:
                    if term.matches(pod, namespace_labels):
                        self._add(info.node, term.key, weight)
        self.skips = not self.points

    def _add(self, node: Node, key: str, weight: int) -> None:
        if key in node.labels:
            pair = (key, node.labels[key])
            self.points[pair] = self.points.get(pair, 0) + weight

    def score(self, info: NodeInfo) -> int:
        return sum(self.points.get(pair, 0) for pair in info.node.labels.items())

    def normalize(self, scores: dict[str, int]) -> dict[str, int]:
        least, most = min(scores.values()), max(scores.values())
        if most == least:
            return dict.fromkeys(scores, 0)
        return {
            name: int(100.0 * (float(score - least) / float(most - least))) for name, score in scores.items()
        }


def _move(counts: Counter[tuple[str, str]], node: Node, key: str, change: int) -> None:
    if key in node.labels:
        pair = (key, node.labels[key])
        counts[pair] += change
        if counts[pair] == 0:
            del counts[pair]
