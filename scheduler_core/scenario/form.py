"""How documents of scenarios are checked, built and printed: as the published schema declares their parts.

`scenario.schema.json` has every field with its type, bounds and words; a part is a frozen dataclass of that name
(`declare`; the machinery is `config.wire`'s). What is added here: required fields, "did you mean", shorthands (`run:
idle`), and kinds of value only scenarios have.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any, Final

from scheduler_core.config import wire
from scheduler_core.config.wire import OMIT_EMPTY, POINTER, UNSET, Field, FieldKind, Problems
from scheduler_core.errors import FieldError, InvalidManifest, InvalidObject
from scheduler_core.objects.duration import format_duration, parse_duration_ns
from scheduler_core.objects.fields import format_time_ns, parse_time_ns
from scheduler_core.objects.reading import opened
from scheduler_core.releases import release_named

SCHEMA: Final[Mapping[str, Any]] = json.loads(
    resources.files(__package__).joinpath("scenario.schema.json").read_text("utf-8")
)


def declare(cls: type, written: tuple[str, ...] = (), **names: str) -> None:
    """Make a dataclass the part of the format whose name it has in the schema.

    Parameters
    ----------
    written
        Fields that a document says though they have their zero value.
    names
        Field -> how a document calls it, where that is not the field's name in camelCase.
    """
    schema = _schema_of(cls.__name__)
    fields = []
    for item in dataclasses.fields(cls):
        first, *others = item.name.removesuffix("_ns").split("_")
        name = names.get(item.name) or first + "".join(word.capitalize() for word in others)
        default = () if item.default is dataclasses.MISSING else item.default
        # With a default of its own a zero that was written must not read as "not written".
        says_zero = default or default is None or item.name in written or name in schema.get("required", ())
        kind = _kind_of(schema["properties"][name])
        fields.append((item.name, Field(name, kind, POINTER if says_zero else OMIT_EMPTY)))
    wire.WIRED[cls] = tuple(fields)
    _PARTS[cls.__name__] = Part(cls)


def _schema_of(name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = SCHEMA["$defs"].get(name, SCHEMA)
    return found


class Part(wire.Typed):
    """The kind of a dataclass made with `part`."""

    zero: Any = None

    def __init__(self, cls: type) -> None:
        super().__init__(cls)
        required = _schema_of(cls.__name__).get("required", ())
        self.required = tuple(name for name in required if name in self.fields)

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


_PARTS: dict[str, Part] = {}


def part_of(cls: type) -> Part:
    """The kind of a dataclass."""
    return _PARTS[cls.__name__]


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


def _one_of(*words: str) -> wire.Scalar:
    """One of some words."""

    def read(value: Any) -> Any:
        if value not in words:
            near = did_you_mean(value, words) if isinstance(value, str) else ""
            raise ValueError(near.removeprefix("; ") or f"must be one of {', '.join(words)}")
        return value

    return wire.Scalar(read, "")


def _number(minimum: float | None, maximum: float | None, *, whole: bool) -> wire.Scalar:
    """An integer or decimal number within bounds."""

    def read(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise ValueError("must be an integer" if whole else "must be a number")
        if minimum is not None and value < minimum:
            raise ValueError(f"must be at least {minimum}")
        if maximum is not None and value > maximum:
            raise ValueError(f"must be at most {maximum:,}")
        return value

    return wire.Scalar(read, 0)


def _elapsed(value: Any) -> str:
    text = wire.duration_text(value)
    if text.startswith("-"):
        raise ValueError("time cannot run backwards")
    return text


_LATEST_START_NS: Final = parse_time_ns("2200-01-01T00:00:00Z")
"""What a run adds to it still fits 64 bits of nanoseconds, which end in 2262."""


def _time(value: Any) -> str:
    try:
        at_ns = parse_time_ns(value)
    except (TypeError, ValueError, AttributeError):
        raise ValueError('must be an RFC 3339 time such as "2025-01-01T00:00:00Z"') from None
    if at_ns < 0:
        raise ValueError("must not be before 1970")
    if at_ns >= _LATEST_START_NS:
        raise ValueError("must be before the year 2200")
    return format_time_ns(at_ns)


def _pod_name(value: Any) -> str:
    """`namespace/name`; a name alone is in `default`."""
    parts = value.split("/") if isinstance(value, str) else ()
    if not 1 <= len(parts) <= 2 or "" in parts:
        raise ValueError('must be a pod as "namespace/name"')
    return value if len(parts) == 2 else f"default/{value}"


def _release_name(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError('must be text: write it in quotes, such as "1.36"')
    try:
        return release_named(value, "").name
    except InvalidObject as error:
        raise ValueError(error.reason) from None


def _object(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError("must be an object")
    return value


class ListOf(wire.ListOf):
    """A list without nulls."""

    def check(self, value: Any, path: str, problems: Problems) -> Any:
        if isinstance(value, list | tuple):
            for index, item in enumerate(value):
                if item is None:
                    return problems.wrong_type(f"{path}[{index}]", None, "must not be null")
        return super().check(value, path, problems)


class _Manifest(FieldKind):
    """A manifest: it says at least what it is."""

    def check(self, value: Any, path: str, problems: Problems) -> Any:
        checked = _DOCUMENT.check(value, path, problems)
        if checked is UNSET:
            return checked
        for key in ("apiVersion", "kind"):
            if not isinstance(checked.get(key), str) or not checked[key]:
                return problems.wrong_type(
                    f"{path}.{key}", checked.get(key), "is required and must be a string"
                )
        return checked


_DOCUMENT: Final = wire.Scalar(_object, None)
"""Any JSON object."""


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


_RELEASE, _DURATION, _POD = r"^v?[0-9]+\.[0-9]+", r"^([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$", "^([^/]+/)?[^/]+$"
_OF_A_PATTERN = {
    _RELEASE: wire.Scalar(_release_name, ""),
    _DURATION: wire.Scalar(_elapsed, 0, parse_duration_ns, format_duration),
    _POD: wire.Scalar(_pod_name, ""),
}
_TIME: Final = wire.Scalar(_time, 0, parse_time_ns, format_time_ns)
"""An RFC 3339 time; nanoseconds since the Unix epoch in an object."""


def _kind_of(schema: Mapping[str, Any]) -> FieldKind:
    """The kind of what a schema describes; of the parts it refers to all are declared."""
    if "$ref" in schema:
        return _PARTS[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        whole = schema["anyOf"][1]
        if "$ref" not in whole:
            return ManifestList()
        part = _PARTS[whole["$ref"].rpartition("/")[2]]
        return Shorthand(part, part.required[0] if part.required else next(iter(part.fields)))
    if "enum" in schema:
        return _one_of(*schema["enum"])
    match schema.get("type"):
        case "array":
            return ListOf(_kind_of(schema["items"]))
        case "object" if "additionalProperties" in schema:
            return wire.MapOf(_kind_of(schema["additionalProperties"]))
        case "object":
            return _DOCUMENT
        case "integer" | "number" as name:
            return _number(schema.get("minimum"), schema.get("maximum"), whole=name == "integer")
        case "boolean":
            return wire.BOOLEAN
        case "string" if "format" in schema:
            return _TIME
        case "string":
            return _OF_A_PATTERN.get(schema.get("pattern", ""), wire.STRING)
    return wire.ANY
