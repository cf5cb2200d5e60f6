"""Gang: pods that carry one gang's label are bound together, or give their nodes back together.

After sigs.k8s.io/scheduler-plugins pkg/coscheduling: QueueSort keeps a gang together, Permit has its members wait for
each other, and one that waits wakes the others.
"""

from dataclasses import dataclass

from scheduler_core.config.args import PluginArgs, invalid
from scheduler_core.framework.cluster_event import QUEUE, SKIP, on
from scheduler_core.framework.interface import PermitPlugin, QueueSortPlugin, ReservePlugin
from scheduler_core.framework.status import SUCCESS, Code, Status

GANG = "example.com/gang"
SIZE = "example.com/gang-size"


@dataclass(frozen=True)
class GangArgs(PluginArgs):
    wait_seconds: float = 60

    def problems(self, path):
        if self.wait_seconds <= 0:
            yield invalid(f"{path}.waitSeconds", self.wait_seconds, "must be above 0")


def gang_of(pod):
    """(namespace, gang), None for a pod of no gang."""
    name = pod.labels.get(GANG)
    return (pod.namespace, name) if name else None


def size_of(pod):
    text = pod.labels.get(SIZE, "1")
    return int(text) if text.isdecimal() else 1


class Gang(QueueSortPlugin, ReservePlugin, PermitPlugin):
    """Members wait for each other at Permit; what a gang holds is said by its reservations."""

    name = "Gang"
    Args = GangArgs
    group_labels = (GANG,)

    def __init__(self, args, handle):
        super().__init__(args, handle)
        self.wait_ns = int(args.wait_seconds * 1e9)
        self.reserved = {}

    def checkpoint(self):
        return {uid: list(gang) for uid, gang in self.reserved.items()} or None

    def restore(self, state):
        self.reserved = {uid: tuple(gang) for uid, gang in state.items()}

    def sort_key(self, queued):
        gang = gang_of(queued.pod)
        return -queued.pod.priority, gang or ("", ""), queued.timestamp_ns

    def reserve(self, pod, node_name):
        gang = gang_of(pod)
        if gang is not None:
            self.reserved[pod.uid] = gang
        return SUCCESS

    def permit(self, pod, node_name):
        gang = gang_of(pod)
        if gang is None:
            return SUCCESS, 0
        held = sum(other == gang for other in self.reserved.values())
        if held < size_of(pod):
            return Status(
                Code.Wait, (f"{held} of {size_of(pod)} members of {gang[1]} hold a node",)
            ), self.wait_ns
        for waiting in self.handle.waiting_pods:
            if gang_of(waiting.pod) == gang:
                waiting.allow(self.name)
        return SUCCESS, 0

    def unreserve(self, pod, node_name):
        """One member that gives up takes all that still wait with it."""
        gang = self.reserved.pop(pod.uid, None)
        for waiting in self.handle.waiting_pods if gang else ():
            if gang_of(waiting.pod) == gang and waiting.pod.uid != pod.uid:
                waiting.reject(self.name, f"{pod.name} of gang {gang[1]} gave up")

    def wakes(self, pod, other):
        return gang_of(pod) is not None and gang_of(other) == gang_of(pod)

    def events(self):
        def sibling(pod, old, new):
            if new is not None and gang_of(new) == gang_of(pod) and not new.node_name:
                return QUEUE.because("a member of the gang came")
            return SKIP.because("the pod is of another gang")

        return [on("Pod", "Add", sibling)]
