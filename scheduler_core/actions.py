"""What the scheduler asks of the world. It never waits: answers come back as events."""

from __future__ import annotations

from typing import Any

from scheduler_core.objects.pod import Pod
from scheduler_core.objects.policy import PodGroup
from scheduler_core.records import record


@record
class WriteBeforeBind:
    """Make these writes, then answer with `events.PreBindAnswered`.

    Attributes
    ----------
    writes : tuple
        Whole manifests to store (a PersistentVolume with its claimRef, a claim with its selected node, an allocated
        ResourceClaim). What Unreserve and PostFilter want written comes this way, too, the node perhaps empty.
    """

    pod: Pod
    node_name: str
    writes: tuple[Any, ...]


@record
class BindPod:
    """Post a Binding; answer with `events.BindAnswered`."""

    pod: Pod
    node_name: str


@record
class BindByExtender:
    """Send an extender's bind call; answer with `events.ExtenderBindAnswered`.

    Attributes
    ----------
    request : object
        `extender` request to be sent over the transport.
    """

    pod: Pod
    node_name: str
    request: Any


@record
class PatchPodStatus:
    """Write a condition and, where it changes, the nomination into a pod's status.

    Attributes
    ----------
    condition : dict or None
        A v1 PodCondition without times.
    nominated_node_name : str or None
        None leaves it alone, "" clears it.
    """

    pod: Pod
    condition: dict[str, Any] | None
    nominated_node_name: str | None


@record
class PatchPodGroupStatus:
    """Write a condition into a PodGroup's status."""

    group: PodGroup
    condition: dict[str, Any]


@record
class EvictPod:
    """Delete a preempted pod, after writing `condition` (DisruptionTarget) into its status, and record the event.

    Attributes
    ----------
    preemptor : Pod or PodGroup
    message : str
        Of the Preempted event, which is recorded only where the pod is still there.
    """

    pod: Pod
    preemptor: Pod | PodGroup
    node_name: str
    condition: dict[str, Any]
    message: str

    @property
    def details(self) -> tuple[str, dict[str, Any], str]:
        """What is not an object, in order."""
        return self.node_name, self.condition, self.message


@record
class EvictBeside:
    """Make these evictions one after the other, then answer with `events.PreemptionAnswered`.

    Attributes
    ----------
    uid : str
        Of the pod or group they make room for.
    """

    uid: str
    evictions: tuple[EvictPod, ...]


@record
class RecordEvent:
    """Record a v1 Event about a pod; `related` is another object it has to do with."""

    pod: Pod
    type: str
    reason: str
    action: str
    message: str
    related: Pod | PodGroup | None = None


Action = (
    WriteBeforeBind
    | BindPod
    | BindByExtender
    | PatchPodStatus
    | PatchPodGroupStatus
    | EvictPod
    | EvictBeside
    | RecordEvent
)
