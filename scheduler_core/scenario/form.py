"""How a part of a scenario is declared: once, for checking, building, printing and the published JSON Schema.

A part is a frozen dataclass whose fields are made with `part` (the machinery is `config.wire`'s). What is added
here: words for the schema, required fields, "did you mean", shorthands (`run: idle`), and kinds of value only
scenarios have.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from scheduler_core.config import wire
from scheduler_core.config.wire import OMIT_EMPTY, POINTER, UNSET, Field, FieldKind, Problems
from scheduler_core.errors import FieldError, InvalidManifest, InvalidObject
from scheduler_core.objects.fields import format_time_ns, parse_time_ns
from scheduler_core.objects.reading import opened
from scheduler_core.releases import release_named


def part(
    name: str,
    kind: FieldKind,
    about: str,
    *,
    default: Any = UNSET,
    required: bool = False,
    mode: str = OMIT_EMPTY,
) -> Any:
    """A field of a part; `about` is its sentence in the schema."""
    metadata = {
        # With a default of its own a zero that was written must not read as "not written".
        "wire": Field(name, kind, mode if default is UNSET and not required else POINTER),
        "about": about,
        "required": required,
    }
    held = kind.zero if default is UNSET else default
    if isinstance(held, dict | list):
        return dataclasses.field(default_factory=lambda: type(held)(held), metadata=metadata)
    return dataclasses.field(default=held, metadata=metadata)


class Part(wire.Typed):
    """The kind of a dataclass made with `part`."""

    zero: Any = None

    def __init__(self, cls: type) -> None:
        super().__init__(cls)
        self.required = tuple(
            item.metadata["wire"].name for item in dataclasses.fields(cls) if item.metadata["required"]
        )

    def check(self, value: Any, path: str, problems: Problems) -> Any:
        checked = super().check(value, path, problems)
        if isinstance(value, Mapping):
            for name in self.required:
                if value.get(name) in (None, ""):
                    where = f"{path}.{name}" if path else name
                    problems.types.append(FieldError("FieldValueRequired", where, None, "is required"))
            if not problems.types and not problems.unknown:
                self.check_whole(checked, path, problems)
        return checked

    def check_whole(self, document: Mapping[str, Any], path: str, problems: Problems) -> None:
        """Rules between fields: the dataclass' `problem(document)`, if it has one."""
        rule = getattr(self.cls, "problem", None)
        said = rule(document) if rule is not None else None
        if said:
            problems.types.append(FieldError("FieldValueInvalid", path, None, said))

    def written_zero(self) -> Any:
        return {}

    def unknown(self, name: str) -> str:
        return f"unknown field{did_you_mean(name, self.fields)}"


def did_you_mean(written: str, known: Iterable[str]) -> str:
    """`; did you mean "x"?`, or the known names when none is near."""
    names = list(known)
    by_folded = {name.lower(): name for name in names}
    near = difflib.get_close_matches(written.lower(), by_folded, n=1, cutoff=0.6)
    if near:
        return f'; did you mean "{by_folded[near[0]]}"?'
    return f"; known here: {', '.join(sorted(names))}" if len(names) <= 25 else ""


_PARTS: dict[type, Part] = {}


def part_of(cls: type) -> Part:
    """The kind of a dataclass."""
    known = _PARTS.get(cls)
    if known is None:
        known = _PARTS[cls] = Part(cls)
    return known


class Shorthand(FieldKind):
    """A part that may also be written as the value of one of its fields: `run: idle` for `run: {until: idle}`."""

    def __init__(self, whole: Part, name: str) -> None:
        self.whole = whole
        self.name = name

    def check(self, value: Any, path: str, problems: Problems) -> Any:
        if value is not None and not isinstance(value, Mapping):
            value = {self.name: value}
        return self.whole.check(value, path, problems)

    def build(self, value: Any) -> Any:
        return self.whole.build(value)

    def encode(self, value: Any) -> Any:
        written = self.whole.encode(value)
        return written[self.name] if set(written) == {self.name} else written


class OneOf(FieldKind):
    """One of some words."""

    zero = ""

    def __init__(self, *words: str) -> None:
        self.words = words

    def check(self, value: Any, path: str, problems: Problems) -> Any:
        if value is None:
            return UNSET
        if value not in self.words:
            near = did_you_mean(value, self.words) if isinstance(value, str) else ""
            detail = near.removeprefix("; ") or f"must be one of {', '.join(self.words)}"
            problems.types.append(FieldError("FieldValueNotSupported", path, value, detail))
            return UNSET
        return value


class Number(FieldKind):
    """An integer or decimal number within bounds."""

    zero: Any = 0

    def __init__(
        self, minimum: float | None = None, maximum: float | None = None, *, whole: bool = True
    ) -> None:
        self.minimum = minimum
        self.maximum = maximum
        self.whole = whole

    def check(self, value: Any, path: str, problems: Problems) -> Any:
        if value is None:
            return UNSET
        accepted = int if self.whole else int | float
        if isinstance(value, bool) or not isinstance(value, accepted):
            return problems.wrong_type(
                path, value, "must be an integer" if self.whole else "must be a number"
            )
        if self.minimum is not None and value < self.minimum:
            return problems.wrong_type(path, value, f"must be at least {self.minimum}")
        if self.maximum is not None and value > self.maximum:
            return problems.wrong_type(path, value, f"must be at most {self.maximum:,}")
        return value


class _Duration(wire.Duration):
    def check(self, value: Any, path: str, problems: Problems) -> Any:
        checked = UNSET if value is None else super().check(value, path, problems)
        if checked is not UNSET and self.build(checked) < 0:
            return problems.wrong_type(path, value, "time cannot run backwards")
        return checked


class _Time(FieldKind):
    """An RFC 3339 time; nanoseconds since the Unix epoch in an object."""

    zero = 0

    def check(self, value: Any, path: str, problems: Problems) -> Any:
        if value is None:
            return UNSET
        try:
            at_ns = parse_time_ns(value)
            if at_ns < 0:
                return problems.wrong_type(path, value, "must not be before 1970")
            return format_time_ns(at_ns)
        except (TypeError, ValueError, AttributeError):
            return problems.wrong_type(path, value, 'must be an RFC 3339 time such as "2025-01-01T00:00:00Z"')

    def build(self, value: Any) -> int:
        return parse_time_ns(value)

    def encode(self, value: Any) -> str:
        return format_time_ns(value)


class _PodName(FieldKind):
    """`namespace/name`; a name alone is in `default`."""

    zero = ""

    def check(self, value: Any, path: str, problems: Problems) -> Any:
        if value is None:
            return UNSET
        if (
            not isinstance(value, str)
            or not value.strip("/")
            or value.count("/") > 1
            or "" in value.split("/")
        ):
            return problems.wrong_type(path, value, 'must be a pod as "namespace/name"')
        return value if "/" in value else f"default/{value}"


class ListOf(wire.ListOf):
    """A list without nulls."""

    def check(self, value: Any, path: str, problems: Problems) -> Any:
        if isinstance(value, list | tuple):
            for index, item in enumerate(value):
                if item is None:
                    return problems.wrong_type(f"{path}[{index}]", None, "must not be null")
        return super().check(value, path, problems)


class _StringMap(wire.MapOf):
    def __init__(self) -> None:
        super().__init__(wire.STRING)


class _ReleaseName(FieldKind):
    """The name of a release, `1.36`."""

    zero = ""

    def check(self, value: Any, path: str, problems: Problems) -> Any:
        if value is None:
            return UNSET
        if not isinstance(value, str):
            return problems.wrong_type(path, value, 'must be text: write it in quotes, such as "1.36"')
        try:
            return release_named(value, path).name
        except InvalidObject as error:
            problems.types.append(FieldError("FieldValueNotSupported", path, value, error.reason))
            return UNSET


class _Document(FieldKind):
    """Any JSON object."""

    zero: Any = None

    def check(self, value: Any, path: str, problems: Problems) -> Any:
        if value is None:
            return UNSET
        if not isinstance(value, Mapping):
            return problems.wrong_type(path, value, "must be an object")
        return value


class _Manifest(_Document):
    """A manifest: it says at least what it is."""

    def check(self, value: Any, path: str, problems: Problems) -> Any:
        checked = super().check(value, path, problems)
        if checked is UNSET:
            return checked
        for key in ("apiVersion", "kind"):
            if not isinstance(checked.get(key), str) or not checked[key]:
                return problems.wrong_type(
                    f"{path}.{key}", checked.get(key), "is required and must be a string"
                )
        return checked


class ManifestList(ListOf):
    """Manifests; one alone needs no list, and a `kind: List` is opened."""

    zero: Any = ()

    def __init__(self) -> None:
        super().__init__(_Manifest())

    def check(self, value: Any, path: str, problems: Problems) -> Any:
        if isinstance(value, Mapping):
            value = [value]
        if not isinstance(value, list | tuple):
            return super().check(value, path, problems)
        found: list[Any] = []
        for index, manifest in enumerate(value):
            here = f"{path}[{index}]"
            try:
                read = opened(manifest, here) if isinstance(manifest, Mapping) else ()
            except InvalidManifest as problem:
                problems.wrong_type(problem.path, problem.value, problem.words)
                continue
            members = [(one.manifest, one.prefix) for one in read]
            if not isinstance(manifest, Mapping):
                members = [(manifest, here)]
            checked = [self.item.check(member, place, problems) for member, place in members]
            found += [member for member in checked if member is not UNSET]
        return found


DURATION = _Duration()
TIME = _Time()
POD_NAME = _PodName()
STRING_MAP = _StringMap()
BOOLEAN_MAP = wire.MapOf(wire.BOOLEAN)
RELEASE_NAME = _ReleaseName()
DOCUMENT = _Document()
MANIFESTS = ManifestList()


# ---- JSON Schema


def schema_of(kind: FieldKind, definitions: dict[str, Any]) -> dict[str, Any]:
    """JSON Schema (2020-12) of a kind; parts go into `definitions` and are referred to."""
    if isinstance(kind, Shorthand):
        inner = kind.whole.fields[kind.name].kind
        return {"anyOf": [schema_of(inner, definitions), schema_of(kind.whole, definitions)]}
    if isinstance(kind, Part):
        name = kind.cls.__name__
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = _part_schema(kind, definitions)
        return {"$ref": f"#/$defs/{name}"}
    if isinstance(kind, ManifestList):
        one = schema_of(kind.item, definitions)
        return {"anyOf": [one, {"type": "array", "items": one}]}
    if isinstance(kind, wire.ListOf):
        return {"type": "array", "items": schema_of(kind.item, definitions)}
    if isinstance(kind, wire.MapOf):
        return {"type": "object", "additionalProperties": schema_of(kind.item, definitions)}
    if isinstance(kind, OneOf):
        return {"enum": list(kind.words)}
    if isinstance(kind, Number):
        result: dict[str, Any] = {"type": "integer" if kind.whole else "number"}
        if kind.minimum is not None:
            result["minimum"] = kind.minimum
        if kind.maximum is not None:
            result["maximum"] = kind.maximum
        return result
    if isinstance(kind, wire.Duration):
        return {"type": "string", "pattern": r"^([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$"}
    if isinstance(kind, _Time):
        return {"type": "string", "format": "date-time"}
    if isinstance(kind, _PodName):
        return {"type": "string", "pattern": "^([^/]+/)?[^/]+$"}
    if isinstance(kind, _Manifest):
        return {
            "type": "object",
            "required": ["apiVersion", "kind"],
            "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}},
        }
    if isinstance(kind, _Document):
        return {"type": "object"}
    if kind is wire.STRING:
        return {"type": "string"}
    if kind is wire.BOOLEAN:
        return {"type": "boolean"}
    return {}


def _part_schema(kind: Part, definitions: dict[str, Any]) -> dict[str, Any]:
    properties = {}
    for item in dataclasses.fields(kind.cls):
        known: Field = item.metadata["wire"]
        properties[known.name] = {"description": item.metadata["about"], **schema_of(known.kind, definitions)}
    result: dict[str, Any] = {
        "description": (kind.cls.__doc__ or "").strip().split("\n\n")[0].replace("\n", " "),
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    if kind.required:
        result["required"] = list(kind.required)
    return result
