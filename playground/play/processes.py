"""Processes that are forked: begun, ended, looked at and named, where the system lets us."""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def fork(body: Callable[[], None]) -> int:
    """Begin a process that does this and ends with it; its number."""
    # What is buffered would be written by both.
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        body()
        code = 0
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def end(pid: int, *, group: bool = False) -> None:
    """Kill a child, with its whole group if that is asked for, and wait for it."""
    for kill in (os.killpg, os.kill) if group else (os.kill,):
        with suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped by a signal; not known on systems without /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("T", "t")
    except (OSError, IndexError):
        return False


def descendants(pid: int) -> list[int]:
    """Children of a process, and theirs; empty on systems that do not tell."""
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError, ValueError):
            for child in map(int, children.read_text().split()):
                found += [child, *descendants(child)]
    return found


def name_process(name: str) -> None:
    """What `ps -o comm` and `top` show; only where /proc can be written."""
    if sys.platform == "linux":
        with suppress(OSError):
            Path("/proc/self/comm").write_text(name[:15])


def end_with_parent_alone() -> None:
    """Let a child end on SIGTERM, and leave Ctrl-C to its parent."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
