"""CapacityQuota: a namespace may hold so much of a resource; what is over it waits until others leave.

After sigs.k8s.io/scheduler-plugins pkg/capacityscheduling, its maximum: PreFilter adds up what the namespace's pods on
nodes ask for, and rejects the pod that would go beyond.
"""

from dataclasses import dataclass, field

from scheduler_core.config.args import PluginArgs, invalid
from scheduler_core.framework.cluster_event import QUEUE, SKIP, on
from scheduler_core.framework.interface import PreFilterPlugin, PreFilterResult
from scheduler_core.framework.status import Code, Status


@dataclass(frozen=True)
class CapacityQuotaArgs(PluginArgs):
    """`limits`: namespace -> whole units (millicores of cpu, bytes, counts) of `resource`."""

    resource: str = "cpu"
    limits: dict[str, int] = field(default_factory=dict)

    def problems(self, path):
        for namespace, limit in self.limits.items():
            if limit < 0:
                yield invalid(f"{path}.limits[{namespace}]", limit, "must not be negative")


class CapacityQuota(PreFilterPlugin[None]):
    """Rejects a pod whose namespace would hold more than its limit."""

    name = "CapacityQuota"
    Args = CapacityQuotaArgs

    def __init__(self, args, handle):
        super().__init__(args, handle)
        self.args = args

    def pre_filter(self, pod, snapshot):
        limit = self.args.limits.get(pod.namespace)
        asked = pod.requests.get(self.args.resource, 0)
        if limit is None or not asked:
            return PreFilterResult(Status(Code.Skip))
        nodes = snapshot.nodes
        used = sum(
            nodes.pods[pod_id].requests.get(self.args.resource, 0)
            for row in snapshot.rows.tolist()
            for pod_id in nodes.pods_on(row)
            if nodes.pods[pod_id].namespace == pod.namespace
        )
        if used + asked <= limit:
            return PreFilterResult()
        reason = (
            f"namespace {pod.namespace} uses {used} of {limit} {self.args.resource}, the pod asks {asked}"
        )
        return PreFilterResult(Status(Code.Unschedulable, (reason,)))

    def events(self):
        def left(pod, old, new):
            if old is not None and old.namespace == pod.namespace:
                return QUEUE.because("a pod of the namespace left")
            return SKIP.because("the pod was of another namespace")

        return [on("Pod", "Delete", left)]
