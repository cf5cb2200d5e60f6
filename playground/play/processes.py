"""Looking at processes and naming them, where the system lets us."""

import signal
import sys
from contextlib import suppress
from pathlib import Path


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
