"""The best joint placement is the best of all placements, tried one after the other, and keeps every rule."""

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler_core.cli.main import main
from scheduler_core.cli.manifests import scenario_of_dump
from scheduler_core.objects.defaults import PriorityClass, PriorityClasses, prepare
from scheduler_core.objects.labels import NOTHING
from scheduler_core.objects.node import node_from
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.releases import NEWEST
from scheduler_core.scenario import dump_scenario, load_scenario, run_scenario
from scheduler_core.whatif import optimum as solver_module
from scheduler_core.whatif.model_filters import EVALUATED, Feasibility, Moment, Place, Rules
from scheduler_core.whatif.optimum import (
    JointProblem,
    Solution,
    Unsolvable,
    joint_problem,
    optimum_document,
    solve,
)
from tests.scheduler_core.scenario.builders import make_node, make_pod, make_scenario
from tests.scheduler_core.whatif.clusters import with_devices

Manifest = dict[str, Any]
RULES = Rules(
    (
        "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
        "PodTopologySpread", "InterPodAffinity",
    ),
    None, frozenset(), frozenset(), (),
)  # fmt: skip

HIGH = PriorityClasses((PriorityClass("high", 10, False, "PreemptLowerPriority"),))
keys = st.sampled_from(["zone", "kubernetes.io/hostname"])
apps = st.sampled_from("xy")


@st.composite
def nodes(draw: st.DrawFn, index: int) -> Manifest:
    labels = {"kubernetes.io/hostname": f"n{index}"}
    if draw(st.integers(0, 5)):
        labels["zone"] = draw(st.sampled_from("ab"))
    manifest = make_node(f"n{index}", draw(st.sampled_from(["1", "2", "3"])), **labels)
    if draw(st.integers(0, 4)) == 0:
        manifest["spec"] = {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}
    return manifest


@st.composite
def pods(draw: st.DrawFn, name: str, node: str = "") -> Manifest:
    spec: Manifest = {}
    term = {"topologyKey": draw(keys), "labelSelector": {"matchLabels": {"app": draw(apps)}}}
    kind = draw(st.sampled_from(["", "podAffinity", "podAntiAffinity", "both"]))
    other = {"topologyKey": draw(keys), "labelSelector": {"matchLabels": {"app": draw(apps)}}}
    rules = {"podAffinity": [term]} if kind == "podAffinity" else {"podAntiAffinity": [term]} if kind else {}
    if kind == "both":
        rules["podAffinity"] = [other]
    if rules:
        spec["affinity"] = {
            key: {"requiredDuringSchedulingIgnoredDuringExecution": terms} for key, terms in rules.items()
        }
    if draw(st.integers(0, 2)) == 0:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": draw(st.integers(1, 2)), "topologyKey": draw(keys), "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": draw(apps)}}, **draw(st.sampled_from([{}, {"minDomains": 3}])),
                "nodeTaintsPolicy": draw(st.sampled_from(["Honor", "Ignore"])),
            }
        ]  # fmt: skip
    if draw(st.integers(0, 3)) == 0:
        spec["nodeSelector"] = {"zone": draw(st.sampled_from("ab"))}
    if draw(st.booleans()):
        spec["priorityClassName"] = "high"
    if draw(st.booleans()):
        spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
    manifest = make_pod(
        name, draw(st.sampled_from(["100m", "1", "2"])), node=node,
        labels={"app": draw(apps)}, **spec,
    )  # fmt: skip
    if draw(st.integers(0, 3)) == 0:
        manifest["spec"]["containers"][0]["ports"] = [
            {
                "containerPort": 80,
                "hostPort": 80,
                "hostIP": draw(st.sampled_from(["", "10.0.0.1", "10.0.0.2"])),
            }
        ]
    return manifest


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Manifest], list[Manifest]]:
    """Everything, and the pods that move."""
    n_nodes = draw(st.integers(1, 3))
    objects = [draw(nodes(index)) for index in range(n_nodes)]
    resting = [draw(pods(f"old-{index}", f"n{index % n_nodes}")) for index in range(draw(st.integers(0, 2)))]
    moving = [draw(pods(f"new-{index}")) for index in range(draw(st.integers(1, 4)))]
    if len(moving) > 1 and draw(st.booleans()):
        # Replicas are one class of pods.
        twin = {**moving[0], "metadata": {**moving[0]["metadata"], "name": "twin"}}
        moving[1] = twin
    prepared = [prepare(item, HIGH) for item in (*objects, *resting, *moving)]
    return prepared, prepared[n_nodes + len(resting) :]


def solved(everything: list[Manifest], moving: list[Manifest]) -> tuple[JointProblem, Solution]:
    movable = frozenset(f"default/{item['metadata']['name']}" for item in moving)
    problem = joint_problem(everything, None, movable)
    return problem, solve(problem, time_limit_s=30, progress=lambda step, share: None)


class Judge:
    """Whether every placed pod passes every filter where it stands, with all the others where they stand."""

    def __init__(self, everything: list[Manifest], moving: list[Manifest]) -> None:
        self.nodes = [node_from(item) for item in everything if item["kind"] == "Node"]
        movable = {item["metadata"]["name"] for item in moving}
        self.resting = [
            pod_from(item)
            for item in everything
            if item["kind"] == "Pod" and item["metadata"]["name"] not in movable
        ]
        self.moving = {pod.key: pod for pod in map(pod_from, moving)}

    def holds(self, node_of: Mapping[str, str]) -> bool:
        return all(self._passes(self.moving[key], name, node_of) for key, name in node_of.items())

    def _passes(self, pod: Pod, name: str, node_of: Mapping[str, str]) -> bool:
        places = []
        for node in self.nodes:
            there = [other for other in self.resting if other.node_name == node.name]
            there += [self.moving[key] for key, at in node_of.items() if at == node.name and key != pod.key]
            places.append(Place(node, there, (), frozenset()))
        moment = Moment(0, (), places, {}, (), 0, NEWEST)
        asked = Feasibility(pod, moment, RULES, NOTHING)
        return asked.refusal(next(place for place in places if place.node.name == name)) is None

    def all(self) -> Iterator[dict[str, str]]:
        names = [None, *(node.name for node in self.nodes)]
        for choice in itertools.product(names, repeat=len(self.moving)):
            node_of = {key: name for key, name in zip(self.moving, choice, strict=True) if name is not None}
            if self.holds(node_of):
                yield node_of


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(clusters())
def test_it_is_the_best_of_all_placements(cluster: tuple[list[Manifest], list[Manifest]]) -> None:
    assert set(RULES.plugins) == EVALUATED
    everything, moving = cluster
    problem, solution = solved(everything, moving)
    judge = Judge(everything, moving)
    assert judge.holds(solution.node_of)
    scores = {name: pod.scores for pod in problem.pods for name in pod.names}
    priority = {name: pod.priority for pod in problem.pods for name in pod.names}
    levels = sorted({pod.priority for pod in problem.pods}, reverse=True)

    def worth(node_of: Mapping[str, str]) -> tuple[int, ...]:
        counts = [sum(priority[name] == level for name in node_of) for level in levels]
        return (*counts, sum(scores[name].get(node, 0) for name, node in node_of.items()))

    best = max(map(worth, judge.all()))
    assert worth(solution.node_of) == best
    assert solution.proved
    assert tuple(solution.at_most[level] for level in levels) == best[:-1]
    assert solution.score == best[-1] <= solution.score_at_most <= best[-1] + 1


def test_one_pod_of_high_priority_goes_before_two_of_low() -> None:
    small = [prepare(make_pod(name, "1"), HIGH) for name in ("small-1", "small-2")]
    moving = [*small, prepare(make_pod("big", "2", priorityClassName="high"), HIGH)]
    _, solution = solved([prepare(make_node("a", "2")), *moving], moving)
    assert solution.node_of == {"default/big": "a"} and solution.placed == {10: 1, 0: 0}


def test_pods_with_claims_are_named() -> None:
    claim = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    problem = joint_problem(
        [prepare(make_node("a")), prepare(make_pod("p", volumes=claim))], None, frozenset(["default/p"])
    )
    assert problem.coupled == ("default/p",)


def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver_module, "MAX_VARIABLES", 1)
    waits = prepare(make_pod("p"))
    with pytest.raises(Unsolvable, match="2 pairs of pod and node are too many"):
        solved([prepare(make_node("a")), prepare(make_node("b")), waits], [waits])


# ---- the command


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.yaml"
    pods_ = [make_pod("small-1", "1"), make_pod("small-2", "1"), make_pod("big", "4")]
    path.write_text(dump_scenario(make_scenario(make_node("a"), make_node("b"), *pods_)))
    return path


def test_the_command_tells_the_placement_and_its_bound(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["optimum", str(file)]) == 0
    out = capsys.readouterr().out
    assert "3 pods can be placed, 2 are; proved to be the best" in out
    assert "2 one by one, 3 together, at most 3 of 3" in out
    assert "default/big: pending -> " in out
    assert main(["optimum", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["placed"] == [2, 3] and found["gap"] == 0 and found["proved"] is True


def test_what_cannot_be_used_exits_2(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimum", str(file), "--time-limit", "0"]) == 2
    assert main(["optimum", str(file.parent / "absent.yaml"), "--json"]) == 2
    out = capsys.readouterr()
    assert json.loads(out.out)["status"] == "unusable" and "No such file" in out.err


def test_a_bound_that_is_not_reached_is_told_with_its_gap() -> None:
    problem = JointProblem((), {}, ())
    solution = Solution({0: 1}, {0: 2}, 90, 100, {}, proved=False)
    found = optimum_document(problem, [], solution)
    assert (found["gap"], found["scoreAtMost"], found["proved"]) == (0.1, 100, False)


def test_a_pod_with_devices_has_a_place_and_is_said_to_be_coupled() -> None:
    run = run_scenario(load_scenario(scenario_of_dump(with_devices())))
    objects = [stored.manifest for stored in run.simulation.world.everything()]
    problem = joint_problem(objects, None, frozenset(["default/train"]), run.simulation.release)
    found = optimum_document(
        problem, objects, solve(problem, time_limit_s=30, progress=lambda step, share: None)
    )
    assert (found["placed"], found["coupled"]) == ([1, 1], ["default/train"])
