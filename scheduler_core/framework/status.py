"""What a plugin says: status codes under Kubernetes' names, for one thing or for many rows at once.

Source: staging/src/k8s.io/kube-scheduler/framework/interface.go, v1.34
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Code(IntEnum):
    """Status codes, numbered as upstream."""

    Success = 0
    Error = 1
    Unschedulable = 2
    UnschedulableAndUnresolvable = 3
    Wait = 4
    Skip = 5
    Pending = 6

    @property
    def is_rejection(self) -> bool:
        return self in (Code.Unschedulable, Code.UnschedulableAndUnresolvable, Code.Pending)


# Looking a member up in its enumeration takes longer than all the rest of what is asked dozens of times a cycle.
_SUCCESS, _SKIP = Code.Success, Code.Skip


@dataclass(frozen=True, slots=True)
class Status:
    """The outcome of one plugin at one extension point that is not per node."""

    code: Code = Code.Success
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    """Filled in by the runtime."""

    @property
    def is_success(self) -> bool:
        return self.code is _SUCCESS

    @property
    def is_skip(self) -> bool:
        return self.code is _SKIP

    @property
    def is_rejection(self) -> bool:
        return self.code.is_rejection

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def from_plugin(self, plugin: str) -> Status:
        return Status(self.code, self.reasons, self.plugin or plugin)


_CODES = [np.int8(code) for code in Code]

SUCCESS = Status()
SKIP = Status(Code.Skip)


@dataclass(slots=True)
class Verdicts:
    """What one filter plugin says about many rows.

    Attributes
    ----------
    codes : ndarray of shape (n,), int8
        `Code` for each of the rows that were asked about.
    details : ndarray of shape (n,), int64, or None
        Why, as a number only the plugin can read (`FilterPlugin.reasons`); None when the code says it all.
    """

    codes: NDArray[np.int8]
    details: NDArray[np.int64] | None = None

    @classmethod
    def where(
        cls, rejected: NDArray[np.bool_], code: Code, details: NDArray[np.int64] | None = None
    ) -> Verdicts:
        """`code` where `rejected`, Success elsewhere."""
        return cls(rejected.view(np.int8) * _CODES[code], details)
