"""What the process that runs a user's work may use, set by the process itself and inherited by its children."""

import os
import resource
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final

BACKGROUND_NICE: Final = 10
"""Priority of work that others do not wait for: below the site's own processes."""


@dataclass(slots=True)
class _Applied:
    processor_s: int = 0
    memory_bytes: int = 0


_applied: Final = _Applied()


class OutOfProcessorTime(BaseException):
    """The processor time of a turn is used up; no `except Exception` on the way holds it up."""


def step_back() -> None:
    """Let the site's own processes go first."""
    os.nice(BACKGROUND_NICE)


def limit_memory(memory_bytes: int) -> None:
    """From now on this process may take so much more memory than it has; more is a MemoryError."""
    _applied.memory_bytes = memory_bytes
    soft = _address_space_bytes() + memory_bytes
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    except (ValueError, OSError):  # macOS knows the limit and does not keep to it
        _applied.memory_bytes = 0


def limit_processor_time(processor_s: int) -> None:
    """From now on so many processor seconds; then `OutOfProcessorTime` in the main thread, in a child the end."""
    _applied.processor_s = processor_s
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + 1 + processor_s
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    signal.signal(signal.SIGXCPU, _out_of_time)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _out_of_time(signum: int, frame: object) -> None:
    raise OutOfProcessorTime


def words_of_time() -> str:
    """The limit of processor time as a sentence about work that met it."""
    return f"it used up the {_applied.processor_s:,} s of processor time that one piece of work may use"


def words_of_memory() -> str:
    """The limit of memory as a sentence about work that met it."""
    return f"it needed more than the {_applied.memory_bytes // 2**20:,} MB of memory that one piece of work may use"


def why_ended(return_code: int, said: str) -> str | None:
    """The limit a child process that inherited ours has met; None when it ended for another reason.

    Parameters
    ----------
    return_code
        As `subprocess` gives it.
    said
        The last line it wrote about its end.
    """
    if return_code == -signal.SIGXCPU and _applied.processor_s:
        return words_of_time()
    if _applied.memory_bytes and ("MemoryError" in said or "Unable to allocate" in said):
        return words_of_memory()
    return None


def _address_space_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:  # not Linux
        return 2**31
    return pages * os.sysconf("SC_PAGE_SIZE")
