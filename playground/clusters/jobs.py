"""Work of the lanes `ask` and `make`: put there, taken in fair turns, and given up with a reason.

Whose turn it is the rows say, as with clusters (turns.py): the person who has waited longest for one, one piece of
work at a time for each person, and of a person's work the single questions before what comes in bulk. A sweep, which is
left after each turn, takes all workers that would be idle. Every change
is a conditional UPDATE or DELETE, so a worker that was thought dead changes nothing.
"""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pkgutil import resolve_name
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone

from playground.clusters import choices, lanes
from playground.clusters.errors import Conflict
from playground.clusters.lanes import holder_name, is_alive, on_this_machine
from playground.clusters.models import Cluster, Job, LanePulse, Turn, WorkRow
from scheduler_core.schema.tables import table_beside

CLAIM_S: Final = 20.0
LOOKED_AT: Final = 500


@dataclass(frozen=True, slots=True)
class Subject:
    """What a piece of work is about.

    Attributes
    ----------
    person
        Whose turns it takes (`person_of`).
    is_open
        Whether it is still wanted: a row that is gone, done or cancelled wants no work.
    """

    person: str
    is_open: bool


@dataclass(frozen=True, slots=True)
class SubjectKind:
    """How the rows of one kind are found and reported.

    Attributes
    ----------
    find
        Primary key -> `Subject`, None when it is gone.
    give_up
        Writes into the row why no answer comes.
    unattended
        Work for every open row, as (task, params): what was queued by an older version, or lost, is put again.
    """

    find: Callable[[int], Subject | None]
    give_up: Callable[[int, str], None] = lambda pk, why: None
    unattended: Callable[[], list[tuple[str, dict[str, Any]]]] = list


@dataclass(frozen=True, slots=True)
class Task:
    """What is done of a row; `tasks.yaml` says what its fields mean."""

    lane: str
    run: tuple[str, ...] = ()
    goes_on: bool = False
    bulk: bool = False
    turn_s: float = 0.0

    def functions(self) -> list[Callable[..., Any]]:
        """What does it, imported when it is asked for."""
        return [resolve_name(name) for name in self.run]

    def do(self, **params: Any) -> Any:
        """Do it to the end of a turn: True when more is left, or the seconds after which it wants to go on."""
        turn = {"turn_s": self.turn_s} if self.turn_s else {}
        answers = [function(**params, **turn) for function in self.functions()]
        return answers[-1] if self.goes_on else None


TASKS: Final = {name: Task(**of) for name, of in table_beside(__package__, "tasks.yaml").items()}
"""By the names that rows have."""


def load() -> None:
    """Import what does work: its kinds of subjects are known then, and processes that are forked share it."""
    for task in TASKS.values():
        task.functions()


POKES: Final = {lane: threading.Event() for lane in lanes.LANES}
"""Set when a message said that work waits; where no worker's room listens, nothing hears it."""

KINDS: Final[dict[str, SubjectKind]] = {}
"""Name of the parameter that holds the primary key -> kind; apps add theirs when they are ready."""


def person_of(owner_id: int | None, team_id: int | None = None) -> str:
    """Whose turns work takes; the empty name is the site itself, or its only person."""
    if owner_id is not None:
        return f"user-{owner_id}"
    return f"team-{team_id}" if team_id is not None else ""


def of_cluster(pk: int) -> Subject | None:
    """A cluster as a subject."""
    row = Cluster.objects.filter(pk=pk).values_list("owner_id", "team_id").first()
    return None if row is None else Subject(person_of(*row), True)


KINDS["cluster_id"] = SubjectKind(of_cluster)


def failed(why: str) -> dict[str, Any]:
    """Columns of a `WorkRow` that say why no answer comes."""
    return {"error": why[:1000], "doing": "", "touched": timezone.now()}


def of_rows(
    model: Any,
    task: str,
    name: str,
    *,
    owner: str = "owner_id",
    person: Callable[[Any], str] = person_of,
    failed: Callable[[str], dict[str, Any]] = failed,
    afterwards: bool = False,
) -> SubjectKind:
    """Work on rows of a model that are open.

    Parameters
    ----------
    name
        The task's parameter that holds the row's primary key.
    owner, person
        The column that says whose it is, and how.
    failed
        Why no answer comes -> the columns that say it.
    afterwards
        Other work on a row is wanted once it is no longer open: a recorded share's moments and whole cycles.
    """
    rows = model.objects

    def find(pk: int) -> Subject | None:
        row = rows.filter(pk=pk).values_list("state", owner).first()
        return None if row is None else Subject(person(row[1]), afterwards or row[0] in choices.OPEN)

    def give_up(pk: int, why: str) -> None:
        rows.filter(pk=pk, state__in=choices.OPEN).update(state="failed", **failed(why))

    def unattended() -> list[tuple[str, dict[str, Any]]]:
        keys = rows.filter(state__in=choices.OPEN).order_by("pk").values_list("pk", flat=True)
        return [(task, {name: pk}) for pk in keys[:1000]]

    return SubjectKind(find, give_up, unattended)


def reporting(row: WorkRow) -> Callable[[int, int, str], Any]:
    """Writes progress into a row, five times a second at most; False once no answer is wanted any more."""
    last_s, last = 0.0, ""

    def report(done: int, total: int, what: str) -> bool:
        nonlocal last_s, last
        if time.monotonic() - last_s < 0.2 and done < max(total, 1) and what == last:
            return True
        last_s, last = time.monotonic(), what
        return row.change(done=done, total=total, doing=what[:120])

    return report


def subject_of(params: Mapping[str, Any]) -> Subject | None:
    """What work with these parameters is about; work about nothing is the site's own."""
    found = _kind_of(params)
    return Subject("", True) if found is None else found[0].find(found[1])


def _kind_of(params: Mapping[str, Any]) -> tuple[SubjectKind, int] | None:
    for name, kind in KINDS.items():
        if params.get(name) is not None:
            return kind, params[name]
    return None


# ---- putting


def put(task: str, params: Mapping[str, Any], *, after_s: float = 0.0) -> Job | None:
    """Have a worker do this; None when what it is about is gone. What waits already is left as it is."""
    subject = subject_of(params)
    if subject is None:
        return None
    key = _key(task, params)
    wanted = {
        "lane": TASKS[task].lane,
        "task": task,
        "params": dict(params),
        "person": subject.person,
        "bulk": TASKS[task].bulk,
        "not_before": timezone.now() + timedelta(seconds=after_s) if after_s else None,
    }
    try:
        with transaction.atomic():
            job, _ = Job.objects.get_or_create(key=key, defaults=wanted)
    except IntegrityError:  # put by another process this moment, and done already
        return Job.objects.filter(key=key).first()
    return job


def check_room(lane: str, person: str) -> None:
    """Refuse what would be more than one person may have waiting.

    Raises
    ------
    Conflict
    """
    if Job.objects.filter(lane=lane, person=person).count() >= lanes.MOST_OPEN:
        raise Conflict(
            f"{lanes.MOST_OPEN} pieces of your work wait in the lane {lane!r} already, and no more may; try again"
            " when some of them are done, or cancel some",
            kind="Job",
        )


def adopt() -> int:
    """Put the work of every open row that has none; how many. Rows are the truth.

    So what was queued before an upgrade goes on, and what a full broker or a killed web process lost.
    """
    n_put = 0
    known = set(Job.objects.values_list("key", flat=True))
    for kind in KINDS.values():
        for task, params in kind.unattended():
            if _key(task, params) not in known:
                n_put += put(task, params) is not None
    return n_put


def _key(task: str, params: Mapping[str, Any]) -> str:
    text = json.dumps([task, params], sort_keys=True, separators=(",", ":"))
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


# ---- taking


def claim(lane: str, *, holder: str | None = None) -> Job | None:
    """The job whose turn it is, claimed for `CLAIM_S`; None when nothing may be begun."""
    holder = (holder or holder_name())[:120]
    now = timezone.now()
    free = list(
        Job.objects.filter(_free(), Q(not_before__isnull=True) | Q(not_before__lte=now), lane=lane).order_by(
            "bulk", F("turn_at").asc(nulls_first=True), "pk"
        )[:LOOKED_AT]
    )
    if not free:
        return None
    under_way = list(Job.objects.filter(~_free(), lane=lane).values_list("person", "task"))
    at_work = {person for person, _ in under_way}
    only_in_parts = at_work - {person for person, task in under_way if not TASKS[task].turn_s}
    turns = dict(Turn.objects.filter(lane=lane).values_list("person", "at"))
    eligible = [job for job in free if job.person not in at_work or job.person in only_in_parts]
    # Those of whom nothing is under way come first, of these one that has never had a turn; of equals the first in
    # the order above.
    for job in sorted(
        eligible, key=lambda job: (job.person in at_work, job.person in turns, turns.get(job.person, now))
    ):
        taken = Job.objects.filter(_free(), pk=job.pk).update(
            holder=holder, claimed_until=now + timedelta(seconds=CLAIM_S), turn_at=now
        )
        if taken:
            Turn.objects.update_or_create(lane=lane, person=job.person, defaults={"at": now})
            job.holder = holder
            return job
    return None


def _free() -> Q:
    """Jobs that are in no worker's hands: never taken, given back, run out, or held by a dead process here."""
    holders = Job.objects.filter(holder__startswith=on_this_machine())
    dead = [name for name in holders.values_list("holder", flat=True).distinct() if not is_alive(name)]
    return Q(holder="") | Q(claimed_until__lt=timezone.now()) | Q(holder__in=dead)


def is_wanted(job: Job) -> bool:
    """Whether what comes of it is still waited for."""
    subject = subject_of(job.params)
    return subject is not None and subject.is_open


def renew(job: Job) -> bool:
    """Hold it for another `CLAIM_S`; False when it is not wanted any more, or in other hands."""
    if not is_wanted(job):
        return False
    until = timezone.now() + timedelta(seconds=CLAIM_S)
    return Job.objects.filter(pk=job.pk, holder=job.holder).update(claimed_until=until) == 1


def finish(job: Job) -> None:
    """It is done, or not wanted any more."""
    Job.objects.filter(pk=job.pk, holder=job.holder).delete()


def give_back(job: Job, *, after_s: float = 0.0, died: bool = False) -> None:
    """Let it wait for its next turn."""
    Job.objects.filter(pk=job.pk, holder=job.holder).update(
        holder="",
        claimed_until=None,
        turn_at=timezone.now(),
        deaths=F("deaths") + int(died),
        not_before=timezone.now() + timedelta(seconds=after_s) if after_s else None,
    )


def give_up(job: Job, why: str) -> None:
    """No answer will come: say why where people look."""
    found = _kind_of(job.params)
    if found is not None:
        found[0].give_up(found[1], why)
    finish(job)


# ---- Signs of life of the lanes: rows that the loops which do the work write as they go round, whatever they are at
#
# So progress is what is seen, never a message that waits: a loop that has more to do than it can signs after each
# commit.

FORGET_AFTER: Final = timedelta(days=1)


class Signs:
    """What one loop of a lane says of itself.

    Parameters
    ----------
    lane, worker
        Which one it is.
    """

    def __init__(self, lane: str, worker: str) -> None:
        self.lane, self.worker = lane, worker[:255]
        self._signed_s = 0.0

    def sign(self) -> None:
        """The loop went round: it has just read or written the database. Written down every `SIGN_EVERY_S` at most."""
        now_s = time.monotonic()
        if self._signed_s and now_s - self._signed_s < lanes.SIGN_EVERY_S:
            return
        now = timezone.now()
        seen = {"passed_at": now, "process": holder_name()}
        LanePulse.objects.update_or_create(lane=self.lane, worker=self.worker, defaults=seen)
        LanePulse.objects.filter(passed_at__lt=now - FORGET_AFTER).delete()
        self._signed_s = now_s

    def forget(self) -> None:
        """It ends in order: no other sign of it is to be waited for."""
        LanePulse.objects.filter(lane=self.lane, worker=self.worker).delete()
