"""A process that ends with the one that started it, however that came about."""

import os
import signal
import threading


def follow(descriptor: int) -> None:
    """End this process as soon as the other end of a pipe is closed, which the parent's end does."""

    def wait() -> None:
        while os.read(descriptor, 1):
            pass
        # Not a warm stop: nothing is left to wait for it, and what is not acknowledged is handed out again.
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, name="follow-parent", daemon=True).start()
