"""PodDisruptionBudgets: which victims are one too many for a budget.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go filterPodsWithPDBViolation, v1.34
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.listers import Listers
from scheduler_core.cluster.pod_table import PodTable
from scheduler_core.framework.preemption.potential import PodsOfPlaces
from scheduler_core.objects.policy import PodDisruptionBudget

KIND = "PodDisruptionBudget"


class Violations(NamedTuple):
    """Which of some victims are one too many for a budget.

    Attributes
    ----------
    violates : ndarray of shape (n_victims,), bool
    budgets : dict of int to tuple of str
        The budgets violated (``namespace/name``), by place of the victim; in no order.
    """

    violates: NDArray[np.bool_]
    budgets: dict[int, tuple[str, ...]]


class Budgets:
    """The cluster's budgets, matched once for each class of pods (namespace and labels)."""

    def __init__(self) -> None:
        self.version = -1
        """Changes when any budget does."""
        self._listers: Listers | None = None
        self._by_namespace: dict[str, list[PodDisruptionBudget]] = {}
        self._of_class: dict[int, list[PodDisruptionBudget]] = {}

    def refresh(self, listers: Listers) -> None:
        """Look at the budgets again if they changed."""
        if listers is self._listers and self.version == listers.version(KIND):
            return
        self._listers, self.version = listers, listers.version(KIND)
        self._of_class.clear()
        self._by_namespace.clear()
        for budget in listers.all(KIND):
            # One that selects everything protects nothing.
            if not budget.selector.is_everything and not budget.selector.is_nothing:
                self._by_namespace.setdefault(budget.meta.namespace, []).append(budget)

    def violated_by(self, victims: PodsOfPlaces, pods: PodTable) -> Violations:
        """Whose eviction violates which budget, evictions of one node counted in their order."""
        violates = np.zeros(len(victims.pod_ids), np.bool_)
        budgets: dict[int, tuple[str, ...]] = {}
        if not self._by_namespace or not len(violates):
            return Violations(violates, budgets)
        class_ids = pods.class_id[victims.pod_ids]
        classes_of: dict[int, tuple[PodDisruptionBudget, list[int]]] = {}
        for class_id in np.unique(class_ids).tolist():
            for budget in self._protecting(class_id, pods):
                classes_of.setdefault(id(budget), (budget, []))[1].append(class_id)
        places = victims.places
        for budget, protected in classes_of.values():
            counted = np.isin(class_ids, protected)
            if budget.disrupted_pods:
                # The API server has taken these off the budget already.
                for index in np.flatnonzero(counted).tolist():
                    if pods[int(victims.pod_ids[index])].name in budget.disrupted_pods:
                        counted[index] = False
            so_far = np.cumsum(counted)
            before_node = np.append(0, so_far)[victims.starts[:-1]]
            one_too_many = counted & (so_far - before_node[places] > budget.disruptions_allowed)
            violates |= one_too_many
            name = f"{budget.meta.namespace}/{budget.meta.name}"
            for index in np.flatnonzero(one_too_many).tolist():
                budgets[index] = (*budgets.get(index, ()), name)
        return Violations(violates, budgets)

    def _protecting(self, class_id: int, pods: PodTable) -> list[PodDisruptionBudget]:
        found = self._of_class.get(class_id)
        if found is None:
            namespace, items = pods.vocabulary.pod_classes[class_id]
            labels = dict(items)
            found = self._of_class[class_id] = [
                budget
                for budget in self._by_namespace.get(namespace, ())
                # A pod without labels is not asked about, though `NotIn` would match it.
                if labels and budget.selector.matches(labels)
            ]
        return found
