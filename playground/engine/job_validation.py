"""What an API server refuses of a Job's policies, and which of them pods of Jobs here do not follow.

Source: pkg/apis/batch/validation/validation.go validateJobSpec, v1.34
Differs: a pod template that names no restartPolicy is taken, as it always was here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import (
    mapping,
    mappings,
    optional_integer,
    optional_string,
    sequence,
    string,
)

Document = Mapping[str, Any]

NOT_SIMULATED: Final = ("backoffLimitPerIndex", "maxFailedIndexes", "podFailurePolicy", "successPolicy")
"""Fields of a Job's spec that are checked and kept, and that its pods here do not follow."""

_COUNTS: Final = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_INDEXED: Final = "Indexed"
_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_MOST_AT_ONCE: Final = 100_000
_MANY_COMPLETIONS: Final = 100_000
_MOST_OF_MANY: Final = 10_000
_MOST_RULES: Final = 20
_MOST_VALUES: Final = 255
_LONGEST_MANAGER: Final = 63
_LONGEST_INDEXES: Final = 64 * 1024
_MANAGER: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def check_job(spec: Document, path: str) -> None:
    """Check what a Job's spec says besides its pod template.

    Raises
    ------
    InvalidObject
    """
    numbers = {key: optional_integer(spec, key, path) for key in _COUNTS}
    for key, number in numbers.items():
        if number is not None and number < 0:
            raise InvalidObject(f"{path}.{key}", number, "must be greater than or equal to 0")
    manager = optional_string(spec, "managedBy", path)
    if manager is not None and (len(manager) > _LONGEST_MANAGER or not _MANAGER.fullmatch(manager)):
        raise InvalidObject(
            f"{path}.managedBy",
            manager,
            f'must be a domain-prefixed path (such as "acme.io/foo") of at most {_LONGEST_MANAGER} characters',
        )
    mode = string(spec, "completionMode", path) or "NonIndexed"
    _one_of(mode, ("NonIndexed", _INDEXED), f"{path}.completionMode")
    if mode == _INDEXED:
        _indexed(numbers, path)
    else:
        for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if numbers[key] is not None:
                raise InvalidObject(f"{path}.{key}", numbers[key], "requires indexed completion mode")
    if numbers["maxFailedIndexes"] is not None and numbers["backoffLimitPerIndex"] is None:
        words = "is required when maxFailedIndexes is specified"
        raise InvalidObject(f"{path}.backoffLimitPerIndex", None, words)
    _failure_policy(spec, path, per_index=numbers["backoffLimitPerIndex"] is not None)
    if spec.get("successPolicy") is not None:
        if mode != _INDEXED:
            raise InvalidObject(f"{path}.successPolicy", None, "requires indexed completion mode")
        _success_policy(
            mapping(spec, "successPolicy", path), f"{path}.successPolicy", numbers["completions"] or 0
        )
    replacement = optional_string(spec, "podReplacementPolicy", path)
    if replacement is not None:
        allowed = ("Failed",) if spec.get("podFailurePolicy") else ("Failed", "TerminatingOrFailed")
        _one_of(replacement, allowed, f"{path}.podReplacementPolicy")
    _restarts(spec, path)


def not_simulated(manifest: Document) -> list[str]:
    """Sentences about a valid Job's or CronJob's fields that its pods here do not follow, each with its path."""
    spec, path = manifest.get("spec"), "spec"
    if manifest.get("kind") == "CronJob" and isinstance(spec, Mapping):
        template = spec.get("jobTemplate")
        spec = template.get("spec") if isinstance(template, Mapping) else None
        path = "spec.jobTemplate.spec"
    elif manifest.get("kind") != "Job":
        return []
    if not isinstance(spec, Mapping):
        return []
    return [
        f"{path}.{key}: is kept, but pods of Jobs do not follow it here"
        for key in NOT_SIMULATED
        if spec.get(key) is not None
    ]


def _indexed(numbers: Mapping[str, int | None], path: str) -> None:
    completions, at_once = numbers["completions"], numbers["parallelism"] or 0
    failed = numbers["maxFailedIndexes"]
    if completions is None:
        raise InvalidObject(f"{path}.completions", None, f"is required when completion mode is {_INDEXED}")
    if at_once > _MOST_AT_ONCE:
        words = f"must be less than or equal to {_MOST_AT_ONCE} when completion mode is {_INDEXED}"
        raise InvalidObject(f"{path}.parallelism", at_once, words)
    place = f"{path}.maxFailedIndexes"
    if failed is not None and failed > completions:
        raise InvalidObject(place, failed, "must be less than or equal to completions")
    if failed is not None and failed > _MOST_AT_ONCE:
        raise InvalidObject(place, failed, f"must be less than or equal to {_MOST_AT_ONCE}")
    if completions <= _MANY_COMPLETIONS or numbers["backoffLimitPerIndex"] is None:
        return
    if failed is None:
        words = f"must be specified when completions is above {_MANY_COMPLETIONS}"
        raise InvalidObject(place, None, words)
    for key, number in (("parallelism", at_once), ("maxFailedIndexes", failed)):
        if number > _MOST_OF_MANY:
            raise InvalidObject(
                f"{path}.{key}",
                number,
                f"must be less than or equal to {_MOST_OF_MANY} when completions are above {_MANY_COMPLETIONS}"
                " and used with backoff limit per index",
            )


def _failure_policy(spec: Document, path: str, *, per_index: bool) -> None:
    place = f"{path}.podFailurePolicy"
    rules = mappings(mapping(spec, "podFailurePolicy", path), "rules", place)
    _at_most(rules, _MOST_RULES, f"{place}.rules")
    template = mapping(mapping(spec, "template", path), "spec", f"{path}.template")
    names = {
        string(container, "name", where)
        for key in ("initContainers", "containers")
        for where, container in mappings(template, key, f"{path}.template.spec")
    }
    for where, rule in rules:
        action = string(rule, "action", where)
        _one_of(action, _ACTIONS, f"{where}.action")
        if action == "FailIndex" and not per_index:
            raise InvalidObject(f"{where}.action", action, "requires the backoffLimitPerIndex to be set")
        conditions = mappings(rule, "onPodConditions", where)
        codes = rule.get("onExitCodes")
        if codes is not None and conditions:
            words = "specifying both OnExitCodes and OnPodConditions is not supported"
            raise InvalidObject(where, None, words)
        if codes is None and not conditions:
            raise InvalidObject(where, None, "specifying one of OnExitCodes and OnPodConditions is required")
        if codes is not None:
            _exit_codes(mapping(rule, "onExitCodes", where), f"{where}.onExitCodes", names)
        _at_most(conditions, _MOST_RULES, f"{where}.onPodConditions")
        for pattern_path, pattern in conditions:
            if not string(pattern, "type", pattern_path):
                raise InvalidObject(f"{pattern_path}.type", None, "is required")
            status = string(pattern, "status", pattern_path)
            _one_of(status, ("False", "True", "Unknown"), f"{pattern_path}.status")


def _exit_codes(codes: Document, path: str, names: set[str]) -> None:
    operator = string(codes, "operator", path)
    _one_of(operator, ("In", "NotIn"), f"{path}.operator")
    container = optional_string(codes, "containerName", path)
    if container is not None and container not in names:
        words = "must be one of the container or initContainer names in the pod template"
        raise InvalidObject(f"{path}.containerName", container, words)
    values = sequence(codes, "values", path)
    for place, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidObject(f"{path}.values[{place}]", value, "must be an integer")
    if not values:
        raise InvalidObject(f"{path}.values", None, "at least one value is required")
    _at_most(values, _MOST_VALUES, f"{path}.values")
    for place, value in enumerate(values):
        if operator == "In" and value == 0:
            raise InvalidObject(f"{path}.values[{place}]", value, "must not be 0 for the In operator")
        if value in values[:place]:
            raise InvalidObject(f"{path}.values[{place}]", value, "is there twice")
    if list(values) != sorted(values):
        raise InvalidObject(f"{path}.values", list(values), "must be ordered")


def _success_policy(policy: Document, path: str, completions: int) -> None:
    rules = mappings(policy, "rules", path)
    if not rules:
        words = "at least one rules must be specified when the successPolicy is specified"
        raise InvalidObject(f"{path}.rules", None, words)
    _at_most(rules, _MOST_RULES, f"{path}.rules")
    for where, rule in rules:
        count, indexes = (
            optional_integer(rule, "succeededCount", where),
            optional_string(rule, "succeededIndexes", where),
        )
        if count is None and indexes is None:
            words = "at least one of succeededCount or succeededIndexes must be specified"
            raise InvalidObject(where, None, words)
        most, of_what = completions, "the number of specified completions"
        if indexes is not None:
            most = _n_indexes(indexes, f"{where}.succeededIndexes", completions)
            of_what = "the number of indexes in the specified succeededIndexes field"
        if count is not None and not 0 <= count <= most:
            words = f"must be 0 or more and less than or equal to {most} ({of_what})"
            raise InvalidObject(f"{where}.succeededCount", count, words)


def _n_indexes(text: str, path: str, completions: int) -> int:
    """How many indexes `0-3,7` names, all below `completions` and in order."""
    if len(text) > _LONGEST_INDEXES:
        raise InvalidObject(path, None, f"may not be longer than {_LONGEST_INDEXES}")
    total, last = 0, -1
    for span in text.split(",") if text else ():
        low, dash, high = span.partition("-")
        ends = (low, high) if dash else (low,)
        if not all(end.isascii() and end.isdecimal() and len(end) < 10 for end in ends):
            raise InvalidObject(
                path, span, "error parsing succeededIndexes: is no index or interval like 0-3"
            )
        first, final = int(low), int(ends[-1])
        if first <= last or final < first or final >= completions:
            words = f"error parsing succeededIndexes: must be in order and less than {completions}"
            raise InvalidObject(path, span, words)
        total, last = total + final - first + 1, final
    return total


def _restarts(spec: Document, path: str) -> None:
    template = mapping(mapping(spec, "template", path), "spec", f"{path}.template")
    policy = string(template, "restartPolicy", f"{path}.template.spec")
    place = f"{path}.template.spec.restartPolicy"
    if policy:
        _one_of(policy, ("OnFailure", "Never"), place)
    if policy == "OnFailure" and spec.get("podFailurePolicy") is not None:
        raise InvalidObject(place, policy, 'only "Never" is supported when podFailurePolicy is specified')


def _one_of(value: str, allowed: tuple[str, ...], path: str) -> None:
    if value not in allowed:
        shown = ", ".join(f'"{name}"' for name in allowed)
        raise InvalidObject(
            path, value or None, f"supported values: {shown}" if value else f"is required: {shown}"
        )


def _at_most(items: Any, most: int, path: str) -> None:
    if len(items) > most:
        raise InvalidObject(path, len(items), f"must have at most {most} items")
