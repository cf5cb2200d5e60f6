"""Preemption: which pods of which node have to go so that a pod fits that fits nowhere.

`evaluator` is the order of things; `potential` finds whom a pod may preempt, `budgets` which of them are protected,
`reprieve` who can stay after all, `kept_tries` keeps that for the next pod, `choice` the node, and `trace` shows every
step.
"""
