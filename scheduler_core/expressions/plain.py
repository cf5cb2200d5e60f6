"""Running an expression's tree in Python alone, where the compiled library is not to be had, as in a browser.

The same values and words as the library's, which is preferred where it is there: its regular expressions take linear
time, so that no pattern stops a site. Bytes, unsigned numbers and times are the library's alone.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from scheduler_core.expressions.functions import FUNCTIONS
from scheduler_core.expressions.syntax import MACROS, ExpressionError, SyntaxNode, place

NO_OVERLOAD: Final = "no such overload"


class Optional(NamedTuple):
    """A value that may not be there: `items` holds it, or nothing."""

    items: tuple[Any, ...] = ()


class PlainExpression:
    """An expression's tree, ready to run.

    Raises
    ------
    ExpressionError
        It needs what only the compiled library has.
    """

    def __init__(self, tree: SyntaxNode, text: str) -> None:
        self._tree = tree
        for node in _every(tree):
            if said := _unreadable(node):
                raise ExpressionError(said, *place(text, node.at))

    def execute(self, variables: Mapping[str, Any]) -> Any:
        """The expression's value. Raises ExpressionError where it has none."""
        return _value(self._tree, variables)


def _every(node: SyntaxNode) -> list[SyntaxNode]:
    return [node, *(inner for part in node.parts for inner in _every(part))]


def _unreadable(node: SyntaxNode) -> str:
    if not node.exact:
        return (
            f"{node.text} can be read by the compiled library alone: pip install common-expression-language"
        )
    if node.kind == "call" and node.value == "has" and [part.kind for part in node.parts] != ["select"]:
        return "invalid argument to has() macro"
    if node.kind in ("call", "method") and node.value in _OF_THE_LIBRARY_ALONE:
        return f"{node.value}() is the compiled library's alone: pip install common-expression-language"
    return ""


_OF_THE_LIBRARY_ALONE: Final = frozenset(
    (
        "uint", "bytes", "type", "duration", "timestamp", "getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth",
        "getDate", "getDayOfWeek", "getHours", "getMinutes", "getSeconds", "getMilliseconds",
    )
)  # fmt: skip


def _value(node: SyntaxNode, known: Mapping[str, Any]) -> Any:
    match node.kind:
        case "literal":
            return node.value
        case "name":
            if node.value not in known:
                raise _undeclared(node.value)
            return known[node.value]
        case "list":
            return [_value(part, known) for part in node.parts]
        case "map":
            values = [_value(part, known) for part in node.parts]
            return dict(zip(values[::2], values[1::2], strict=True))
        case "select" | "index":
            return _member(node, known)
        case "choice":
            condition, then, other = node.parts
            return _value(then if _truth(_value(condition, known)) else other, known)
        case "unary":
            return _signed(node, _value(node.parts[0], known))
        case "binary":
            if node.value in ("&&", "||"):
                return _either(node, known)
            left, right = (_value(part, known) for part in node.parts)
            return _OPERATORS[node.value](left, right)
        case "macro":
            return _macro(node, known)
    if node.value == "has":
        [field] = node.parts
        return bool(_found(_value(field.parts[0], known), field.value).items)
    return _called(str(node.value), [_value(part, known) for part in node.parts])


def _member(node: SyntaxNode, known: Mapping[str, Any]) -> Any:
    """A field or an element, of an optional value an optional one."""
    owner = _value(node.parts[0], known)
    key = node.value if node.kind == "select" else _value(node.parts[1], known)
    if isinstance(owner, Optional):
        return _found(owner.items[0], key) if owner.items else owner
    found = _found(owner, key)
    if node.optional or found.items:
        return found if node.optional else found.items[0]
    said = "index out of bounds" if isinstance(owner, list) else "no such key"
    raise ExpressionError(f"{said}: {key}")


def _found(owner: Any, key: Any) -> Optional:
    if isinstance(owner, Mapping):
        return Optional((owner[key],)) if key in owner else Optional()
    if not isinstance(owner, list):
        raise ExpressionError(NO_OVERLOAD)
    if not _is_number(key) or isinstance(key, float):
        raise ExpressionError(f"unsupported index type '{_type(key)}' in list")
    return Optional((owner[key],)) if 0 <= key < len(owner) else Optional()


def _signed(node: SyntaxNode, value: Any) -> Any:
    is_turned = len(node.value) % 2 == 1
    if "!" in node.value:
        return _truth(value) ^ is_turned
    if not _is_number(value):
        raise ExpressionError(NO_OVERLOAD)
    return _bounded(-value if is_turned else value)


def _either(node: SyntaxNode, known: Mapping[str, Any]) -> bool:
    """And, or: the side that decides does so even where the other one fails."""
    decides = node.value == "||"
    failed = None
    for part in node.parts:
        try:
            if _truth(_value(part, known)) is decides:
                return decides
        except ExpressionError as error:
            failed = failed or error
    if failed:
        raise failed
    return not decides


def _macro(node: SyntaxNode, known: Mapping[str, Any]) -> Any:
    gone_through, [name] = _value(node.parts[0], known), node.names

    def at(element: Any, part: SyntaxNode) -> Any:
        return _value(part, {**known, name: element})

    if node.value == "bind":
        return at(gone_through, node.parts[1])
    if not isinstance(gone_through, Mapping | list):
        raise ExpressionError(NO_OVERLOAD)
    *conditions, last = node.parts[1:]
    if node.value == "map":
        return [at(x, last) for x in gone_through if all(_truth(at(x, part)) for part in conditions)]
    holds = (x for x in gone_through if _truth(at(x, last)))
    if node.value == "filter":
        return list(holds)
    if node.value == "exists":
        return any(True for _ in holds)
    if node.value == "all":
        return all(_truth(at(x, last)) for x in gone_through)
    return len(list(holds)) == 1


assert set(MACROS) == {"all", "exists", "exists_one", "existsOne", "map", "filter"}


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ExpressionError(NO_OVERLOAD)
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _type(value: Any) -> str:
    names = {bool: "bool", int: "int", float: "double", str: "string", type(None): "null"}
    return names.get(type(value), "list" if isinstance(value, list) else "map")


def _bounded(value: Any) -> Any:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ExpressionError("integer overflow")
    return value


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)


def _in(item: Any, holder: Any) -> bool:
    if not isinstance(holder, Mapping | list):
        raise ExpressionError(NO_OVERLOAD)
    return any(_equal(item, each) for each in holder)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def check(left: Any, right: Any) -> bool:
        if not (_is_number(left) and _is_number(right)) and (
            type(left) is not type(right) or not isinstance(left, str | bool)
        ):
            raise ExpressionError(NO_OVERLOAD)
        return compare(left, right)

    return check


def _arithmetic(compute: Callable[[Any, Any], Any], *of: type) -> Callable[[Any, Any], Any]:
    def run(left: Any, right: Any) -> Any:
        if type(left) is not type(right) or type(left) not in of:
            raise ExpressionError(NO_OVERLOAD)
        return _bounded(compute(left, right))

    return run


def _divided(left: Any, right: Any) -> Any:
    if isinstance(left, float):
        if right:
            return left / right
        return (
            math.nan
            if left == 0 or math.isnan(left)
            else math.copysign(math.inf, left) * math.copysign(1, right)
        )
    if not right:
        raise ExpressionError("division by zero")
    return abs(left) // abs(right) * (1 if (left < 0) is (right < 0) else -1)


def _rest(left: int, right: int) -> int:
    if not right:
        raise ExpressionError("modulus by zero")
    return left - int(_divided(left, right)) * right


_OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "in": _in,
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "+": _arithmetic(operator.add, int, float, str, list),
    "-": _arithmetic(operator.sub, int, float),
    "*": _arithmetic(operator.mul, int, float),
    "/": _arithmetic(_divided, int, float),
    "%": _arithmetic(_rest, int),
}


def _undeclared(name: Any) -> ExpressionError:
    return ExpressionError(f"undeclared reference to '{name}' (in container '')")


def _called(name: str, given: list[Any]) -> Any:
    """A function or a method, whose first argument is its owner."""
    if name in FUNCTIONS:
        try:
            return FUNCTIONS[name](*given)
        except Exception as error:  # whatever it raises is the expression's failure
            raise ExpressionError(str(error)) from None
    types, function = _FUNCTIONS.get(name, ((), None))
    if function is None or not isinstance(given[0] if given else None, types or object):
        raise _undeclared(name)
    if name in ("contains", "startsWith", "endsWith", "matches") and not isinstance(given[-1], str):
        raise _undeclared(name)
    if isinstance(given[0] if given else None, bool) and name in ("string", "int", "double"):
        raise _undeclared(name)
    try:
        return _bounded(function(*given))
    except TypeError:
        raise _undeclared(name) from None


def _whole(value: Any) -> int:
    try:
        return int(value)
    except ValueError:
        raise ExpressionError("string parse error: invalid digit found in string") from None


def _float(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        raise ExpressionError("string parse error: invalid float literal") from None


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _matches(text: str, pattern: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error as error:
        raise ExpressionError(f"'{pattern}' not a valid regex:\nregex parse error:\n    {error}") from None


def _there(value: Optional) -> Any:
    if not value.items:
        raise ExpressionError("optional.none() dereference")
    return value.items[0]


_FUNCTIONS: Final[Mapping[str, tuple[Any, Callable[..., Any]]]] = {
    "contains": (str, lambda text, part: part in text),
    "startsWith": (str, str.startswith),
    "endsWith": (str, str.endswith),
    "matches": (str, _matches),
    "string": (str | int | float, _text),
    "int": (str | int | float, _whole),
    "double": (str | int | float, _float),
    "dyn": ((), lambda value: value),
    "optional.of": ((), lambda value: Optional((value,))),
    "optional.none": ((), Optional),
    "optional.ofNonZeroValue": ((), lambda value: Optional((value,) if value else ())),
    "orValue": (Optional, lambda optional, other: optional.items[0] if optional.items else other),
    "or": (Optional, lambda optional, other: optional if optional.items else other),
    "hasValue": (Optional, lambda optional: bool(optional.items)),
    "value": (Optional, _there),
}
