"""Programs beside a cluster's own controllers; an annotation of the namespace kube-system holds their settings.

So a program is part of the cluster: it is written, edited, undone and shared as any object is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from scheduler_core.autoscaler.pasted import Given, autoscaler_from, read_autoscaler
from scheduler_core.clock import SECOND_NS
from scheduler_core.descheduler.settings import DeschedulerSettings, read_settings
from scheduler_core.errors import InvalidObject
from scheduler_core.karpenter.node_pools import NodePool, read_node_pools
from scheduler_core.sim.controllers.base import Controller, ControllerContext
from scheduler_core.sim.world import Noticed, annotations_of

NAMESPACE: Final = "kube-system"
SETTINGS: Final = ("settings",)
STARTS_NS: Final = 10 * SECOND_NS
"""From the settings to the first run: a program's pod starts, and lists what is there."""
CLUSTER_AUTOSCALER: Final = "playground.dev/cluster-autoscaler"
DESCHEDULER: Final = "playground.dev/descheduler"
KARPENTER: Final = "playground.dev/karpenter"


def given_from(text: str) -> Given:
    """Flags and node groups of the cluster autoscaler.

    Raises
    ------
    InvalidObject
    """
    return autoscaler_from(read_autoscaler(text))


PROGRAMS: Final[Mapping[str, Callable[[str], Given | DeschedulerSettings | tuple[NodePool, ...]]]] = {
    CLUSTER_AUTOSCALER: given_from,
    DESCHEDULER: read_settings,
    KARPENTER: read_node_pools,
}
"""Annotation of the namespace kube-system -> the reader of its text, which raises InvalidObject."""


class ClusterProgram(Controller):
    """A program that runs while its annotation is there.

    Attributes
    ----------
    annotation : str
        Holds its settings as text.
    """

    watches: ClassVar[tuple[str, ...]] = ("Namespace",)
    annotation: ClassVar[str]

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.text: str | None = None

    def concerns(self, change: Noticed) -> bool:
        return change.newest.key[1] == NAMESPACE

    def noticed(self, change: Noticed) -> None:
        text = None if change.new is None else annotations_of(change.new.manifest).get(self.annotation)
        if text != self.text:
            self.text = text
            self._to_sync[SETTINGS] = None

    def timer(self, what: str, subject: tuple[str, ...]) -> None:
        self._to_sync[(what, *subject)] = None

    def sync_key(self, key: tuple[str, ...]) -> None:
        if key != SETTINGS:
            self.act(key)
            return
        for what in self.timer_names:
            self.timers.cancel(what)
        self.reasons.clear()
        self.stop()
        if self.text is not None:
            self.timers.add(self.world.clock.now_ns + STARTS_NS, self.timer_names[0])

    def refused(self, error: InvalidObject) -> None:
        """Say that the settings cannot be used."""
        self.ran((), {"settings": str(error)})
        stored = self.world.get("Namespace", "", NAMESPACE)
        if stored is not None:
            self.warn(stored.manifest, "InvalidSettings", str(error))

    def stop(self) -> None:
        """End what runs."""
        raise NotImplementedError

    def act(self, key: tuple[str, ...]) -> None:
        """One of its timers has come: its name and subject."""
        raise NotImplementedError
