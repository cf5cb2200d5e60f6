"""A site whose processes take orders."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests import site
from tests.faults.points import WHERE


class Site(site.Site):
    """A running site.

    Parameters
    ----------
    tree
        Folder with the code it runs: this one, or a mutant's copy.
    environment
        Its variables; the harness has the same.
    folder
        For orders and logs.
    token
        Of a team's site.
    """

    def __init__(
        self, tree: Path, environment: dict[str, str], folder: Path, port: int, token: str = ""
    ) -> None:
        self.orders = folder / "orders"
        self.orders.mkdir(exist_ok=True)
        mode = "team" if token else "embedded"
        super().__init__(
            [sys.executable, "-m", "tests.faults.start", mode, str(port), str(self.orders)],
            port,
            log=folder / "site.log",
            environment=environment,
            cwd=tree,
            token=token,
            answer_s=100.0,  # a request that is given up may be done later, and be taken for one of its time
            patience_s=120.0,
        )

    def say_where_they_stand(self) -> None:
        """Every process writes its stacks to the log."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, WHERE)
                time.sleep(0.1)

    def order(self, place: str, how: str, cluster: int | None = None) -> None:
        """The process that next passes ``before.<step>`` or ``after.<step>`` (with this cluster's lease) suffers it."""
        path = self.orders / place
        draft = path.with_name(f"draft.{place}")
        draft.write_text(json.dumps({"how": how, "cluster": cluster}))
        draft.rename(path)

    def withdraw(self, place: str) -> None:
        (self.orders / place).unlink(missing_ok=True)

    def stalled(self, place: str) -> list[Stalled]:
        return [Stalled(path) for path in sorted(self.orders.glob(f"taken.{place}.*"))]

    def tell(self, name: str, what: Any) -> None:
        """``max-cycles``, ``clocks``: what the processes read at each turn; None takes it back."""
        path = self.orders / name
        if what is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(json.dumps(what))

    def tidy(self) -> None:
        """No order is left, and all who were stalled go on."""
        for path in self.orders.iterdir():
            path.unlink(missing_ok=True)


class Stalled:
    """A process that stands before or after a step."""

    def __init__(self, taken: Path) -> None:
        self._taken = taken
        self.pid = int(taken.name.split(".")[-2])

    @property
    def is_there(self) -> bool:
        """Whether it stands there still."""
        return self._taken.exists() and Path(f"/proc/{self.pid}").exists()

    def go_on(self, within_s: float = 20.0) -> str:
        """How the step ended: ``returned``, or the error's name; empty if that is not known."""
        ended = self._taken.with_name(self._taken.name.replace("taken.", "ended.", 1))
        self._taken.unlink(missing_ok=True)
        until_s = time.monotonic() + within_s
        while time.monotonic() < until_s and Path(f"/proc/{self.pid}").exists():
            if ended.exists() and (how := ended.read_text()):
                return how
            time.sleep(0.01)
        return ended.read_text() if ended.exists() else ""


def wait_for(found: Callable[[], Any], within_s: float) -> Any:
    """What it finds, looked for again and again; None when it was not found in time."""
    until_s = time.monotonic() + within_s
    while True:
        result = found()
        if result or time.monotonic() > until_s:
            return result or None
        time.sleep(0.02)
