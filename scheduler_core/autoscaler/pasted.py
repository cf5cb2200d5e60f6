"""Flags and node groups as they are pasted: a command line, the Deployment that has it, a ConfigMap, or a short form.

The short form is a mapping with `options` (flag -> value) and `nodeGroups`, each with `name`, `minSize`, `maxSize` and,
where the cluster has no node of it, `template` (a Node) or `instanceType` (of the price list).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.autoscaler.cluster_state import DEFAULTS
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.documents import pasted_values
from scheduler_core.objects.duration import parse_duration_ns
from scheduler_core.objects.fields import known_fields

Document = Mapping[str, Any]
EXPANDERS: Final = ("least-waste", "most-pods", "least-nodes", "priority", "price", "random")
PRIORITIES: Final = "cluster-autoscaler-priority-expander"
_GROUP_FIELDS: Final = ("name", "minSize", "maxSize", "template", "instanceType")
_GROUPS: Final = "nodes"
MAX_GROUPS: Final = 200


@dataclass(frozen=True, slots=True)
class GroupGiven:
    """A node group from a flag or a list."""

    name: str
    min_size: int
    max_size: int
    template: Document | None = None
    instance_type: str = ""


@dataclass(slots=True)
class Given:
    """What was given, checked.

    Attributes
    ----------
    options : dict of str to value
        Flags that are modelled.
    not_modelled : list of str
        Flags that are left out.
    priorities : str
        Of the priority expander, YAML.
    """

    options: dict[str, Any] = field(default_factory=dict)
    groups: list[GroupGiven] = field(default_factory=list)
    not_modelled: list[str] = field(default_factory=list)
    priorities: str = ""


def read_autoscaler(text: str | bytes) -> dict[str, Any]:
    """A pasted text as one document with `options`, `nodeGroups` and `priorities`, not yet checked.

    Raises
    ------
    InvalidObject
        It cannot be read.
    """
    said = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    found: dict[str, Any] = {}
    if said.lstrip().startswith("-") and not said.lstrip().startswith(("---", "- ")):
        _take_words(found, _words_of(said))
        return found
    for document in pasted_values(said, "autoscaler"):
        kind = document.get("kind")
        if kind is None:
            found |= document
        elif kind == "ConfigMap":
            found["priorities"] = str((document.get("data") or {}).get("priorities") or "")
        else:
            _take_words(found, _commands(document))
    return found


def _words_of(text: str) -> list[str]:
    try:
        return shlex.split(text.replace("\\\n", " "), comments=True)
    except ValueError as error:
        raise InvalidObject("autoscaler", None, f"cannot be read: {error}") from None


def _commands(value: Any) -> Iterator[str]:
    """Words of all `command` and `args` within an object."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in ("command", "args") and isinstance(item, list):
                yield from (str(word) for word in item)
            else:
                yield from _commands(item)
    elif isinstance(value, list):
        for item in value:
            yield from _commands(item)


def _take_words(found: dict[str, Any], words: Iterable[str]) -> None:
    options: dict[str, Any] = found.setdefault("options", {})
    for word in words:
        if not word.startswith("-"):
            continue
        flag, _, value = word.lstrip("-").partition("=")
        if flag == _GROUPS:
            least, _, rest = value.partition(":")
            most, _, name = rest.partition(":")
            group = {"name": name, "minSize": least, "maxSize": most}
            found.setdefault("nodeGroups", []).append(group)
        elif isinstance(DEFAULTS.get(flag), list):
            options.setdefault(flag, []).append(value)
        else:
            options[flag] = value if "=" in word else "true"


def autoscaler_from(document: Any) -> Given:
    """Check a document.

    Raises
    ------
    InvalidObject
        Names the flag or the field, and its value.
    """
    known_fields(document, ("options", "nodeGroups", "priorities"), "autoscaler")
    options, groups = document.get("options") or {}, document.get("nodeGroups") or []
    if not isinstance(options, Mapping):
        raise InvalidObject("autoscaler.options", options, "must be flags with their values")
    if not isinstance(groups, list) or len(groups) > MAX_GROUPS:
        raise InvalidObject("autoscaler.nodeGroups", None, f"must be a list of {MAX_GROUPS} groups at most")
    given = Given(priorities=str(document.get("priorities") or ""))
    for flag, value in options.items():
        name = str(flag).lstrip("-")
        if name in DEFAULTS:
            given.options[name] = _option(name, value)
        else:
            given.not_modelled.append(name)
    given.groups = [_group(group, f"autoscaler.nodeGroups[{place}]") for place, group in enumerate(groups)]
    for place, group in enumerate(given.groups):
        if group.name in [other.name for other in given.groups[:place]]:
            raise InvalidObject(f"autoscaler.nodeGroups[{place}].name", group.name, "is there twice")
    return given


def _option(flag: str, value: Any) -> Any:
    default, path = DEFAULTS[flag], f"autoscaler.options.{flag}"
    if isinstance(default, bool):
        known = {"true": True, "false": False}
        if str(value).lower() not in known:
            raise InvalidObject(path, value, "must be true or false")
        return known[str(value).lower()]
    if isinstance(default, int | float):
        try:
            return type(default)(str(value))
        except ValueError:
            words = "a whole number" if isinstance(default, int) else "a number"
            raise InvalidObject(path, value, f"must be {words}") from None
    if isinstance(default, list):
        return [str(item) for item in value] if isinstance(value, list) else [str(value)]
    if flag == "expander" and not set(str(value).split(",")) <= set(EXPANDERS):
        raise InvalidObject(path, value, f"must be of {', '.join(EXPANDERS)}")
    if flag in DURATIONS:
        try:
            if parse_duration_ns(str(value)) < 0 or (
                flag == "scan-interval" and parse_duration_ns(str(value)) < 10**9
            ):
                raise ValueError
        except ValueError:
            raise InvalidObject(path, value, "must be a duration, as 10m") from None
    return str(value)


def _is_duration(value: Any) -> bool:
    try:
        parse_duration_ns(str(value))
    except ValueError:
        return False
    return isinstance(value, str)


DURATIONS: Final = tuple(flag for flag, value in DEFAULTS.items() if _is_duration(value))
"""Flags that are a time."""


def _group(group: Any, path: str) -> GroupGiven:
    known_fields(group, _GROUP_FIELDS, path)
    name, template = group.get("name"), group.get("template")
    if not isinstance(name, str) or not name:
        raise InvalidObject(f"{path}.name", name, "must be the group's name")
    sizes = []
    for key, least in (("minSize", 0), ("maxSize", 1)):
        size = str(group.get(key, least if key == "minSize" else ""))
        if not size.isascii() or not size.isdecimal() or not least <= int(size) <= 15_000:
            raise InvalidObject(
                f"{path}.{key}", group.get(key), f"must be a number of nodes, {least} at least"
            )
        sizes.append(int(size))
    if sizes[0] > sizes[1]:
        raise InvalidObject(f"{path}.minSize", sizes[0], f"is above maxSize, {sizes[1]}")
    if template is not None and (not isinstance(template, Mapping) or template.get("kind") != "Node"):
        raise InvalidObject(f"{path}.template", None, "must be a manifest of kind Node")
    return GroupGiven(name, sizes[0], sizes[1], template, str(group.get("instanceType") or ""))
