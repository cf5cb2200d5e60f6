"""Names of this app's tasks; `clusters.wake.send` sends them."""

from typing import Any

from django.db import transaction

from playground.clusters import wake

RECORD = "playground.scenarios.tasks.record"
VERIFY = "playground.scenarios.tasks.verify"
MOMENTS = "playground.scenarios.tasks.moments"
COMPARE = "playground.scenarios.tasks.compare"
WHOLE_CYCLE = "playground.scenarios.tasks.whole_cycle"
FOUR_WAYS = "playground.scenarios.tasks.four_ways"
GALLERY = "playground.scenarios.tasks.gallery"


def on_commit(task: str, **kwargs: Any) -> None:
    """Send a task once the current transaction is committed."""
    transaction.on_commit(lambda: wake.send(task, **kwargs), robust=True)
