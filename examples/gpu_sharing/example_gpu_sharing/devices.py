"""GpuDevices: which device of its node each pod has, and which nodes have room. The policies read its columns."""

from dataclasses import dataclass

import numpy as np

from example_gpu_sharing.request import (
    COUNT,
    MILLI,
    MODEL,
    WHOLE,
    GpuRequest,
    given_devices,
    request_of,
)
from scheduler_core.cluster.journal import JournalReader
from scheduler_core.cluster.vocabulary import CPU_ID
from scheduler_core.framework.amounts import Amount, Comparison
from scheduler_core.framework.cluster_event import QUEUE, SKIP, on
from scheduler_core.framework.interface import FilterPlugin, PreFilterPlugin, PreFilterResult, ReservePlugin
from scheduler_core.framework.status import SUCCESS, Code, Status, Verdicts

DEVICES = "example.com/gpu-devices"
"""In the cycle state: the `Devices` of this cycle."""
CHOOSE = "example.com/gpu-choose"
"""In the cycle state, where a policy says so: `choose(pod, request, row)`, the devices a pod gets on a row."""

ABSENT = -1
WRONG_MODEL, NO_DEVICES, NO_ROOM = 1, 2, 3


class Devices:
    """What is free of every device, and what kinds of GPU pods every row holds.

    Attributes
    ----------
    free : ndarray of shape (capacity, n), int64
        Free milli of each row's devices, by number; `ABSENT` where the row has fewer.
    tags : ndarray of shape (capacity,), int64
        A bit for each kind of pod on the row (`tag_of`).
    given : dict of str to tuple of int
        The devices of a pod on a node, by its uid.
    """

    def __init__(self):
        self.free = np.zeros((0, 1), np.int64)
        self.tags = np.zeros(0, np.int64)
        self.given = {}
        self._uids = {}
        self._reader = JournalReader()

    def refresh(self, snapshot):
        """Look again at the rows that changed since the last call; these rows."""
        nodes = snapshot.nodes
        changed = self._reader.changed((nodes.usage_journal,), len(snapshot.rows))
        if changed is None or len(self.free) != nodes.capacity:
            changed = snapshot.rows.tolist()
            widest = max((n_devices_of(nodes, row) for row in changed), default=1)
            self.free = np.full((nodes.capacity, max(widest, 1)), ABSENT, np.int64)
            self.tags = np.zeros(nodes.capacity, np.int64)
        for row in changed:
            self._write(nodes, row)
        return changed

    def _write(self, nodes, row):
        free, tags, uids = [], 0, {}
        if nodes.alive[row]:
            free, tags, uids = self.look(nodes, row)
        if len(free) > self.free.shape[1]:
            more = np.full((len(self.free), len(free) - self.free.shape[1]), ABSENT, np.int64)
            self.free = np.concatenate([self.free, more], axis=1)
        self.free[row] = ABSENT
        self.free[row, : len(free)] = free
        self.tags[row] = tags
        for uid in self._uids.get(row, ()):
            if uid not in uids:
                self.given.pop(uid, None)
        self._uids[row] = uids

    def look(self, nodes, row):
        """Free milli of a row's devices, the kinds of its GPU pods, and their uids.

        A pod whose devices are not known (it was there before this scheduler) counts as packed where it fits best.
        """
        free, tags, uids, unknown = [WHOLE] * n_devices_of(nodes, row), 0, {}, []
        for pod_id in nodes.pods_on(row):
            pod = nodes.pods[pod_id]
            request = _request_or_none(pod)
            if request is None:
                continue
            tags |= tag_of(request)
            uids[pod.uid] = None
            given = self.given.get(pod.uid) or given_devices(pod, len(free))
            if given is None:
                unknown.append(request)
            for device in given or ():
                free[device] = max(free[device] - request.milli, 0)
        for request in unknown:
            for device in best_fit(free, request) or ():
                free[device] -= request.milli
        return free, tags, uids


def n_devices_of(nodes, row):
    return min(nodes.node(row).allocatable.get(COUNT, 0), 64)


def tag_of(request):
    """The kind of a GPU pod as one bit: pods of a share, or of so many devices."""
    return 1 if request.is_share else 1 << min(request.count, 62)


def best_fit(free, request):
    """The fullest devices with room, the lowest number of equals; None where there are too few."""
    fits = [device for device, milli in enumerate(free) if milli >= request.milli]
    fits.sort(key=lambda device: free[device])
    return tuple(sorted(fits[: request.count])) if len(fits) >= request.count else None


def _request_or_none(pod):
    try:
        return request_of(pod)
    except ValueError:
        return None


def free_cpu(nodes, rows):
    """Free millicores."""
    return nodes.allocatable[CPU_ID][rows] - nodes.requested[CPU_ID][rows]


def idle(free):
    """Free milli of all devices of each row."""
    return np.maximum(free, 0).sum(axis=1)


@dataclass(slots=True)
class Asked:
    """A pod's request, and the devices it is held against: the cluster's, or those of a world of its own."""

    request: GpuRequest
    free: np.ndarray


class GpuDevices(PreFilterPlugin[Asked], FilterPlugin[Asked], ReservePlugin):
    """Keeps the devices: filters by them and gives them out."""

    name = "GpuDevices"

    def __init__(self, args, handle):
        super().__init__(args, handle)
        self.devices = Devices()

    def checkpoint(self):
        return {uid: list(given) for uid, given in self.devices.given.items()} or None

    def restore(self, state):
        self.devices.given = {uid: tuple(given) for uid, given in state.items()}

    def pre_filter(self, pod, snapshot):
        self.devices.refresh(snapshot)
        self.handle.cycle_state.write(DEVICES, self.devices)
        try:
            request = request_of(pod)
        except ValueError as error:
            return PreFilterResult(Status(Code.UnschedulableAndUnresolvable, (str(error),)))
        if request is None:
            return PreFilterResult(Status(Code.Skip))
        return PreFilterResult(state=Asked(request, self.devices.free))

    def filter(self, state, pod, nodes, rows):
        request, free = state.request, state.free[rows]
        details = np.where((free >= request.milli).sum(axis=1) < request.count, NO_ROOM, 0)
        details[(free >= 0).sum(axis=1) < request.count] = NO_DEVICES
        if request.models:
            values = nodes.vocabulary.label_values
            models = nodes.label_column(MODEL)[rows]
            details[~np.isin(models, [values[MODEL].id(model) for model in request.models])] = WRONG_MODEL
        codes = np.array([0, 3, 3, 2], np.int8)[details]
        return Verdicts(codes, details)

    def reasons(self, state, pod, nodes, row, code, detail):
        return (
            ("", f"node(s) didn't match {MODEL}", f"Insufficient {COUNT}", f"Insufficient {MILLI}")[detail],
        )

    def compare(self, state, pod, snapshot):
        request, free = state.request, state.free[snapshot.rows]
        room = (free >= request.milli).sum(axis=1)
        words = (Amount(room), f" devices with {request.milli} milli free, {request.count} asked")
        yield Comparison(room < request.count, words)

    def fork(self, state, nodes):
        return Asked(state.request, state.free[nodes.base_rows])

    def add_pods(self, state, pod, nodes, rows, pod_ids):
        for row in rows.tolist():
            free = self.devices.look(nodes, row)[0]
            state.free[row, : len(free)] = free

    remove_pods = add_pods

    def reserve(self, pod, node_name):
        request = request_of(pod)
        if request is None:
            return SUCCESS
        state = self.handle.cycle_state
        row = self.handle.snapshot.nodes.row_of[node_name]
        choose = state.get(CHOOSE)
        # The columns are those of the filter: the pod is not among them yet.
        given = choose(pod, request, row) if choose else best_fit(self.devices.free[row].tolist(), request)
        if given is None:
            return Status(Code.Unschedulable, (f"Insufficient {MILLI}",))
        self.devices.given[pod.uid] = tuple(given)
        return SUCCESS

    def unreserve(self, pod, node_name):
        self.devices.given.pop(pod.uid, None)

    def events(self):
        def left(pod, old, new):
            if _request_or_none(old) is not None:
                return QUEUE.because("a pod with a GPU left")
            return SKIP.because("the pod had no GPU")

        return [
            on("Node", "Add|UpdateNodeAllocatable|UpdateNodeLabel"),
            on("Pod", "Delete", left),
        ]
