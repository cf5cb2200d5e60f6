"""Programs beside a cluster's own controllers; an annotation of the namespace kube-system holds their settings.

So a program is part of the cluster: it is written, edited, undone and shared as any object is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from scheduler_core.autoscaler.pasted import Given, autoscaler_from, read_autoscaler
from scheduler_core.clock import SECOND_NS
from scheduler_core.descheduler.settings import read_settings
from scheduler_core.errors import InvalidObject
from scheduler_core.karpenter.node_pools import read_node_pools
from scheduler_core.objects.documents import pasted_values
from scheduler_core.objects.duration import parse_duration_ns
from scheduler_core.objects.fields import known_fields
from scheduler_core.objects.quantity import Quantity, QuantityError, quantity_from
from scheduler_core.sim.controllers.base import Controller, ControllerContext
from scheduler_core.sim.world import Noticed, annotations_of

NAMESPACE: Final = "kube-system"
SETTINGS: Final = ("settings",)
STARTS_NS: Final = 10 * SECOND_NS
"""From the settings to the first run: a program's pod starts, and lists what is there."""
CLUSTER_AUTOSCALER: Final = "playground.dev/cluster-autoscaler"
DESCHEDULER: Final = "playground.dev/descheduler"
KARPENTER: Final = "playground.dev/karpenter"
VERTICAL: Final = "playground.dev/vertical-pod-autoscaler"
IN_PLACE, RECREATE = UPDATE_MODES = ("InPlaceOrRecreate", "Recreate")
RESOURCES: Final = ("cpu", "memory")
MAKERS: Final = ("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "ReplicationController", "Job")
MAX_TARGETS: Final = 100


def given_from(text: str) -> Given:
    """Flags and node groups of the cluster autoscaler.

    Raises
    ------
    InvalidObject
    """
    return autoscaler_from(read_autoscaler(text))


@dataclass(frozen=True, slots=True)
class VerticalTarget:
    """A workload whose pods get the resources that are recommended.

    Attributes
    ----------
    workload : tuple of str
        Kind, namespace, name.
    resources : tuple of str
        That are controlled.
    given : dict of str to Quantity
        Recommendations that are given; of other resources use and margin make them.
    least, most : dict of str to Quantity
        Bounds of what is recommended.
    """

    workload: tuple[str, str, str]
    mode: str
    resources: tuple[str, ...]
    given: Mapping[str, Quantity]
    least: Mapping[str, Quantity]
    most: Mapping[str, Quantity]


@dataclass(frozen=True, slots=True)
class VerticalSettings:
    """What is resized, how often, and how much more than use is recommended (0.15 is 15 %)."""

    interval_ns: int
    margin: float
    targets: tuple[VerticalTarget, ...]


_VERTICAL: Final = ("updater-interval", "recommendation-margin-fraction", "autoscalers")
_TARGET: Final = ("target", "updateMode", "controlledResources", "recommendation", "minAllowed", "maxAllowed")


def read_vertical(text: str) -> VerticalSettings:
    """Read a vertical pod autoscaler: its flags, and its objects in short.

    Raises
    ------
    InvalidObject
        Names the field and its value.
    """
    documents = pasted_values(text, "vertical")
    if len(documents) != 1:
        raise InvalidObject("vertical", None, "must be one document")
    document = documents[0]
    known_fields(document, _VERTICAL, "vertical")
    interval = str(document.get("updater-interval") or "1m")
    try:
        interval_ns = parse_duration_ns(interval)
        if interval_ns < SECOND_NS:
            raise ValueError
    except ValueError:
        path = "vertical.updater-interval"
        raise InvalidObject(path, interval, "must be a duration of a second at least, as 1m") from None
    margin = document.get("recommendation-margin-fraction", 0.15)
    if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 <= margin <= 10:
        raise InvalidObject(
            "vertical.recommendation-margin-fraction", margin, "must be a number from 0 to 10"
        )
    targets = document.get("autoscalers")
    if not isinstance(targets, list) or not 1 <= len(targets) <= MAX_TARGETS:
        raise InvalidObject("vertical.autoscalers", None, f"must be a list of 1 to {MAX_TARGETS}")
    found = tuple(_target(one, f"vertical.autoscalers[{place}]") for place, one in enumerate(targets))
    return VerticalSettings(interval_ns, float(margin), found)


def _target(document: Any, path: str) -> VerticalTarget:
    known_fields(document, _TARGET, path)
    kind, _, key = str(document.get("target") or "").partition(" ")
    namespace, _, name = key.partition("/")
    if kind not in MAKERS or not namespace or not name:
        words = f"must be KIND NAMESPACE/NAME, of kind {', '.join(MAKERS)}"
        raise InvalidObject(f"{path}.target", document.get("target"), words)
    mode = document.get("updateMode", IN_PLACE)
    if mode not in UPDATE_MODES:
        raise InvalidObject(f"{path}.updateMode", mode, f"must be one of {', '.join(UPDATE_MODES)}")
    resources = document.get("controlledResources", list(RESOURCES))
    if not isinstance(resources, list) or not all(name in RESOURCES for name in resources):
        raise InvalidObject(
            f"{path}.controlledResources", resources, f"must be a list of {', '.join(RESOURCES)}"
        )
    amounts = (_amounts(document.get(field), f"{path}.{field}") for field in _TARGET[3:])
    return VerticalTarget((kind, namespace, name), mode, tuple(resources), *amounts)


def _amounts(given: Any, path: str) -> dict[str, Quantity]:
    known_fields({} if given is None else given, RESOURCES, path)
    found = {}
    for name, amount in (given or {}).items():
        try:
            found[name] = quantity_from(amount)
        except QuantityError as error:
            raise InvalidObject(f"{path}.{name}", amount, str(error)) from None
    return found


BY_AUTOSCALER: Final = "evicted by the cluster autoscaler"
BY_DESCHEDULER: Final = "evicted by the descheduler"
BY_KARPENTER: Final = "evicted by Karpenter"
BY_VERTICAL: Final = "evicted by the vertical pod autoscaler"
EVICTED: Final[Mapping[str, str]] = {
    BY_AUTOSCALER: "the autoscaler",
    BY_DESCHEDULER: "the descheduler",
    BY_KARPENTER: "Karpenter",
    BY_VERTICAL: "the vertical autoscaler",
}
"""The reason with which a pod is written -> who evicted it."""
PROGRAMS: Final[Mapping[str, Callable[[str], object]]] = {
    CLUSTER_AUTOSCALER: given_from,
    DESCHEDULER: read_settings,
    KARPENTER: read_node_pools,
    VERTICAL: read_vertical,
}
"""Annotation of the namespace kube-system -> the reader of its text, which raises InvalidObject."""


def settings_text(settings: Any) -> str:
    """Settings as the text of an annotation; a list is a document each."""
    several = settings if isinstance(settings, list) else [settings]
    return "\n---\n".join(json.dumps(one, sort_keys=True) for one in several)


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
            self.text, self.remembers = text, text is not None
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
        self.ran((), {"settings": {"text": str(error)}})
        stored = self.world.get("Namespace", "", NAMESPACE)
        if stored is not None:
            self.warn(stored.manifest, "InvalidSettings", str(error))

    def stop(self) -> None:
        """End what runs."""
        raise NotImplementedError

    def act(self, key: tuple[str, ...]) -> None:
        """One of its timers has come: its name and subject."""
        raise NotImplementedError
