"""Faults that need several steps: a worker stands still with its batch decided, and something happens meanwhile.

Each scene waits for a worker to stand where it is wanted. Another fault may end that worker first: the scene then says
nothing, and is not counted.
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.faults.people import Person
from tests.faults.site import Site, Stalled, wait_for

COMMIT = "before.advance.commit_batch"
COMMITTED = "after.advance.commit_batch"
ANSWER = "before.extenders._keep_answer"
ASKED = "after.jobs.claim"
STALL_WITHIN_S = 6.0
TAKEN_OVER_WITHIN_S = 20.0
TOGETHER_WITHIN_S = 6.0
PLACES = (COMMIT, COMMITTED, ANSWER, ASKED)
"""Where a scene lets a worker stand."""


class Scenes:
    """Played on one cluster, beside all else that happens to it.

    Parameters
    ----------
    person
        Whose cluster it is; at rest its clock is paused.
    pk
        Primary key of the cluster.
    played
        Counts the scenes that came to an end.
    violated
        Told of what must not be.
    """

    def __init__(
        self, site: Site, person: Person, pk: int, played: Counter[str], violated: Callable[[str], None]
    ) -> None:
        self._site, self._person, self._pk = site, person, pk
        self._played, self._violated = played, violated

    def play(self, scene: str) -> None:
        """One of the scenes below, by name.

        What the scene itself asks of the database may meet a connection that was cut. It ends then, and the workers it
        had stand still go on: with both workers standing, the next scene would wait for a third.
        """
        try:
            getattr(self, scene)()
        except Exception:
            for place in PLACES:
                self._site.withdraw(place)
                for stalled in self._site.stalled(place):
                    stalled.go_on(0)
            raise

    def taken_over(self) -> None:
        """The lease of a stalled worker runs out: another one goes on, and the first may not commit."""
        stalled = self._stall(COMMIT)
        if stalled is None:
            return
        token = self._expire()
        taken = wait_for(lambda: self._row().lease_token > token or not stalled.is_there, TAKEN_OVER_WITHIN_S)
        if not taken:
            self._violated(f"the lease of a stalled worker was not taken over in {TAKEN_OVER_WITHIN_S:g} s")
            stalled.go_on()  # the token is still its own: it may commit
            return
        wait_for(lambda: self._row().lease_expires is None or not stalled.is_there, TOGETHER_WITHIN_S)
        self._end("taken over", stalled)

    def two_at_once(self) -> None:
        """The lease runs out, and the next worker has decided but not committed: the first may not commit before it."""
        first = self._stall(COMMIT)
        if first is None:
            return
        self._site.order(COMMIT, "stall", self._pk)
        token = self._expire()
        second = self._stalled_besides(COMMIT, first)
        if second is None:
            first.go_on()
            return
        if self._row().lease_token > token:
            self._end("two at once", first)
        else:  # who came had the lease before the first, and comes to its commit only now: the first's is the newest
            first.go_on()
        second.go_on(0)

    def fail_over(self) -> None:
        """The database fails over and has lost its newest transaction, the claim; so a token is given out twice."""
        from django.db.models import F

        from playground.clusters.models import Cluster

        first = self._stall(COMMIT)
        if first is None:
            return
        self._site.order(COMMITTED, "stall", self._pk)
        Cluster.objects.filter(pk=self._pk).update(
            lease_token=F("lease_token") - 1, lease_expires=None, lease_holder="", failures=0
        )
        self._wake()
        second = self._stalled_besides(COMMITTED)
        if second is not None:
            self._end("failed over", first)
            second.go_on(0)
        else:
            first.go_on()

    def written_meanwhile(self) -> None:
        """What a batch is about is written, and deleted, by people before it is committed."""
        names = self._person.apply(4)
        stalled = self._stall(COMMIT, have_pods=False)
        if stalled is None:
            return
        self._person.change(names[0])
        self._person.change(names[1])
        self._person.delete(names[2])
        if stalled.is_there:
            self._played["written meanwhile"] += 1
        stalled.go_on()

    def reset(self) -> None:
        """A reset comes while a batch is decided: nothing of it may be kept.

        Twice, as the second batch is the cluster's first: its place in the log is that of a cluster just
        reset, and only the token tells them apart.
        """
        for _ in range(2):
            stalled = self._stall(COMMIT)
            if stalled is None:
                return
            self._person.reset()
            self._end("reset during a batch", stalled)
        self._person.run("idle")

    def answer_taken_over(self) -> None:
        """A bind call was answered, and its worker stalls before it can say so."""
        self._site.order(ANSWER, "stall", self._pk)
        self._person.apply(2)
        self._person.run("idle")
        stalled = self._stalled_besides(ANSWER)
        if stalled is None:
            return
        token = self._expire()
        wait_for(
            lambda: self._row().lease_token > token and self._row().lease_expires is None, TOGETHER_WITHIN_S
        )
        if self._row().lease_token > token:
            self._end("answer of a lost lease", stalled)
        else:
            stalled.go_on()

    def worker_of_a_question_killed(self) -> None:
        """The process that looks after questions is killed while one is answered."""
        import os
        import signal

        self._site.order(ASKED, "stall")
        self._person.ask()
        stalled = self._stalled_besides(ASKED)
        if stalled is not None and stalled.is_there:
            os.kill(stalled.pid, signal.SIGKILL)
            self._played["worker of a question killed"] += 1

    # ---- steps

    def _stall(self, place: str, *, have_pods: bool = True) -> Stalled | None:
        """A worker that has decided pods of the cluster, and stands still."""
        self._site.order(place, "stall", self._pk)
        if have_pods:
            self._person.apply(4)
        self._person.run("idle")
        return self._stalled_besides(place)

    def _stalled_besides(self, place: str, *others: Stalled) -> Stalled | None:
        known = {other.pid for other in others}

        def found() -> Stalled | None:
            self._again()
            return next(
                (item for item in self._site.stalled(place) if item.is_there and item.pid not in known), None
            )

        self._woken_s = time.monotonic()
        stalled: Stalled | None = wait_for(found, STALL_WITHIN_S)
        self._site.withdraw(place)
        if stalled is None:
            for late in self._site.stalled(place):  # it came when we had just given up
                if late.pid not in known:
                    late.go_on(0)
        return stalled

    def _again(self) -> None:
        """Scenes are about leases, not about lost wake-ups: one is sent a second if nothing comes."""
        if time.monotonic() - self._woken_s > 1.0:
            self._woken_s = time.monotonic()
            self._wake()

    def _wake(self) -> None:
        from playground.clusters import wake

        wake.send("advance", cluster_id=self._pk)

    def _expire(self) -> int:
        """Let thirty seconds pass for the lease; its token."""
        from django.db.models import F

        from playground.clusters.models import Cluster

        Cluster.objects.filter(pk=self._pk, lease_expires__isnull=False).update(lease_expires=F("created"))
        token: int = self._row().lease_token
        self._wake()
        return token

    def _row(self) -> Any:
        from playground.clusters.models import Cluster

        return Cluster.objects.get(pk=self._pk)

    def _end(self, scene: str, stalled: Stalled) -> None:
        """The stalled worker goes on; what it had decided may not be kept."""
        if not stalled.is_there:
            return
        how = stalled.go_on()
        if not how:
            return
        self._played[scene] += 1
        if how == "returned":
            self._violated(f"{scene}: a worker committed although the cluster was not its own any more")
