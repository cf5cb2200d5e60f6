"""Rounds of faults: a seed draws the story and the faults, workers live through them, checks decide."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.engine.extender_server import ExtenderServer
from tests.faults import checks, story
from tests.faults.worker import POINTS, Orders
from tests.faults.zygote import Workers

ROUND_TIMEOUT_S = 60.0
KINDS = (
    "kill at a step",
    "kill at any time",
    "database connection cut",
    "broker restarted",
    "messages doubled and out of order",
    "messages lost",
    "extender misbehaves",
    "wall clocks differ",
    "worker stalls and wakes up",
)


@dataclass
class Report:
    """What came of all rounds."""

    seed: int
    rounds: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    ordered_at: Counter[str] = field(default_factory=Counter)
    """Steps at which workers were told to die or to lose their connection, if they came there."""
    workers_died: int = 0
    """By their own hand; those killed from outside come on top."""
    parked: int = 0
    cycles: int = 0
    violations: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Harness:
    """Lives through rounds.

    Parameters
    ----------
    workers
        Made before anything was connected.
    restart_broker
        Stops the broker with all its messages and starts it empty; None where there is none to restart.
    cut_connections
        Cuts every other connection to the database from the server's side; None where that cannot be.
    """

    def __init__(
        self,
        seed: int,
        workers: Workers,
        restart_broker: Callable[[], None] | None,
        cut_connections: Callable[[], None] | None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.report = Report(seed)
        self._workers = workers
        self._restart_broker = restart_broker
        self._cut_connections = cut_connections
        self._say = say

    def run(self, rounds: int, first: int = 0) -> Report:
        began = time.monotonic()
        for number in range(first, first + rounds):
            _Round(self, self.report.seed * 100_003 + number, number).live()
            self.report.rounds += 1
        self.report.seconds = round(time.monotonic() - began, 1)
        return self.report


class _Round:
    def __init__(self, harness: Harness, seed: int, number: int) -> None:
        self._harness = harness
        self._report = harness.report
        self._workers = harness._workers
        self._seed = seed
        self._number = number
        self._dice = random.Random(seed)
        # Every kind comes in turn, so that the fewest rounds have all of them; a second one is drawn.
        self._kinds = {KINDS[number % len(KINDS)], self._dice.choice(KINDS)}
        # Three in a row would rightly park the cluster.
        self._kills_left = self._cuts_left = 2
        self._stalled: list[int] = []

    def live(self) -> None:
        from django.db import close_old_connections

        from playground.clusters import services

        with self._extender() as url:
            phases = story.draw(self._seed, url)
            expected = self._without_faults(phases)
            for kind in self._kinds:
                self._report.faults[kind] += 1
            cluster = services.create_cluster(
                name=f"round {self._number}", seed=self._seed, start_ns=story_start()
            )
            for _ in range(2):
                self._start_worker()
            try:
                for phase in phases:
                    self._harm_until_done(cluster, phase)
                cluster.refresh_from_db()
                self._judge(cluster, phases, expected)
            finally:
                for pid in list(self._workers.pids):
                    self._workers.kill(pid)
                close_old_connections()
        self._harness._say(
            f"round {self._number}: {', '.join(sorted(self._kinds))}; violations so far: "
            f"{len(self._report.violations)}"
        )

    # ---- the run without faults

    def _without_faults(self, phases: list[story.Phase]) -> dict[str, Any]:
        from playground.clusters import services
        from playground.clusters.services.memory import EngineMemory

        cluster = services.create_cluster(name="quiet", seed=self._seed, start_ns=story_start())
        memory = EngineMemory()
        self._well_behaved.set()
        for phase in phases:
            asked = story.perform(cluster, phase)
            while asked.is_open:
                services.advance(cluster_id=cluster.pk, memory=memory)
                asked.refresh_from_db()
        self._well_behaved.clear()
        cluster.refresh_from_db()
        end = checks.end_of(cluster)
        services.delete_cluster(cluster=cluster)
        return end

    # ---- the run with them

    def _harm_until_done(self, cluster: Any, phase: story.Phase) -> None:
        from django.db import OperationalError

        from playground.clusters import services, wake
        from playground.clusters.models import Run

        self._insist(lambda: self._unpark(cluster))
        asked = self._insist(lambda: story.perform(cluster, phase))
        give_up_at_s = time.monotonic() + ROUND_TIMEOUT_S
        while time.monotonic() < give_up_at_s:
            with contextlib.suppress(OperationalError):
                if self._unpark(cluster):
                    # A parked cluster's runs have failed: this one is wanted again.
                    Run.objects.filter(pk=asked.pk, state="failed").update(state="running", finished=None)
                if Run.objects.filter(pk=asked.pk, state=Run.State.DONE).exists():
                    break
                # The sweeper, oftener than in earnest: waiting for it is not what is tested.
                services.sweep()
            self._harm(cluster, wake)
            known = len(self._workers.pids)
            self._report.workers_died += known - len(self._workers.alive())
            while len(self._workers.pids) < 2:
                self._start_worker()
            time.sleep(0.02)
        else:
            self._violated("the run never ended")
        for pid in self._stalled:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self._stalled.clear()

    def _harm(self, cluster: Any, wake: Any) -> None:
        dice, kinds = self._dice, self._kinds
        if "kill at any time" in kinds and self._kills_left and dice.random() < 0.1:
            self._kills_left -= 1
            self._workers.kill(dice.choice(self._workers.pids))
        if "worker stalls and wakes up" in kinds and dice.random() < 0.1:
            pids = [pid for pid in self._workers.alive() if pid not in self._stalled]
            if self._stalled and dice.random() < 0.5:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._stalled.pop(), signal.SIGCONT)
            elif not self._stalled and pids:
                os.kill(pids[0], signal.SIGSTOP)
                if _holds_a_lock(cluster):
                    # Stopped within its commit it keeps everybody waiting, and that is all.
                    os.kill(pids[0], signal.SIGCONT)
                else:
                    self._stalled.append(pids[0])
                    self._expire_lease(cluster)
        if "messages doubled and out of order" in kinds and dice.random() < 0.5:
            for _ in range(dice.randint(1, 5)):
                countdown_s = dice.choice([None, None, 0.05, 0.3])
                wake.send(wake.ADVANCE, countdown_s=countdown_s, cluster_id=cluster.pk)
        if "messages lost" in kinds and dice.random() < 0.2:
            from playground.celery import app

            with contextlib.suppress(Exception):
                app.control.purge()
        if "broker restarted" in kinds and dice.random() < 0.05 and self._harness._restart_broker:
            self._harness._restart_broker()
        cut = self._harness._cut_connections
        if "database connection cut" in kinds and cut is not None and self._cuts_left and dice.random() < 0.1:
            self._cuts_left -= 1
            cut()

    def _unpark(self, cluster: Any) -> bool:
        """What a person does about a cluster whose workers died three times in a row."""
        from playground.clusters import services
        from playground.clusters.models import Cluster

        if not Cluster.objects.filter(pk=cluster.pk).exclude(parked_reason="").exists():
            return False
        self._report.parked += 1
        services.unpark_cluster(cluster=cluster)
        return True

    def _expire_lease(self, cluster: Any) -> None:
        """Let 30 s pass for the lease of the worker that is stopped."""
        from django.db.models import F

        from playground.clusters.models import Cluster

        Cluster.objects.filter(pk=cluster.pk, lease_expires__isnull=False).update(
            lease_expires=F("created")  # long ago
        )

    def _start_worker(self) -> None:
        dice = self._dice
        orders = Orders(max_cycles=dice.randint(1, 5))
        how = {"kill at a step": "kill", "database connection cut": "cut"}
        found = next((how[kind] for kind in sorted(self._kinds) if kind in how), "")
        if found and self._kills_left:
            self._kills_left -= 1
            # In turn by the round, so that every step is met.
            step = (self._number // len(KINDS) * 2 + self._kills_left) % (2 * len(POINTS))
            at = f"{'before' if step % 2 else 'after'} {POINTS[step // 2]}"
            if dice.random() < 0.5:
                at = f"{dice.choice(['before', 'after'])} {dice.choice(POINTS)}"
            orders = Orders(at=at, nth=dice.randint(1, 4), how=found, max_cycles=orders.max_cycles)
            self._report.ordered_at[f"{found} {at}"] += 1
        if "wall clocks differ" in self._kinds:
            orders = Orders(**{**orders.as_dict(), "ahead_s": dice.choice([-7200.0, -40.0, 40.0, 7200.0])})
        self._workers.start(orders)

    def _insist(self, call: Callable[[], Any]) -> Any:
        """A person's request that met a cut connection is simply made again."""
        from django.db import InterfaceError, OperationalError, connection

        for attempt in range(5):
            try:
                return call()
            except (OperationalError, InterfaceError):
                connection.close()
                if attempt == 4:
                    raise
        return None

    # ---- the verdict

    def _judge(self, cluster: Any, phases: list[story.Phase], expected: dict[str, Any]) -> None:
        posted = {
            item["metadata"]["name"]
            for phase in phases
            for what, given in phase
            if what == "apply"
            for item in given
            if item["kind"] == "Pod"
        }
        deleted = {
            given[2] for phase in phases for what, given in phase if what == "delete" and given[0] == "Pod"
        }
        for words in checks.violations(cluster, posted, deleted):
            self._violated(words)
        end = checks.end_of(cluster)
        for part, wanted in expected.items():
            if end[part] != wanted:
                first = _first_difference(wanted, end[part])
                self._violated(f"{part} end otherwise than without faults: {first}")
        self._report.cycles += len(end["cycles"])

    def _violated(self, words: str) -> None:
        words = f"round {self._number} (seed {self._seed}; {', '.join(sorted(self._kinds))}): {words}"
        self._report.violations.append(words)
        self._harness._say(words)

    # ---- an extender that misbehaves now and then; it is ignorable, so the decisions stay

    @contextlib.contextmanager
    def _extender(self) -> Iterator[str | None]:
        self._well_behaved = threading.Event()
        if "extender misbehaves" not in self._kinds:
            yield None
            return
        dice = random.Random(self._seed)

        def answer(path: str, body: Any) -> Any:
            if not self._well_behaved.is_set() and dice.random() < 0.15:
                return dice.choice([server.hang, server.cut, server.flood])
            if path.endswith("prioritize"):
                return [{"Host": name, "Score": 1} for name in body["NodeNames"]]
            return {"NodeNames": body["NodeNames"]}

        server = ExtenderServer(answer).start()
        try:
            yield f"http://127.0.0.1:{server.port}"
        finally:
            server.stop()


def _holds_a_lock(cluster: Any) -> bool:
    """Whether a writer has the cluster's lock just now."""
    from django.db import DatabaseError, connection, transaction

    from playground.clusters.models import Cluster

    if connection.vendor == "sqlite":
        probe = sqlite3.connect(connection.settings_dict["NAME"], timeout=0.05, isolation_level=None)
        try:
            probe.execute("BEGIN IMMEDIATE")
            probe.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return True
        finally:
            probe.close()
        return False
    try:
        with transaction.atomic():
            Cluster.objects.select_for_update(nowait=True).get(pk=cluster.pk)
    except DatabaseError:
        return True
    return False


def story_start() -> int:
    return 1_800_000_000_000_000_000


def _first_difference(wanted: Any, found: Any) -> str:
    if not isinstance(wanted, list):
        return f"{found} instead of {wanted}"
    for left, right in zip(wanted, found, strict=False):
        if left != right:
            return f"{right} instead of {left}"
    return f"{len(found)} instead of {len(wanted)}"
