"""How long questions to the engine take: part of ``python -m tests.load.pages DIR``.

Each is answered twice by a process of its own, which has imported what a worker imports: cold with no engine in
memory, warm with the one the first answer left there. Questions about the past keep none: they are cold both times.
"""

import gc
import time
from collections.abc import Callable
from typing import Any

SEEDS = 2


def names() -> list[str]:
    """What can be asked, all of the cluster `tests.load.pages.seed` makes."""
    return [
        "edits, giant", "edits, wide", "why not, now", "why not, first", "why not, last", "weights, first",
        "weights, last", "try", "trace, last", "board, last", "seed",
    ]  # fmt: skip


def measure(name: str) -> dict[str, float]:
    """One question in this process: cold and warm, in milliseconds of its own CPU."""
    from playground.clusters import jobs, wake
    from playground.clusters.models import Cluster

    jobs.load()
    wake.send = lambda *args, **kwargs: True  # type: ignore[assignment]
    answer = _asking(Cluster.objects.get(), name)
    took_ms = []
    for _ in range(2):
        # In a worker, too, the collector comes to what was read when the answer is written.
        gc.collect()
        gc.disable()
        began = time.process_time()
        answer()
        took_ms.append(1000 * (time.process_time() - began))
        gc.enable()
    return {"cold_ms": took_ms[0], "warm_ms": took_ms[1]}


def _asking(cluster: Any, name: str) -> Callable[[], None]:
    from playground.clusters import questions
    from playground.clusters.drive.memory import EngineMemory
    from playground.clusters.history import redecide
    from playground.clusters.models import Cycle, Pod, Question
    from playground.scenarios.models import Moment
    from playground.scenarios.services import moments

    memory = EngineMemory()
    # Of a pod that only one node could take, no scores were compared.
    bound = Cycle.objects.filter(cluster=cluster, outcome="bound", n_feasible__gt=1).order_by("number")
    first, last = bound.first(), bound.last()
    assert first is not None and last is not None

    def asked(kind: str, **params: Any) -> Callable[[], None]:
        def answer() -> None:
            Question.objects.all().delete()
            question = questions.ask(cluster=cluster, kind=kind, params=params)
            if kind == Question.Kind.SEEDS:
                Question.objects.filter(pk=question.pk).update(state=Question.State.RUNNING)
                questions.run_seeds(question_id=question.pk, seeds=[7])
            else:
                questions.answer(question_id=question.pk, memory=memory)
            question.refresh_from_db()
            assert question.state != Question.State.FAILED, question.error
            assert question.state == Question.State.DONE or kind == Question.Kind.SEEDS, question.state

        return answer

    def recomputed() -> None:
        Cycle.objects.filter(pk=last.pk).update(trace=None)
        assert redecide.recompute_trace(cluster_id=cluster.pk, number=last.number)

    def looked_at() -> None:
        Moment.objects.all().delete()
        moments.compute_moments(cycle=last.number, cluster_id=cluster.pk, generation=cluster.generation)
        assert not Moment.objects.get(cycle=last.number).note

    giant = {"namespace": "default", "name": "giant-0"}
    some = Pod.objects.get(cluster=cluster, name="p1").manifest
    tried = {
        **some,
        "metadata": {**some["metadata"], "name": "tried", "uid": "tried"},
        "spec": {key: value for key, value in some["spec"].items() if key != "nodeName"},
    }
    return {
        "edits, giant": asked("fix", pod="default/giant-0"),
        "edits, wide": asked("fix", pod="default/wide"),
        "why not, now": asked("why-not", node="node-7", **giant),
        "why not, first": asked("why-not", cycle=first.number, node="node-7"),
        "why not, last": asked("why-not", cycle=last.number, node="node-7"),
        "weights, first": asked("weights", cycle=first.number),
        "weights, last": asked("weights", cycle=last.number),
        "try": asked("try", manifest=tried),
        "trace, last": recomputed,
        "board, last": looked_at,
        "seed": asked("seeds", seeds=SEEDS),
    }[name]
