"""One place where an answer differs from a recorded one."""

from __future__ import annotations

from typing import NamedTuple


class Difference(NamedTuple):
    """A key of a case's expectations whose recorded value is not what was computed.

    Attributes
    ----------
    key : str
        Path of the key inside `expect`, e.g. `nodes[2].error`.
    expected, got : object
        The recorded and the computed value.
    """

    key: str
    expected: object
    got: object
