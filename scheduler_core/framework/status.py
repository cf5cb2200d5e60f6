"""What a plugin says: status codes under Kubernetes' names, for one thing or for many rows at once.

Source: staging/src/k8s.io/kube-scheduler/framework/interface.go, v1.34
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

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


# --- Texts of plugins, as far as they can be written down.


LONGEST_TEXT: Final = 10_000
"""Characters a text of a plugin's may have."""


def text_problem(text: Any) -> str | None:
    r"""What keeps a plugin's text from being written down; None for one that can be.

    Examples
    --------
    >>> text_problem("node(s) were full"), text_problem(7), text_problem("a\0")
    (None, 'int, not a text', 'a text with a NUL character')
    """
    if not isinstance(text, str):
        return f"{type(text).__name__}, not a text"
    if len(text) > LONGEST_TEXT:
        return f"a text of {len(text)} characters, it may have {LONGEST_TEXT}"
    if "\0" in text:
        return "a text with a NUL character"
    return None if text == plain(text) else "a text with half of a surrogate pair"


def plain(text: str) -> str:
    """As much of a text as can be written down: no database takes NULs, no file halves of surrogate pairs."""
    return text[:LONGEST_TEXT].replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def words_of(error: BaseException) -> str:
    """What was raised; an exception of a plugin's own may not even say what it is."""
    try:
        return plain(f"{type(error).__name__}: {error}")
    except Exception:
        return plain(f"{type(error).__name__} (which cannot say more)")
