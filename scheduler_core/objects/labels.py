"""Label selectors, from manifests (`matchLabels`, `matchExpressions`) and from text (`app in (a,b),!tier`).

Source: staging/src/k8s.io/apimachinery/pkg/labels/selector.go,
staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go, v1.34.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal, get_args

from scheduler_core.errors import FieldError, InvalidObject, aggregate, invalid, not_supported, quoted
from scheduler_core.objects.fields import SelectorError, child, mappings, string, string_map, strings

# --- What a label key and a label value may look like.


_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_NAME})?"
_SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_NAME_PATTERN: Final = re.compile(_NAME)
_VALUE_PATTERN: Final = re.compile(_VALUE)
# Upstream's pattern in a form that cannot backtrack for long.
_SUBDOMAIN_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")

_ALPHANUMERIC: Final = (
    "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
MAX_NAME_LENGTH: Final = 63
MAX_SUBDOMAIN_LENGTH: Final = 253
_LENGTH: Final = re.compile(r"(must be no more than \d+) characters")


_KEY_RULE: Final = f"must consist of {_ALPHANUMERIC}"


@lru_cache(maxsize=16384)
def qualified_name_errors(text: str) -> tuple[str, ...]:
    """Why a text is not a label key (`name` or `prefix/name`); empty when it is one (`IsQualifiedName`)."""
    errors: list[str] = []
    prefix, slash, name = text.rpartition("/")
    name_rule = _pattern_message(_KEY_RULE, _NAME, "MyName", "my.name", "123-abc")
    if slash:
        if "/" in prefix:
            optional = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            return (f"a qualified name {name_rule}{optional}",)
        if not prefix:
            errors.append("prefix part must be non-empty")
        else:
            errors.extend(f"prefix part {message}" for message in subdomain_errors(prefix))
    if not name:
        errors.append("name part must be non-empty")
    elif _n_bytes(name) > MAX_NAME_LENGTH:
        errors.append(f"name part {_length_message(MAX_NAME_LENGTH)}")
    if not _NAME_PATTERN.fullmatch(name):
        errors.append(f"name part {name_rule}")
    return tuple(errors)


@lru_cache(maxsize=16384)
def label_value_errors(text: str) -> tuple[str, ...]:
    """Why a text is not a label value; empty when it is one (`IsValidLabelValue`)."""
    errors = []
    if _n_bytes(text) > MAX_NAME_LENGTH:
        errors.append(_length_message(MAX_NAME_LENGTH))
    if not _VALUE_PATTERN.fullmatch(text):
        rule = f"a valid label must be an empty string or consist of {_ALPHANUMERIC}"
        errors.append(_pattern_message(rule, _VALUE, "MyValue", "my_value", "12345"))
    return tuple(errors)


def subdomain_errors(text: str) -> tuple[str, ...]:
    """Why a text is not a DNS subdomain; empty when it is one (`IsDNS1123Subdomain`)."""
    errors = []
    if _n_bytes(text) > MAX_SUBDOMAIN_LENGTH:
        errors.append(_length_message(MAX_SUBDOMAIN_LENGTH))
    if not all(_SUBDOMAIN_LABEL.fullmatch(label) for label in text.split(".")):
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character"
        )
        errors.append(_pattern_message(rule, _SUBDOMAIN, "example.com"))
    return tuple(errors)


def label_errors(text: str) -> tuple[str, ...]:
    """Why a text is not a DNS label, as names of namespaces and containers are (`IsDNS1123Label`)."""
    errors = []
    if _n_bytes(text) > MAX_NAME_LENGTH:
        errors.append(_length_message(MAX_NAME_LENGTH))
    if not _SUBDOMAIN_LABEL.fullmatch(text):
        if all(_SUBDOMAIN_LABEL.fullmatch(label) for label in text.split(".")):
            errors.append("must not contain dots")
        else:
            rule = (
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
                "and must start and end with an alphanumeric character"
            )
            errors.append(_pattern_message(rule, _SUBDOMAIN_LABEL.pattern, "my-name", "123-abc"))
    return tuple(errors)


def is_extended_resource_name(name: str) -> bool:
    """Source: pkg/apis/core/v1/helper/helpers.go IsExtendedResourceName, v1.34."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not qualified_name_errors(f"requests.{name}")


def _pattern_message(words: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{words} (e.g. {shown}regex used for validation is '{pattern}')"


def _length_message(limit: int) -> str:
    return f"must be no more than {limit} characters"


def worded_as_label_key(text: str) -> str:
    """A sentence about a name as 1.35 writes it: of a label key, its length in bytes (`IsLabelKey`, `MaxLenError`)."""
    text = text.replace(f"a qualified name {_KEY_RULE}", f"a valid label key {_KEY_RULE}")
    return _LENGTH.sub(r"\1 bytes", text)


def _n_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


Operator = Literal["in", "notin", "=", "==", "!=", "gt", "lt", "exists", "!"]

OPERATORS: Final[tuple[str, ...]] = get_args(Operator)
_BINARY_OPERATORS: Final = OPERATORS[:7]
_SYMBOLS: Final[dict[Operator, str]] = {
    "=": "=", "==": "==", "!=": "!=", "in": " in ", "notin": " notin ", "gt": ">", "lt": "<",
}  # fmt: skip
_EXPRESSION_OPERATORS: Final[dict[str, Operator]] = {
    "In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!",
}  # fmt: skip
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label.

    Attributes
    ----------
    key : str
        The label's key.
    operator : str
        One of `OPERATORS`, as `k8s.io/apimachinery/pkg/selection` spells them.
    values : tuple of str
        Sorted, so that equal requirements are equal; doubles are kept, they are printed.
    """

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        operator = self.operator
        if operator in ("in", "=", "=="):
            return value is not None and value in self.values
        if operator in ("notin", "!="):
            return value is None or value not in self.values
        if operator == "exists":
            return value is not None
        if operator == "!":
            return value is None
        number = None if value is None else parse_int64(value)
        limit = parse_int64(self.values[0]) if len(self.values) == 1 else None
        if number is None or limit is None:
            return False
        return number > limit if operator == "gt" else number < limit

    def __str__(self) -> str:
        if self.operator == "exists":
            return self.key
        if self.operator == "!":
            return f"!{self.key}"
        values = ",".join(self.values)
        if self.operator in ("in", "notin"):
            values = f"({values})"
        return f"{self.key}{_SYMBOLS[self.operator]}{values}"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements hold. Without any it matches everything, unless it is `NOTHING`.

    Attributes
    ----------
    requirements : tuple of Requirement
        Sorted by key.
    is_nothing : bool
        It selects no object at all (`labels.Nothing`), which an absent selector does.

    Examples
    --------
    >>> selector = label_selector_from({"matchExpressions": [
    ...     {"key": "tier", "operator": "NotIn", "values": ["c", "b"]}]})
    >>> str(selector), selector.matches({"tier": "a"}), selector.matches({"tier": "b"})
    ('tier notin (b,c)', True, False)
    """

    requirements: tuple[Requirement, ...] = ()
    is_nothing: bool = False
    _hash: int = field(init=False, repr=False, compare=False)
    """Terms with selectors are what much is kept by: each is asked for it many times a cycle."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.requirements, self.is_nothing)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def is_everything(self) -> bool:
        return not self.requirements and not self.is_nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        return not self.is_nothing and all(requirement.matches(labels) for requirement in self.requirements)

    def add(self, requirements: Iterable[Requirement]) -> LabelSelector:
        """This selector with more requirements; nothing stays nothing (`Selector.Add`)."""
        return self if self.is_nothing else _selector([*self.requirements, *requirements])

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING: Final = LabelSelector()
NOTHING: Final = LabelSelector(is_nothing=True)


_ANY: Final = 10**9
_COUNTS: Final[Mapping[str, tuple[int, int, str]]] = {
    **dict.fromkeys(("in", "notin"), (1, _ANY, "for 'in', 'notin' operators, values set can't be empty")),
    **dict.fromkeys(("=", "==", "!="), (1, 1, "exact-match compatibility requires one single value")),
    **dict.fromkeys(("exists", "!"), (0, 0, "values set must be empty for exists and does not exist")),
    **dict.fromkeys(("gt", "lt"), (1, 1, "for 'Gt', 'Lt' operators, exactly one value is required")),
}
"""Least and most values of an operator, and the words where there are others."""


def requirement_errors(
    key: str,
    operator: str,
    values: Sequence[str] | None,
    path: str = "",
) -> list[FieldError]:
    """What is wrong with a requirement, by field below `path`; empty if nothing is (`NewRequirement`)."""
    prefix = f"{path}." if path else ""
    errors: list[FieldError] = []
    if key_errors := qualified_name_errors(key):
        errors.append(invalid(f"{prefix}key", key, "; ".join(key_errors)))
    field = f"{prefix}values"
    if operator not in _COUNTS:
        errors.append(not_supported(f"{prefix}operator", operator, OPERATORS))
    else:
        least, most, detail = _COUNTS[operator]
        if not least <= len(values or ()) <= most:
            errors.append(invalid(field, values, detail))
    if operator in ("gt", "lt"):
        for index, value in enumerate(values or ()):
            if parse_int64(value) is None:
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                errors.append(invalid(f"{field}[{index}]", value, detail))
    for index, value in enumerate(values or ()):
        if value_errors := label_value_errors(value):
            errors.append(invalid(f"{field}[{index}][{key}]", value, "; ".join(value_errors)))
    return errors


def requirement_of(key: str, operator: Operator, values: Iterable[str] = ()) -> Requirement:
    """A requirement as it is kept, its values in order. It is not checked."""
    return Requirement(key, operator, tuple(sorted(values)))


def selector_from_labels(labels: Mapping[str, str]) -> LabelSelector:
    """The selector for exactly these labels, unchecked; no labels select everything (`SelectorFromSet`)."""
    return LabelSelector(tuple(Requirement(key, "=", (labels[key],)) for key in sorted(labels)))


def label_selector_from(document: Mapping[str, Any] | None, path: str = "") -> LabelSelector:
    """The selector of a manifest (`metav1.LabelSelectorAsSelector`).

    Parameters
    ----------
    document : mapping or None
        A metav1 LabelSelector. None selects nothing, an empty one everything.
    path : str
        Where it is.

    Raises
    ------
    InvalidObject
        A field is of another type.
    SelectorError
        With upstream's message, and `path` naming the field. Of several broken labels in `matchLabels` the
        first in order of keys is told (upstream: any).
    """
    if document is None:
        return NOTHING
    if not isinstance(document, Mapping):
        raise InvalidObject(path, document, "must be an object")
    requirements = []
    for key, value in string_map(document, "matchLabels", path).items():
        where = f"{child(path, 'matchLabels')}[{key}]"
        _raise_first(requirement_errors(key, "=", [value]), where, is_label=True)
        requirements.append(Requirement(key, "=", (value,)))
    for where, expression in mappings(document, "matchExpressions", path):
        operator_text = string(expression, "operator", where)
        operator = _EXPRESSION_OPERATORS.get(operator_text)
        if operator is None:
            message = f"{quoted(operator_text)} is not a valid label selector operator"
            raise SelectorError(message, f"{where}.operator")
        key = string(expression, "key", where)
        # Upstream copies the values, and the copy of an empty list is null.
        values = list(strings(expression, "values", where)) or None
        _raise_first(requirement_errors(key, operator, values), where)
        requirements.append(requirement_of(key, operator, values or ()))
    return _selector(requirements) if requirements else EVERYTHING


def parse_int64(text: str) -> int | None:
    """Parse a 64-bit integer (`strconv.ParseInt`); None if the text is none."""
    # No real manifest has that many zeros, and it keeps hostile texts cheap.
    if len(text) > 1000 or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _selector(requirements: Iterable[Requirement]) -> LabelSelector:
    return LabelSelector(tuple(sorted(requirements, key=lambda requirement: requirement.key)))


def _raise_first(errors: list[FieldError], path: str, *, is_label: bool = False) -> None:
    if errors:
        field = path if is_label else f"{path}.{errors[0].field}"
        raise SelectorError(aggregate(errors), field)


def parse_label_selector_text(text: str) -> LabelSelector:
    """Parse the text form of a label selector (`labels.Parse`).

    Raises
    ------
    SelectorError
        With upstream's message.

    Examples
    --------
    >>> str(parse_label_selector_text(" tier in (b, a), app != web,!old, num > 3"))
    'app!=web,num>3,!old,tier in (a,b)'
    """
    return _selector(label_requirements(text))


def label_requirements(text: str) -> list[Requirement]:
    """The requirements in the text form of a label selector, as they are written.

    Raises
    ------
    SelectorError
        With upstream's message.
    """
    return _TextParser(text).requirements()


_TOKEN: Final = re.compile(r"[ \t\r\n]*(?:(?P<symbols>[=!(),<>]+)|(?P<word>[^=!(),<> \t\r\n\0]+)\0?)?")
_OPERATOR_TOKENS: Final[dict[str, Operator]] = {
    "in": "in", "=": "=", "==": "==", ">": "gt", "<": "lt", "notin": "notin", "!=": "!=",
}  # fmt: skip
_END: Final = ("end", "")


class _TextParser:
    """Tokens are (kind, text): kind is `word`, `end`, or the symbol or keyword itself."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._position = 0

    def requirements(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            kind, text = self._peek()
            if kind == "end":
                return requirements
            if kind not in ("word", "!"):
                raise SelectorError(f"found '{text}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            kind, text = self._take()
            if kind == "end":
                return requirements
            if kind != ",":
                raise SelectorError(f"found '{text}', expected: ',' or 'end of string'")
            kind, text = self._peek()
            if kind not in ("word", "!"):
                raise SelectorError(f"found '{text}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        negated = self._peek()[0] == "!"
        if negated:
            self._take()
        kind, key = self._take()
        if kind != "word":
            raise SelectorError(f"found '{key}', expected: identifier")
        if key_errors := qualified_name_errors(key):
            # Upstream prints the path it does not have.
            raise SelectorError(str(invalid("<nil>", key, "; ".join(key_errors))))
        operator: Operator
        if negated or self._peek()[0] in ("end", ","):
            operator, values = "!" if negated else "exists", []
        else:
            operator = self._operator()
            values = self._values() if operator in ("in", "notin") else [self._exact_value()]
        if errors := requirement_errors(key, operator, values):
            raise SelectorError(aggregate(errors))
        return requirement_of(key, operator, values)

    def _operator(self) -> Operator:
        _, text = self._tokens[self._position]
        self._position += 1
        operator = _OPERATOR_TOKENS.get(text)
        if operator is None:
            raise SelectorError(f"found '{text}', expected: {', '.join(_BINARY_OPERATORS)}")
        return operator

    def _values(self) -> list[str]:
        kind, text = self._take()
        if kind != "(":
            raise SelectorError(f"found '{text}' expected: '('")
        kind, text = self._peek()
        if kind == ")":
            self._take()
            return [""]
        if kind not in ("word", ","):
            raise SelectorError(f"found '{text}', expected: ',', ')' or identifier")
        values = self._value_list()
        self._take()
        return values

    def _value_list(self) -> list[str]:
        """The values up to the closing parenthesis, in order and each once; `(,a)` has an empty one."""
        values: dict[str, None] = {}
        while True:
            kind, text = self._take()
            if kind == "word":
                values[text] = None
                kind, text = self._peek()
                if kind == ")":
                    return sorted(values)
                if kind != ",":
                    raise SelectorError(f"found '{text}', expected: ',' or ')'")
            elif kind == ",":
                kind, _ = self._peek()
                if not values or kind in (")", ","):
                    values[""] = None
                if kind == ")":
                    return sorted(values)
            else:
                raise SelectorError(f"found '{text}', expected: ',', or identifier")

    def _exact_value(self) -> str:
        kind, _ = self._peek()
        if kind in ("end", ","):
            return ""
        kind, text = self._take()
        if kind != "word":
            raise SelectorError(f"found '{text}', expected: identifier")
        return text

    def _peek(self) -> tuple[str, str]:
        """The next token, `in` and `notin` read as words."""
        kind, text = self._tokens[self._position]
        return ("word" if kind in ("in", "notin") else kind), text

    def _take(self) -> tuple[str, str]:
        token = self._peek()
        self._position += 1
        return token


def _tokens(text: str) -> Iterable[tuple[str, str]]:
    position = 0
    while True:
        matched = _TOKEN.match(text, position)
        symbols = matched["symbols"] if matched else None
        word = matched["word"] if matched else None
        if matched is None or (symbols is None and word is None):
            # A NUL ends the text as its end does.
            yield _END
            return
        if word is not None:
            position = matched.end()
            yield (word if word in ("in", "notin") else "word"), word
            continue
        assert symbols is not None
        symbol = symbols[:2] if symbols[:2] in ("==", "!=") else symbols[0]
        position = matched.start("symbols") + len(symbol)
        yield symbol, symbol


# --- Field selectors: `metadata.name=web-1,status.phase!=Running`.


_OPERATOR: Final = re.compile("!=|==|=")
_TERM_END: Final = re.compile(r"(?:\\.|[^\\,])*\\?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """`field` equals `value`, or does not (`negated`). A field that is absent reads as empty."""

    field: str
    value: str
    negated: bool = False

    def matches(self, fields: Mapping[str, str]) -> bool:
        return (fields.get(self.field, "") == self.value) is not self.negated

    def __str__(self) -> str:
        value = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.field}{'!=' if self.negated else '='}{value}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All requirements hold; without any, everything matches."""

    requirements: tuple[FieldRequirement, ...] = ()

    @property
    def is_everything(self) -> bool:
        return not self.requirements

    def matches(self, fields: Mapping[str, str]) -> bool:
        return all(requirement.matches(fields) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def parse_field_selector_text(text: str) -> FieldSelector:
    r"""Parse a field selector (`fields.ParseSelector`).

    Parameters
    ----------
    text : str
        Terms `field=value`, `field==value` or `field!=value`, separated by commas; `\\`, `\,` and `\=` in a
        value stand for the sign itself. Empty terms do not count.

    Raises
    ------
    SelectorError
        With upstream's message.

    Examples
    --------
    >>> parse_field_selector_text("status.phase!=Running,metadata.name==web-1").matches(
    ...     {"metadata.name": "web-1", "status.phase": "Pending"})
    True
    """
    requirements = []
    for term in sorted(_terms(text)):
        if not term:
            continue
        operator = _OPERATOR.search(term)
        if operator is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
        field, value = term[: operator.start()], _unescaped(term[operator.end() :])
        if field or value:
            requirements.append(FieldRequirement(field, value, operator.group() == "!="))
    return FieldSelector(tuple(requirements))


def _terms(text: str) -> list[str]:
    """The text split at its commas, those behind a backslash excepted."""
    terms = []
    start = 0
    while start <= len(text):
        matched = _TERM_END.match(text, start)
        end = matched.end() if matched else len(text)
        terms.append(text[start:end])
        start = end + 1
    return terms


def _unescaped(value: str) -> str:
    characters = []
    escaping = False
    for character in value:
        if escaping:
            if character not in "\\,=":
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{character}")
            characters.append(character)
            escaping = False
        elif character == "\\":
            escaping = True
        elif character in ",=":
            # Upstream prints the number of the character.
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            characters.append(character)
    if escaping:
        raise SelectorError("invalid field selector: invalid escape sequence: \\")
    return "".join(characters)
