"""Where Kubernetes leaves the model on purpose, one sentence each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DEPARTURES: Final[Mapping[str, str]] = {
    "backoff": (
        "A pod whose last attempt failed lets its backoff pass first, however important it is: pods below it go on."
    ),
    "hints": (
        "A pod that was found unschedulable is not tried again before something happens that a plugin which rejected"
        " it waits for (queueing hints), or five minutes are over."
    ),
    "gated": "A pod with scheduling gates, or held back by another PreEnqueue plugin, has no turn at all.",
    "popFromBackoff": (
        "When activeQ is empty the scheduler does not rest: it takes a pod out of backoffQ before its time"
        " (SchedulerPopFromBackoffQ)."
    ),
    "otherScheduler": "A pod whose schedulerName is no profile of this scheduler is left to another one.",
    "sampling": (
        "With percentageOfNodesToScore only so many feasible nodes are looked for, from a start index that moves on"
        " with every cycle: a node that was not looked at may be better."
    ),
    "nominated": (
        "A pod that was nominated to a node is tried there alone, and takes it without asking the other nodes."
    ),
    "nominatedRoom": (
        "Room that was made for a nominated pod of equal or higher priority counts as taken: filters run twice on"
        " such a node, with the nominated pods and without them, and both must pass. A plugin that PreFilter skipped is"
        " asked in neither: the anti-affinity of a nominated pod may be overlooked."
    ),
    "extender": (
        "An extender may reject nodes, add points and replace victims; what it answers is not derived from the"
        " cluster's objects."
    ),
    "reprieve": (
        "Victims are not searched for among all sets of pods: on each node all lower pods go, then come back one by"
        " one, those whose eviction violates a budget first, then by importance, as long as the pod still fits. That"
        " is the least only by chance."
    ),
    "candidates": (
        "Preemption is tried from a random offset (the node phase) until enough candidates are found (a tenth of the"
        " nodes, at least 100): a node that was not tried, or came when as many that violate a budget were found, may"
        " lose less."
    ),
    "unresolvable": ("Preemption is not tried on a node that a filter called UnschedulableAndUnresolvable."),
    "preemptionPolicy": "A pod with preemptionPolicy: Never evicts no one, whatever it would gain.",
    "terminating": (
        "A pod whose victims on its nominated node are still terminating waits for them instead of evicting more."
    ),
    "noPreemption": "The profile runs no DefaultPreemption at PostFilter.",
    "budgets": (
        "PodDisruptionBudgets are kept as well as possible, not always: a candidate that violates one is taken when"
        " there is none that violates fewer."
    ),
}
