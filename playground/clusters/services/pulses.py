"""Proof that a lane works: a wake-up that went through it, seen in the database."""

from datetime import timedelta
from typing import Final

from django.db.models import Max
from django.utils import timezone

from playground.clusters import jobs, lanes, wake
from playground.clusters.models import LanePulse
from playground.clusters.processes import holder_name
from playground.clusters.services.advance import sweep

FORGET_AFTER: Final = timedelta(days=1)


def pass_through(*, lane: str, worker: str) -> None:
    """A worker took a wake-up of this lane: do what is to be done regularly there, then note that it went through."""
    if lane == lanes.DECIDE:
        sweep()
    elif lane == lanes.ASK:
        jobs.adopt()
    if lane != lanes.DECIDE and jobs.has_waiting(lane):
        jobs.POKES[lane].set()
    now = timezone.now()
    seen = {"passed_at": now, "process": holder_name()}
    LanePulse.objects.update_or_create(lane=lane, worker=worker[:255], defaults=seen)
    LanePulse.objects.filter(passed_at__lt=now - FORGET_AFTER).delete()


def send_pulse(*, lane: str) -> bool:
    """Send a wake-up through a lane if none went through it lately; whether one was sent."""
    newest = LanePulse.objects.filter(lane=lane).aggregate(at=Max("passed_at"))["at"]
    just_now = timezone.now() - timedelta(seconds=lanes.PULSE_EVERY_S * 0.9)
    # One from the future was written before the clock went back.
    if newest is not None and just_now <= newest <= timezone.now():
        return False
    wake.pulse(lane)
    return True


def forget_worker(*, worker: str) -> None:
    """A worker goes in order: its next pulse need not be waited for."""
    LanePulse.objects.filter(worker=worker).delete()
