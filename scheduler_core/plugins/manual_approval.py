"""ManualApproval: an annotated pod waits at Permit until somebody allows or rejects it. Not in any default profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from scheduler_core.config.duration import parse_duration_ns
from scheduler_core.framework.interface import Handle, PermitPlugin
from scheduler_core.framework.status import SUCCESS, Code, Status
from scheduler_core.objects.pod import Pod

APPROVAL = "playground.dev/approval"
"""Annotation; `required` makes the pod wait."""
TIMEOUT = "playground.dev/approval-timeout"
"""Annotation; how long, as Go writes durations."""
DEFAULT_TIMEOUT_S = 600


class ManualApproval(PermitPlugin):
    """Waits for a person.

    Parameters
    ----------
    args : mapping or None
        `timeoutSeconds`: how long a pod waits that does not say so itself; 600 by default.

    Examples
    --------
    >>> from scheduler_core.objects.pod import pod_from
    >>> annotations = {"playground.dev/approval": "required", "playground.dev/approval-timeout": "90s"}
    >>> pod = pod_from({"metadata": {"name": "p", "annotations": annotations}})
    >>> status, wait_ns = ManualApproval({}, None).permit(pod, "node-a")
    >>> status.code.name, wait_ns
    ('Wait', 90000000000)
    """

    name: ClassVar[str] = "ManualApproval"

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.timeout_ns = timeout_ns(args, "timeoutSeconds", DEFAULT_TIMEOUT_S)

    def permit(self, pod: Pod, node_name: str) -> tuple[Status, int]:
        annotations = pod.manifest["metadata"].get("annotations") or {}
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


def timeout_ns(args: Any, key: str, default_s: int) -> int:
    """A time in whole or fractional seconds from a plugin's args."""
    value = args.get(key) if isinstance(args, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        value = default_s
    return int(value * 1_000_000_000)
