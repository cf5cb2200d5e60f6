"""The formal model of scheduling, checked on every cycle of a run: order, placement, minimal casualty.

The model says of a cycle: the pod taken is the first of those that wait; it is bound to a node that is feasible, and
viable, that is, of the highest score among the feasible; and where none is feasible, the pods that are evicted are
the least casualty of all sets of lower pods on all nodes that would make one feasible. Kubernetes leaves the model in
places on purpose (`departures.DEPARTURES`). What is checked here is evaluated one node and one pod at a time from
the objects, not from the columns and kept answers the decision came from.
"""

from scheduler_core.model.departures import DEPARTURES
from scheduler_core.model.report import ModelReport
from scheduler_core.model.run import check_scenario
from scheduler_core.model.verdict import FAILS, HOLDS, LEAVES, NOT_COMPUTED, PROPERTIES, PropertyVerdict

__all__ = [
    "DEPARTURES",
    "FAILS",
    "HOLDS",
    "LEAVES",
    "NOT_COMPUTED",
    "PROPERTIES",
    "ModelReport",
    "PropertyVerdict",
    "check_scenario",
]
