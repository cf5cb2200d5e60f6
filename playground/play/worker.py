"""The worker process that `manage.py play` supervises: ``python -m playground.play.worker``.

Its standard input is a pipe whose other end only the parent holds, so the end of that pipe is the end of
the parent, however it came about; then this process goes too.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from celery.signals import worker_shutting_down

from playground.broker.transport import Transport
from playground.celery import app

ARGUMENTS = (
    "worker",
    "--pool=prefork",
    "--hostname=play@%h",
    "--without-gossip",
    "--without-mingle",
    "--without-heartbeat",
    "--loglevel=info",
)


def _die_with_parent() -> None:
    while os.read(0, 1):
        pass
    # Not a warm stop: nobody is left to wait for it, and what is not acknowledged is handed out again.
    os.kill(os.getpid(), signal.SIGKILL)


@worker_shutting_down.connect
def _end_promptly(**kwargs: object) -> None:
    # Runs inside a signal handler, so it does no more than set a flag.
    Transport.ending = True


def main() -> None:
    threading.Thread(target=_die_with_parent, name="die-with-parent", daemon=True).start()
    app.worker_main([*ARGUMENTS, *sys.argv[1:]])


if __name__ == "__main__":
    main()
