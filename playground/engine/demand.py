"""Bounds of a run, and how many pods a workload's controller will make."""

from scheduler_core.scenario.bounds import DAY_NS, MAX_VIRTUAL_NS, is_controlled, pods_asked_for

__all__ = ["DAY_NS", "MAX_VIRTUAL_NS", "is_controlled", "pods_asked_for"]
