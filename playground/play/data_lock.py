"""One playground a data folder: a lock that the operating system lets go of when its process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path
from typing import IO


class DataFolderInUse(Exception):
    """Another playground runs on the folder; the message is for the person who starts this one."""


def lock_data_folder(folder: Path) -> IO[str]:
    """Lock the folder for this process; the lock is held for as long as what is returned is open.

    It belongs to this process alone: children forked by it hold none of it, so a worker that outlives its parent for
    a moment keeps no new playground away.

    Raises
    ------
    DataFolderInUse
    """
    path = folder / "play.lock"
    # Not emptied before the lock is had: it names the one that has it.
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        holder = file.read().strip()
        file.close()
        process = f" (process {holder})" if holder else ""
        raise DataFolderInUse(
            f"A playground{process} runs on {folder} already. Stop it, or give this one a data folder of its own: "
            f"PLAYGROUND_DATA=... {started_by()}"
        ) from None
    file.truncate()
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def started_by() -> str:
    """`manage.py play`, or the installed command, which plays when it is told nothing else."""
    program = Path(sys.argv[0]).name
    return program if program.startswith("kube-scheduler-playground") else "manage.py play"
