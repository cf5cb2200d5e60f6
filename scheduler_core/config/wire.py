"""Fields of configuration objects: how they are written in a document, checked strictly, built and printed.

A configuration class is a frozen dataclass: the annotation of a field says what it holds, its name in camelCase is how
a document calls it, and `omit` and `keep` say when it is written. From that one declaration follow the strict check of
a document (`check`), the object itself (`build`) and the document of an object (`encode`). A checked document is plain
JSON-able data that holds known fields only; what is absent in it has not been set, which is what defaulting needs to
know.

Source: the rules are those of encoding/json as sigs.k8s.io/json runs it: strict, case-sensitive, null unsets.
"""

from __future__ import annotations

import base64
import dataclasses
import math
import struct
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar

from scheduler_core.errors import FieldError
from scheduler_core.objects.duration import format_duration, parse_duration_ns
from scheduler_core.schema import tables as schema
from scheduler_core.schema.fields_check import unknown_field
from scheduler_core.schema.tables import types

T = TypeVar("T")
Document = Mapping[str, Any]

UNSET: Any = object()
"""What `FieldKind.check` answers for null: the field counts as not written."""

OMIT_EMPTY = "omit"
"""Not written when it has its zero value."""
KEEP = "keep"
"""Always written."""
POINTER = "pointer"
"""Written unless it was never set; the zero value is a value of its own."""


@dataclass(slots=True)
class Problems:
    """What a strict check found."""

    unknown: list[FieldError] = field(default_factory=list)
    """Fields the type does not have."""
    types: list[FieldError] = field(default_factory=list)
    """Values of a wrong type."""

    def wrong_type(self, path: str, value: Any, detail: str) -> Any:
        self.types.append(FieldError("FieldValueTypeInvalid", path, value, detail))
        return UNSET


class FieldKind:
    """The kind of value a field holds; the base class takes any JSON as it is."""

    zero: Any = None

    def check(self, value: Any, path: str, problems: Problems) -> Any:
        """The value as it goes into a checked document, or UNSET for null and after a problem."""
        return UNSET if value is None else value

    def build(self, value: Any) -> Any:
        """What the dataclass holds for a checked value."""
        return value

    def encode(self, value: Any) -> Any:
        """What a document holds for a dataclass' value."""
        return value

    def written_zero(self) -> Any:
        """The zero value as a checked document holds it."""
        return None if self.zero is None else self.encode(self.zero)


def _same(value: Any) -> Any:
    return value


class Scalar(FieldKind):
    """A single value.

    Parameters
    ----------
    read
        Gives the value as it goes into a checked document; raises ValueError with what is wrong.
    zero
        What the dataclass holds where nothing is written.
    build, encode
        From a checked value to what the dataclass holds, and back; the same value by default.
    null
        Whether null unsets the field; `read` gets it otherwise.
    """

    def __init__(
        self,
        read: Callable[[Any], Any],
        zero: Any,
        build: Callable[[Any], Any] = _same,
        encode: Callable[[Any], Any] = _same,
        *,
        null: bool = True,
    ) -> None:
        self.read, self.zero, self.null = read, zero, null
        self._build, self._encode = build, encode

    def check(self, value: Any, path: str, problems: Problems) -> Any:
        if value is None and self.null:
            return UNSET
        try:
            return self.read(value)
        except ValueError as error:
            return problems.wrong_type(path, value, str(error))

    def build(self, value: Any) -> Any:
        return self._build(value)

    def encode(self, value: Any) -> Any:
        return self._encode(value)


def _of_type(python_type: type, words: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, python_type):
            raise ValueError(f"must be {words}")
        return value

    return read


def _integer(bits: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError("must be an integer")
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise ValueError(f"must fit a signed integer of {bits} bits")
        return value

    return read


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("must be a number")
    return value


def _float32(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    try:
        single = struct.pack("<f", value)
    except OverflowError:
        raise ValueError("must fit a number of 32 bits") from None
    # The shortest decimal that reads back as the same 32 bits, which is how Go prints it.
    for digits in range(1, 10):
        shortest = float(f"{value:.{digits}g}")
        if struct.pack("<f", shortest) == single:
            return int(shortest) if shortest.is_integer() else shortest
    return value


def _choice(words: tuple[str, ...]) -> Scalar:
    """One of some words."""

    def read(value: Any) -> Any:
        if value not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return value

    return Scalar(read, words[0])


def duration_text(value: Any) -> str:
    """A duration as Go writes it; raises ValueError."""
    if not isinstance(value, str):
        raise ValueError('must be a duration such as "30s"')
    return format_duration(parse_duration_ns(value))


def _base64(value: Any) -> Any:
    try:
        base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except (AttributeError, ValueError):
        raise ValueError("must be base64 text") from None
    return value


class ListOf(FieldKind):
    """A list; a tuple in an object."""

    zero: Any = ()

    def __init__(self, item: FieldKind) -> None:
        self.item = item

    def check(self, value: Any, path: str, problems: Problems) -> Any:
        if value is None:
            return UNSET
        if not isinstance(value, list | tuple):
            return problems.wrong_type(path, value, "must be a list")
        return [_or_zero(self.item, item, f"{path}[{index}]", problems) for index, item in enumerate(value)]

    def build(self, value: Any) -> tuple[Any, ...]:
        return tuple(self.item.build(item) for item in value)

    def encode(self, value: Any) -> list[Any]:
        return [self.item.encode(item) for item in value]


class NullableListOf(ListOf):
    """A list whose absence is written null."""

    zero = None


class MapOf(FieldKind):
    """A map with string keys."""

    zero: Any = {}

    def __init__(self, item: FieldKind) -> None:
        self.item = item

    def check(self, value: Any, path: str, problems: Problems) -> Any:
        if value is None:
            return UNSET
        if not isinstance(value, Mapping):
            return problems.wrong_type(path, value, "must be an object")
        return {key: _or_zero(self.item, item, f"{path}[{key}]", problems) for key, item in value.items()}


def _or_zero(kind: FieldKind, value: Any, path: str, problems: Problems) -> Any:
    """A checked member of a list or map: null is the zero value there, as in Go."""
    checked = kind.check(value, path, problems)
    return kind.written_zero() if checked is UNSET else checked


@dataclass(frozen=True, slots=True)
class Field:
    """One field as a document writes it."""

    name: str
    kind: FieldKind
    mode: str = OMIT_EMPTY


class Fields(FieldKind):
    """An object that stays a plain document: known fields only, zero values as Kubernetes writes them."""

    zero: Any = {}

    def __init__(self, *fields: Field) -> None:
        self._declared = fields

    @cached_property
    def fields(self) -> dict[str, Field]:
        """Those it knows, by the name that a document has for each."""
        return {known.name: known for known in self._declared}

    def check(self, value: Any, path: str, problems: Problems) -> Any:
        if value is None:
            return UNSET
        if not isinstance(value, Mapping):
            return problems.wrong_type(path, value, "must be an object")
        for name in value:
            if name not in self.fields:
                where = f"{path}.{name}" if path else str(name)
                problems.unknown.append(
                    FieldError("FieldValueForbidden", where, value[name], self.unknown(str(name)))
                )
        document: dict[str, Any] = {}
        for known in self.fields.values():
            checked: Any = UNSET
            if known.name in value:
                here = f"{path}.{known.name}" if path else known.name
                checked = known.kind.check(value[known.name], here, problems)
            if checked is not UNSET and (
                known.mode != OMIT_EMPTY or checked or isinstance(known.kind, Fields)
            ):
                document[known.name] = checked
            elif known.mode == KEEP:
                document[known.name] = known.kind.written_zero()
        return document

    def unknown(self, name: str) -> str:
        """The message for an unknown field."""
        return unknown_field(name, None, self.fields).reason

    def written_zero(self) -> Any:
        return self.check({}, "", Problems())


class ApiObject(Fields):
    """An object of Kubernetes' API: its fields are those that the schema has of the type (`core.v1.NodeAffinity`)."""

    def __init__(self, type_name: str) -> None:
        super().__init__()
        self.type_name = type_name

    @cached_property
    def fields(self) -> dict[str, Field]:
        """Those of the schema, which is read when first asked for."""
        return {name: _field_in_schema(name, known) for name, known in types()[self.type_name].items()}


def _field_in_schema(name: str, known: schema.Field) -> Field:
    mode = KEEP if known.required else POINTER if known.pointer else OMIT_EMPTY
    kind: FieldKind = _OF_SCHEMA.get(known.item) or ApiObject(known.item)
    if known.type.startswith("[]"):
        kind = NullableListOf(kind) if known.required else ListOf(kind)
    elif known.type.startswith("{}"):
        kind = MapOf(kind)
    return Field(name, kind, mode)


class Typed(Fields):
    """An object of a configuration class."""

    def __init__(self, cls: type) -> None:
        super().__init__(*(known for _, known in wire_fields(cls)))
        self.cls = cls

    def build(self, value: Any) -> Any:
        return build(self.cls, value)

    def encode(self, value: Any) -> Any:
        return encode(value)


ANY = FieldKind()
STRING = Scalar(_of_type(str, "a string"), "")
BOOLEAN = Scalar(_of_type(bool, "true or false"), False)
INT32 = Scalar(_integer(32), 0)
INT64 = Scalar(_integer(64), 0)
FLOAT32 = Scalar(_float32, 0.0)
NUMBER = Scalar(_number, 0)
DURATION = Scalar(duration_text, 0, parse_duration_ns, format_duration, null=False)
OPTIONAL_DURATION = Scalar(duration_text, 0, parse_duration_ns, format_duration)
BYTES = Scalar(_base64, b"", base64.b64decode, lambda value: base64.b64encode(value).decode("ascii"))

_KINDS: dict[Any, FieldKind] = {
    str: STRING,
    bool: BOOLEAN,
    int: INT64,
    float: NUMBER,
    bytes: BYTES,
    Any: ANY,
    Mapping: ANY,
    dict: ANY,
    Document: ANY,
}
"""How plain annotations are written."""
_OF_SCHEMA: dict[str, FieldKind] = {"string": STRING, "bool": BOOLEAN, "int32": INT32, "int64": INT64}


Int32 = Annotated[int, INT32]
Float32 = Annotated[float, FLOAT32]
DurationNs = Annotated[int, DURATION]
"""Nanoseconds; `30s` in a document."""
OptionalDurationNs = Annotated[int, OPTIONAL_DURATION]
"""As `DurationNs`; null unsets it."""


def omit(default: Any, name: str = "") -> Any:
    """A field that is not written while it has its zero value; `name` is how a document calls it."""
    return _written(OMIT_EMPTY, default, name)


def keep(default: Any, name: str = "") -> Any:
    """A field that is always written."""
    return _written(KEEP, default, name)


def pointer(default: Any, name: str) -> Any:
    """A field of another name that is written unless it was never set, as fields with plain defaults are."""
    return _written(POINTER, default, name)


def _written(mode: str, default: Any, name: str) -> Any:
    return field(default=default, metadata={"written": (mode, name)})


def typed(cls: type) -> Typed:
    """The kind of a dataclass."""
    known = _TYPED.get(cls)
    if known is None:
        known = _TYPED[cls] = Typed(cls)
    return known


_TYPED: dict[type, Typed] = {}


def build(cls: type[T], document: Document) -> T:
    """An object from a checked document."""
    values: dict[str, Any] = {}
    for name, known in wire_fields(cls):
        if known.name in document:
            values[name] = known.kind.build(document[known.name])
    return cls(**values)


def wire_fields(cls: type[Any]) -> tuple[tuple[str, Field], ...]:
    """Each field of a dataclass by name, and how a document writes it.

    Of a scenario's parts its schema says it (`scenario.form.declare`).

    Raises
    ------
    TypeError
        An annotation says nothing a document could hold.
    """
    known = WIRED.get(cls)
    if known is None:
        known = WIRED[cls] = tuple((item.name, _field_of(cls, item)) for item in dataclasses.fields(cls))
    return known


def _field_of(cls: type[Any], item: dataclasses.Field[Any]) -> Field:
    if item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
        raise TypeError(f"{cls.__name__}.{item.name} needs a default: a configuration may leave it out")
    mode, name = item.metadata.get("written", (POINTER, ""))
    first, *others = item.name.split("_")
    name = name or first + "".join(word.capitalize() for word in others)
    try:
        kind = _kind_of(typing.get_type_hints(cls, include_extras=True)[item.name])
    except TypeError as error:
        raise TypeError(f"{cls.__name__}.{item.name}: {error}; annotate it with its kind") from None
    return Field(name, kind, mode)


def _kind_of(annotation: Any) -> FieldKind:
    """How a document writes values of an annotation; `Annotated` says it itself."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        kind: FieldKind = parts[1]
        return kind
    if annotation in _KINDS:
        return _KINDS[annotation]
    if origin in (UnionType, typing.Union) and len(parts) == 2 and NoneType in parts:
        return _kind_of(next(part for part in parts if part is not NoneType))
    if origin is tuple and len(parts) == 2 and parts[1] is Ellipsis:
        return ListOf(_kind_of(parts[0]))
    if origin is typing.Literal and all(isinstance(part, str) for part in parts):
        return _choice(parts)
    if origin in (dict, Mapping) and parts[0] is str:
        return MapOf(_kind_of(parts[1]))
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return typed(annotation)
    raise TypeError(f"{annotation} says nothing a document could hold")


def declared_default(cls: type[Any], name: str) -> Any:
    """The default of a dataclass field."""
    item = next(item for item in dataclasses.fields(cls) if item.name == name)
    return item.default if item.default_factory is dataclasses.MISSING else item.default_factory()


WIRED: dict[type[Any], tuple[tuple[str, Field], ...]] = {}


def encode(value: Any) -> dict[str, Any]:
    """The document of an object, empty fields left out as Kubernetes leaves them out."""
    document: dict[str, Any] = {}
    for name, known in wire_fields(type(value)):
        held = getattr(value, name)
        if held is None:
            if known.mode == KEEP:
                document[known.name] = None
        elif known.mode != OMIT_EMPTY or held != known.kind.zero or dataclasses.is_dataclass(held):
            document[known.name] = known.kind.encode(held)
    return document
