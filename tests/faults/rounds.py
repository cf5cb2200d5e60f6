"""Rounds: a seed draws clusters, requests and faults; when all is quiet again, the checks decide."""

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.faults import checks
from tests.faults.chaos import KINDS, Chaos, Means
from tests.faults.extender import Extender
from tests.faults.people import Person
from tests.faults.scenes import Scenes
from tests.faults.site import Site
from tests.site import SiteDown

SCENES = (
    *("two_at_once", "written_meanwhile", "fail_over", "answer_taken_over", "taken_over", "reset"),
    "worker_of_a_question_killed",
)
HARMED = ("died each time", "OperationalError", "InterfaceError", "DatabaseError")
"""Why a cluster may be parked here: its workers were killed or cut off three times in a row."""
SCENES_A_ROUND = 2
PACE_S = 0.12
"""Between two requests of one person, at most."""
PATIENCE_S = 90.0
"""So long after the last fault all must be quiet."""
WITH_PROGRAMS = 0.5
"""Share of clusters with an autoscaler of nodes, one of pods, and a descheduler."""
KINDS_A_ROUND = 3


@dataclass
class Report:
    """What came of all rounds."""

    seed: int
    rounds: int = 0
    violations: list[str] = field(default_factory=list)
    found_in: int | None = None
    """The first round with a violation."""
    seen: Counter[str] = field(default_factory=Counter)
    """What was looked at: clusters, cycles, Events, batches, requests, extender calls."""
    scenes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


class Harness:
    """Runs rounds on one site."""

    def __init__(self, seed: int, site: Site, means: Means, say: Callable[[str], None]) -> None:
        self.report = Report(seed)
        self.site, self.means, self.say = site, means, say

    def run(self, rounds: int, first: int = 0, *, until_found: bool = False) -> Report:
        began_s = time.monotonic()
        with contextlib.suppress(KeyboardInterrupt):  # what was seen until then is told
            for number in range(first, first + rounds):
                _Round(self, number).live()
                self.report.rounds += 1
                self.report.seconds = round(time.monotonic() - began_s, 1)
                if until_found and self.report.violations:
                    break
        return self.report


class _Round:
    def __init__(self, harness: Harness, number: int) -> None:
        self.harness, self.site, self.report = harness, harness.site, harness.report
        self.number = number
        self.seed = harness.report.seed * 100_003 + number
        dice = self.dice = random.Random(self.seed)
        # Each comes in turn, so that few rounds have all of them; others are drawn.
        self.scenes = [
            SCENES[(number * SCENES_A_ROUND + index) % len(SCENES)] for index in range(SCENES_A_ROUND)
        ]
        in_turn = [
            KINDS[(number * (KINDS_A_ROUND - 1) + index) % len(KINDS)] for index in range(KINDS_A_ROUND - 1)
        ]
        self.kinds = {*in_turn, dice.choice(KINDS)}
        self.extender = Extender(self.site, random.Random(self.seed + 1), posts_bindings=dice.random() < 0.7)
        self.people = [
            self._person("run", realtime=False, permit=dice.random() < 0.5, extender=False),
            self._person("1x", realtime=True, permit=True, extender=dice.random() < 0.3),
            self._person("bound", realtime=dice.random() < 0.3, permit=dice.random() < 0.3, extender=True),
        ]
        self.clusters: list[Any] = []
        self.threads: list[threading.Thread] = []
        self._leases: dict[int, tuple[int, int, Any]] = {}

    def _person(self, key: str, *, realtime: bool, permit: bool, extender: bool) -> Person:
        dice = random.Random(f"{self.seed} {key}")
        url = self.extender.url(key) if extender else None
        programs = dice.random() < WITH_PROGRAMS
        return Person(self.site, key, dice, realtime=realtime, permit=permit, extender=url, programs=programs)

    def live(self) -> None:
        from django.db import close_old_connections, connections

        close_old_connections()
        began_s = self._lived_s = self._quiet_s = time.monotonic()
        before = len(self.report.violations)
        try:
            self._live()
        except SiteDown as down:
            self._violated(str(down))
        finally:
            self.site.tidy()
            self.extender.stop()
            for thread in self.threads:
                thread.join(90)
            connections.close_all()
        self.harness.say(
            f"round {self.number}: {', '.join(sorted(self.kinds))}; {', '.join(self.scenes)}; "
            f"{time.monotonic() - began_s:.1f} s ({self._lived_s - began_s:.1f} s of faults, "
            f"{max(0.0, self._quiet_s - self._lived_s):.1f} s until quiet); "
            f"violations: {len(self.report.violations) - before}"
        )

    def _live(self) -> None:
        from playground.clusters.models import Cluster

        for person in self.people:
            person.begin()
            self.extender.know(person.name, person.id, person.n_rewinds)
            self.clusters.append(Cluster.objects.get(public_id=person.id))
        self.site.tell("max-cycles", self.dice.choice([1, 2, 3, 5, None]))
        chaos = Chaos(
            self.site,
            self.harness.means,
            self.extender,
            self.kinds,
            random.Random(self.seed + 2),
            self.report.faults,
        )
        chaos.begin()
        for person in self.people:
            self._thread(lambda person=person: person.live(self.dice.randint(6, 10), PACE_S))
        self._thread(self._play)
        pks = [cluster.pk for cluster in self.clusters]
        while any(thread.is_alive() for thread in self.threads):
            self._unharmed(lambda: chaos.go_on(pks))
            self._unharmed(self._look_at_leases)
            time.sleep(0.05)
        chaos.end()
        self.site.tidy()
        self._lived_s = time.monotonic()
        for person in self.people:
            chaos.unheard(person.end)
        self._judge()

    def _play(self) -> None:
        for scene in self.scenes:
            # A reset as well where bind calls are under way.
            of_extender = scene == "answer_taken_over" or (scene == "reset" and self.number % 2)
            person = self.people[2] if of_extender else self.people[0]
            cluster = self.clusters[self.people.index(person)]
            scenes = Scenes(self.site, person.second(), cluster.pk, self.report.scenes, self._violated)
            self._unharmed(partial(scenes.play, scene))

    def _thread(self, body: Callable[[], None]) -> None:
        def run() -> None:
            from django.db import connections

            try:
                body()
            except SiteDown as down:
                self._violated(str(down))
            except Exception as error:
                self._violated(f"the harness itself failed: {type(error).__name__}: {error}")
                raise
            finally:
                connections.close_all()

        thread = threading.Thread(target=run, daemon=True)
        self.threads.append(thread)
        thread.start()

    def _unharmed(self, call: Callable[[], None]) -> None:
        """What the harness does itself may meet a connection it has cut."""
        from django.db import InterfaceError, OperationalError, connection

        try:
            call()
        except (OperationalError, InterfaceError):
            connection.close()

    def _look_at_leases(self) -> None:
        """A commit holds the lease under which it was made for longer."""
        from playground.clusters.models import Cluster

        rows = Cluster.objects.filter(pk__in=[cluster.pk for cluster in self.clusters])
        for pk, *lease in rows.values_list("pk", "lease_token", "engine_seq", "lease_expires"):
            token, engine_seq, expires = lease
            before = self._leases.get(pk, (None, engine_seq, None))
            if expires is not None and (token, expires) == before[::2] and engine_seq > before[1]:
                self._violated(f"a batch was committed under lease {token}, which still ends at {expires}")
            self._leases[pk] = (token, engine_seq, expires)

    # ---- the verdict

    def _judge(self) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while words := self._unrest():
            self._unharmed(self._look_at_leases)
            if time.monotonic() > until_s:
                self.site.say_where_they_stand()
                for word in words:
                    self._violated(f"after {PATIENCE_S:g} s in peace {word}")
                return
            time.sleep(0.1)
        self._quiet_s = time.monotonic()
        seqs = {}
        for person, cluster in zip(self.people, self.clusters, strict=True):
            cluster.refresh_from_db()
            seqs[cluster.pk] = cluster.next_seq
            writers = [one for one in (person, person.twin) if one is not None]
            found, seen = checks.violations(cluster, [one.said for one in writers])
            for words in found:
                self._violated(f"cluster {person.name}: {words}")
            self.report.seen.update(seen)
            self.report.seen["clusters"] += 1
            for part in ("pods", "changes", "deleted", "permits", "runs", "questions"):
                self.report.seen[part] += sum(len(getattr(one.said, part)) for one in writers)
        for words in self.extender.repeated:
            self._violated(f"a bind call came for a pod that the extender had bound: {words}")
        self.report.seen["extender calls"] += self.extender.n_calls
        self.report.seen["bindings by extender"] += self.extender.n_bound
        for cluster in self.clusters:
            cluster.refresh_from_db()
            if cluster.next_seq != seqs[cluster.pk]:
                self._violated(f"cluster {cluster.name} did not stay quiet")

    def _unrest(self) -> list[str]:
        from django.db import InterfaceError, OperationalError, connection

        try:
            words = checks.unrest(self.clusters)
        except (OperationalError, InterfaceError) as error:
            connection.close()
            return [f"the database is away: {error}"]
        for person, cluster in zip(self.people, self.clusters, strict=True):
            parked = [word for word in words if word.startswith(f"{cluster.name} is parked")]
            if parked:
                self.report.faults["parked"] += 1
                if not any(cause in parked[0] for cause in HARMED):
                    self._violated(parked[0])
                self.site.insist("POST", f"/api/v1/clusters/{person.id}/unpark")
                person.run("idle")
        return words

    def _violated(self, words: str) -> None:
        if self.report.found_in is None:
            self.report.found_in = self.number
        kinds = ", ".join(sorted(self.kinds))
        self.report.violations.append(f"seed {self.report.seed}, round {self.number} ({kinds}): {words}")
        self.harness.say(self.report.violations[-1])
