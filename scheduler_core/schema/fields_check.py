"""Which fields of an object its type does not have, and which values are of another type.

An API server decodes what it knows and drops the rest; told `fieldValidation=Strict` it refuses, told `Warn` it says
so.

Source: staging/src/k8s.io/apimachinery/pkg/runtime/serializer/json, sigs.k8s.io/json strict decoding, v1.34
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from scheduler_core.schema.tables import Type, types, types_by_kind

_CLOSE: Final = 0.7
_MOST: Final = 20
_LONGEST_NAME: Final = 200
"""Nothing is like a name that is longer: to compare takes its length squared."""
_MAX_DEPTH: Final = 80
# Go takes a fraction after the seconds where the layout has none, and of MicroTime exactly the six digits it has.
_TIME: Final = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d"
    r"(?P<fraction>\.\d+)?(Z|[-+]([01]\d|2[0-4]):[0-5]\d)",
    re.ASCII,
)


class FieldProblem(NamedTuple):
    """A field that is not known, or a value of another type.

    Attributes
    ----------
    path
        ``spec.containers[0].resources.request``.
    reason
        In words, without the path: ``unknown field (did you mean requests?)``.
    unknown
        Whether the field is unknown; else its value is wrong.
    nearest
        The name that was probably meant; empty = none is near.
    value
        What is there.
    """

    path: str
    reason: str
    unknown: bool
    nearest: str
    value: Any

    def said_of(self, path: str = "") -> str:
        """The sentence of an unknown field, with its path (or that of where it was posted).

        Examples
        --------
        >>> FieldProblem("spec.nodeSelectr", "", True, "nodeSelector", {}).said_of()
        'unknown field "spec.nodeSelectr" (did you mean nodeSelector?)'
        """
        near = f" (did you mean {self.nearest}?)" if self.nearest else ""
        return f'unknown field "{path or self.path}"{near}'


def check_fields(manifest: Mapping[str, Any], type_name: str) -> tuple[dict[str, Any], list[FieldProblem]]:
    """An object without unknown fields, and what was wrong with it (20 at most).

    Parameters
    ----------
    type_name
        ``core.v1.Pod``; a type that is not in the table has nothing to check.

    Examples
    --------
    >>> pod = {"kind": "Pod", "spec": {"nodeSelectr": {}}}
    >>> check_fields(pod, "core.v1.Pod")[1][0].reason
    'unknown field (did you mean nodeSelector?)'
    """
    known = types().get(type_name)
    found: list[FieldProblem] = []
    if known is None:
        return dict(manifest), found
    return _object(manifest, known, "", found, 0), found


def unknown_fields(manifest: Mapping[str, Any]) -> list[FieldProblem]:
    """Fields of an object of Kubernetes' own kinds that its kind does not have (20 at most); none of other kinds.

    Examples
    --------
    >>> pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"nodeSelectr": {}}}
    >>> [problem.said_of() for problem in unknown_fields(pod)]
    ['unknown field "spec.nodeSelectr" (did you mean nodeSelector?)']
    """
    of_kind = types_by_kind().get((manifest.get("apiVersion"), manifest.get("kind")), "")
    return [problem for problem in check_fields(manifest, of_kind)[1] if problem.unknown]


def unknown_fields_of_patch(kind: str, patch: Mapping[str, Any]) -> list[FieldProblem]:
    """Fields of a merge patch that the kind has in no version (20 at most); none of other kinds than Kubernetes' own.

    Examples
    --------
    >>> [problem.said_of() for problem in unknown_fields_of_patch("Node", {"spec": {"unschedulabel": True}})]
    ['unknown field "spec.unschedulabel" (did you mean unschedulable?)']
    """
    of_versions = (
        [problem for problem in check_fields(patch, type_name)[1] if problem.unknown]
        for (_, name), type_name in types_by_kind().items()
        if name == kind
    )
    return min(of_versions, key=len, default=[])


def unknown_field(path: str, value: Any, names: Iterable[str]) -> FieldProblem:
    """The problem of a field that is none of some names."""
    nearest = nearest_name(path.rpartition(".")[2], names)
    words = "unknown field" + (f" (did you mean {nearest}?)" if nearest else "")
    return FieldProblem(path, words, True, nearest, value)


def nearest_name(name: str, names: Iterable[str]) -> str:
    """The name most like another; empty if none is much like it."""
    if len(name) > _LONGEST_NAME:
        return ""
    by_lower = {each.lower(): each for each in names}
    if name.lower() in by_lower:
        return by_lower[name.lower()]
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=_CLOSE)
    return by_lower[close[0]] if close else ""


def _object(
    value: Mapping[str, Any], known: Type, path: str, found: list[FieldProblem], depth: int
) -> dict[str, Any]:
    result = {}
    for name, inner in value.items():
        field = known.get(name)
        here = f"{path}.{name}" if path else str(name)
        if field is None:
            if len(found) < _MOST:
                found.append(unknown_field(here, inner, known))
            continue
        # Asked here for what most values are: a call takes longer than looking.
        is_plain = inner is None or (type(inner) is str and field.type == "string")
        result[name] = inner if is_plain else _value(inner, field.type, here, found, depth + 1)
    return result


def _value(value: Any, kind: str, path: str, found: list[FieldProblem], depth: int) -> Any:
    is_right = _RIGHT.get(kind)
    if is_right is not None:
        if not is_right(value):
            _wrong(value, kind, path, found)
        return value
    if kind.startswith("[]"):
        if not isinstance(value, list):
            _wrong(value, "list", path, found)
            return value
        inner = kind[2:]
        if inner in _RIGHT:
            is_right = _RIGHT[inner]
            for number, item in enumerate(value):
                if item is not None and not is_right(item):
                    _wrong(item, inner, f"{path}[{number}]", found)
            return value
        return [
            item if item is None else _value(item, inner, f"{path}[{number}]", found, depth + 1)
            for number, item in enumerate(value)
        ]
    if not isinstance(value, Mapping):
        _wrong(value, "object", path, found)
        return value
    if kind.startswith("{}"):
        inner = kind[2:]
        return {
            name: item if item is None else _value(item, inner, f"{path}[{name}]", found, depth + 1)
            for name, item in value.items()
        }
    known = types().get(kind)
    if known is None or depth > _MAX_DEPTH:
        return value
    return _object(value, known, path, found, depth)


def _wrong(value: Any, kind: str, path: str, found: list[FieldProblem]) -> None:
    if len(found) >= _MOST:
        return
    is_type, words = _FORMS.get(kind, (None, ""))
    if is_type is not None and is_type(value):
        reason = words
    else:
        reason = f"must be {_article(_WORDS.get(kind, kind))}, not {_type_of(value)}"
    found.append(FieldProblem(path, reason, False, "", value))


def _article(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def _type_of(value: Any) -> str:
    for kind, words in ((bool, "a boolean"), (int | float, "a number"), (str, "a string"), (list, "a list")):
        if isinstance(value, kind):
            return words
    return "an object"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _fits(bits: int) -> Callable[[Any], bool]:
    return lambda value: _is_whole(value) and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)


def _is_micro_time(value: Any) -> bool:
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    return match is not None and len(match["fraction"] or "") == len(".000000")


def _anything(value: Any) -> bool:
    return True


_is_int32 = _fits(32)
_RIGHT: Final[Mapping[str, Callable[[Any], bool]]] = {
    "string": _is_text,
    "time": lambda value: isinstance(value, str) and _TIME.fullmatch(value) is not None,
    "microtime": _is_micro_time,
    "bytes": _is_text,
    "bool": lambda value: isinstance(value, bool),
    "int32": _is_int32,
    "int64": _fits(64),
    "double": _is_number,
    "quantity": lambda value: isinstance(value, str) or _is_number(value),
    "intOrString": lambda value: _is_text(value) or _is_int32(value),
    **dict.fromkeys(
        ("json", "raw", "fieldsV1", "schemaOrArray", "schemaOrBool", "schemaOrStrings"), _anything
    ),
}
_WORDS: Final = {
    "bool": "boolean",
    "bytes": "string",
    "int32": "whole number",
    "int64": "whole number",
    "double": "number",
    "time": "string",
    "microtime": "string",
    "intOrString": "whole number or string",
}
_FORMS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "int32": (_is_whole, "does not fit 32 bits"),
    "int64": (_is_whole, "does not fit 64 bits"),
    "intOrString": (_is_whole, "does not fit 32 bits"),
    "time": (_is_text, "is not a time like 2006-01-02T15:04:05Z"),
    "microtime": (_is_text, "is not a time with six digits of a second like 2006-01-02T15:04:05.000000Z"),
}
"""What is wrong with a value of the right type."""
