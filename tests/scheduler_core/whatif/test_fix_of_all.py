"""`fix` of all that is pending on a dump of 200 nodes and 3,000 pods: no pod's page says anything else.

By day a few of each workload wait, which is all the same but for the time that it takes.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import yaml

from scheduler_core.cli.manifests import scenario_of_dump
from scheduler_core.objects.documents import load_documents
from scheduler_core.scenario import load_scenario, run_scenario
from scheduler_core.scenario.gallery import gallery_text
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.answers import answer_question
from scheduler_core.whatif.fix import fix
from scheduler_core.whatif.fixes import FixAnswer
from scheduler_core.whatif.workloads import alike_pending, classes_of, waiting_pods
from tests.manifests import priority_class
from tests.real_dump import real_dump, with_few_waiting
from tests.scheduler_core.whatif.clusters import node, pod
from tests.tables import table

IDLE = Path(__file__).parents[2] / "cases" / "fixes" / "moves" / "cordoned-and-idle.yaml"


waiting = pytest.mark.parametrize(
    "waiting", ["few", pytest.param("all", marks=pytest.mark.nightly("scheduler_core/whatif/"))]
)


@cache
def asked(waiting: str) -> tuple[Simulation, FixAnswer, list[FixAnswer]]:
    """The dump once it is at rest, the answer about all that waits, and what was known on the way."""
    dump = real_dump(200, 3_000)
    dump = with_few_waiting(dump) if waiting == "few" else dump
    simulation = run_scenario(load_scenario(scenario_of_dump(dump)), full_traces=False).simulation
    parts: list[FixAnswer] = []
    return simulation, fix(simulation, {}, partly=parts.append), parts


@waiting
def test_the_plan_says_of_each_workload_what_the_pages_of_its_pods_say(waiting: str) -> None:
    simulation, whole, _ = asked(waiting)
    pods = waiting_pods(simulation)
    classes = classes_of(pods)
    said = {key: answer for answer in whole.workloads for key in answer.pods}
    assert len(classes) > 2 and set(said) == {pod.key for pod in pods} == set(whole.pods)
    for alike in classes:
        # The page of each of these pods asks about all of them.
        assert all(alike_pending(simulation, pod) == alike for pod in (alike[0], alike[-1]))
        page, mine = fix(simulation, {"pod": alike[-1].key}), said[alike[0].key]
        assert replace(page, subject=mine.subject, name=mine.name) == mine, alike[0].key
        assert all(set(one.lands) <= set(mine.pods) for one in mine.fixes), alike[0].key
        assert mine.best is not None and mine.best.seeds, alike[0].key
        assert all(one.seeds for one in mine.fixes if one.of <= 100), alike[0].key


@waiting
def test_what_is_known_of_some_workloads_comes_before_the_whole(waiting: str) -> None:
    _, whole, parts = asked(waiting)
    counts = [len(part.workloads) for part in parts]
    assert counts == list(range(1, len(whole.workloads) + 1))
    assert {id(one) for one in parts[-1].workloads} == {id(one) for one in whole.workloads}


@waiting
def test_the_price_is_at_most_a_fifth_above_the_bound_and_holds_in_20_seeds(waiting: str) -> None:
    _, whole, _ = asked(waiting)
    best = whole.best
    assert best is not None and best.cost is not None and whole.bound is not None
    assert whole.bound <= best.cost + 1e-6 <= 1.2 * whole.bound
    assert (best.seeds, best.holds) == (20, 20) and best.placed == len(best.lands)


@waiting
def test_the_plan_of_nodes_counts_as_fix_does(waiting: str) -> None:
    simulation, whole, _ = asked(waiting)
    plan = answer_question(simulation, {"ask": "backlog"})
    figures = {one["words"]: one["value"] for one in plan["figures"]}
    assert figures["pending"] == len(whole.pods)
    assert f"{len(whole.pods):,} pods are pending" in whole.headline
    held = figures["pending"] - len(plan["moves"])
    assert held and f"{held} of them are held back" in whole.headline
    assert f"{held} more are held back" in plan["verdict"]


def test_nodes_that_are_idle_are_used_before_any_is_bought() -> None:
    documents = [loaded.value for loaded in load_documents(IDLE.read_bytes())]
    run = run_scenario(load_scenario(scenario_of_dump(documents)), full_traces=False)
    best = fix(run.simulation, {}).best
    assert best is not None and best.cost == 0 and "ncordon" in best.title and best.placed == best.of


def test_pods_that_a_quota_refuses_are_said() -> None:
    documents = table(__file__, "pods_that_a_quota_refuses_are_said")
    run = run_scenario(load_scenario(scenario_of_dump(documents)), full_traces=False)
    answer = fix(run.simulation, {})
    limits = "exceeded quota: compute, requested: pods=1, used: pods=1, limited: pods=1"
    assert answer.causes == (f"ReplicaSet shop/web has 1 of 3 pods: {limits}.",)
    assert answer.headline == f"No pod is pending. {answer.causes[0]}"


def gang(*, needs: int) -> FixAnswer:
    """What is said of five pods that start together, where four find a node."""
    lesson = yaml.safe_load(gallery_text("gang-almost-fits"))
    objects = lesson["objects"]
    group = next(one for one in objects if one["kind"] == "PodGroup")
    group["spec"]["schedulingPolicy"]["gang"]["minCount"] = needs
    kept = {
        key: lesson[key]
        for key in ("apiVersion", "kind", "name", "kubernetesRelease", "featureGates", "seed")
    }
    run = run_scenario(load_scenario({**kept, "objects": objects}), full_traces=False)
    return fix(run.simulation, {})


def test_of_a_gang_the_pods_that_find_no_node_beside_the_others_are_helped() -> None:
    whole = gang(needs=5)
    (one,) = whole.workloads
    assert one.headline.startswith(
        "The pods of the group train start together, and 4 of 5 find a node. train-5 needs 5 CPU"
    )
    assert one.best is not None and one.best.what == "add-node" and len(one.pods) == 5
    assert whole.best is not None and (whole.best.placed, whole.best.of) == (5, 5)


def test_nothing_is_bought_for_a_gang_that_lacks_pods() -> None:
    whole = gang(needs=7)
    assert whole.best is None and "5 pods must wait for more of their group" in whole.headline
    assert "2 more of them must be there first" in whole.workloads[0].headline


def test_a_pod_that_two_fixes_would_move_is_moved_once() -> None:
    run = run_scenario(load_scenario(scenario_of_dump([
        node("n0", cpu="2"), node("n1", cpu="1"), pod("m", on="n0", owner="Job/m"),
        pod("a", cpu="1500m"), pod("b", cpu="1600m"),
    ])), full_traces=False)  # fmt: skip
    whole = fix(run.simulation, {})
    assert [one.best.what for one in whole.workloads if one.best] == ["move-pods", "move-pods"]
    assert whole.best is not None and whole.best.change["move"] == [["default/m", "n1"]]


def test_a_pod_that_comes_back_first_makes_no_room() -> None:
    owned = pod("m", cpu="1500m", on="n0", owner="Job/m", priority=100)
    for priority, found in ((0, set()), (100, {"delete-pod"})):
        objects = [
            priority_class("high", 100),
            node("n0", cpu="2"),
            pod("a", cpu="1500m", priority=priority),
            owned,
        ]
        for one in (one for one in objects if one["kind"] == "Pod" and one["spec"]["priority"]):
            one["spec"]["priorityClassName"] = "high"
        run = run_scenario(load_scenario(scenario_of_dump(objects)), full_traces=False)
        said = {one.what for one in fix(run.simulation, {"pod": "default/a"}).fixes}
        assert said & {"delete-pod", "move-pods"} == found
