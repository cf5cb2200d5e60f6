"""Processes of scenarios that need not import anything first.

A fresh Python takes a second of processor time until it has imported the scheduler, and hundreds of tests run a
scenario. Theirs are forked from one that has imported all of it and has seen no document.
"""

import io
import multiprocessing
import subprocess
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from playground.engine.scenarios import run_process

_forkserver = multiprocessing.get_context("forkserver")
_forkserver.set_forkserver_preload(["playground.engine.scenario_process"])


def run_forked(request: bytes, timeout_s: float, told: Any = None) -> subprocess.CompletedProcess[bytes]:
    """What `playground.engine.scenarios.run_process` does, sooner; one that tells how far it is runs there."""
    if told is not None:
        return run_process(request, timeout_s, told)
    ours, theirs = _forkserver.Pipe()
    process = _forkserver.Process(target=_answer, args=(theirs, request, list(sys.path)), daemon=True)
    with ours:
        process.start()
        theirs.close()
        try:
            if not ours.poll(timeout_s):
                raise subprocess.TimeoutExpired("scenario_process", timeout_s)
            code, said, trouble = ours.recv()
        except EOFError:  # it was killed
            process.join()
            code, said, trouble = process.exitcode or 1, b"", b""
        finally:
            process.kill()
            process.join()
            process.close()
    return subprocess.CompletedProcess(["scenario_process"], code, said, trouble)


def _answer(answers: Connection, request: bytes, path: list[str]) -> None:
    from playground.engine.scenario_process import main

    sys.path[:] = path
    sys.stdin, sys.stdout, trouble = io.StringIO(request.decode()), io.StringIO(), ""
    try:
        code = main()
    except BaseException:
        code, trouble = 1, traceback.format_exc()
    answers.send((code, sys.stdout.getvalue().encode(), trouble.encode()))
