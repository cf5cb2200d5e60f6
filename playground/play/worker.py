"""The worker processes of `manage.py play`: Celery workers of one process each."""

from __future__ import annotations

from celery.signals import worker_shutting_down

from playground.broker.transport import Transport
from playground.celery import app

ARGUMENTS = (
    "worker",
    "--pool=solo",
    "--without-gossip",
    "--without-mingle",
    "--without-heartbeat",
    "--loglevel=info",
)


@worker_shutting_down.connect
def _end_promptly(**kwargs: object) -> None:
    # Runs inside a signal handler, so it does no more than set a flag.
    Transport.ending = True


def be_worker(name: str, *lanes: str) -> None:
    """Take messages of these lanes until told to stop; for a process that was just forked."""
    app._after_fork()
    app.worker_main([*ARGUMENTS, f"--hostname={name}@%h", f"--queues={','.join(lanes)}"])
