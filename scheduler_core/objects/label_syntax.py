"""What a label key and a label value may look like.

Source: staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go, v1.34.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

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
