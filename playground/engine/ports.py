"""What driving needs of a simulation. scheduler_core's own is in simulator.py; tests bring a small fake."""

from collections.abc import Container, Mapping, Sequence
from typing import Any, Protocol

from playground.engine.entries import (
    CycleRecord,
    Entry,
    MoveRecord,
    NewEntry,
    OutsideCall,
    QueueState,
    Recorded,
)
from playground.engine.timing import ExtensionPointTimes


class Deadline(Protocol):
    """The engine's next timer."""

    @property
    def at_ns(self) -> int: ...

    @property
    def what(self) -> str: ...


class RunReport(Protocol):
    """What one call of a simulation did."""

    @property
    def cycles(self) -> int: ...

    @property
    def stop(self) -> str:
        """idle, cycle, budget, time, or call (an extender's bind call is to be made first)."""
        ...

    @property
    def clock_ns(self) -> int: ...

    @property
    def next_deadline(self) -> Deadline | None: ...

    def message_after(self, cycles: int) -> str:
        """Where it stopped, for a person, after so many cycles of the whole run."""
        ...


class Simulation(Protocol):
    """The running part: virtual clock, queue, world. A pure function of what it is given."""

    @property
    def now_ns(self) -> int: ...

    def submit(self, change: Any) -> None: ...

    def step(self) -> RunReport: ...

    def run_until_idle(self, *, max_cycles: int, until_ns: int | None = None) -> RunReport: ...

    def advance(self, duration_ns: int, *, max_cycles: int) -> RunReport: ...

    def next_deadline(self) -> Deadline | None: ...

    def checkpoint(self) -> dict[str, Any]: ...


class Simulator(Protocol):
    """Makes simulations and translates between them and log entries."""

    version: str

    def new(
        self,
        *,
        config: dict[str, Any] | None,
        seed: int,
        start_ns: int,
        release: dict[str, Any] | None = None,
        transport: Any = None,
    ) -> Simulation:
        """A fresh engine of an empty cluster; `transport` carries its extender calls."""
        ...

    def restore(self, document: dict[str, Any], *, transport: Any = None) -> Simulation:
        """An engine from what its `checkpoint` gave."""
        ...

    def watch(self, simulation: Any, times: ExtensionPointTimes) -> None:
        """Have the simulation's extension points timed."""
        ...

    def cycle(self, simulation: Any) -> int:
        """Number of the cycle that runs, or of the next one."""
        ...

    def calls(self, simulation: Any) -> Sequence[OutsideCall]:
        """Bind calls it waits for, in order."""
        ...

    def change(self, entry: Entry) -> Any:
        """An input entry as the simulation takes it."""
        ...

    def manifest(self, simulation: Any, kind: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """An object as it is now; None when there is none. `namespace` is empty for cluster-scoped kinds."""
        ...

    def outcomes(self, simulation: Any) -> Sequence[NewEntry]:
        """Drain what the engine did since the last call, in order."""
        ...

    def cycles(self, simulation: Any, wanted: Container[int] | None = None) -> Sequence[CycleRecord]:
        """Drain the cycles run since the last call, in order; those of other numbers than `wanted` are dropped."""
        ...

    def keep_full_traces(self, simulation: Any, of: bool | Container[int], *, unplaced: bool = False) -> None:
        """From now on keep verdicts and scores of all cycles, or of those of these numbers alone.

        With `unplaced` also of every cycle that chose no node.
        """
        ...

    def follow(self, simulation: Any, recorded: Recorded | None) -> None:
        """From now on place pods as recorded, where that needs no deciding; None decides every cycle."""
        ...

    def cycles_under_way(self, simulation: Any) -> Sequence[int]:
        """Numbers of the cycles that will come again, with the trace they have now."""
        ...

    def moves(self, simulation: Any) -> Sequence[MoveRecord]:
        """Drain the queue's moves since the last call, in order."""
        ...

    def queue(self, simulation: Any) -> dict[str, list[dict[str, Any]]]:
        """The queue now: lane -> pods in the lane's own order (see README.md for the keys)."""
        ...

    def queue_state(self, simulation: Any, *, whole: bool) -> QueueState:
        """The queue now, with every pod described or only the first of each lane."""
        ...
