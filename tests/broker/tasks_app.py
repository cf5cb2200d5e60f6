"""A Celery application for the broker's tests; its tasks leave lines in a file."""

import os
from pathlib import Path

from celery import Celery

from playground import broker

_url = os.environ["BROKER_TEST_URL"]
_out = Path(os.environ["BROKER_TEST_OUT"])

app = Celery("broker-tests", broker=_url, fixups=[])
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    **broker.celery_settings(_url),
)


def _note(line: str) -> None:
    # One write of one short line is atomic in append mode.
    descriptor = os.open(_out, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


@app.task(name="note")
def note(line: str) -> None:
    _note(line)
