"""Preemption: which pods of which node have to go so that a pod fits that fits nowhere.

`evaluator` is the order of things; `potential` finds whom a pod may preempt, `budgets` which of them are protected,
`reprieve` who can stay after all, `choice` the node, and `trace` keeps every step for whoever looks.
"""

from scheduler_core.framework.preemption.budgets import Budgets
from scheduler_core.framework.preemption.evaluator import OFFSET_STREAM, TIE_STREAM, preempt
from scheduler_core.framework.preemption.trace import PreemptionTrace, preemption_document

__all__ = ["OFFSET_STREAM", "TIE_STREAM", "Budgets", "PreemptionTrace", "preempt", "preemption_document"]
