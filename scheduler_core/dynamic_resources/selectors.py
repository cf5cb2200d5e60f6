"""Whether a CEL expression matches a device.

The language itself is a library's. Added here: Kubernetes' `quantity` and `semver` with their methods, the optional
syntax (`a.?b.orValue(c)`) and `cel.bind`, which the library lacks and which are written out before it reads the text.

Source: staging/src/k8s.io/dynamic-resource-allocation/cel/compile.go, v1.36
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from scheduler_core.dynamic_resources.model import Device, quantity
from scheduler_core.objects.quantity import QuantityError

MAX_LENGTH = 10 * 1024
"""Characters of an expression, as the API server has it."""

_TOKEN = re.compile(
    r"""\s+|//[^\n]*|(?P<string>[rRbB]*(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))"""
    r"""|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>\d[\w.]*)|(?P<symbol>\.\?|\[\?|&&|\|\||[<>=!]=|.)""",
    re.DOTALL,
)
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)


class SelectorError(Exception):
    """An expression that cannot be read, or that fails for a device; the message is Kubernetes'."""


class Selector:
    """One compiled expression; `compiled` makes it once a text."""

    def __init__(self, text: str) -> None:
        # Only clusters with devices need the library.
        import cel

        if len(text) > MAX_LENGTH:
            raise SelectorError(f"CEL compile error: expression is longer than {MAX_LENGTH} characters")
        self._cel = cel
        self._domains = tuple(
            dict.fromkeys(
                match["string"][1:-1]
                for match in _TOKEN.finditer(text)
                if match["string"] and match["string"][0] in "\"'"
            )
        )
        try:
            self._program = cel.compile(written_out(text))
        except ValueError as error:
            raise SelectorError(f"CEL compile error: {error}") from None
        self._answers: dict[Any, bool | str] = {}

    def matches(self, device: Device) -> bool:
        """Whether the device is selected; asked once for all devices that are alike.

        Raises
        ------
        SelectorError
        """
        key = _likeness(device)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = self._ask(device)
            if len(self._answers) > 100_000:
                self._answers.clear()
        if isinstance(answer, str):
            raise SelectorError(answer)
        return answer

    def _ask(self, device: Device) -> bool | str:
        context = self._cel.Context()
        context.add_variable("device", self._document(device))
        for name, function in _FUNCTIONS.items():
            context.add_function(name, function)
        try:
            found = self._program.execute(context)
        except KeyError as error:
            return f"CEL runtime error: no such key: {error.args[0] if error.args else error}"
        except Exception as error:  # whatever the library raises is the expression's failure
            return f"CEL runtime error: {error}"
        if not isinstance(found, bool):
            return "CEL runtime error: result of the expression is not a boolean"
        return found

    def _document(self, device: Device) -> dict[str, Any]:
        driver = device.id[0]
        # A domain that the device does not have reads as an empty one.
        attributes: dict[str, dict[str, Any]] = {domain: {} for domain in self._domains}
        capacity: dict[str, dict[str, Any]] = {domain: {} for domain in self._domains}
        for name, value in device.attributes.items():
            domain, identifier = _qualified(name, driver)
            kind, held = next(iter(value.items()))
            attributes.setdefault(domain, {})[identifier] = _semver(held) if kind == "version" else held
        for name, value in device.capacity.items():
            domain, identifier = _qualified(name, driver)
            capacity.setdefault(domain, {})[identifier] = _quantity(str(value["value"]))
        return {
            "driver": driver,
            "attributes": attributes,
            "capacity": capacity,
            "allowMultipleAllocations": device.is_shared,
        }


@lru_cache(maxsize=4096)
def compiled(text: str) -> Selector:
    """Raises SelectorError for a text that is no expression."""
    return Selector(text)


def _likeness(device: Device) -> Any:
    """Devices with equal values are asked about once."""
    cached = device.__dict__.get("_likeness")
    if cached is None:
        cached = (
            device.id[0],
            tuple(sorted((name, *next(iter(value.items()))) for name, value in device.attributes.items())),
            tuple(sorted((name, str(value["value"])) for name, value in device.capacity.items())),
            device.is_shared,
        )
        device.__dict__["_likeness"] = cached
    return cached


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, identifier = name.rpartition("/")
    return (domain, identifier) if slash else (driver, name)


# ---- Kubernetes' functions


def _quantity(text: str) -> dict[str, Any]:
    return {"quantity": str(quantity(text).canonical())}


def _to_quantity(text: Any) -> dict[str, Any]:
    try:
        return _quantity(text)
    except QuantityError as error:
        raise ValueError(str(error)) from None


def _is_quantity(text: Any) -> bool:
    try:
        quantity(text)
    except QuantityError:
        return False
    return True


def _semver(text: Any) -> dict[str, Any]:
    if not isinstance(text, str) or not _SEMVER.fullmatch(text):
        raise ValueError(f"Invalid semantic version {text!r}")
    return {"semver": text.partition("+")[0]}


def _is_semver(text: Any) -> bool:
    return isinstance(text, str) and bool(_SEMVER.fullmatch(text))


def _precedence(text: str) -> tuple[Any, ...]:
    """Source: semver.org, 11."""
    match = _SEMVER.fullmatch(text)
    assert match is not None
    parts = tuple(
        (0, int(part), "") if part.isdigit() else (1, 0, part) for part in (match[4] or "").split(".") if part
    )
    return int(match[1]), int(match[2]), int(match[3]), not parts, parts


def _compare(left: Any, right: Any) -> int:
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        if "quantity" in left and "quantity" in right:
            return quantity(left["quantity"]).cmp(quantity(right["quantity"]))
        if "semver" in left and "semver" in right:
            one, other = _precedence(left["semver"]), _precedence(right["semver"])
            return (one > other) - (one < other)
    raise ValueError("no such overload")


def _add(left: Any, right: Any) -> dict[str, Any]:
    other = quantity(right["quantity"]) if isinstance(right, Mapping) else quantity(str(right))
    return {"quantity": str(quantity(left["quantity"]).add(other).canonical())}


def _sub(left: Any, right: Any) -> dict[str, Any]:
    other = quantity(right["quantity"]) if isinstance(right, Mapping) else quantity(str(right))
    return {"quantity": str(quantity(left["quantity"]).sub(other).canonical())}


def _sign(value: Any) -> int:
    return quantity(value["quantity"]).sign()


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quantity": _to_quantity,
    "isQuantity": _is_quantity,
    "semver": _semver,
    "isSemver": _is_semver,
    "compareTo": _compare,
    "isGreaterThan": lambda left, right: _compare(left, right) > 0,
    "isLessThan": lambda left, right: _compare(left, right) < 0,
    "add": _add,
    "sub": _sub,
    "sign": _sign,
    "isInteger": lambda value: quantity(value["quantity"]).as_approximate_float().is_integer(),
    "asInteger": lambda value: quantity(value["quantity"]).value(),
    "asApproximateFloat": lambda value: quantity(value["quantity"]).as_approximate_float(),
    "major": lambda value: int(value["semver"].split(".")[0]),
    "minor": lambda value: int(value["semver"].split(".")[1]),
    "patch": lambda value: int(re.split(r"[.-]", value["semver"])[2]),
}


# ---- syntax the library lacks


def written_out(text: str) -> str:
    """The expression without `.?`, `[?` and `cel.bind`, which mean the same written out.

    >>> written_out('device.attributes["x"].?fast.orValue(false)')
    '(has(device.attributes["x"].fast)?optional.of(device.attributes["x"].fast):optional.none()).orValue(false)'
    >>> written_out("cel.bind(d, f(1), d > 2)")
    '[f(1)].map(d,d>2)[0]'
    """
    return _Writer([match for match in _TOKEN.finditer(text) if match.lastgroup]).expression()


_CLOSING = {"(": ")", "[": "]", "{": "}"}


class _Writer:
    """Goes through the tokens once; the text of a chain (`a.b[c].d(e)`) is kept until it ends."""

    def __init__(self, tokens: list[re.Match[str]]) -> None:
        self._tokens = tokens
        self._at = 0

    def expression(self, until: tuple[str, ...] = ()) -> str:
        """Everything up to one of `until`, which is left, or to the end."""
        parts: list[str] = []
        while (token := self._peek()) is not None and token not in until:
            kind = self._tokens[self._at].lastgroup
            if kind == "symbol" and token not in _CLOSING:
                parts.append(self._take())
                continue
            chain = self._chain()
            if parts and parts[-1][-1:].isalnum() and chain[:1].isalnum():
                parts.append(" ")
            if parts and chain[:1].isalnum() and re.fullmatch(r"[A-Za-z_]\w*", parts[-1]):
                parts.append(" ")
            parts.append(f" {chain} " if chain == "in" else chain)
        return "".join(parts)

    def _chain(self) -> str:
        """An operand with everything that hangs on it."""
        text = self._operand()
        while (token := self._peek()) is not None:
            if token == ".":
                self._take()
                text += "." + self._take()
            elif token == ".?":
                self._take()
                field = f"{text}.{self._take()}"
                text = f"(has({field})?optional.of({field}):optional.none())"
            elif token == "[?":
                self._take()
                key = self.expression(("]",))
                self._take()
                text = f"({key} in {text}?optional.of({text}[{key}]):optional.none())"
            elif token in ("(", "["):
                text = self._bound() if text == "cel.bind" else text + self._bracketed()
            else:
                return text
        return text

    def _operand(self) -> str:
        token = self._peek()
        return self._bracketed() if token in _CLOSING else self._take()

    def _bracketed(self) -> str:
        opening = self._take()
        inner = self.expression((_CLOSING[opening],))
        return opening + inner + (self._take() if self._peek() else "")

    def _bound(self) -> str:
        self._take()
        name = self.expression((",",))
        self._take()
        value = self.expression((",",))
        self._take()
        body = self.expression((")",))
        self._take()
        return f"[{value}].map({name},{body})[0]"

    def _peek(self) -> str | None:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else None

    def _take(self) -> str:
        if self._at >= len(self._tokens):
            raise SelectorError("CEL compile error: the expression ends too soon")
        token = self._tokens[self._at][0]
        self._at += 1
        return token
