"""Who holds a claim: a process of a machine, and whether it still lives."""

import os
import socket
from pathlib import Path


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
