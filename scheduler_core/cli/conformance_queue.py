"""Compare the queue and the plugins' hints with what the real scheduler did."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from scheduler_core.cli.conformance import Difference, differences, present, release_of
from scheduler_core.clock import Clock
from scheduler_core.cluster.listers import Listers
from scheduler_core.config.wire import build
from scheduler_core.errors import InvalidObject
from scheduler_core.framework.cluster_event import (
    ASSIGNED_POD,
    NODE,
    POD,
    QUEUE,
    SKIP,
    UNSCHEDULABLE_POD,
    WILDCARD_EVENT,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    HintFunction,
    QueueingHint,
    node_update_events,
    pod_update_events,
)
from scheduler_core.objects.defaults import StoredPriorities, prepare
from scheduler_core.objects.fields import Document, mapping, parse_time_ns
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import DEFAULT_SCHEDULER_NAME, Pod, pod_from
from scheduler_core.plugins import REGISTRY
from scheduler_core.plugins.scheduling_gates import closed_gates
from scheduler_core.queue.hints import HintMap, build_hint_map
from scheduler_core.queue.lanes import SECOND_NS
from scheduler_core.queue.queued_pod_info import QueuedPodInfo
from scheduler_core.queue.scheduling_queue import Rejection, SchedulingQueue
from scheduler_core.releases import OLDEST, Release

MILLISECOND_NS = 1_000_000


# --- queueing-hints -----------------------------------------------------------------------------------------


def run_hint_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the family `queueing-hints`.

    Returns
    -------
    list of Difference
        Empty when every key of `expect` agrees, the messages of errors included.

    Raises
    ------
    ValueError
        The kind is not known.
    """
    kind, expect, release = case["kind"], case["expect"], release_of(case)
    if kind == "registrations":
        got = _registrations(case["plugin"], release)
    elif kind == "match":
        incoming = _event(case["incomingEvent"])
        got = {"match": _event(case["registeredEvent"]).matches(incoming), "label": incoming.label}
    elif kind == "events":
        old, new = _object(case["old"]), _object(case["new"])
        events = node_update_events(old, new) if isinstance(new, Node) else pod_update_events(old, new)
        got = {"events": [_event_document(event) for event in events]}
    elif kind == "hint":
        got = _hint(case)
    else:
        raise ValueError(f"queueing-hints case of unknown kind {kind!r}")
    return list(differences(present(expect), present(got)))


def _registrations(plugin: str, release: Release) -> dict[str, Any]:
    says = registrations(plugin, release=release)
    registered = says or []
    effective = build_hint_map({plugin: registered})
    return {
        "implementsEnqueueExtensions": says is not None,
        "eventsToRegister": _sorted(
            {**_mask_document(item.event, release), "hintFn": item.hint is not None} for item in registered
        ),
        "effective": _sorted(_mask_document(entry.event, release) for entry in effective.entries),
    }


def _sorted(documents: Any) -> list[dict[str, Any]]:
    return sorted(documents, key=lambda document: (document["resource"], document["mask"]))


def _hint(case: Mapping[str, Any]) -> dict[str, Any]:
    pod = _lenient_pod(case["pod"])
    event = _event(case["event"])
    old, new = _object(case.get("old")), _object(case.get("new"))
    listers = _listers(case.get("objects") or ())
    registered = registrations(case["plugin"], case.get("config"), listers, release_of(case))
    hint_map = build_hint_map({case["plugin"]: registered or []})
    asked = hint_map.interested(event)
    if not asked:
        return {"registered": False, "hint": None}
    answer: dict[str, Any] = {"registered": True, "hint": "Skip"}
    for _, hint_function in asked:
        try:
            if hint_function(pod, old, new).queues:
                return {"registered": True, "hint": "Queue"}
        except Exception as error:  # what a hint raises is its answer
            answer = {"registered": True, "hint": "error", "error": str(error)}
    return answer


def registrations(
    plugin: str,
    config: Mapping[str, Any] | None = None,
    listers: Listers | None = None,
    release: Release = OLDEST,
) -> Sequence[ClusterEventWithHint] | None:
    """What an in-tree plugin registers, with the args a configuration gives it."""
    registry = REGISTRY.in_release(release)
    spec = registry.catalog[plugin]
    written = [
        dict(mapping(item, "args", ""))
        for profile in (config or {}).get("profiles") or ()
        for item in profile.get("pluginConfig") or ()
        if item["name"] == plugin
    ]
    args = spec.default_args()
    if written and spec.args is not None:
        spec.args.set_defaults(written[-1])
        args = build(spec.args, written[-1])
    handle: Any = SimpleNamespace(listers=listers or Listers(), release=release)
    return registry[plugin](args, handle).events()


def default_registrations(
    listers: Listers | None = None, release: Release = OLDEST
) -> dict[str, Sequence[ClusterEventWithHint]]:
    """What the plugins of the default profile register, those left out that do not say."""
    said = {
        name: registrations(name, listers=listers, release=release)
        for name, _ in REGISTRY.in_release(release).catalog.defaults
    }
    return {plugin: events for plugin, events in said.items() if events is not None}


def _listers(objects: Sequence[Document]) -> Listers:
    listers = Listers()
    for manifest in objects:
        prepared = prepare(manifest, StoredPriorities())
        listers.set(*parse(prepared))
    return listers


# --- queue --------------------------------------------------------------------------------------------------


def run_queue_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the family `queue`.

    Returns
    -------
    list of Difference
        Empty when every step agrees; keys are `steps[i].<key>`. Differences of the first step that differs
        only, as all later ones follow from it.
    """
    run = _QueueRun(case)
    for index, (operation, expected) in enumerate(zip(case["ops"], case["expect"]["steps"], strict=True)):
        found = list(differences(present(expected), present(run.step(operation)), f"steps[{index}]"))
        if found:
            return found
    return []


class _QueueRun:
    """A queue with the pods of a case in their latest versions."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        config = case["config"]
        self._start_ns = parse_time_ns(case["start"])
        self._clock = Clock(self._start_ns)
        self._pods: dict[str, Pod] = {}
        self._popped: dict[str, QueuedPodInfo] = {}
        if case["hints"] is None:
            hints = build_hint_map(default_registrations(_listers(case["objects"]), release_of(case)))
        else:
            hints = _scripted_hints(case["hints"])
        self._queue = SchedulingQueue(
            self._clock,
            hints={DEFAULT_SCHEDULER_NAME: hints},
            pre_enqueue={DEFAULT_SCHEDULER_NAME: [("SchedulingGates", _gates)]},
            initial_backoff_ns=config["podInitialBackoffSeconds"] * SECOND_NS,
            max_backoff_ns=config["podMaxBackoffSeconds"] * SECOND_NS,
            max_in_unschedulable_ns=config["podMaxInUnschedulablePodsSeconds"] * SECOND_NS,
        )

    def step(self, operation: Mapping[str, Any]) -> dict[str, Any]:
        self._clock.move_to(self._start_ns + operation["at"] * MILLISECOND_NS)
        answers = getattr(self, f"_{operation['op']}")(operation) or {}
        return {**self._state(), **answers}

    def _add(self, operation: Mapping[str, Any]) -> None:
        pod = _lenient_pod(operation["pod"])
        self._pods[pod.key] = pod
        self._queue.add(pod)

    def _pop(self, operation: Mapping[str, Any]) -> dict[str, Any]:
        info = self._queue.pop()
        if info is None:
            return {"result": {"blocks": True}}
        self._popped[info.key] = info
        result = {
            "pod": info.key,
            "attempts": info.attempts,
            "unschedulableCount": info.unschedulable_count,
            "consecutiveErrors": info.consecutive_errors_count,
        }
        return {"result": result}

    def _fail(self, operation: Mapping[str, Any]) -> None:
        info = self._popped.pop(operation["pod"])
        info.pod = self._pods.get(info.key, info.pod)
        info.unschedulable_plugins = frozenset(operation.get("unschedulable") or ())
        info.pending_plugins = frozenset(operation.get("pending") or ())
        self._queue.add_unschedulable(info)

    def _done(self, operation: Mapping[str, Any]) -> None:
        info = self._popped.pop(operation["pod"])
        self._queue.done(info.pod.uid)

    def _event(self, operation: Mapping[str, Any]) -> dict[str, Any]:
        old, new = _object(operation.get("old")), _object(operation.get("new"))
        named = _event(operation["event"])
        events: Sequence[ClusterEvent] = [named]
        if old is not None and new is not None:
            if named.resource == NODE:
                events = node_update_events(old, new)
            elif named.resource in (POD, ASSIGNED_POD, UNSCHEDULABLE_POD):
                events = pod_update_events(old, new)
        for event in events:
            self._queue.move_all(event, old, new)
        return {"events": [_event_document(event) for event in events]} if events else {}

    def _wildcard(self, operation: Mapping[str, Any]) -> None:
        self._queue.move_all(WILDCARD_EVENT)

    def _update(self, operation: Mapping[str, Any]) -> dict[str, Any]:
        new = _lenient_pod(operation["pod"])
        old = self._pods.get(new.key)
        self._pods[new.key] = new
        self._queue.update(old, new)
        return {"events": [_event_document(event) for event in pod_update_events(old, new)]} if old else {}

    def _delete(self, operation: Mapping[str, Any]) -> None:
        self._queue.delete(self._pods[operation["pod"]])

    def _activate(self, operation: Mapping[str, Any]) -> None:
        self._queue.activate([self._pods[key] for key in operation["pods"]])

    def _flushBackoff(self, operation: Mapping[str, Any]) -> None:
        self._queue.flush_backoff()

    def _flushUnschedulable(self, operation: Mapping[str, Any]) -> None:
        self._queue.flush_unschedulable()

    def _state(self) -> dict[str, Any]:
        queue = self._queue
        lanes = (
            queue.active_pods(),
            queue.backoff_pods(),
            queue.error_backoff_pods(),
            queue.unschedulable_pods(),
        )
        active, backoff, error_backoff, unschedulable = lanes
        return {
            "active": [info.key for info in active],
            "backoff": [self._remaining(info) for info in backoff],
            # The order within one expiration means nothing.
            "errorBackoff": [self._remaining(info) for info in sorted(error_backoff, key=self._expiration)],
            "unschedulable": [_waiting(info) for info in sorted(unschedulable, key=lambda info: info.key)],
            "inFlight": sorted(pod.key for pod in queue.in_flight_pods()),
            "attempts": {info.key: info.attempts for lane in lanes for info in lane},
        }

    def _expiration(self, info: QueuedPodInfo) -> tuple[int, str]:
        return self._queue.expiration_ns(info) or 0, info.key

    def _remaining(self, info: QueuedPodInfo) -> dict[str, Any]:
        remaining_ns = (self._queue.expiration_ns(info) or 0) - self._clock.now_ns
        return {"pod": info.key, "remainingMs": remaining_ns // MILLISECOND_NS}


def _waiting(info: QueuedPodInfo) -> dict[str, Any]:
    document: dict[str, Any] = {"pod": info.key, "plugins": sorted(info.unschedulable_plugins)}
    if info.pending_plugins:
        document["pending"] = sorted(info.pending_plugins)
    if info.gating_plugin:
        document["gatedBy"] = info.gating_plugin
    return document


def _gates(pod: Pod) -> Rejection | None:
    reason = closed_gates(pod)
    return None if reason is None else Rejection(reason)


def _scripted_hints(entries: Sequence[Mapping[str, Any]]) -> HintMap:
    table: dict[str, list[ClusterEventWithHint]] = {
        "SchedulingGates": list(registrations("SchedulingGates") or ())
    }
    for entry in entries:
        registration = ClusterEventWithHint(_event(entry), _scripted_hint(entry["hint"]))
        table.setdefault(entry["plugin"], []).append(registration)
    # The table is used as it stands: no extra entries as `build_hint_map` would add.
    return HintMap(
        entry
        for plugin, registered in table.items()
        for entry in build_hint_map({plugin: registered}).entries[: len(registered)]
    )


def _scripted_hint(answer: str) -> HintFunction:
    def hint(pod: Pod, old: Any, new: Any) -> QueueingHint:
        if answer == "error":
            raise RuntimeError("scripted failure")
        return QUEUE if answer == "Queue" else SKIP

    return hint


# --- objects and events -------------------------------------------------------------------------------------


def _object(manifest: Document | None) -> Any:
    if manifest is None:
        return None
    if manifest.get("kind") == "Pod":
        return _lenient_pod(manifest)
    return parse(prepare(manifest, StoredPriorities())).typed


class _Unreadable(tuple[Any, ...]):
    """Affinity terms that cannot be read: a plugin that looks at them gets the error, as upstream's plugins do."""

    error: Exception

    def __bool__(self) -> bool:
        raise self.error

    def __iter__(self) -> Any:
        raise self.error

    def __len__(self) -> int:
        raise self.error


def _lenient_pod(manifest: Document) -> Pod:
    """A pod, even one with an affinity term that no API server would accept (and our admission does not)."""
    prepared = prepare(manifest, StoredPriorities())
    try:
        return pod_from(prepared)
    except InvalidObject as error:
        for kind in ("podAffinity", "podAntiAffinity"):
            if not error.path.startswith(f"spec.affinity.{kind}"):
                continue
            without = copy.deepcopy(dict(manifest))
            del without["spec"]["affinity"][kind]
            pod = replace(_lenient_pod(without), manifest=prepared)
            if not error.path.startswith(f"spec.affinity.{kind}.required"):
                return pod
            unreadable = _Unreadable()
            unreadable.error = error.__cause__ if isinstance(error.__cause__, Exception) else error
            if kind == "podAffinity":
                return replace(pod, required_affinity=unreadable)
            return replace(pod, required_anti_affinity=unreadable)
        raise


def _event(document: Mapping[str, Any]) -> ClusterEvent:
    if "actions" in document:
        mask = ActionType.NONE
        for name in document["actions"]:
            mask |= ActionType.named(name)
        return ClusterEvent(document["resource"], mask)
    return ClusterEvent(document["resource"], ActionType.named(document["action"]))


def _event_document(event: ClusterEvent) -> dict[str, Any]:
    return {"resource": event.resource, "action": event.action.text}


def _mask_document(event: ClusterEvent, release: Release) -> dict[str, Any]:
    names, mask = event.action.names, int(event.action)
    if "NodeDeclaredFeatures" not in release.gates:
        names, mask = [name for name in names if name != "UpdateNodeDeclaredFeature"], event.action.mask_1_34
    return {"resource": event.resource, "actions": names, "mask": mask}
