"""CronJob: a Job whenever its schedule says so, on the cluster's own clock.

Source: pkg/controller/cronjob/cronjob_controllerv2.go, utils.go, v1.34
Differs: a Job is made at the very moment, not 100 ms later.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from scheduler_core.clock import SECOND_NS
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import (
    Document,
    boolean,
    format_seconds,
    mapping,
    optional_integer,
    parse_time_ns,
    string,
)
from scheduler_core.randomness import object_uid
from scheduler_core.sim.controllers.base import Controller, ControllerContext, Key
from scheduler_core.sim.controllers.job import finished_as
from scheduler_core.sim.cron import Schedule, ScheduleError, is_zone, schedule_from
from scheduler_core.sim.world import Noticed, Stored

DUE = "cron-job-due"
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
MANY = 100
_COMPONENT = "cronjob-controller"


class CronJobController(Controller):
    """Makes Jobs, keeps an eye on them, and forgets those beyond its history limits."""

    watches: ClassVar[tuple[str, ...]] = ("CronJob", "Job")
    timer_names: ClassVar[tuple[str, ...]] = (DUE,)

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._jobs: dict[str, dict[str, None]] = {}
        """uid of a CronJob -> names of its Jobs."""
        self._keys: dict[str, Key] = {}
        self._to_sync: dict[Key, None] = {}

    def noticed(self, change: Noticed) -> None:
        if change.kind == "Job":
            for stored in (change.old, change.new):
                uid = "" if stored is None else owning_cron_job(stored.manifest)
                if stored is None or not uid:
                    continue
                name = str(stored.manifest["metadata"]["name"])
                if stored is change.new:
                    self._jobs.setdefault(uid, {})[name] = None
                else:
                    self._jobs.get(uid, {}).pop(name, None)
                if uid in self._keys:
                    self._to_sync[self._keys[uid]] = None
            return
        for stored in (change.old, change.new):
            if stored is None:
                continue
            meta = stored.manifest["metadata"]
            key, uid = (str(meta.get("namespace") or ""), str(meta["name"])), str(meta.get("uid") or "")
            if stored is change.new:
                self._keys[uid] = key
                self._to_sync[key] = None
            else:
                self._keys.pop(uid, None)
                if change.new is None:
                    self._to_sync.pop(key, None)
                    self.timers.cancel(DUE, *key)

    def restored(self) -> None:
        self._to_sync.clear()

    def timer(self, what: str, subject: tuple[str, ...]) -> None:
        namespace, name = subject
        self._to_sync[(namespace, name)] = None

    def sync(self) -> bool:
        if not self._to_sync:
            return False
        keys, self._to_sync = list(self._to_sync), {}
        for key in keys:
            stored = self.world.get("CronJob", *key)
            if stored is None:
                continue
            status = dict(stored.manifest.get("status") or {})
            try:
                self._sync_one(stored, status)
            except InvalidObject as error:
                self._warn(stored, "InvalidSpec", str(error))
            status = {name: value for name, value in status.items() if value not in ([], None)}
            if status != (stored.manifest.get("status") or {}):
                self.world.put({**stored.manifest, "status": status}, "status")
        return True

    # ---- one of them

    def _sync_one(self, stored: Stored, status: dict[str, Any]) -> None:
        meta, spec = stored.manifest["metadata"], mapping(stored.manifest, "spec", "")
        key = (str(meta.get("namespace") or ""), str(meta["name"]))
        self.timers.cancel(DUE, *key)
        status["active"] = list(status.get("active") or ())
        jobs = [
            job
            for name in sorted(self._jobs.get(str(meta.get("uid") or ""), {}))
            if (job := self.world.get("Job", key[0], name)) is not None
        ]
        self._forget_old(stored, spec, status, jobs)
        self._look_at(stored, status, jobs)
        if meta.get("deletionTimestamp") or boolean(spec, "suspend", "spec"):
            return
        schedule = self._schedule(stored, spec)
        if schedule is None:
            return
        now_s = self.world.clock.now_ns // SECOND_NS
        due_s, missed = _due(
            schedule, _seen_s(meta, status, now_s), now_s, optional_integer(spec, *_DEADLINE)
        )
        if missed > MANY:
            said = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._warn(stored, "TooManyMissedTimes", said)
        if due_s is not None:
            self._start(stored, spec, status, due_s)
        following_s = schedule.next_s(now_s)
        if following_s is not None:
            self.timers.add(following_s * SECOND_NS, DUE, *key)

    def _schedule(self, stored: Stored, spec: Document) -> Schedule | None:
        text, zone = string(spec, "schedule", "spec"), string(spec, "timeZone", "spec")
        if zone and not is_zone(zone):
            self._warn(stored, "UnknownTimeZone", f'invalid timeZone: "{zone}": unknown time zone {zone}')
            return None
        try:
            schedule = schedule_from(text, zone or "UTC")
        except ScheduleError as error:
            self._warn(stored, "UnparseableSchedule", f'unparseable schedule: "{text}" : {error}')
            return None
        if schedule.next_s(self.world.clock.now_ns // SECOND_NS) is None:
            said = "time difference between two schedules is less than 1 second"
            self._warn(stored, "InvalidSchedule", f"invalid schedule: {text} : {said}")
            return None
        return schedule

    def _look_at(self, stored: Stored, status: dict[str, Any], jobs: list[Stored]) -> None:
        """Take finished and missing Jobs off the active ones."""
        uids = set()
        for job in jobs:
            name, uid = job.manifest["metadata"]["name"], str(job.manifest["metadata"].get("uid") or "")
            uids.add(uid)
            is_active = any(item.get("uid") == uid for item in status["active"])
            ended = finished_as(job.manifest)
            if not ended:
                if not is_active:
                    said = f"Saw a job that the controller did not create or forgot: {name}"
                    self._warn(stored, "UnexpectedJob", said)
                continue
            if is_active:
                _take_off(status, uid)
                self._tell(stored, "SawCompletedJob", f"Saw completed job: {name}, condition: {ended}")
            done = (job.manifest.get("status") or {}).get("completionTime")
            if ended == "Complete" and done and done > str(status.get("lastSuccessfulTime") or ""):
                status["lastSuccessfulTime"] = done
        for item in list(status["active"]):
            if item.get("uid") not in uids:
                self._tell(stored, "MissingJob", f"Active job went missing: {item.get('name')}")
                _take_off(status, str(item.get("uid")))

    def _forget_old(self, stored: Stored, spec: Document, status: dict[str, Any], jobs: list[Stored]) -> None:
        for ended, field, default in (
            ("Complete", "successfulJobsHistoryLimit", 3),
            ("Failed", "failedJobsHistoryLimit", 1),
        ):
            kept = optional_integer(spec, field, "spec")
            past = sorted((job for job in jobs if finished_as(job.manifest) == ended), key=_started)
            for job in past[: max(len(past) - (default if kept is None else kept), 0)]:
                self._delete(stored, status, job, "job history limit")

    def _start(self, stored: Stored, spec: Document, status: dict[str, Any], due_s: int) -> None:
        """Make the Job of a scheduled time, unless it is too late, was made, or another one is in its way."""
        now_s = self.world.clock.now_ns // SECOND_NS
        deadline_s = optional_integer(spec, *_DEADLINE)
        if deadline_s is not None and due_s + deadline_s < now_s:
            when = datetime.fromtimestamp(due_s, UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
            self._warn(stored, "MissSchedule", f"Missed scheduled time to start a job: {when}")
            return
        meta = stored.manifest["metadata"]
        name = f"{meta['name']}-{due_s // 60}"
        scheduled = format_seconds(due_s * SECOND_NS)
        if status.get("lastScheduleTime") == scheduled or any(
            item.get("name") == name for item in status["active"]
        ):
            return
        policy = string(spec, "concurrencyPolicy", "spec")
        if policy == "Forbid" and status["active"]:
            said = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._tell(stored, "JobAlreadyActive", said)
            return
        namespace = str(meta.get("namespace") or "")
        if policy == "Replace":
            for item in list(status["active"]):
                job = self.world.get("Job", namespace, str(item.get("name")))
                if job is not None:
                    self._delete(stored, status, job, "replaced by the next one")
        job = self.world.get("Job", namespace, name)
        if job is None:
            wanted = job_from(stored.manifest, name, object_uid(self.context.randomness), due_s)
            try:
                job = self.world.create(wanted, "cron job is due")
            except InvalidObject as error:
                self._warn(stored, "FailedCreate", f"Error creating job: {error}")
                return
            self._tell(stored, "SuccessfulCreate", f"Created job {name}")
        elif owning_cron_job(job.manifest) != str(meta.get("uid") or ""):
            return
        made = job.manifest["metadata"]
        status["active"].append(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "namespace": namespace,
                "name": name,
                "uid": made["uid"],
            }
        )
        status["lastScheduleTime"] = scheduled

    def _delete(self, stored: Stored, status: dict[str, Any], job: Stored, reason: str) -> None:
        meta = job.manifest["metadata"]
        self.world.remove("Job", str(meta.get("namespace") or ""), str(meta["name"]), reason)
        _take_off(status, str(meta.get("uid") or ""))
        self._tell(stored, "SuccessfulDelete", f"Deleted job {meta['name']}")

    def _tell(self, stored: Stored, reason: str, message: str) -> None:
        self.world.record_event(stored.manifest, "Normal", reason, "", message, _COMPONENT)

    def _warn(self, stored: Stored, reason: str, message: str) -> None:
        self.world.record_event(stored.manifest, "Warning", reason, "", message, _COMPONENT)


_DEADLINE = ("startingDeadlineSeconds", "spec")


def owning_cron_job(manifest: Mapping[str, Any]) -> str:
    """uid of the CronJob that controls a Job; empty where none does."""
    for item in manifest["metadata"].get("ownerReferences") or ():
        if item.get("controller") and item.get("kind") == "CronJob":
            return str(item.get("uid") or "")
    return ""


def job_from(cron_job: Mapping[str, Any], name: str, uid: str, due_s: int) -> dict[str, Any]:
    """The Job of one scheduled time. Source: utils.go getJobFromTemplate2, v1.34."""
    meta, spec = cron_job["metadata"], mapping(cron_job, "spec", "")
    template = mapping(spec, "jobTemplate", "spec")
    template_meta = mapping(template, "metadata", "spec.jobTemplate")
    zone = string(spec, "timeZone", "spec")
    when = datetime.fromtimestamp(due_s, ZoneInfo(zone) if zone else UTC).isoformat().replace("+00:00", "Z")
    wanted = dict(mapping(template, "spec", "spec.jobTemplate"))
    if wanted.get("completions") is None and wanted.get("parallelism") is None:
        wanted |= {"completions": 1, "parallelism": 1}
    labels = template_meta.get("labels")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": str(meta.get("namespace") or ""),
            "uid": uid,
            **({"labels": dict(labels)} if labels else {}),
            "annotations": {**(template_meta.get("annotations") or {}), SCHEDULED: when},
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "CronJob",
                    "name": meta["name"],
                    "uid": str(meta.get("uid") or ""),
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "generation": 1,
        },
        "spec": {
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "manualSelector": False,
            "parallelism": 1,
            "suspend": False,
            **wanted,
        },
    }


def _seen_s(meta: Mapping[str, Any], status: Mapping[str, Any], now_s: int) -> int:
    """Up to when every scheduled time was seen to."""
    for text in (status.get("lastScheduleTime"), meta.get("creationTimestamp")):
        if text:
            return parse_time_ns(str(text)) // SECOND_NS
    return now_s - 1


def _due(schedule: Schedule, seen_s: int, now_s: int, deadline_s: int | None) -> tuple[int | None, int]:
    """(the last scheduled time that was not seen to, about how many there were). Source: mostRecentScheduleTime."""
    if deadline_s is not None:
        seen_s = max(seen_s, now_s - deadline_s)
    first_s = schedule.next_s(seen_s)
    if first_s is None or first_s > now_s:
        return None, 0
    second_s = schedule.next_s(first_s)
    if second_s is None or second_s > now_s:
        return first_s, 1
    between_s = second_s - first_s
    missed = (now_s - first_s) // between_s + 1
    # As upstream: an irregular schedule whose first step says too little of the others has no time to catch up with.
    last_s = None
    at_s = schedule.next_s(first_s + (missed - 2) * between_s)
    while at_s is not None and at_s <= now_s:
        last_s, at_s = at_s, schedule.next_s(at_s)
    return last_s, missed


def _take_off(status: dict[str, Any], uid: str) -> None:
    status["active"] = [item for item in status["active"] if item.get("uid") != uid]


def _started(job: Stored) -> tuple[str, str]:
    return (
        str((job.manifest.get("status") or {}).get("startTime") or "~"),
        str(job.manifest["metadata"]["name"]),
    )
