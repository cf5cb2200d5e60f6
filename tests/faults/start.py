"""``python -m tests.faults.start embedded|team PORT FOLDER``: a whole site, whose processes obey `points`.

Embedded is `manage.py play` as it is, with its own supervisor. A team's site is the command lines of the README, each
begun again when it ends, as systemd or Kubernetes would; they are forked from a process that has imported everything,
as two seconds of imports for each would be most of what a run of hundreds of kills does.
"""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

from tests.deploy.commands import team

RESTART_S = 0.2
PR_SET_PDEATHSIG = 1


def main() -> None:
    _end_with_parent()
    mode, port, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    import django

    django.setup()
    from playground.celery import app
    from playground.clusters import jobs

    app.finalize()
    jobs.load()
    from tests.faults import points

    points.install(folder)
    if mode == "embedded":
        from django.core.management import execute_from_command_line

        execute_from_command_line(["manage.py", "play", "--port", port])
    else:
        _Team(commands(port)).run()


def _end_with_parent() -> None:
    """The harness may be killed as well; nothing shall stay behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def commands(port: str) -> dict[str, list[str]]:
    """The long-running commands of the README's team section, by a name for each process."""
    lines = [line.split() for line in team() if line.startswith(("uvicorn ", "celery "))]
    found: dict[str, list[str]] = {}
    for words in lines:
        if words[0] == "uvicorn":
            found["web"] = [*words, "--port", port]
        else:
            # As many that decide as there are cores, says the README; a name for each, as on one machine they need.
            for number in (1, 2) if words[-1] == "decide" else (1,):
                name = f"{words[-1].replace(',', '-')}-{number}"
                found[name] = [*words, "--hostname", f"{name}@%h"]
    return found


class _Team:
    def __init__(self, wanted: dict[str, list[str]]) -> None:
        self._wanted = wanted
        self._running: dict[int, str] = {}
        self._due_s: dict[str, float] = dict.fromkeys(wanted, 0.0)

    def run(self) -> None:
        import playground.asgi  # noqa: F401

        ending: list[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: ending.append(number))
        while not ending:
            for name, due_s in list(self._due_s.items()):
                if time.monotonic() >= due_s:
                    del self._due_s[name]
                    self._running[self._start(name)] = name
            while self._running and (pid := os.waitpid(-1, os.WNOHANG)[0]):
                self._due_s[self._running.pop(pid)] = time.monotonic() + RESTART_S
            time.sleep(0.02)
        for pid in self._running:
            os.killpg(pid, signal.SIGKILL)

    def _start(self, name: str) -> int:
        pid = os.fork()
        if pid:
            return pid
        try:
            os.setsid()
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            from playground.play.processes import name_process

            name_process(name)
            sys.argv = self._wanted[name]
            if sys.argv[0] == "uvicorn":
                import uvicorn.main

                uvicorn.main.main()
            else:
                from celery.__main__ import main as celery

                from playground.celery import app

                app._after_fork()
                celery()
        finally:
            os._exit(1)


if __name__ == "__main__":
    main()
