"""Names Kubernetes accepts, and its words for those it does not.

Source: staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go, v1.34
"""

from __future__ import annotations

import re

_LABEL_FORMAT = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORMAT = rf"{_LABEL_FORMAT}(\.{_LABEL_FORMAT})*"
_NAME_FORMAT = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_FORMAT = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_SUBDOMAIN = re.compile(_SUBDOMAIN_FORMAT)
_NAME = re.compile(_NAME_FORMAT)
_VALUE = re.compile(_VALUE_FORMAT)
_NAME_WORDS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character"
)
_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character"
)
_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character"
)


def _pattern_problem(words: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{words} (e.g. {shown}regex used for validation is '{pattern}')"


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"


def _length(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def qualified_name_problems(text: str) -> list[str]:
    """What is wrong with a label key or resource name; empty when it is one.

    Source: IsQualifiedName
    """
    problems: list[str] = []
    parts = text.split("/")
    name_problem = _pattern_problem(_NAME_WORDS, _NAME_FORMAT, "MyName", "my.name", "123-abc")
    if len(parts) > 2:
        return [
            f"a qualified name {name_problem} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    name = parts[-1]
    if len(parts) == 2:
        prefix = parts[0]
        if not prefix:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in subdomain_problems(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    elif _length(name) > 63:
        problems.append(f"name part {_too_long(63)}")
    if not _NAME.fullmatch(name):
        problems.append(f"name part {name_problem}")
    return problems


def subdomain_problems(text: str) -> list[str]:
    """Source: IsDNS1123Subdomain."""
    problems: list[str] = []
    if _length(text) > 253:
        problems.append(_too_long(253))
    if not _SUBDOMAIN.fullmatch(text):
        problems.append(_pattern_problem(_SUBDOMAIN_WORDS, _SUBDOMAIN_FORMAT, "example.com"))
    return problems


def label_value_problems(text: str) -> list[str]:
    """Source: IsValidLabelValue."""
    problems: list[str] = []
    if _length(text) > 63:
        problems.append(_too_long(63))
    if not _VALUE.fullmatch(text):
        problems.append(_pattern_problem(_VALUE_WORDS, _VALUE_FORMAT, "MyValue", "my_value", "12345"))
    return problems


def is_extended_resource_name(name: str) -> bool:
    """Source: pkg/apis/core/v1/helper/helpers.go IsExtendedResourceName, v1.34."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not qualified_name_problems(f"requests.{name}")
