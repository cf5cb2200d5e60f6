"""What an API server refuses of CronJobs and HorizontalPodAutoscalers, and what is refused of annotations that say how
long pods last and what they use.

Source: pkg/apis/batch/validation/validation.go, pkg/apis/autoscaling/validation/validation.go, v1.34
"""

from collections.abc import Mapping
from typing import Any, Final

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import (
    integer,
    mapping,
    mappings,
    optional_integer,
    optional_string,
    string,
)
from scheduler_core.objects.quantity import QuantityError, quantity_from
from scheduler_core.sim.cron import ScheduleError, is_zone, schedule_from
from scheduler_core.sim.durations import duration_ns
from scheduler_core.sim.kubelet import DURATION, ENDS_AS, NEVER, START_DELAY
from scheduler_core.sim.load import LOAD, LoadError, load_from

Document = Mapping[str, Any]

MAX_CRON_JOB_NAME: Final = 52
_POLICIES: Final = ("Allow", "Forbid", "Replace")
_ENDS: Final = ("Succeeded", "Failed")
_METRICS: Final = ("ContainerResource", "External", "Object", "Pods", "Resource")


def cron_job(manifest: Document) -> Document:
    """Check a CronJob; returns the pod template's place, its Job's spec.

    Raises
    ------
    InvalidObject
    """
    name = string(mapping(manifest, "metadata", ""), "name", "metadata")
    if len(name) > MAX_CRON_JOB_NAME:
        raise InvalidObject("metadata.name", name, f"must be no more than {MAX_CRON_JOB_NAME} characters")
    spec = mapping(manifest, "spec", "")
    schedule = string(spec, "schedule", "spec")
    if not schedule:
        raise InvalidObject("spec.schedule", None, "is required")
    zone = optional_string(spec, "timeZone", "spec")
    if "TZ" in schedule:
        if zone is not None:
            raise InvalidObject(
                "spec.timeZone", zone, "cannot use both timeZone field and TZ or CRON_TZ in schedule"
            )
        raise InvalidObject(
            "spec.schedule", schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        )
    try:
        schedule_from(schedule)
    except ScheduleError as error:
        raise InvalidObject("spec.schedule", schedule, str(error)) from None
    if zone is not None:
        _zone(zone)
    policy = string(spec, "concurrencyPolicy", "spec")
    if policy and policy not in _POLICIES:
        raise InvalidObject("spec.concurrencyPolicy", policy, f"must be one of {', '.join(_POLICIES)}")
    for field in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        number = optional_integer(spec, field, "spec")
        if number is not None and number < 0:
            raise InvalidObject(f"spec.{field}", number, "must be greater than or equal to 0")
    template = mapping(spec, "jobTemplate", "spec")
    if not template:
        raise InvalidObject("spec.jobTemplate", None, "is required")
    annotations(mapping(template, "metadata", "spec.jobTemplate"), "spec.jobTemplate.metadata")
    return mapping(template, "spec", "spec.jobTemplate")


def _zone(zone: str) -> None:
    if not zone:
        raise InvalidObject("spec.timeZone", zone, "must be nil or non-empty string")
    if zone.lower() == "local":
        words = "must be an explicit time zone as defined in https://www.iana.org/time-zones"
        raise InvalidObject("spec.timeZone", zone, words)
    if not is_zone(zone):
        raise InvalidObject("spec.timeZone", zone, f"unknown time zone {zone}")


def autoscaler(manifest: Document) -> None:
    """Check a HorizontalPodAutoscaler (autoscaling/v2).

    Raises
    ------
    InvalidObject
    """
    spec = mapping(manifest, "spec", "")
    reference = mapping(spec, "scaleTargetRef", "spec")
    for field in ("kind", "name"):
        if not string(reference, field, "spec.scaleTargetRef"):
            raise InvalidObject(f"spec.scaleTargetRef.{field}", None, "is required")
    least, most = optional_integer(spec, "minReplicas", "spec"), integer(spec, "maxReplicas", "spec")
    if least is not None and least < 1:
        raise InvalidObject("spec.minReplicas", least, "must be greater than or equal to 1")
    if most < 1:
        raise InvalidObject("spec.maxReplicas", most, "must be greater than 0")
    if least is not None and most < least:
        raise InvalidObject("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    for path, metric in mappings(spec, "metrics", "spec"):
        _metric(metric, path)
    behavior = mapping(spec, "behavior", "spec")
    for direction in ("scaleUp", "scaleDown"):
        _rules(mapping(behavior, direction, "spec.behavior"), f"spec.behavior.{direction}")


def _metric(metric: Document, path: str) -> None:
    type_ = string(metric, "type", path)
    if type_ not in _METRICS:
        raise InvalidObject(f"{path}.type", type_, f"must be one of {', '.join(_METRICS)}")
    key = type_[:1].lower() + type_[1:]
    source, place = mapping(metric, key, path), f"{path}.{key}"
    if not source:
        raise InvalidObject(place, None, "must populate information for the given metric source")
    if key not in ("resource", "containerResource"):
        return
    if not string(source, "name", place):
        raise InvalidObject(f"{place}.name", None, "must specify a resource name")
    if key == "containerResource" and not string(source, "container", place):
        raise InvalidObject(f"{place}.container", None, "must specify a container")
    target = mapping(source, "target", place)
    percent, amount = (
        optional_integer(target, "averageUtilization", f"{place}.target"),
        target.get("averageValue"),
    )
    if percent is None and amount is None:
        words = "must set either a target raw value or a target utilization"
        raise InvalidObject(f"{place}.target.averageUtilization", None, words)
    if percent is not None and amount is not None:
        words = "may not set both a target raw value and a target utilization"
        raise InvalidObject(f"{place}.target.averageValue", amount, words)
    if percent is not None and percent < 1:
        raise InvalidObject(f"{place}.target.averageUtilization", percent, "must be greater than 0")
    if amount is not None:
        try:
            is_positive = quantity_from(amount).sign() > 0
        except QuantityError as error:
            raise InvalidObject(f"{place}.target.averageValue", amount, str(error)) from None
        if not is_positive:
            raise InvalidObject(f"{place}.target.averageValue", amount, "must be positive")


def _rules(rules: Document, path: str) -> None:
    window = optional_integer(rules, "stabilizationWindowSeconds", path)
    if window is not None and not 0 <= window <= 3600:
        raise InvalidObject(f"{path}.stabilizationWindowSeconds", window, "must be 0 to 3600")
    chosen = string(rules, "selectPolicy", path)
    if chosen not in ("", "Max", "Min", "Disabled"):
        raise InvalidObject(f"{path}.selectPolicy", chosen, "must be one of Max, Min, Disabled")
    for place, policy in mappings(rules, "policies", path):
        type_ = string(policy, "type", place)
        if type_ not in ("Pods", "Percent"):
            raise InvalidObject(f"{place}.type", type_, "must be one of Pods, Percent")
        value, period = integer(policy, "value", place), integer(policy, "periodSeconds", place)
        if value < 1:
            raise InvalidObject(f"{place}.value", value, "must be greater than 0")
        if not 1 <= period <= 1800:
            raise InvalidObject(f"{place}.periodSeconds", period, "must be 1 to 1800")


def annotations(meta: Document, path: str) -> None:
    """Check the annotations that say how long pods last and what they use.

    Raises
    ------
    InvalidObject
    """
    given = mapping(meta, "annotations", path)
    for name in (DURATION, START_DELAY):
        text = given.get(name)
        if text is None or (name == DURATION and text == NEVER):
            continue
        try:
            duration_ns(str(text))
        except ValueError:
            also = f", or {NEVER}" if name == DURATION else ""
            words = f"is not a duration like 30s, 5m or 1h30m{also}"
            raise InvalidObject(f"{path}.annotations[{name}]", text, words) from None
    if ENDS_AS in given and given[ENDS_AS] not in _ENDS:
        raise InvalidObject(
            f"{path}.annotations[{ENDS_AS}]", given[ENDS_AS], f"must be one of {', '.join(_ENDS)}"
        )
    if LOAD in given:
        try:
            load_from(str(given[LOAD]))
        except LoadError as error:
            raise InvalidObject(f"{path}.annotations[{LOAD}]", None, str(error)) from None
