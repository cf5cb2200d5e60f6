"""Preemptions that go on beside the scheduling cycle: their victims are deleted, their preemptors are held.

Source: pkg/scheduler/framework/preemption/executor.go prepareCandidateAsync and isRunningPreemption, v1.36
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_core.actions import EvictBeside, EvictPod


class Preemptions:
    """Evictions that were asked for and are not over, by the uid of the pod or group they make room for.

    Parameters
    ----------
    is_asynchronous : bool
        Whether evictions go on beside the cycle at all; otherwise they are part of it.
    """

    def __init__(self, is_asynchronous: bool) -> None:
        self.is_asynchronous = is_asynchronous
        self._running: dict[str, tuple[EvictPod, ...]] = {}

    def begin(self, uid: str, evictions: Sequence[EvictPod]) -> EvictBeside:
        """From now on the preemptor is held until `end`."""
        self._running[uid] = tuple(evictions)
        return EvictBeside(uid, self._running[uid])

    def end(self, uid: str) -> tuple[EvictPod, ...]:
        """It is over; the evictions it was about."""
        return self._running.pop(uid, ())

    def is_running(self, uid: str) -> bool:
        """Whether this pod or group waits for evictions to be asked for."""
        return uid in self._running

    def evictions(self, uid: str) -> tuple[EvictPod, ...]:
        return self._running.get(uid, ())

    def uids(self) -> list[str]:
        """In order of beginning."""
        return list(self._running)

    def take_over(self, uid: str, evictions: Sequence[EvictPod]) -> None:
        """Go on with one of a checkpoint."""
        self._running[uid] = tuple(evictions)
