"""A process that has loaded everything and connected to nothing, and forks workers on request."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from tests.faults.worker import Orders, run


class Workers:
    """Starts and ends worker processes."""

    def __init__(self, log: str) -> None:
        """Forks the zygote; call it before connecting to anything."""
        request_r, request_w = os.pipe()
        answer_r, answer_w = os.pipe()
        self._zygote = os.fork()
        if not self._zygote:
            os.close(request_w)
            os.close(answer_r)
            _serve(request_r, answer_w, log)
            os._exit(0)
        os.close(request_r)
        os.close(answer_w)
        self._requests = os.fdopen(request_w, "w")
        self._answers = os.fdopen(answer_r)
        self.pids: list[int] = []

    def start(self, orders: Orders) -> int:
        pid = int(self._ask({"start": orders.as_dict()}))
        self.pids.append(pid)
        return pid

    def alive(self) -> list[int]:
        """Those that still run; the dead are forgotten."""
        self.pids = json.loads(self._ask({"alive": self.pids}))
        return self.pids

    def kill(self, pid: int) -> None:
        """kill -9, and wait for the end."""
        self._ask({"kill": pid})
        if pid in self.pids:
            self.pids.remove(pid)

    def stop(self) -> None:
        for pid in list(self.pids):
            self.kill(pid)
        self._requests.close()
        os.waitpid(self._zygote, 0)

    def _ask(self, request: dict[str, Any]) -> str:
        self._requests.write(json.dumps(request) + "\n")
        self._requests.flush()
        return self._answers.readline()


def _serve(request_r: int, answer_w: int, log: str) -> None:
    """The zygote's loop; ends with its parent."""
    children: set[int] = set()
    with os.fdopen(request_r) as requests, os.fdopen(answer_w, "w") as answers:
        for line in requests:
            request = json.loads(line)
            answer: Any = None
            if "start" in request:
                answer = os.fork()
                if not answer:
                    _work(Orders(**request["start"]), log)
                children.add(answer)
            elif "kill" in request:
                _end(request["kill"], children)
            elif "alive" in request:
                answer = [pid for pid in request["alive"] if pid in children and not _ended(pid, children)]
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
    for pid in list(children):
        _end(pid, children)


def _ended(pid: int, children: set[int]) -> bool:
    if os.waitpid(pid, os.WNOHANG)[0]:
        children.discard(pid)
        return True
    return False


def _end(pid: int, children: set[int]) -> None:
    if pid not in children or _ended(pid, children):
        return
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    children.discard(pid)


def _work(orders: Orders, log: str) -> None:
    try:
        os.setsid()
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(out, 1)
        os.dup2(out, 2)
        run(orders)
    finally:
        sys.stderr.flush()
        os._exit(1)
