"""Preemption for a whole pod group: pods anywhere without which all of it finds room.

Source: pkg/scheduler/framework/preemption/podgrouppreemption.go and types.go, v1.36
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from scheduler_core.cluster.cache import Cache
from scheduler_core.framework.preemption.candidates import KIND as BUDGET
from scheduler_core.framework.status import SUCCESS, Code, Status
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.policy import KIND, PodDisruptionBudget, PodGroup

NEVER = "not eligible due to preemptionPolicy=Never."
NO_VICTIMS = "No preemption victims found for incoming preemptor"


@dataclass(frozen=True, slots=True)
class GroupPreemptor:
    """The group that needs room; `never` where a member's preemptionPolicy is Never."""

    group: PodGroup
    never: bool


@dataclass(slots=True)
class Unit:
    """Pods that are evicted together or not at all: one pod, or a group that is disrupted as one."""

    pods: list[Pod]
    priority: int
    is_group: bool


def find_group_victims(
    preemptor: GroupPreemptor, cache: Cache, fits: Callable[[], Status], now_ns: int
) -> tuple[tuple[Pod, ...], Status]:
    """Take all lesser pods off, then give back as many as the group can stand, the most important first.

    Parameters
    ----------
    fits : callable
        Whether the group can be placed in the cluster as it is at that moment.
    now_ns : int
        When pods count as started that say nothing of it.

    Returns
    -------
    victims : tuple of Pod
        In order of importance.
    status : Status
        Why there are none where it is not a success.
    """
    if preemptor.never:
        return (), Status(Code.Unschedulable, (NEVER,))
    units = [unit for unit in _units(cache) if unit.priority < preemptor.group.priority]
    if not units:
        return (), Status(Code.UnschedulableAndUnresolvable, (NO_VICTIMS,))
    with _restored(cache):
        for unit in units:
            _take_off(cache, unit)
        status = fits()
        if not status.is_success:
            return (), status
        units.sort(key=lambda unit: _importance(unit, now_ns))
        violating, others = _by_violation(units, cache)
        victims = [unit for unit in (*violating, *others) if not _can_stay(cache, unit, fits)]
    victims.sort(key=lambda unit: _importance(unit, now_ns))
    return tuple(pod for unit in victims for pod in unit.pods), SUCCESS


def _units(cache: Cache) -> list[Unit]:
    """Everything that could be evicted, node by node."""
    found: dict[str, Unit] = {}
    for pod in cache.pods_in_order():
        group: PodGroup | None = None
        if pod.scheduling_group:
            group = cache.listers.get(KIND, pod.namespace, pod.scheduling_group)
        if group is None or not group.disrupted_together:
            found[f"pod/{pod.uid}"] = Unit([pod], pod.priority, bool(pod.scheduling_group))
        elif (unit := found.get(f"group/{group.uid}")) is not None:
            unit.pods.append(pod)
        else:
            found[f"group/{group.uid}"] = Unit([pod], group.priority, True)
    return list(found.values())


def _importance(unit: Unit, now_ns: int) -> tuple[int, bool, int, int]:
    """Ascending from the most important. Source: podgrouppreemption.go moreImportantVictim, v1.36.

    A group counts as started when its first pod is, as upstream.
    """
    start_ns = unit.pods[0].start_ns
    started_ns = now_ns if start_ns is None else start_ns
    return -unit.priority, not unit.is_group, -len(unit.pods) if unit.is_group else 0, started_ns


def _by_violation(units: list[Unit], cache: Cache) -> tuple[list[Unit], list[Unit]]:
    """Units whose eviction is one too many for a budget, and the others.

    Source: preemption.go filterVictimsWithPDBViolation, v1.36
    """
    budgets: list[PodDisruptionBudget] = [
        budget
        for budget in cache.listers.all(BUDGET)
        if not budget.selector.is_everything and not budget.selector.is_nothing
    ]
    left = [budget.disruptions_allowed for budget in budgets]

    def violates(pod: Pod) -> bool:
        for place, budget in enumerate(budgets if pod.labels else ()):
            if (
                budget.meta.namespace == pod.namespace
                and budget.selector.matches(pod.labels)
                and pod.name not in budget.disrupted_pods
            ):
                left[place] -= 1
                if left[place] < 0:
                    return True
        return False

    violating: list[Unit] = []
    others: list[Unit] = []
    for unit in units:
        # Every pod is counted: no short cut at the first that violates.
        said = [violates(pod) for pod in unit.pods]
        (violating if any(said) else others).append(unit)
    return violating, others


def _can_stay(cache: Cache, unit: Unit, fits: Callable[[], Status]) -> bool:
    for pod in unit.pods:
        cache.put_back(pod)
    if fits().is_success:
        return True
    _take_off(cache, unit)
    return False


def _take_off(cache: Cache, unit: Unit) -> None:
    for pod in unit.pods:
        cache.set_aside(pod)


@contextmanager
def _restored(cache: Cache) -> Iterator[None]:
    """Whatever is set aside meanwhile is back afterwards, every pod in its old place on its node."""
    before = cache.pods_in_order()
    try:
        yield
    finally:
        cache.restore_order(before)
