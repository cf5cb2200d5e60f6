"""Asking about decisions. A question is a row; a worker runs the engine and writes the answer into it.

Equal questions about the same moment of a cluster's log are one row, so the second to ask has the answer at once.
No web process ever runs a cycle.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from playground.clusters import jobs, lanes, wake
from playground.clusters.drive.advance import advance, engine_of, nearest
from playground.clusters.drive.extender_calls import asking_transport
from playground.clusters.drive.memory import ENGINES, Driven, EngineMemory
from playground.clusters.errors import Conflict, InvalidInput, InvalidManifest, NotFound
from playground.clusters.foreign import decisions
from playground.clusters.history.redecide import HISTORIES, recompute_trace
from playground.clusters.log.entries import initial_config, initial_release, recorded, stretch
from playground.clusters.luck import end_states_of, run_again
from playground.clusters.models import Cluster, Cycle, Manifest, Pod, PriorityClass, Question, Run, SeedEnd
from playground.clusters.objects.admission import read_posted
from playground.engine import admission, advise, rules
from playground.engine.advise import CannotAnswer
from playground.engine.batch import collector_paused
from playground.engine.seeds import LAST_SEED, SeedRun, end_of
from playground.engine.simulator import default_simulator
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import format_seconds
from scheduler_core.whatif.questions import question_from

logger = logging.getLogger(__name__)


def get_question(cluster: Cluster, public_id: str) -> Question:
    """One question of a cluster. One query.

    Raises
    ------
    NotFound
    """
    found = Question.objects.filter(cluster=cluster, public_id=public_id).first()
    if found is None:
        raise NotFound(f"question {public_id} not found", kind="Question", name=public_id)
    return found


def latest_question(cluster: Cluster, kind: str, params: Mapping[str, Any]) -> Question | None:
    """The newest time this was asked, whatever the cluster has become since. One query."""
    text = json.dumps(dict(params), sort_keys=True, separators=(",", ":"))
    return (
        Question.objects.filter(
            cluster=cluster, generation=cluster.generation, key=advise.question_key(kind, text)
        )
        .order_by("-pk")
        .first()
    )


def newest_question(cluster: Cluster, kind: str) -> Question | None:
    """The newest question of a kind since the last reset. One query."""
    rows = Question.objects.filter(cluster=cluster, generation=cluster.generation, kind=kind)
    return rows.order_by("-pk").first()


def newest_plans(cluster: Cluster) -> dict[str, Question]:
    """The newest question about the whole cluster by what it asks (``drain``), of the newest 60. One query."""
    rows = Question.objects.filter(
        cluster=cluster, generation=cluster.generation, kind=Question.Kind.PLAN
    ).order_by("-pk")
    newest: dict[str, Question] = {}
    for row in rows[:60]:
        newest.setdefault(row.params["ask"], row)
    return newest


def is_stale(cluster: Cluster, question: Question) -> bool:
    """Whether the log has moved on since the moment the question is about."""
    return bool(question.seq) and question.seq < cluster.last_seq


MAX_OPEN: Final = 20
KEPT: Final = 200
PATIENCE: Final = 40
"""How often a question is put off because its engine has not read everything yet."""
PUT_OFF_S: Final = 0.25
N_SEEDS: Final = 50
SEEDS_A_TASK: Final = 5
MOST_SEED_CYCLES: Final = 100_000
"""Cycles times seeds that one question may cost."""


def ask(*, cluster: Cluster, kind: str, params: Mapping[str, Any]) -> Question:
    """Ask a question, or find it asked already.

    Parameters
    ----------
    kind
        One of `Question.Kind`.
    params
        ``namespace`` and ``name`` of a pod; ``node``; ``cycle``; ``manifest`` (admitted); ``seeds``; ``rule``
        and ``pod``; of a plan the question itself (`scheduler_core.whatif.questions`).

    Raises
    ------
    InvalidInput, NotFound
    Conflict
        The cluster is parked, or too many questions wait.
    """
    if cluster.is_parked:
        raise Conflict(f"the cluster is parked: {cluster.parked_reason}", kind="Cluster")
    checked = _checked(cluster, kind, dict(params))
    text = json.dumps(checked, sort_keys=True, separators=(",", ":"))
    wanted = {
        "cluster": cluster,
        "generation": cluster.generation,
        "seq": 0 if "cycle" in checked or kind == Question.Kind.JUDGE else cluster.last_seq,
        "key": advise.question_key(kind, text),
    }
    found = Question.objects.filter(**wanted).first()
    if found is None or found.state in (Question.State.FAILED, Question.State.CANCELLED):
        jobs.check_room(lanes.ASK, jobs.person_of(cluster.owner_id, cluster.team_id))
        if Question.objects.filter(cluster=cluster, state__in=Question.OPEN).count() >= MAX_OPEN:
            raise Conflict(f"{MAX_OPEN} questions wait already", kind="Question")
        if found is not None:
            found.delete()
        try:
            with transaction.atomic():
                found = Question.objects.create(**wanted, kind=kind, params=checked)
                _forget_old(cluster)
                transaction.on_commit(partial(_send, found.pk), robust=True)
        except IntegrityError:  # another request asked the same this moment
            found = Question.objects.get(**wanted)
    return found


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


def _send(question_id: int) -> None:
    wake.send(wake.ANSWER, question_id=question_id)


def cancel(*, question: Question) -> Question:
    """No answer is wanted any more; a worker that is at it stops within a second. Twice is once."""
    Question.objects.filter(pk=question.pk, state__in=Question.OPEN).update(
        state=Question.State.CANCELLED, error="Cancelled.", doing="", touched=timezone.now()
    )
    SeedEnd.objects.filter(question=question, question__state=Question.State.CANCELLED).delete()
    question.refresh_from_db()
    return question


def _forget_old(cluster: Cluster) -> None:
    old = Question.objects.filter(cluster=cluster).exclude(state__in=Question.OPEN).order_by("-pk")
    last = old.values_list("pk", flat=True)[KEPT : KEPT + 1].first()
    if last is not None:
        old.filter(pk__lte=last).delete()


def _checked(cluster: Cluster, kind: str, params: dict[str, Any]) -> dict[str, Any]:
    """The parameters a question of this kind has, each known to be there."""
    match kind:
        case Question.Kind.EDITS:
            return _pending(cluster, params)
        case Question.Kind.WHY_NOT if "cycle" in params:
            return {"cycle": _cycle(cluster, params).number, "node": _node(params)}
        case Question.Kind.GROUP:
            namespace, name = str(params["namespace"]), str(params["name"])
            groups = Manifest.objects.filter(cluster=cluster, kind="PodGroup", namespace=namespace, name=name)
            if not groups.exists():
                raise NotFound(f'podgroups.scheduling.k8s.io "{name}" not found', kind="PodGroup", name=name)
            return {"namespace": namespace, "name": name}
        case Question.Kind.DEVICES:
            cycle = _cycle(cluster, params)
            return {"cycle": cycle.number, "node": _node(params) if params.get("node") else ""}
        case Question.Kind.WHY_NOT:
            return _pending(cluster, params) | {"node": _node(params)}
        case Question.Kind.WEIGHTS:
            return {"cycle": _cycle(cluster, params).number}
        case Question.Kind.TRY:
            return {"manifest": params["manifest"]}
        case Question.Kind.SEEDS:
            return _seeds(cluster, params)
        case Question.Kind.RULE:
            return _rule(params)
        case Question.Kind.PLAN:
            return _plan_question(params)
        case Question.Kind.JUDGE:
            return {"from": int(params["from"]), "of": int(params["of"])}
    raise InvalidInput(f"a question is one of {', '.join(Question.Kind.values)}", field="kind", value=kind)


def _pending(cluster: Cluster, params: Mapping[str, Any]) -> dict[str, Any]:
    namespace, name = str(params["namespace"]), str(params["name"])
    pod = Pod.objects.filter(cluster=cluster, namespace=namespace, name=name).only("node_name").first()
    if pod is None:
        raise NotFound(f'pods "{name}" not found', kind="Pod", namespace=namespace, name=name)
    if pod.node_name:
        raise Conflict(
            f'pod "{name}" runs on {pod.node_name} already', kind="Pod", namespace=namespace, name=name
        )
    return {"namespace": namespace, "name": name}


def _rule(params: Mapping[str, Any]) -> dict[str, Any]:
    for item in rules.problems(params["rule"]):
        raise InvalidInput(item.message, field=item.field, value=item.value)
    pod = str(params.get("pod") or "").strip()
    if len(pod) > 320:
        raise InvalidInput("a pod is named namespace/name", field="pod")
    return {"rule": dict(params["rule"]), "pod": pod}


def _plan_question(params: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return question_from(params).document()
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


def _cycle(cluster: Cluster, params: Mapping[str, Any]) -> Cycle:
    number = int(params["cycle"])
    cycle = Cycle.objects.filter(cluster=cluster, number=number).defer("trace").first()
    if cycle is None:
        raise NotFound(f"cycle {number} not found", kind="Cycle", name=str(number))
    return cycle


def _seeds(cluster: Cluster, params: Mapping[str, Any]) -> dict[str, Any]:
    n_seeds = int(params.get("seeds") or N_SEEDS)
    if not 2 <= n_seeds <= N_SEEDS:
        raise InvalidInput(f"seeds is a whole number from 2 to {N_SEEDS}", field="seeds", value=str(n_seeds))
    n_cycles = max(1, cluster.next_cycle - 1)
    if n_cycles * n_seeds > MOST_SEED_CYCLES:
        most = max(2, MOST_SEED_CYCLES // n_cycles)
        raise Conflict(
            f"this cluster has run {n_cycles:,} cycles; {n_seeds} seeds of them are more than"
            f" {MOST_SEED_CYCLES:,} cycles to decide. Ask for {most} seeds.",
            kind="Question",
        )
    return {"seeds": n_seeds, "first": min(cluster.seed, LAST_SEED - n_seeds + 1)}


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
    cluster = question.cluster
    if cluster.generation != question.generation:
        return _failed(question, "The cluster was reset since.")
    memory = ENGINES if memory is None else memory
    if question.seq and not _up_to_date(question, memory, reads):
        return str(Question.State.QUEUED)
    claimed = Question.objects.filter(pk=question.pk, state__in=Question.OPEN).update(
        state=Question.State.RUNNING, touched=timezone.now()
    )
    if not claimed:
        return ""
    cluster.refresh_from_db()
    try:
        if question.kind == Question.Kind.SEEDS:
            return _scatter(question)
        began = time.monotonic()
        # A copy of a large cluster is millions of objects: looked at by the collector they take twice as long.
        with collector_paused():
            document = _ANSWERS[question.kind](question, cluster, memory)
            took_ms = round((time.monotonic() - began) * 1000)
            return _done(question, document, took_ms)
    except CannotAnswer as error:
        return _failed(question, str(error.args[0]))
    except (MemoryError, DatabaseError):
        raise  # a limit that was met, or a database that is away: the lane that runs this knows what to do
    except Exception as error:
        logger.exception("question failed", extra={"question": question.public_id})
        return _failed(question, f"The engine could not answer: {type(error).__name__}: {error}")


def _up_to_date(question: Question, memory: EngineMemory, reads: bool) -> bool:
    """Whether the engine has read all there was when the question came, or that has been waited for long enough."""
    cluster = question.cluster
    if cluster.cursor_seq >= cluster.last_input_seq:
        if question.doing:  # it was read meanwhile
            _asked_of_now(question)
        return True
    if question.attempts >= PATIENCE:
        return True
    if not reads:
        wake.send(wake.ADVANCE, cluster_id=cluster.pk)
    elif not Run.objects.filter(cluster=cluster, state__in=Run.OPEN).exists():
        advance(cluster_id=cluster.pk, memory=memory)
        cluster.refresh_from_db()
        if cluster.cursor_seq >= cluster.last_input_seq:
            _asked_of_now(question)
            return True
    Question.objects.filter(pk=question.pk).update(
        attempts=F("attempts") + 1, doing="waiting for the engine", touched=timezone.now()
    )
    return False


def _asked_of_now(question: Question) -> None:
    """Reading inputs moved the log on: the answer is about that moment, unless it is asked there already."""
    try:
        with transaction.atomic():
            Question.objects.filter(pk=question.pk).update(seq=question.cluster.last_seq)
    except IntegrityError:
        logger.debug("asked of this moment too", extra={"question": question.public_id})


def _done(question: Question, document: Mapping[str, Any], took_ms: int | None) -> str:
    Question.objects.filter(pk=question.pk, state__in=Question.OPEN).update(
        state=Question.State.DONE, answer=document, doing="", took_ms=took_ms, touched=timezone.now()
    )
    return str(Question.State.DONE)


def _failed(question: Question, why: str) -> str:
    Question.objects.filter(pk=question.pk, state__in=Question.OPEN).update(
        state=Question.State.FAILED, error=why[:1000], doing="", touched=timezone.now()
    )
    return str(Question.State.FAILED)


def _reporting(question: Question) -> Callable[[int, int, str], None]:
    """Writes progress into the row, five times a second at most."""
    last_s = 0.0

    def report(done: int, total: int, what: str) -> None:
        nonlocal last_s
        if time.monotonic() - last_s < 0.2 and done < total:
            return
        last_s = time.monotonic()
        Question.objects.filter(pk=question.pk).update(
            done=done, total=total, doing=what[:120], touched=timezone.now()
        )

    return report


class _Borrowed:
    """The cluster's engine, given back to the memory: questions read it and change nothing."""

    def __init__(self, cluster: Cluster, memory: EngineMemory) -> None:
        self.cluster = cluster
        self.memory = memory
        self.driven = engine_of(cluster, memory, default_simulator())

    def __enter__(self) -> Driven:
        return self.driven

    def __exit__(self, *exc_info: object) -> None:
        self.memory.put(self.cluster.pk, self.driven)


def _edits(question: Question, cluster: Cluster, memory: EngineMemory) -> dict[str, Any]:
    params, report = question.params, _reporting(question)
    report(0, 9, "loading the engine")
    with _Borrowed(cluster, memory) as driven:
        document = advise.edits_for(
            driven.engine,
            params["namespace"],
            params["name"],
            transport=asking_transport(cluster),
            report=report,
        )
    return document | {"seq": cluster.engine_seq, "nowNs": cluster.now_ns}


def _why_not(question: Question, cluster: Cluster, memory: EngineMemory) -> dict[str, Any]:
    params = question.params
    if "cycle" in params:
        past, _ = _past(cluster, params["cycle"])
        return advise.why_not_then(past, params["node"]) | {"cycle": params["cycle"]}
    with _Borrowed(cluster, memory) as driven:
        return advise.why_not_node(
            driven.engine,
            params["namespace"],
            params["name"],
            params["node"],
            transport=asking_transport(cluster),
        )


def _group(question: Question, cluster: Cluster, memory: EngineMemory) -> dict[str, Any]:
    params = question.params
    with _Borrowed(cluster, memory) as driven:
        return advise.group_of(
            driven.engine, params["namespace"], params["name"], transport=asking_transport(cluster)
        )


def _devices(question: Question, cluster: Cluster, memory: EngineMemory) -> dict[str, Any]:
    past, trace = _past(cluster, question.params["cycle"])
    return advise.devices_then(past, trace, question.params["node"])


def _weights(question: Question, cluster: Cluster, memory: EngineMemory) -> dict[str, Any]:
    report = _reporting(question)
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
    engine, engine_seq = nearest(cluster, cycle.ran_seq - 1, default_simulator())
    entries = stretch(cluster, engine, engine_seq, cycle.ran_seq)
    past = advise.before_cycle(engine, entries, number, cycle.pod_uid, recorded=recorded(cluster))
    return past, bytes(cycle.trace)


def _try(question: Question, cluster: Cluster, memory: EngineMemory) -> dict[str, Any]:
    with _Borrowed(cluster, memory) as driven:
        return advise.try_manifest(
            driven.engine, question.params["manifest"], transport=asking_transport(cluster)
        )


def _try_rule(question: Question, cluster: Cluster, memory: EngineMemory) -> dict[str, Any]:
    with _Borrowed(cluster, memory) as driven:
        return rules.try_rule(driven.engine, question.params["rule"], question.params["pod"])


def _plan(question: Question, cluster: Cluster, memory: EngineMemory) -> dict[str, Any]:
    with _Borrowed(cluster, memory) as driven:
        return advise.answer_plan(
            driven.engine,
            question.params,
            transport=asking_transport(cluster),
            report=_reporting(question),
        )


def _judge(question: Question, cluster: Cluster, memory: EngineMemory) -> dict[str, Any]:
    return decisions.judge_some(cluster, _reporting(question))


_ANSWERS: Final[dict[str, Callable[[Question, Cluster, EngineMemory], dict[str, Any]]]] = {
    Question.Kind.EDITS: _edits,
    Question.Kind.WHY_NOT: _why_not,
    Question.Kind.WEIGHTS: _weights,
    Question.Kind.TRY: _try,
    Question.Kind.RULE: _try_rule,
    Question.Kind.PLAN: _plan,
    Question.Kind.DEVICES: _devices,
    Question.Kind.GROUP: _group,
    Question.Kind.JUDGE: _judge,
}


# ---- luck: one question, many tasks


def _scatter(question: Question) -> str:
    """Send the seeds out as a group of tasks."""
    Question.objects.filter(pk=question.pk).update(
        total=question.params["seeds"], doing="running seeds", touched=timezone.now()
    )
    wake.send_group(wake.SEEDS, _parts(question))
    return str(Question.State.RUNNING)


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
    cluster = question.cluster
    began_s = time.monotonic()
    there = set(SeedEnd.objects.filter(question=question).values_list("seed", flat=True))

    def keep(run: SeedRun) -> None:
        end = SeedEnd(question=question, seed=run.seed, digest=run.digest, end=end_of(run))
        SeedEnd.objects.bulk_create([end], ignore_conflicts=True)
        done = SeedEnd.objects.filter(question=question).count()
        Question.objects.filter(pk=question.pk).update(done=done, touched=timezone.now())
        if turn_s is not None and time.monotonic() - began_s > turn_s:
            raise _TurnOver

    try:
        with collector_paused():
            beginning, entries = run_again(cluster, question.seq)
            advise.run_seeds(
                entries,
                [seed for seed in seeds if seed not in there],
                own=cluster.seed,
                config=initial_config(cluster),
                release=initial_release(cluster),
                start_ns=cluster.start_ns,
                each=keep,
                beginning=beginning,
            )
    except _TurnOver:
        ended = set(SeedEnd.objects.filter(question=question).values_list("seed", flat=True))
        if not ended.issuperset(seeds):
            return True
    except (MemoryError, DatabaseError):
        raise
    except Exception as error:
        logger.exception("seeds failed", extra={"question": question.public_id})
        _failed(question, f"The log could not be run again: {error}")
        return False
    if SeedEnd.objects.filter(question=question).count() >= question.params["seeds"]:
        _done(question, end_states_of(question), None)
        SeedEnd.objects.filter(question=question).delete()
    return False


# ---- what a worker's room asks about questions


def _find(pk: int) -> jobs.Subject | None:
    row = Question.objects.filter(pk=pk).values_list("state", "cluster__owner_id", "cluster__team_id").first()
    if row is None:
        return None
    state, owner_id, team_id = row
    return jobs.Subject(jobs.person_of(owner_id, team_id), state in Question.OPEN)


def _give_up(pk: int, why: str) -> None:
    question = Question.objects.filter(pk=pk).first()
    if question is not None:
        _failed(question, why)


def _unattended() -> list[tuple[str, dict[str, Any]]]:
    work: list[tuple[str, dict[str, Any]]] = []
    for question in Question.objects.filter(state__in=Question.OPEN).order_by("pk")[:1000]:
        if question.kind == Question.Kind.SEEDS and question.state == Question.State.RUNNING:
            work += [(wake.SEEDS, part) for part in _parts(question)]
        else:
            work.append((wake.ANSWER, {"question_id": question.pk}))
    return work


jobs.KINDS["question_id"] = jobs.SubjectKind(_find, _give_up, _unattended)
