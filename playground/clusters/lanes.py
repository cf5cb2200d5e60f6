"""Lanes: which work waits for which, and how much one piece of it may cost.

``decide`` drives clusters and nothing else, so no question and no share can stand before a decision. ``ask`` answers
questions about decisions, ``make`` runs scenarios, comparisons and what else takes long. What there is to do the rows
say (of clusters and runs, `models.Job`), and a message in a lane's queue only says "look": workers look anyway every
few moments, so a broker that is away costs those moments and nothing else. Names and numbers alone: settings read this
file.
"""

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DECIDE: Final = "decide"
ASK: Final = "ask"
MAKE: Final = "make"
LANES: Final = (DECIDE, ASK, MAKE)

LOOK: Final = "playground.look"
"""The one message."""
SIGN_EVERY_S: Final = 2.0
"""A lane's loop writes down so often, at most, that it goes round."""
SILENT_S: Final = 15.0
"""A lane whose loops gave no sign for so long does not work."""
STUCK_S: Final = 300.0
"""A loop that was at one thing for so long is ended and begun again."""

MOST_OPEN: Final = 100
"""Pieces of work one person may have waiting in one lane."""
MOST_DEATHS: Final = 3
"""A piece of work whose process died so often is given up."""


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """What one turn of one piece of work may cost; a child process is held to it.

    Attributes
    ----------
    processor_s
        Processor seconds.
    wall_s
        Seconds from its beginning, waiting included.
    memory_bytes
        On top of what the process has when it starts.
    """

    processor_s: int
    wall_s: int
    memory_bytes: int

    @property
    def memory_words(self) -> str:
        return f"{self.memory_bytes // 2**20:,} MB"


def limits_of(processor_s: int, memory_mb: int) -> LaneLimits:
    """The limits of a lane's work; waiting for others may take as long again as working."""
    return LaneLimits(processor_s, 2 * processor_s + 60, memory_mb * 2**20)


# ---- Who holds a claim: a process of a machine, and whether it still lives


def holder_name() -> str:
    """This process, for people who look at the row."""
    return f"{socket.gethostname()}:{os.getpid()}"[:120]


def on_this_machine() -> str:
    """What the names of this machine's processes begin with."""
    return f"{socket.gethostname()}:"


def is_alive(holder: str) -> bool:
    """Whether a process of this machine lives; a moment of doubt counts as life."""
    pid = holder.removeprefix(on_this_machine())
    if not pid.isdigit():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    try:
        # One that ended is listed until its parent asks for it (Linux).
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1] != "Z"
    except OSError:
        return True
