"""Which plugin wants to hear of which event.

Source: pkg/scheduler/scheduler.go buildQueueingHintMap, pkg/scheduler/backend/queue, v1.34
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from scheduler_core.framework.cluster_event import (
    NODE,
    POD,
    QUEUE,
    RESOURCE_OF_KIND,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    HintFunction,
    QueueingHint,
)
from scheduler_core.objects.pod import Pod

_ALWAYS = QUEUE.because("every such event may help")


def always_queue(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """The hint of a registration without one."""
    return _ALWAYS


class HintEntry(NamedTuple):
    """One line of the hint table."""

    event: ClusterEvent
    plugin: str
    hint: HintFunction


Asked = tuple[str, HintFunction]
"""A plugin that is asked about an event, and its hint; one object for each event."""


class HintMap:
    """The hint table of one profile: who is asked what when an event happens."""

    def __init__(self, entries: Iterable[HintEntry]) -> None:
        self.entries = tuple(entries)
        self._interested: dict[tuple[str, int], tuple[Asked, ...]] = {}

    def interested(self, event: ClusterEvent) -> tuple[Asked, ...]:
        """Plugins whose registrations cover the event, with their hints, in the table's order."""
        known = self._interested.get((event.resource, int(event.action)))
        if known is None:
            known = tuple((entry.plugin, entry.hint) for entry in self.entries if entry.event.matches(event))
            self._interested[(event.resource, int(event.action))] = known
        return known


def build_hint_map(
    registrations: Mapping[str, Sequence[ClusterEventWithHint]], *, with_node_taints: bool = True
) -> HintMap:
    """The hint table of a profile from what its plugins register, in the order of the plugins.

    Until 1.36 (`with_node_taints`) a plugin that wants Node/Add but not Node/UpdateNodeTaint gets one more entry,
    Node/UpdateNodeTaint with the answer Queue: a stand-in for node additions that an old check used to filter out.
    """
    entries = []
    for plugin, events in registrations.items():
        node_actions = 0
        for registration in events:
            event = registration.event
            entries.append(HintEntry(event, plugin, registration.hint or always_queue))
            if event.resource == NODE:
                node_actions |= int(event.action)
        if (
            with_node_taints
            and node_actions & ActionType.ADD
            and not node_actions & ActionType.UPDATE_NODE_TAINT
        ):
            entries.append(HintEntry(ClusterEvent(NODE, ActionType.UPDATE_NODE_TAINT), plugin, always_queue))
    return HintMap(entries)


ALL_EVENTS: tuple[ClusterEventWithHint, ...] = tuple(
    ClusterEventWithHint(ClusterEvent(resource, ActionType.ALL))
    for resource in (POD, NODE, *(name for kind, name in RESOURCE_OF_KIND.items() if kind != "PodGroup"))
)
"""What is registered for a filtering plugin that does not say what it waits for.

Source: pkg/scheduler/framework/types.go UnrollWildCardResource, v1.34
"""
