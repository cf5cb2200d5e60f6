"""What preemption goes by besides the cluster: how equals are told apart, and extenders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class ChoiceOptions:
    """How equals are told apart, and how many candidates are worth a look.

    Attributes
    ----------
    first_of_ties : bool
        Take the first name of equals instead of drawing one: for comparing with recordings.
    all_preemption_candidates : bool
        Try preemption on every node where it might help, not on a sample of them.
    """

    first_of_ties: bool = False
    all_preemption_candidates: bool = False


class PreemptingExtenders(Protocol):
    """Extenders as preemption asks them (`extender.chain.ExtenderChain`)."""

    def preempt(
        self, pod: Pod, candidates: Mapping[str, tuple[tuple[Pod, ...], int]], snapshot: Snapshot
    ) -> ExtendersLeft:
        """`candidates` by node name: victims in order, and how many of them violate a budget."""
        ...


class ExtendersLeft(Protocol):
    """What extenders left of the candidates; with an error the whole preemption ends in it."""

    @property
    def candidates(self) -> dict[str, tuple[tuple[Pod, ...], int]]: ...

    @property
    def error(self) -> str | None: ...

    @property
    def calls(self) -> Sequence[Any]: ...
