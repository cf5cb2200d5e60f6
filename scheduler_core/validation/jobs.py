"""What an API server refuses of Jobs and CronJobs, and which of a Job's policies its pods here do not follow.

Source: pkg/apis/batch/validation/validation.go, v1.36
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from zoneinfo import ZoneInfo

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import Document, sequence
from scheduler_core.validation import pods
from scheduler_core.validation.problems import Checked

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


def job_spec(spec: Checked) -> None:
    """Check a Job's spec, its pod template included."""
    numbers = {key: spec.least(key) for key in _COUNTS}
    if numbers["maxFailedIndexes"] is not None and numbers["backoffLimitPerIndex"] is None:
        spec.required("backoffLimitPerIndex", "when maxFailedIndexes is specified")
    manager = spec.said("managedBy")
    if manager is not None and not _MANAGER.fullmatch(manager):
        words = 'must be a domain-prefixed path (such as "acme.io/foo")'
        spec.invalid("managedBy", manager, words)
    if manager is not None and len(manager) > 63:
        spec.too_long("managedBy", 63)
    mode = spec.one_of("completionMode", ("NonIndexed", _INDEXED)) or "NonIndexed"
    if mode == _INDEXED:
        _indexed(spec, numbers)
    elif mode == "NonIndexed":
        for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if numbers[key] is not None:
                spec.invalid(key, numbers[key], "requires indexed completion mode")
    _failure_policy(spec, per_index=numbers["backoffLimitPerIndex"] is not None)
    if spec.has("successPolicy"):
        success = spec.at("successPolicy")
        if mode == _INDEXED:
            _success_policy(success, numbers["completions"] or 0)
        else:
            success.invalid("", dict(success.document), "requires indexed completion mode")
    has_policy = spec.has("podFailurePolicy")
    spec.one_of("podReplacementPolicy", ("Failed",) if has_policy else ("Failed", "TerminatingOrFailed"))
    _, template = pods.template(spec)
    policy = template.text("restartPolicy") or "Always"
    if policy == "Always":
        template.required("restartPolicy", 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        template.unsupported("restartPolicy", policy, ("OnFailure", "Never"))
    elif has_policy and policy != "Never":
        words = 'only "Never" is supported when podFailurePolicy is specified'
        template.invalid("restartPolicy", policy, words)


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


def _indexed(spec: Checked, numbers: Mapping[str, int | None]) -> None:
    completions, at_once = numbers["completions"], numbers["parallelism"] or 0
    failed = numbers["maxFailedIndexes"]
    if completions is None:
        spec.required("completions", f"when completion mode is {_INDEXED}")
        return
    if at_once > _MANY:
        words = f"must be less than or equal to {_MANY} when completion mode is {_INDEXED}"
        spec.invalid("parallelism", at_once, words)
    if failed is not None and failed > completions:
        spec.invalid("maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > _MANY:
        spec.invalid("maxFailedIndexes", failed, f"must be less than or equal to {_MANY}")
    if completions <= _MANY or numbers["backoffLimitPerIndex"] is None:
        return
    if failed is None:
        spec.required("maxFailedIndexes", f"must be specified when completions is above {_MANY}")
    for key, number in (("parallelism", at_once), ("maxFailedIndexes", failed or 0)):
        if number > _MOST_OF_MANY:
            words = (
                f"must be less than or equal to {_MOST_OF_MANY} when completions are above {_MANY}"
                " and used with backoff limit per index"
            )
            spec.invalid(key, number, words)


def _failure_policy(spec: Checked, *, per_index: bool) -> None:
    rules = spec.at("podFailurePolicy").each("rules")
    spec.at("podFailurePolicy").at_most("rules", rules, _MOST_RULES)
    template = spec.at("template", "spec")
    names = {item.text("name") for key in ("initContainers", "containers") for item in template.each(key)}
    for rule in rules:
        action = rule.one_of("action", ("Count", "FailIndex", "FailJob", "Ignore"), required=True)
        if action == "FailIndex" and not per_index:
            rule.invalid("action", action, "requires the backoffLimitPerIndex to be set")
        conditions, has_codes = rule.each("onPodConditions"), rule.has("onExitCodes")
        if has_codes == bool(conditions):
            which = "both" if has_codes else "one of"
            end = "not supported" if has_codes else "required"
            words = f"specifying {which} OnExitCodes and OnPodConditions is {end}"
            rule.invalid("", dict(rule.document), words)
        elif has_codes:
            _exit_codes(rule.at("onExitCodes"), names)
        rule.at_most("onPodConditions", conditions, _MOST_RULES)
        for pattern in conditions:
            pattern.needs("type")
            pattern.one_of("status", ("False", "True", "Unknown"), required=True)


def _exit_codes(codes: Checked, names: set[str]) -> None:
    operator = codes.one_of("operator", ("In", "NotIn"), required=True)
    container = codes.said("containerName")
    if container is not None and container not in names:
        words = "must be one of the container or initContainer names in the pod template"
        codes.invalid("containerName", container, words)
    values = sequence(codes.document, "values", codes.path)
    for place, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidObject(codes.where(f"values[{place}]"), value, "must be an integer")
    if not values:
        codes.invalid("values", [], "at least one value is required")
    codes.at_most("values", values, _MOST_VALUES)
    seen: set[Any] = set()
    for place, value in enumerate(values):
        if operator == "In" and value == 0:
            codes.invalid(f"values[{place}]", value, "must not be 0 for the In operator")
        codes.once(seen, f"values[{place}]", value)
    if list(values) != sorted(values):
        codes.invalid("values", list(values), "must be ordered")


def _success_policy(policy: Checked, completions: int) -> None:
    rules = policy.each("rules")
    if not rules:
        policy.required("rules", "at least one rules must be specified when the successPolicy is specified")
    policy.at_most("rules", rules, _MOST_RULES)
    for rule in rules:
        count, indexes = rule.number("succeededCount"), rule.said("succeededIndexes")
        if count is None and indexes is None:
            rule.required("", "at least one of succeededCount or succeededIndexes must be specified")
        most, of_what = completions, "the number of specified completions"
        if indexes is not None:
            most = _n_indexes(rule, indexes, completions)
            of_what = "the number of indexes in the specified succeededIndexes field"
        if count is not None and not 0 <= count <= most:
            words = f"must be 0 or more and less than or equal to {most} ({of_what})"
            rule.invalid("succeededCount", count, words)


def _n_indexes(rule: Checked, text: str, completions: int) -> int:
    """How many indexes `0-3,7` names, all below `completions` and in order."""
    if len(text) > _LONGEST_INDEXES:
        rule.too_long("succeededIndexes", _LONGEST_INDEXES)
        return completions
    total, last = 0, -1
    for span in text.split(",") if text else ():
        low, dash, high = span.partition("-")
        ends = (low, high) if dash else (low,)
        wrong = ""
        if not all(end.isascii() and end.isdecimal() and len(end) < 10 for end in ends):
            wrong = "is no index or interval like 0-3"
        elif int(low) <= last or int(ends[-1]) < int(low) or int(ends[-1]) >= completions:
            wrong = f"must be in order and less than {completions}"
        if wrong:
            rule.invalid("succeededIndexes", span, f"error parsing succeededIndexes: {wrong}")
            return completions
        last = int(ends[-1])
        total += last - int(low) + 1
    return total


def cron_job(manifest: Checked) -> None:
    """Check a CronJob."""
    name = manifest.at("metadata").text("name")
    if len(name) > MAX_CRON_JOB_NAME:
        manifest.invalid("metadata.name", name, f"must be no more than {MAX_CRON_JOB_NAME} characters")
    spec = manifest.at("spec")
    schedule, zone = spec.text("schedule"), spec.said("timeZone")
    if not schedule:
        spec.required("schedule")
    elif "TZ" in schedule and zone is not None:
        spec.invalid("timeZone", zone, "cannot use both timeZone field and TZ or CRON_TZ in schedule")
    elif "TZ" in schedule:
        words = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        spec.invalid("schedule", schedule, words)
    else:
        try:
            check_schedule(schedule)
        except ScheduleError as error:
            spec.invalid("schedule", schedule, str(error))
    if zone is not None:
        _zone(spec, zone)
    spec.one_of("concurrencyPolicy", ("Allow", "Forbid", "Replace"))
    spec.least("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    job = spec.at("jobTemplate", "spec")
    if not spec.get("jobTemplate"):
        spec.required("jobTemplate")
    else:
        job_spec(job)


def _zone(spec: Checked, zone: str) -> None:
    if not zone:
        spec.invalid("timeZone", zone, "must be nil or non-empty string")
    elif zone.lower() == "local":
        words = "must be an explicit time zone as defined in https://www.iana.org/time-zones"
        spec.invalid("timeZone", zone, words)
    elif not is_zone(zone):
        spec.invalid("timeZone", zone, f"unknown time zone {zone}")


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
