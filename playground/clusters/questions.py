"""Asking about decisions. A question is a row; a worker runs the engine and writes the answer into it.

Equal questions about the same moment of a cluster's log are one row, so the second to ask has the answer at once.
No web process ever runs a cycle.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from playground.clusters import jobs, kinds, wake
from playground.clusters.drive.advance import advance, engine_of, nearest
from playground.clusters.drive.extender_calls import asking_transport
from playground.clusters.drive.memory import ENGINES, EngineMemory
from playground.clusters.errors import ClusterError, Conflict, InvalidInput, InvalidManifest, found
from playground.clusters.foreign import decisions
from playground.clusters.history.cycles import get_cycle
from playground.clusters.history.redecide import HISTORIES, recompute_trace
from playground.clusters.log.entries import initial_config, initial_release, recorded, stretch
from playground.clusters.log.rows import existing, keep_newest
from playground.clusters.luck import answer_of, drawn_in, run_again
from playground.clusters.models import Cluster, Cycle, PriorityClass, Question, Run, SeedEnd
from playground.clusters.objects.admission import read_posted
from playground.engine import admission, advise, rules
from playground.engine.batch import collector_paused
from playground.engine.scenarios import RunStopped, ScenarioError
from playground.engine.seeds import LAST_SEED
from scheduler_core.errors import CannotAnswer, InvalidObject
from scheduler_core.objects.fields import format_seconds
from scheduler_core.version import ENGINE_VERSION
from scheduler_core.whatif.answers import answer_question
from scheduler_core.whatif.fix import fix_question
from scheduler_core.whatif.questions import question_from

logger = logging.getLogger(__name__)
G = TypeVar("G")
R = TypeVar("R")


def get_question(cluster: Cluster, public_id: str) -> Question:
    """One question of a cluster. One query.

    Raises
    ------
    NotFound
    """
    row = Question.objects.filter(cluster=cluster, public_id=public_id).first()
    return found(row, f"question {public_id}", kind="Question", name=public_id)


def latest_question(cluster: Cluster, kind: str, params: Mapping[str, Any]) -> Question | None:
    """The newest time this was asked, whatever the cluster has become since. One query."""
    text = json.dumps(dict(params), sort_keys=True, separators=(",", ":"))
    rows = questions_of(kind, cluster=cluster)
    return rows.filter(key=advise.question_key(kind, text)).order_by("-pk").first()


def questions_of(kind: str = "", *, cluster: Cluster | None = None, share: Any = None) -> QuerySet[Question]:
    """The questions of a kind (empty: all) about a share, or about a cluster since its last reset."""
    rows = Question.objects.filter(kind=kind) if kind else Question.objects.all()
    if cluster is not None:
        return rows.filter(cluster=cluster, generation=cluster.generation)
    return rows.filter(share=share.public_id)


def newest_question(kind: str, *, cluster: Cluster | None = None, share: Any = None) -> Question | None:
    """The newest question of a kind. One query."""
    return questions_of(kind, cluster=cluster, share=share).order_by("-pk").first()


def newest_plans(cluster: Cluster) -> dict[str, Question]:
    """The newest question about the whole cluster by what it asks (``drain``), of the newest 60. One query."""
    rows = questions_of(Question.Kind.PLAN, cluster=cluster).order_by("-pk")
    newest: dict[str, Question] = {}
    for row in rows[:60]:
        newest.setdefault(row.params["ask"], row)
    return newest


def is_stale(cluster: Cluster, question: Question) -> bool:
    """Whether the log has moved on since the moment the question is about."""
    return bool(question.seq) and question.seq < cluster.last_seq


MAX_OPEN: Final = 20
KEPT: Final = 200
KEPT_LONG: Final = 10
"""Of each kind that takes long."""
_GIVEN_UP: Final = (Question.State.FAILED, Question.State.CANCELLED)
PATIENCE: Final = 40
"""How often a question is put off because its engine has not read everything yet."""
PUT_OFF_S: Final = 0.25
N_SEEDS: Final = 50
SEEDS_A_TASK: Final = 5
PARTLY_EVERY_S: Final = 1.0
"""Seconds between two writes of what is known so far of an answer that comes in parts."""
MOST_SEED_CYCLES: Final = 100_000
"""Cycles times seeds that one question may cost."""


Answering = Callable[[Question, Any, EngineMemory], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class AnsweredKind:
    """How the questions of one kind are checked and answered.

    Attributes
    ----------
    check
        Cluster or share, parameters -> the parameters of the row, each known to be there.
    answer
        Question, its cluster (None: of a share), engines -> the answer; for a kind with `run`, from its `seeds`.
    run
        Of a kind that is answered in parts: runs some seeds and gives each end (seed, digest, end) to be kept.
    is_long
        Answered in the lane `make`, of the past, whatever the cluster does meanwhile; the newest `KEPT_LONG` are kept.
    is_alone
        One of a cluster or share is open at a time.
    """

    check: Callable[[Any, dict[str, Any]], dict[str, Any]]
    answer: Answering
    run: Callable[[Question, Sequence[int], Callable[[int, str, Mapping[str, Any]], None]], None] | None = (
        None
    )
    is_long: bool = False
    is_alone: bool = False

    @property
    def task(self) -> str:
        return "answer_long" if self.is_long else "answer"


REFUSALS: Final = (CannotAnswer, ClusterError, RunStopped, ScenarioError)
"""Why there is no answer, in words for who asked."""


def ask(
    *, kind: str, params: Mapping[str, Any], cluster: Cluster | None = None, share: Any = None
) -> Question:
    """Ask a question about a cluster or a share, or find it asked already.

    Parameters
    ----------
    kind
        One of `Question.Kind`.
    params
        ``namespace`` and ``name`` of a pod; of fix ``pod``, ``workload`` or neither; ``node``; ``cycle``;
        ``manifest`` (admitted); ``seeds``; ``rule``
        and ``pod``; of a plan the question itself (`scheduler_core.whatif.questions`).

    Raises
    ------
    InvalidInput, NotFound
    Conflict
        The cluster is parked, or too many questions wait.
    """
    known = KINDS.get(kind)
    if known is None:
        raise InvalidInput(f"a question is one of {', '.join(KINDS)}", field="kind", value=kind)
    if cluster is not None and cluster.is_parked and not known.is_long:
        raise Conflict(f"the cluster is parked: {cluster.parked_reason}", kind="Cluster")
    checked = known.check(share if cluster is None else cluster, dict(params))
    text = json.dumps(checked, sort_keys=True, separators=(",", ":"))
    is_of_the_past = known.is_long or kind == Question.Kind.JUDGE or "cycle" in checked
    seq = 0 if cluster is None or is_of_the_past else cluster.last_seq
    key = advise.question_key(kind, text)
    of = {
        "cluster": cluster,
        "generation": 1 if cluster is None else cluster.generation,
        "share": "" if share is None else share.public_id,
    }
    rows = Question.objects.filter(**of)
    question = rows.filter(seq=seq, key=key).first()
    if question is None or question.state in _GIVEN_UP or question.engine_version != ENGINE_VERSION:
        whose = share if cluster is None else cluster
        person = jobs.person_of(whose.owner_id, None if cluster is None else cluster.team_id)
        jobs.check_room(jobs.TASKS[known.task].lane, person)
        others = rows.filter(state__in=Question.OPEN)
        if known.is_alone and others.filter(kind=kind).exists():
            raise Conflict(f"another {kind} is under way; cancel it, or wait for it", kind="Question")
        if others.count() >= MAX_OPEN:
            raise Conflict(f"{MAX_OPEN} questions wait already", kind="Question")
        if question is not None:
            question.delete()
        try:
            with transaction.atomic():
                question = Question.objects.create(
                    **of,
                    seq=seq,
                    key=key,
                    kind=kind,
                    params=checked,
                    person=person,
                    engine_version=ENGINE_VERSION,
                )
                _forget_old(question, known)
                wake.on_commit(known.task, question_id=question.pk)
        except IntegrityError:  # another request asked the same this moment
            question = rows.get(seq=seq, key=key)
    return question


def ask_for_verdicts(cluster: Cluster) -> Question | None:
    """Have a worker judge what waits of other schedulers' decisions; None where nothing does.

    Raises
    ------
    Conflict
    """
    first = decisions.unjudged(cluster).values_list("judged_seq", flat=True).first()
    if first is None:
        return None
    rows = Question.objects.filter(cluster=cluster, generation=cluster.generation, kind=Question.Kind.JUDGE)
    under_way = rows.filter(state__in=Question.OPEN).first()
    if under_way is not None:
        return under_way
    return ask(cluster=cluster, kind=Question.Kind.JUDGE, params={"from": first, "of": rows.count()})


def cancel(rows: QuerySet[Question]) -> int:
    """End those of the questions that are open; how many. A worker that is at one stops within a second."""
    keys = list(rows.filter(state__in=Question.OPEN).values_list("pk", flat=True))
    ended = Question.objects.filter(pk__in=keys, state__in=Question.OPEN).update(
        state=Question.State.CANCELLED, error="Cancelled.", doing="", touched=timezone.now()
    )
    SeedEnd.objects.filter(question__in=keys, question__state=Question.State.CANCELLED).delete()
    return ended


def _forget_old(question: Question, kind: AnsweredKind) -> None:
    kept, of_kind = (KEPT_LONG, {"kind": question.kind}) if kind.is_long else (KEPT, {})
    old = Question.objects.filter(cluster=question.cluster, share=question.share, **of_kind)
    keep_newest(old.exclude(state__in=Question.OPEN), kept)


def _check_why_not(cluster: Cluster, params: dict[str, Any]) -> dict[str, Any]:
    if "cycle" in params:
        return _check_cycle(cluster, params) | {"node": _node(params)}
    return _pending(cluster, params) | {"node": _node(params) if params.get("node") else ""}


def _check_group(cluster: Cluster, params: dict[str, Any]) -> dict[str, Any]:
    namespace, name = str(params["namespace"]), str(params["name"])
    existing(cluster, kinds.named("PodGroup"), namespace, name)
    return {"namespace": namespace, "name": name}


def _check_devices(cluster: Cluster, params: dict[str, Any]) -> dict[str, Any]:
    return _check_cycle(cluster, params) | {"node": _node(params) if params.get("node") else ""}


def _check_cycle(cluster: Cluster, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"cycle": get_cycle(cluster, int(params["cycle"])).number}


def _pending(cluster: Cluster, params: Mapping[str, Any]) -> dict[str, Any]:
    namespace, name = str(params["namespace"]), str(params["name"])
    pod = existing(cluster, kinds.named("Pod"), namespace, name)
    if pod.node_name:
        raise Conflict(
            f'pod "{name}" runs on {pod.node_name} already', kind="Pod", namespace=namespace, name=name
        )
    return {"namespace": namespace, "name": name}


def _rule(cluster: Cluster, params: Mapping[str, Any]) -> dict[str, Any]:
    for item in rules.problems(params["rule"]):
        raise InvalidInput(item.detail, field=item.field, value=item.value)
    pod = str(params.get("pod") or "").strip()
    if len(pod) > 320:
        raise InvalidInput("a pod is named namespace/name", field="pod")
    return {"rule": dict(params["rule"]), "pod": pod}


def _plan_question(cluster: Cluster, params: Mapping[str, Any]) -> dict[str, Any]:
    return read(lambda asked: question_from(asked).document(), params)


def _fix_question(cluster: Cluster, params: Mapping[str, Any]) -> dict[str, Any]:
    checked = read(fix_question, params)
    if "pod" in checked:
        namespace, _, name = checked["pod"].partition("/")
        if existing(cluster, kinds.named("Pod"), namespace, name).phase != "Pending":
            _pending(cluster, {"namespace": namespace, "name": name})
    return checked


def read(reader: Callable[[G], R], given: G) -> R:
    """What a reader of the core makes of what was given; `InvalidInput` where it refuses."""
    try:
        return reader(given)
    except InvalidObject as problem:
        value = None if problem.value is None else str(problem.value)[:200]
        raise InvalidInput(str(problem)[:500], field=problem.path, value=value) from None


def _node(params: Mapping[str, Any]) -> str:
    node = str(params.get("node") or "").strip()
    if not node:
        raise InvalidInput("node names the node to ask about", field="node")
    if len(node) > 253:
        raise InvalidInput("a node's name has 253 characters at most", field="node")
    return node


def checked_seeds(params: Mapping[str, Any], seed: int, n_cycles: int) -> dict[str, Any]:
    """How many ``seeds`` of a run of so many cycles, and the ``first``: the run's own, where there are so many after.

    Raises
    ------
    InvalidInput
    """
    n_seeds = int(params.get("seeds") or N_SEEDS)
    said = ""
    if not 2 <= n_seeds <= N_SEEDS:
        said = f"seeds is a whole number from 2 to {N_SEEDS}"
    elif n_cycles * n_seeds > MOST_SEED_CYCLES:
        said = (
            f"{n_cycles:,} cycles were run; {n_seeds} seeds of them are more than {MOST_SEED_CYCLES:,} cycles to"
            f" decide. Ask for {max(2, MOST_SEED_CYCLES // n_cycles)} seeds."
        )
    if said:
        raise InvalidInput(said, field="seeds", value=str(n_seeds))
    return {"seeds": n_seeds, "first": min(seed, LAST_SEED - n_seeds + 1)}


def admitted_pod(
    *, cluster: Cluster, text: str | bytes, content_type: str = "application/yaml"
) -> dict[str, Any]:
    """The one pod of a posted text, as the API server would keep it; nothing is written.

    Raises
    ------
    InvalidManifest
    """
    posted = [item for item in read_posted(text, content_type) if item.kind == "Pod"]
    if not posted:
        raise InvalidManifest("there is no Pod in the text to try")
    stored = PriorityClass.objects.filter(cluster=cluster).values_list("manifest", flat=True)
    manifest = admission.admit(posted[0], admission.priority_classes(stored))
    meta = dict(manifest["metadata"])
    if not meta.get("name"):
        meta["name"] = f"{meta.get('generateName') or 'pod-'}tried"
    # A pod of that name may be there: the one that is tried is another.
    meta["uid"] = "tried"
    meta["creationTimestamp"] = format_seconds(cluster.now_ns)
    meta.setdefault("namespace", "default")
    return {**manifest, "metadata": meta}


# ---- the worker's side


def answer(*, question_id: int, memory: EngineMemory | None = None, reads: bool = True) -> str:
    """Answer a question; returns its state then. Safe to run twice: equal questions have equal answers.

    Parameters
    ----------
    reads
        Whether inputs the engine has not read yet are read here; else a worker that decides is asked to, and the
        question stays queued until it has.
    """
    question = Question.objects.select_related("cluster").filter(pk=question_id).first()
    if question is None or not question.is_open:
        return "" if question is None else question.state
    cluster, kind = question.cluster, KINDS[question.kind]
    if cluster is not None and cluster.generation != question.generation:
        return _failed(question, "The cluster was reset since.")
    memory = ENGINES if memory is None else memory
    if question.seq and not _up_to_date(question, memory, reads):
        return str(Question.State.QUEUED)
    if not question.change(state=Question.State.RUNNING):
        return ""
    if cluster is not None:
        cluster.refresh_from_db()
    if kind.run is not None:
        return _scatter(question)
    state = str(Question.State.FAILED)
    began = time.monotonic()
    # A copy of a large cluster is millions of objects: looked at by the collector they take twice as long.
    with _saying_why(question, "The engine could not answer"), collector_paused():
        document = kind.answer(question, cluster, memory)
        state = _done(question, document, round((time.monotonic() - began) * 1000))
    return state


@contextmanager
def _saying_why(question: Question, words: str) -> Iterator[None]:
    """What goes wrong within ends the question, in words for its answer."""
    try:
        yield
    except REFUSALS as error:
        _failed(question, str(error.args[0]))
    except (MemoryError, DatabaseError, _TurnOver):
        raise  # a limit that was met, or a database that is away: the lane that runs this knows what to do
    except Exception as error:
        logger.exception("question failed", extra={"question": question.public_id})
        _failed(question, f"{words}: {type(error).__name__}: {error}")


def answer_in_turn(*, question_id: int) -> float | None:
    """`answer` as a worker does that drives no clusters: the seconds to wait where an engine has to read on first."""
    state = answer(question_id=question_id, reads=False)
    return PUT_OFF_S if state == Question.State.QUEUED else None


def _up_to_date(question: Question, memory: EngineMemory, reads: bool) -> bool:
    """Whether the engine has read all there was when the question came, or that has been waited for long enough."""
    cluster = question.cluster
    assert cluster is not None
    if cluster.cursor_seq >= cluster.last_input_seq:
        if question.doing:  # it was read meanwhile
            _asked_of_now(question, cluster)
        return True
    if question.attempts >= PATIENCE:
        return True
    if not reads:
        wake.send("advance", cluster_id=cluster.pk)
    elif not Run.objects.filter(cluster=cluster, state__in=Run.OPEN).exists():
        advance(cluster_id=cluster.pk, memory=memory)
        cluster.refresh_from_db()
        if cluster.cursor_seq >= cluster.last_input_seq:
            _asked_of_now(question, cluster)
            return True
    question.change(attempts=F("attempts") + 1, doing="waiting for the engine")
    return False


def _asked_of_now(question: Question, cluster: Cluster) -> None:
    """Reading inputs moved the log on: the answer is about that moment, unless it is asked there already."""
    try:
        with transaction.atomic():
            Question.objects.filter(pk=question.pk).update(seq=cluster.last_seq)
    except IntegrityError:
        logger.debug("asked of this moment too", extra={"question": question.public_id})


def _done(question: Question, document: Mapping[str, Any], took_ms: int | None) -> str:
    question.end(Question.State.DONE, answer=document, took_ms=took_ms, engine_version=ENGINE_VERSION)
    return str(Question.State.DONE)


def _failed(question: Question, why: str) -> str:
    question.end(Question.State.FAILED, error=why[:1000], answer=None)
    return str(Question.State.FAILED)


def _of_now(ask: advise.Ask) -> Answering:
    """Answered on a copy of the cluster's scheduler; its engine goes back to the memory, unchanged."""

    def answered(question: Question, cluster: Cluster, memory: EngineMemory) -> dict[str, Any]:
        report = jobs.reporting(question)
        report(0, 0, "loading the engine")
        driven = engine_of(cluster, memory)
        try:
            return ask(
                driven.engine.simulation,
                question.params,
                transport=asking_transport(cluster),
                report=report,
            )
        except InvalidObject as error:
            raise CannotAnswer(f"{error}.") from None
        finally:
            memory.put(cluster.pk, driven)

    return answered


def _fix(question: Question, cluster: Cluster, memory: EngineMemory) -> dict[str, Any]:
    """The answer; what is known of some workloads is kept in the row as it comes, where the whole takes long."""
    written_s = time.monotonic()

    def keep(document: dict[str, Any]) -> None:
        nonlocal written_s
        if time.monotonic() - written_s > PARTLY_EVERY_S:
            question.change(answer=of_now(document))
            written_s = time.monotonic()

    def of_now(document: dict[str, Any]) -> dict[str, Any]:
        return document | {"seq": cluster.engine_seq, "nowNs": cluster.now_ns}

    return of_now(_of_now(partial(advise.fix_for, partly=keep))(question, cluster, memory))


def _why_not(question: Question, cluster: Cluster, memory: EngineMemory) -> dict[str, Any]:
    params = question.params
    if "cycle" in params:
        past, _ = _past(cluster, params["cycle"])
        return advise.why_not_then(past, params["node"]) | {"cycle": params["cycle"]}
    return _of_now(advise.why_not_now)(question, cluster, memory)


def _devices(question: Question, cluster: Cluster, memory: EngineMemory) -> dict[str, Any]:
    past, trace = _past(cluster, question.params["cycle"])
    return advise.devices_then(past, trace, question.params["node"])


def _weights(question: Question, cluster: Cluster, memory: EngineMemory) -> dict[str, Any]:
    report = jobs.reporting(question)
    report(0, 1, "deciding the past again")
    past, trace = _past(cluster, question.params["cycle"])
    return advise.prove_weights(past, trace, report=report)


def _past(cluster: Cluster, number: int) -> tuple[advise.PastCycle, bytes]:
    """The moment before a cycle, and the cycle's trace, decided again where only its summary is kept."""
    cycle = Cycle.objects.get(cluster=cluster, number=number)
    if cycle.trace is None:
        if not cycle.trace_note:
            recompute_trace(cluster_id=cluster.pk, number=number)
            cycle.refresh_from_db(fields=["trace", "trace_note"])
        if cycle.trace is None:
            raise CannotAnswer(cycle.trace_note or f"cycle {number} cannot be decided again")
    past = HISTORIES.before(cluster, cycle)
    if past is not None:
        return past, bytes(cycle.trace)
    engine, engine_seq = nearest(cluster, cycle.ran_seq - 1)
    entries = stretch(cluster, engine, engine_seq, cycle.ran_seq)
    past = advise.before_cycle(engine, entries, number, cycle.pod_uid, recorded=recorded(cluster))
    return past, bytes(cycle.trace)


def _judge(question: Question, cluster: Cluster, memory: EngineMemory) -> dict[str, Any]:
    return decisions.judge_some(cluster, jobs.reporting(question))


# ---- luck: one question, many tasks


def _end_states(question: Question, cluster: Cluster, memory: EngineMemory) -> dict[str, Any]:
    rows = Cycle.objects.filter(cluster=cluster)
    return answer_of(list(question.seeds.order_by("seed")), lambda pod: drawn_in(rows, pod))


def _run_again(
    question: Question, seeds: Sequence[int], keep: Callable[[int, str, Mapping[str, Any]], None]
) -> None:
    cluster = question.cluster
    assert cluster is not None
    beginning, entries = run_again(cluster, question.seq)
    advise.run_seeds(
        entries,
        seeds,
        own=cluster.seed,
        config=initial_config(cluster),
        release=initial_release(cluster),
        start_ns=cluster.start_ns,
        each=lambda run: keep(run.seed, run.digest, run.end),
        beginning=beginning,
    )


KINDS: Final[dict[str, AnsweredKind]] = {
    Question.Kind.FIX: AnsweredKind(_fix_question, _fix),
    Question.Kind.WHY_NOT: AnsweredKind(_check_why_not, _why_not),
    Question.Kind.WEIGHTS: AnsweredKind(_check_cycle, _weights),
    Question.Kind.TRY: AnsweredKind(
        lambda cluster, params: {key: params[key] for key in ("manifest", "copies") if key in params},
        _of_now(advise.try_manifest),
    ),
    Question.Kind.SEEDS: AnsweredKind(
        lambda cluster, params: checked_seeds(params, cluster.seed, cluster.next_cycle - 1),
        _end_states,
        _run_again,
    ),
    Question.Kind.RULE: AnsweredKind(_rule, _of_now(rules.try_rule)),
    Question.Kind.PLAN: AnsweredKind(_plan_question, _of_now(answer_question)),
    Question.Kind.DEVICES: AnsweredKind(_check_devices, _devices),
    Question.Kind.GROUP: AnsweredKind(_check_group, _of_now(advise.group_of)),
    Question.Kind.JUDGE: AnsweredKind(
        lambda cluster, params: {"from": int(params["from"]), "of": int(params["of"])}, _judge
    ),
}
"""Kind -> how it is answered; apps above add theirs."""


def _scatter(question: Question) -> str:
    """Send the seeds out as a group of tasks."""
    question.change(total=question.params["seeds"], doing="running seeds")
    for part in _parts(question):
        wake.send(_seeds_task(question), **part)
    return str(Question.State.RUNNING)


def _seeds_task(question: Question) -> str:
    return "run_seeds_long" if KINDS[question.kind].is_long else "run_seeds"


def _parts(question: Question) -> list[dict[str, Any]]:
    """The seeds in pieces of work; those all of whose seeds have an end are left out, except the last of all."""
    first, n_seeds = question.params["first"], question.params["seeds"]
    there = set(SeedEnd.objects.filter(question=question).values_list("seed", flat=True))
    seeds = range(first, first + n_seeds)
    parts = [list(seeds[at : at + SEEDS_A_TASK]) for at in range(0, n_seeds, SEEDS_A_TASK)]
    left = [part for part in parts if not there.issuperset(part)]
    return [{"question_id": question.pk, "seeds": part} for part in left or parts[-1:]]


class _TurnOver(Exception):
    """Others have waited long enough."""


def run_seeds(*, question_id: int, seeds: Sequence[int], turn_s: float | None = None) -> bool:
    """Run some seeds of a question; the last one of all puts the answer together. Whether some of them are left.

    Safe to run twice: a seed has one end, and it is kept once.

    Parameters
    ----------
    turn_s
        Begin no other seed after so long; None = run them all.
    """
    question = Question.objects.select_related("cluster").filter(pk=question_id).first()
    if question is None or not question.is_open:
        return False
    kind = KINDS[question.kind]
    assert kind.run is not None
    began_s = time.monotonic()
    there = set(SeedEnd.objects.filter(question=question).values_list("seed", flat=True))

    def keep(seed: int, digest: str, end: Mapping[str, Any]) -> None:
        made = SeedEnd(question=question, seed=seed, digest=digest, end=dict(end))
        SeedEnd.objects.bulk_create([made], ignore_conflicts=True)
        question.change(done=SeedEnd.objects.filter(question=question).count())
        if turn_s is not None and time.monotonic() - began_s > turn_s:
            raise _TurnOver

    left = [seed for seed in seeds if seed not in there]
    try:
        with _saying_why(question, "The log could not be run again"), collector_paused():
            if left:
                kind.run(question, left, keep)
    except _TurnOver:
        ended = set(SeedEnd.objects.filter(question=question).values_list("seed", flat=True))
        if not ended.issuperset(seeds):
            return True
    if SeedEnd.objects.filter(question=question).count() >= question.params["seeds"]:
        _done(question, kind.answer(question, question.cluster, ENGINES), None)
        SeedEnd.objects.filter(question=question).delete()
    return False


def _unattended() -> list[tuple[str, dict[str, Any]]]:
    work: list[tuple[str, dict[str, Any]]] = []
    for question in Question.objects.filter(state__in=Question.OPEN).order_by("pk")[:1000]:
        if KINDS[question.kind].run is not None and question.state == Question.State.RUNNING:
            work += [(_seeds_task(question), part) for part in _parts(question)]
        else:
            work.append((KINDS[question.kind].task, {"question_id": question.pk}))
    return work


jobs.KINDS["question_id"] = replace(
    jobs.of_rows(Question, "answer", "question_id", owner="person", person=str), unattended=_unattended
)
