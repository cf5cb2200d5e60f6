"""The explanation of a scheduling cycle, made ready to be looked at.

Everything here is a pure function from the explanation dictionary (the one the API serves at
``/cycles/{n}/`` and the engine's trace renders) to small frozen dataclasses that a template can walk. No
database, no request, no engine: what a page shows is exactly what the API says.
"""

from playground.web.explanation.cycle import CycleView, view_cycle
from playground.web.explanation.filter_matrix import MATRIX_LIMIT, FilterView, view_filter
from playground.web.explanation.outcomes import OUTCOMES, Outcome, outcome_of
from playground.web.explanation.preemption import PreemptionView, view_preemption
from playground.web.explanation.reason_matrix import ReasonMatrix, view_reason_matrix
from playground.web.explanation.score_table import SCORE_LIMIT, ScoreView, view_scores

__all__ = [
    "MATRIX_LIMIT",
    "OUTCOMES",
    "SCORE_LIMIT",
    "CycleView",
    "FilterView",
    "Outcome",
    "PreemptionView",
    "ReasonMatrix",
    "ScoreView",
    "outcome_of",
    "view_cycle",
    "view_filter",
    "view_preemption",
    "view_reason_matrix",
    "view_scores",
]
