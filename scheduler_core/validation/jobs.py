"""What an API server refuses of Jobs and CronJobs, and which of a Job's policies its pods here do not follow.

Source: pkg/apis/batch/validation/validation.go, v1.36
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from zoneinfo import ZoneInfo

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import (
    Document,
    mapping,
    mappings,
    optional_integer,
    optional_string,
    sequence,
    string,
)
from scheduler_core.validation import pods
from scheduler_core.validation.problems import FieldErrors

NOT_SIMULATED: Final = ("backoffLimitPerIndex", "maxFailedIndexes", "podFailurePolicy", "successPolicy")
"""Fields of a Job's spec that are checked and kept, and that its pods here do not follow."""
MAX_CRON_JOB_NAME: Final = 52
_COUNTS: Final = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_INDEXED: Final = "Indexed"
_MANY: Final = 100_000
_MOST_OF_MANY: Final = 10_000
_MOST_RULES: Final = 20
_MOST_VALUES: Final = 255
_LONGEST_INDEXES: Final = 64 * 1024
_MANAGER: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def job_spec(problems: FieldErrors, spec: Document, path: str) -> None:
    """Check a Job's spec, its pod template included."""
    numbers = {key: problems.at_least(spec, key, path) for key in _COUNTS}
    if numbers["maxFailedIndexes"] is not None and numbers["backoffLimitPerIndex"] is None:
        problems.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    manager = optional_string(spec, "managedBy", path)
    if manager is not None and not _MANAGER.fullmatch(manager):
        words = 'must be a domain-prefixed path (such as "acme.io/foo")'
        problems.invalid(f"{path}.managedBy", manager, words)
    if manager is not None and len(manager) > 63:
        problems.too_long(f"{path}.managedBy", 63)
    mode = problems.one_of(spec, "completionMode", path, ("NonIndexed", _INDEXED)) or "NonIndexed"
    if mode == _INDEXED:
        _indexed(problems, numbers, path)
    elif mode == "NonIndexed":
        for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if numbers[key] is not None:
                problems.invalid(f"{path}.{key}", numbers[key], "requires indexed completion mode")
    _failure_policy(problems, spec, path, per_index=numbers["backoffLimitPerIndex"] is not None)
    if spec.get("successPolicy") is not None:
        success = mapping(spec, "successPolicy", path)
        if mode == _INDEXED:
            _success_policy(problems, success, f"{path}.successPolicy", numbers["completions"] or 0)
        else:
            problems.invalid(f"{path}.successPolicy", dict(success), "requires indexed completion mode")
    has_policy = spec.get("podFailurePolicy") is not None
    replacements = ("Failed",) if has_policy else ("Failed", "TerminatingOrFailed")
    problems.one_of(spec, "podReplacementPolicy", path, replacements)
    _, template = pods.template(problems, spec, path)
    place = f"{path}.template.spec"
    policy = string(template, "restartPolicy", place) or "Always"
    if policy == "Always":
        problems.required(f"{place}.restartPolicy", 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        problems.unsupported(f"{place}.restartPolicy", policy, ("OnFailure", "Never"))
    elif has_policy and policy != "Never":
        words = 'only "Never" is supported when podFailurePolicy is specified'
        problems.invalid(f"{place}.restartPolicy", policy, words)


def not_simulated(manifest: Document) -> list[str]:
    """Sentences about fields of a valid Job or CronJob that nothing here follows, each with its path."""
    spec = manifest.get("spec")
    if manifest.get("kind") == "CronJob":
        return ["spec.schedule: is kept, but CronJobs make no Jobs here"]
    if manifest.get("kind") != "Job" or not isinstance(spec, Mapping):
        return []
    return [
        f"spec.{key}: is kept, but pods of Jobs do not follow it here"
        for key in NOT_SIMULATED
        if spec.get(key) is not None
    ]


def _indexed(problems: FieldErrors, numbers: Mapping[str, int | None], path: str) -> None:
    completions, at_once = numbers["completions"], numbers["parallelism"] or 0
    failed, place = numbers["maxFailedIndexes"], f"{path}.maxFailedIndexes"
    if completions is None:
        problems.required(f"{path}.completions", f"when completion mode is {_INDEXED}")
        return
    if at_once > _MANY:
        words = f"must be less than or equal to {_MANY} when completion mode is {_INDEXED}"
        problems.invalid(f"{path}.parallelism", at_once, words)
    if failed is not None and failed > completions:
        problems.invalid(place, failed, "must be less than or equal to completions")
    if failed is not None and failed > _MANY:
        problems.invalid(place, failed, f"must be less than or equal to {_MANY}")
    if completions <= _MANY or numbers["backoffLimitPerIndex"] is None:
        return
    if failed is None:
        problems.required(place, f"must be specified when completions is above {_MANY}")
    for key, number in (("parallelism", at_once), ("maxFailedIndexes", failed or 0)):
        if number > _MOST_OF_MANY:
            words = (
                f"must be less than or equal to {_MOST_OF_MANY} when completions are above {_MANY}"
                " and used with backoff limit per index"
            )
            problems.invalid(f"{path}.{key}", number, words)


def _failure_policy(problems: FieldErrors, spec: Document, path: str, *, per_index: bool) -> None:
    place = f"{path}.podFailurePolicy"
    rules = mappings(mapping(spec, "podFailurePolicy", path), "rules", place)
    problems.at_most(rules, _MOST_RULES, f"{place}.rules")
    template = mapping(mapping(spec, "template", path), "spec", f"{path}.template")
    names = {
        string(container, "name", where)
        for key in ("initContainers", "containers")
        for where, container in mappings(template, key, f"{path}.template.spec")
    }
    for where, rule in rules:
        action = problems.one_of(
            rule, "action", where, ("Count", "FailIndex", "FailJob", "Ignore"), required=True
        )
        if action == "FailIndex" and not per_index:
            problems.invalid(f"{where}.action", action, "requires the backoffLimitPerIndex to be set")
        conditions = mappings(rule, "onPodConditions", where)
        codes = rule.get("onExitCodes")
        if codes is not None and conditions:
            words = "specifying both OnExitCodes and OnPodConditions is not supported"
            problems.invalid(where, dict(rule), words)
        elif codes is None and not conditions:
            words = "specifying one of OnExitCodes and OnPodConditions is required"
            problems.invalid(where, dict(rule), words)
        elif codes is not None:
            _exit_codes(problems, mapping(rule, "onExitCodes", where), f"{where}.onExitCodes", names)
        problems.at_most(conditions, _MOST_RULES, f"{where}.onPodConditions")
        for pattern_path, pattern in conditions:
            if not string(pattern, "type", pattern_path):
                problems.required(f"{pattern_path}.type")
            states = ("False", "True", "Unknown")
            problems.one_of(pattern, "status", pattern_path, states, required=True)


def _exit_codes(problems: FieldErrors, codes: Document, path: str, names: set[str]) -> None:
    operator = problems.one_of(codes, "operator", path, ("In", "NotIn"), required=True)
    container = optional_string(codes, "containerName", path)
    if container is not None and container not in names:
        words = "must be one of the container or initContainer names in the pod template"
        problems.invalid(f"{path}.containerName", container, words)
    values = sequence(codes, "values", path)
    for place, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidObject(f"{path}.values[{place}]", value, "must be an integer")
    if not values:
        problems.invalid(f"{path}.values", [], "at least one value is required")
    problems.at_most(values, _MOST_VALUES, f"{path}.values")
    seen: set[Any] = set()
    for place, value in enumerate(values):
        if operator == "In" and value == 0:
            problems.invalid(f"{path}.values[{place}]", value, "must not be 0 for the In operator")
        if value in seen:
            problems.duplicate(f"{path}.values[{place}]", value)
        seen.add(value)
    if list(values) != sorted(values):
        problems.invalid(f"{path}.values", list(values), "must be ordered")


def _success_policy(problems: FieldErrors, policy: Document, path: str, completions: int) -> None:
    rules = mappings(policy, "rules", path)
    if not rules:
        words = "at least one rules must be specified when the successPolicy is specified"
        problems.required(f"{path}.rules", words)
    problems.at_most(rules, _MOST_RULES, f"{path}.rules")
    for where, rule in rules:
        count = optional_integer(rule, "succeededCount", where)
        indexes = optional_string(rule, "succeededIndexes", where)
        if count is None and indexes is None:
            words = "at least one of succeededCount or succeededIndexes must be specified"
            problems.required(where, words)
        most, of_what = completions, "the number of specified completions"
        if indexes is not None:
            most = _n_indexes(problems, indexes, f"{where}.succeededIndexes", completions)
            of_what = "the number of indexes in the specified succeededIndexes field"
        if count is not None and not 0 <= count <= most:
            words = f"must be 0 or more and less than or equal to {most} ({of_what})"
            problems.invalid(f"{where}.succeededCount", count, words)


def _n_indexes(problems: FieldErrors, text: str, path: str, completions: int) -> int:
    """How many indexes `0-3,7` names, all below `completions` and in order."""
    if len(text) > _LONGEST_INDEXES:
        problems.too_long(path, _LONGEST_INDEXES)
        return completions
    total, last = 0, -1
    for span in text.split(",") if text else ():
        low, dash, high = span.partition("-")
        ends = (low, high) if dash else (low,)
        if not all(end.isascii() and end.isdecimal() and len(end) < 10 for end in ends):
            words = "error parsing succeededIndexes: is no index or interval like 0-3"
            problems.invalid(path, span, words)
            return completions
        first, final = int(low), int(ends[-1])
        if first <= last or final < first or final >= completions:
            words = f"error parsing succeededIndexes: must be in order and less than {completions}"
            problems.invalid(path, span, words)
            return completions
        total, last = total + final - first + 1, final
    return total


def cron_job(problems: FieldErrors, manifest: Document) -> Document:
    """Check a CronJob; returns its Job's spec."""
    name = string(mapping(manifest, "metadata", ""), "name", "metadata")
    if len(name) > MAX_CRON_JOB_NAME:
        problems.invalid("metadata.name", name, f"must be no more than {MAX_CRON_JOB_NAME} characters")
    spec = mapping(manifest, "spec", "")
    schedule = string(spec, "schedule", "spec")
    zone = optional_string(spec, "timeZone", "spec")
    if not schedule:
        problems.required("spec.schedule")
    elif "TZ" in schedule and zone is not None:
        words = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        problems.invalid("spec.timeZone", zone, words)
    elif "TZ" in schedule:
        words = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        problems.invalid("spec.schedule", schedule, words)
    else:
        try:
            check_schedule(schedule)
        except ScheduleError as error:
            problems.invalid("spec.schedule", schedule, str(error))
    if zone is not None:
        _zone(problems, zone)
    problems.one_of(spec, "concurrencyPolicy", "spec", ("Allow", "Forbid", "Replace"))
    for field in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        problems.at_least(spec, field, "spec")
    job = mapping(mapping(spec, "jobTemplate", "spec"), "spec", "spec.jobTemplate")
    if not spec.get("jobTemplate"):
        problems.required("spec.jobTemplate")
    else:
        job_spec(problems, job, "spec.jobTemplate.spec")
    return job


def _zone(problems: FieldErrors, zone: str) -> None:
    if not zone:
        problems.invalid("spec.timeZone", zone, "must be nil or non-empty string")
    elif zone.lower() == "local":
        words = "must be an explicit time zone as defined in https://www.iana.org/time-zones"
        problems.invalid("spec.timeZone", zone, words)
    elif not is_zone(zone):
        problems.invalid("spec.timeZone", zone, f"unknown time zone {zone}")


# --- Schedules of CronJobs, robfig/cron's standard dialect. Source: github.com/robfig/cron v3.0.1 parser.go


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_BOUNDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_EVERY = re.compile(r"@every (?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|ms|s|m|h))+")


class ScheduleError(ValueError):
    """A schedule that cannot be read, in the words of upstream's parser."""


def check_schedule(text: str) -> None:
    """Check a schedule: five fields, `@hourly` and its like, or `@every 90s`.

    Raises
    ------
    ScheduleError
    """
    if text.startswith("@every "):
        if not _EVERY.fullmatch(text):
            written = text.removeprefix("@every ")
            raise ScheduleError(f'failed to parse duration {text}: time: invalid duration "{written}"')
        return
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise ScheduleError(f"unrecognized descriptor: {text}")
        return
    fields = text.split()
    if len(fields) != 5:
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for written, bounds in zip(fields, _BOUNDS, strict=True):
        for part in filter(None, written.split(",")):
            _check_part(part, *bounds)


def _check_part(part: str, low: int, high: int, names: dict[str, int]) -> None:
    range_, *steps = part.split("/")
    bounds = range_.split("-")
    is_star = bounds[0] in ("*", "?")
    single = len(bounds) == 1
    if is_star:
        start, end = low, high
    else:
        start = _number(bounds[0], names)
        end = start if single else _number(bounds[1], names)
        if len(bounds) > 2:
            raise ScheduleError(f"too many hyphens: {part}")
    step = 1
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {part}")
    if steps:
        step = _number(steps[0], {})
        if single and not is_star:
            end = high
    if start < low:
        raise ScheduleError(f"beginning of range ({start}) below minimum ({low}): {part}")
    if end > high:
        raise ScheduleError(f"end of range ({end}) above maximum ({high}): {part}")
    if start > end:
        raise ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {part}")


def _number(written: str, names: dict[str, int]) -> int:
    named = names.get(written.lower())
    if named is not None:
        return named
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", written):
        raise ScheduleError(
            f'failed to parse int from {written}: strconv.Atoi: parsing "{written}": invalid syntax'
        )
    if int(written) < 0:
        raise ScheduleError(f"negative number ({written}) not allowed: {written}")
    return int(written)


def is_zone(name: str) -> bool:
    """Whether there is a time zone of that name."""
    try:
        # That one is there without a database.
        return name in ("", "UTC") or bool(ZoneInfo(name))
    except (ValueError, KeyError, OSError):
        return False
