"""Ends what a run of the tests has started when the run ends, however that comes about.

`python -m tests.leftovers MARK FOLDER` waits until its standard input is closed, which the end of the run does, killed
or not; then it kills each process that has `MARK` in its environment (Linux), and removes the folder.
"""

import contextlib
import os
import shutil
import signal
import sys
import time
import uuid
from pathlib import Path

NAME = "PLAYGROUND_TESTS_RUN"


def end_with_this_process(folder: str) -> None:
    """Mark all that this process starts from now on, and have it ended when this process is gone."""
    mark = f"{NAME}={uuid.uuid4().hex}"
    environment = {name: value for name, value in os.environ.items() if name != NAME}
    ours, _ = os.pipe()
    # The other end stays open for as long as this process lives.
    os.posix_spawn(
        sys.executable,
        [sys.executable, __file__, mark, folder],
        environment,
        file_actions=[(os.POSIX_SPAWN_DUP2, ours, 0)],
    )
    os.close(ours)
    os.environ[NAME] = mark.partition("=")[2]


def marked(mark: str) -> list[int]:
    """Processes that were started with `mark` in their environment; none where there is no `/proc`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def main(mark: str, folder: str) -> None:
    os.setsid()  # what ends the run must not end this
    sys.stdin.read()
    while left := marked(mark):
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
