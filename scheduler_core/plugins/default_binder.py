"""DefaultBinder: asks the API server to bind the pod."""

from __future__ import annotations

from typing import ClassVar

from scheduler_core.framework.interface import BindPlugin
from scheduler_core.framework.status import SUCCESS, Status
from scheduler_core.objects.pod import Pod


class DefaultBinder(BindPlugin):
    """Source: pkg/scheduler/framework/plugins/defaultbinder/default_binder.go, v1.34."""

    name: ClassVar[str] = "DefaultBinder"
    default_weight: ClassVar[int | None] = 0

    def bind(self, pod: Pod, node_name: str) -> Status:
        return SUCCESS
