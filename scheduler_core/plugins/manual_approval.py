"""ManualApproval: an annotated pod waits at Permit until a user allows or rejects it. Not in any default profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from scheduler_core.config.args import Errors, PluginArgs
from scheduler_core.errors import invalid
from scheduler_core.framework.cluster_event import (
    QUEUE,
    SKIP,
    ClusterEventWithHint,
    QueueingHint,
    annotations_of,
    on,
)
from scheduler_core.framework.interface import Handle, PermitPlugin
from scheduler_core.framework.status import SUCCESS, Code, Status
from scheduler_core.objects.duration import parse_duration_ns
from scheduler_core.objects.pod import Pod

APPROVAL = "playground.dev/approval"
"""Annotation; `required` makes the pod wait."""
TIMEOUT = "playground.dev/approval-timeout"
"""Annotation; how long, as Go writes durations."""
DEFAULT_TIMEOUT_S = 600


_ITSELF = QUEUE.because("the pod's annotations were changed")
_OTHER = SKIP.because("the pod's annotations are as before")


@dataclass(frozen=True, slots=True)
class ManualApprovalArgs(PluginArgs):
    """How long a pod waits that does not say so itself."""

    timeout_seconds: float = DEFAULT_TIMEOUT_S

    def problems(self, path: str) -> Errors:
        if self.timeout_seconds < 0:
            return [invalid(f"{path}.timeoutSeconds", self.timeout_seconds, "must not be negative")]
        return []


class ManualApproval(PermitPlugin):
    """Waits for a person.

    Examples
    --------
    >>> from scheduler_core.objects.pod import pod_from
    >>> annotations = {"playground.dev/approval": "required", "playground.dev/approval-timeout": "90s"}
    >>> pod = pod_from({"metadata": {"name": "p", "annotations": annotations}})
    >>> status, wait_ns = ManualApproval(ManualApprovalArgs(), None).permit(pod, "node-a")
    >>> status.code.name, wait_ns
    ('Wait', 90000000000)
    """

    name: ClassVar[str] = "ManualApproval"
    Args = ManualApprovalArgs

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.timeout_ns = int(args.timeout_seconds * 1_000_000_000)

    def events(self) -> list[ClusterEventWithHint]:
        return [on("Pod", "Update", _after_own_change)]

    def permit(self, pod: Pod, node_name: str) -> tuple[Status, int]:
        annotations = pod.annotations
        if annotations.get(APPROVAL) != "required":
            return SUCCESS, 0
        wait_ns = self.timeout_ns
        written = annotations.get(TIMEOUT)
        if written is not None:
            try:
                wait_ns = parse_duration_ns(str(written))
            except ValueError as error:
                return Status(Code.UnschedulableAndUnresolvable, (f"annotation {TIMEOUT}: {error}",)), 0
        return Status(Code.Wait, ("waiting for approval",)), max(wait_ns, 0)


def _after_own_change(pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
    if old is None or new is None or new.uid != pod.uid or annotations_of(old) == annotations_of(new):
        return _OTHER
    return _ITSELF
