"""Preemption: which pods of which node have to go so that a pod fits that fits nowhere.

`evaluator` is the order of things; `candidates` finds whom a pod may preempt, which of them are protected and which
node is best, `reprieve` who can stay after all (and keeps that for the next pod), `group` does it for a pod group, and
`trace` shows every step.
"""
