"""Which processes that took messages still live.

An owner is a number, and while its process lives that process holds a lock on the byte of this number in
a file beside the broker's. The operating system lets go of the lock when the process ends, however it ends,
so no heartbeat, time-out or guess about process ids is needed. POSIX locks belong to one process:
children forked by it hold none of them. They work on a local disk only, as the whole broker does.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class OwnerLocks:
    """The lock file of one broker, opened once and for good by this process.

    Closing any descriptor of the file would drop every lock this process holds on it, so it is opened
    once a process and never closed.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._own: set[int] = set()

    def hold(self, owner: int) -> None:
        """Say that `owner` is this process, until it ends."""
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, owner, os.SEEK_SET)
        self._own.add(owner)

    def alive(self, owner: int) -> bool:
        """Whether the process of `owner` lives; a moment of doubt counts as life."""
        if owner in self._own:
            return True
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, owner, os.SEEK_SET)
        except OSError:
            return True
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, owner, os.SEEK_SET)
        return False
