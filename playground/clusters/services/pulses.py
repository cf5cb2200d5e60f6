"""Signs of life of the lanes: rows that the loops which do the work write as they go round, whatever they are at.

So progress is what is seen, never a message that waits: a loop that has more to do than it can signs after each commit.
"""

import time
from datetime import timedelta
from typing import Final

from django.utils import timezone

from playground.clusters import lanes
from playground.clusters.models import LanePulse
from playground.clusters.processes import holder_name

FORGET_AFTER: Final = timedelta(days=1)


class Signs:
    """What one loop of a lane says of itself.

    Parameters
    ----------
    lane, worker
        Which one it is.
    """

    def __init__(self, lane: str, worker: str) -> None:
        self.lane, self.worker = lane, worker[:255]
        self._signed_s = 0.0

    def sign(self) -> None:
        """The loop went round: it has just read or written the database. Written down every `SIGN_EVERY_S` at most."""
        now_s = time.monotonic()
        if self._signed_s and now_s - self._signed_s < lanes.SIGN_EVERY_S:
            return
        now = timezone.now()
        seen = {"passed_at": now, "process": holder_name()}
        LanePulse.objects.update_or_create(lane=self.lane, worker=self.worker, defaults=seen)
        LanePulse.objects.filter(passed_at__lt=now - FORGET_AFTER).delete()
        self._signed_s = now_s

    def forget(self) -> None:
        """It ends in order: no other sign of it is to be waited for."""
        LanePulse.objects.filter(lane=self.lane, worker=self.worker).delete()
