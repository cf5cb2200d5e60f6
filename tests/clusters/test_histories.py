"""Old cycles opened from the objects there were: byte for byte what living through the log gives."""

from random import Random
from typing import Any

import pytest

from playground.clusters.drive.advance import nearest
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.history import redecide
from playground.clusters.history.redecide import HistoryMemory, recompute_trace
from playground.clusters.kinds import named
from playground.clusters.log.entries import recorded, stretch
from playground.clusters.models import Checkpoint, Cluster, Cycle, Pod
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import delete_object
from playground.engine import advise
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.manifests import deployment, priority_class
from tests.tables import table

pytestmark = pytest.mark.django_db

ZONE = "topology.kubernetes.io/zone"


def zoned(name: str, zone: str) -> dict[str, Any]:
    node = make_node(name, "4")
    node["metadata"]["labels"] = {ZONE: zone, "kubernetes.io/hostname": name}
    return node


def drawn(random: Random, name: str) -> dict[str, Any]:
    """A pod of one of many kinds."""
    pod = make_pod(name, f"{random.choice((100, 150, random.randint(1, 900)))}m")
    app = random.choice("abc")
    pod["metadata"]["labels"] = {"app": app}
    spec = pod["spec"]
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": ZONE}
    match random.randrange(6):
        case 0:
            weighted = [{"weight": 5, "podAffinityTerm": term}]
            kind = random.choice(("podAffinity", "podAntiAffinity"))
            spec["affinity"] = {kind: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}
        case 1:
            spec["topologySpreadConstraints"] = [
                {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **term},
            ]
        case 2:
            spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": random.choice((80, 81))}]
        case 3:
            spec["priorityClassName"] = "high"
        case 4 if random.random() < 0.3:
            spec["containers"][0]["resources"]["requests"]["cpu"] = "64"
    return pod


DEPLOYMENT = deployment("web", 5, "10m")
HIGH = priority_class("high", 10)
SERVICE = table(__file__, "SERVICE")


def lived(seed: int) -> Cluster:
    """A cluster in which pods of many kinds came and went, after the checkpoint that an import leaves."""
    random = Random(seed)
    nodes = (zoned(f"n{index}", "xyz"[index % 3]) for index in range(6))
    cluster = make_cluster(*nodes, HIGH, SERVICE, DEPLOYMENT)
    memory = EngineMemory()
    run(cluster, memory=memory)
    kind = named("Pod")
    for round_ in range(3):
        pods = [drawn(random, f"p{round_}-{index}") for index in range(6)]
        apply_documents(cluster=cluster, objects=pods)
        run(cluster, memory=memory, max_cycles=random.choice((2, 50)))
        for name in random.sample(sorted(Pod.objects.values_list("name", flat=True)), 3):
            grace_s = random.choice((0, None))
            delete_object(cluster=cluster, kind=kind, namespace="default", name=name, grace_s=grace_s)
        run(cluster, random.choice(("idle", "40s")), memory=memory)
    return cluster


def both(cluster: Cluster, cycle: Cycle, memory: HistoryMemory) -> bool:
    """Whether a cycle opens without being lived through; it is then what it was."""
    found = memory.opened(cluster, cycle)
    if found is not None:
        assert found == redecide._lived_through(cluster, cycle)
    return found is not None


def lived_to(cluster: Cluster, cycle: Cycle) -> advise.PastCycle:
    """The moment before a cycle, as living through the log comes to it."""
    engine, engine_seq = nearest(cluster, cycle.ran_seq - 1)
    entries = stretch(cluster, engine, engine_seq, cycle.ran_seq)
    return advise.before_cycle(engine, entries, cycle.number, cycle.pod_uid, recorded=recorded(cluster))


def answers(past: advise.PastCycle, cycle: Cycle) -> dict[str, Any]:
    """Everything that can be asked about a cycle of the past."""
    found: dict[str, Any] = {}
    for node in [f"n{index}" for index in range(6)]:
        found[node] = advise.why_not_then(past, node)
    if cycle.n_viable is not None and cycle.n_viable > 1:
        found["weights"] = advise.prove_weights(past, bytes(cycle.trace or b""), report=lambda *told: None)
    return found


def test_questions_about_the_past_have_the_answers_they_have_where_it_is_lived_through() -> None:
    cluster = lived(seed=2)
    memory = HistoryMemory()
    cycles = list(Cycle.objects.filter(outcome="bound").order_by("number"))
    Random(2).shuffle(cycles)
    asked = 0
    for cycle in cycles:
        past = memory.before(cluster, cycle)
        if past is not None:
            asked += 1
            assert answers(past, cycle) == answers(lived_to(cluster, cycle), cycle)
    assert asked >= len(cycles) // 2


def test_cycles_open_in_any_order_as_if_they_were_lived_through(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = lived(seed=1)
    first = Checkpoint.objects.order_by("engine_seq").first()
    assert first is not None
    Checkpoint.objects.exclude(pk=first.pk).delete()
    cycles = list(Cycle.objects.filter(ran_seq__gt=first.engine_seq, outcome="bound"))
    Random(1).shuffle(cycles)
    memory = HistoryMemory()
    opened = [cycle for cycle in cycles if both(cluster, cycle, memory)]
    assert len(opened) >= len(cycles) // 2

    def not_lived_through(*args: Any) -> None:
        raise AssertionError("it can be told")

    monkeypatch.setattr(redecide, "_lived_through", not_lived_through)
    number, kept = opened[0].number, bytes(opened[0].trace or b"")
    Cycle.objects.filter(number=number).update(trace=None)
    assert recompute_trace(cluster_id=cluster.pk, number=number)
    assert bytes(Cycle.objects.get(number=number).trace or b"") == kept
    opened[0].n_feasible += 1  # a row that says something else is not answered
    assert memory.opened(cluster, opened[0]) is None
