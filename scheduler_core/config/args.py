"""What a plugin is configured with: declared once, decoded, defaulted and validated from that.

A plugin's args are a frozen dataclass that inherits `PluginArgs`. Its fields are plain annotations with defaults; a
document writes them in camelCase; `config.wire` says when others are written, and under which names.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class SpreadArgs(PluginArgs):
...     max_per_node: int = 3
...     zones: tuple[str, ...] = ()
...     def problems(self, path):
...         if self.max_per_node < 1:
...             yield invalid(f"{path}.maxPerNode", self.max_per_node, "must be at least 1")
>>> document = {"zones": ["a"]}
>>> SpreadArgs.set_defaults(document)
>>> document
{'zones': ['a'], 'maxPerNode': 3}
>>> [str(problem) for problem in SpreadArgs(0).problems("args")]
['args.maxPerNode: Invalid value: 0: must be at least 1']
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from scheduler_core.config.wire import OMIT_EMPTY, declared_default, wire_fields
from scheduler_core.errors import FieldError
from scheduler_core.errors import invalid as invalid

Errors = list[FieldError]


class PluginArgs:
    """Base of the args of all plugins; subclasses are frozen dataclasses, every field of which has a default."""

    __slots__ = ()

    @classmethod
    def set_defaults(cls, document: dict[str, Any]) -> None:
        """Write the defaults of fields that are absent into a checked document."""
        for name, known in wire_fields(cls):
            if known.name in document:
                continue
            default = declared_default(cls, name)
            # An empty field that is not written when empty is as good as absent.
            if default is not None and not (known.mode == OMIT_EMPTY and default == known.kind.zero):
                document[known.name] = known.kind.encode(default)

    def problems(self, path: str) -> Iterable[FieldError]:
        """Everything that is wrong, found with the configuration; `path` is where the args stand."""
        return ()

    def problems_when_made(self) -> Iterable[FieldError]:
        """What is found wrong only when the plugin is made; fields are relative to the args."""
        return ()

    def crash_when_made(self) -> FieldError | None:
        """What the real program crashes at when it makes the plugin; here it is an error like others."""
        return None

    def ignoring(self, resources: tuple[str, ...]) -> Self | None:
        """Args that ignore what extenders want ignored; None where that is not this plugin's business."""
        return None
