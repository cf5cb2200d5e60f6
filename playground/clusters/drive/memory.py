"""Engines this process drove lately, kept so that the next step needs no loading."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from playground.clusters.models import Cluster
from playground.engine.batch import Engine

MAX_ENGINES: Final = 24


@dataclass(slots=True)
class Driven:
    """An engine and what the rows already say of its queue.

    Attributes
    ----------
    engine
        Exactly the committed state at `engine_seq`.
    lanes
        ``namespace/name`` -> lane and the node held, as the pod rows have them; None = not read yet.
    unsaved_s
        Wall seconds it was driven since its last checkpoint.
    """

    generation: int
    engine_seq: int
    engine: Engine
    lanes: dict[str, tuple[str, str]] | None = field(default=None, repr=False)
    unsaved_s: float = 0.0


class EngineMemory:
    """At most `MAX_ENGINES`, the least recently driven one leaves first."""

    def __init__(self) -> None:
        self._engines: OrderedDict[int, Driven] = OrderedDict()

    def take(self, cluster: Cluster) -> Driven | None:
        """The engine at the cluster's committed state, or at an earlier one; it is no longer remembered then.

        The worker that takes it puts it back after its commit. One that was not committed is never put back.
        """
        driven = self._engines.pop(cluster.pk, None)
        if driven is None or driven.generation != cluster.generation:
            return None
        return driven if driven.engine_seq <= cluster.engine_seq else None

    def holds(self, cluster: Cluster) -> bool:
        """Whether the engine at exactly the cluster's committed state is here."""
        driven = self._engines.get(cluster.pk)
        return driven is not None and (driven.generation, driven.engine_seq) == (
            cluster.generation,
            cluster.engine_seq,
        )

    def put(self, cluster_id: int, driven: Driven) -> None:
        """Remember it."""
        self._engines[cluster_id] = driven
        self._engines.move_to_end(cluster_id)
        while len(self._engines) > MAX_ENGINES:
            self._engines.popitem(last=False)

    def clear(self) -> None:
        """Forget all."""
        self._engines.clear()


ENGINES: Final = EngineMemory()
