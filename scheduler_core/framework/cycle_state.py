"""What the plugins of one scheduling cycle tell each other.

Source: staging/src/k8s.io/kube-scheduler/framework/cycle_state.go, v1.34
Differs: after Permit only plain data is kept, because a pod that waits must survive a checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class CycleState:
    """Values by key, from PreFilter to PostBind of one attempt.

    >>> state = CycleState()
    >>> state.write("example.com/rack", {"name": "r1"})
    >>> state.read("example.com/rack")
    {'name': 'r1'}
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values: dict[str, Any] = dict(values or {})

    def read(self, key: str) -> Any:
        """The value of a key.

        Raises
        ------
        KeyError
            None was written in this cycle.
        """
        if key not in self._values:
            raise KeyError(f'reading "{key}" from cycleState: not found')
        return self._values[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self._values.get(key, default)

    def write(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"a key of cycleState is a text, not {type(key).__name__}")
        self._values[key] = value

    def delete(self, key: str) -> None:
        self._values.pop(key, None)

    def data(self) -> dict[str, Any]:
        """The values that are plain data (JSON), as they come back from a checkpoint."""
        kept: dict[str, Any] = {}
        for key, value in self._values.items():
            try:
                kept[key] = json.loads(json.dumps(value, allow_nan=False))
            except (TypeError, ValueError, RecursionError):
                continue
        return kept

    def keep_data(self) -> None:
        """Forget what is no plain data: the scheduling cycle is over, binding may take any time."""
        if self._values:
            self._values = self.data()
