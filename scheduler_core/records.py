"""Small values: those that are made by the dozen in every cycle, and those that are shown as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from typing import Any, ClassVar, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """A dataclass with slots that is frozen for mypy alone.

    At run time nothing stops an assignment: making a frozen one takes three times as long, and what happens, what is
    asked for and what came of it add up to forty of them for a pod.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)


class Documented:
    """Base of dataclasses that are shown as JSON: their fields in camelCase, and the properties named in `SHOWN`."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    SHOWN: ClassVar[tuple[str, ...]] = ()

    def document(self) -> dict[str, Any]:
        """JSON-able."""
        names = (*(field.name for field in fields(self)), *self.SHOWN)
        return {_camel_case(name): _plain(getattr(self, name)) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, Documented):
        return value.document()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)
