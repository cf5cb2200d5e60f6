"""Proof, comparison and luck."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

from scheduler_core.scenario import (
    compare,
    dump_scenario,
    load_scenario,
    lucky_cycles,
    run_scenario,
    verify,
    with_decisions,
    with_seed,
)
from scheduler_core.scenario.gallery import gallery_scenario
from tests.scheduler_core.scenario.builders import make_node, make_pod, make_scenario
from tests.tables import table

NODES = tuple(make_node(f"n{index}") for index in range(4))
PODS = tuple(make_pod(f"p{index}") for index in range(8))
MOST = table(__file__, "MOST")


def test_a_recorded_scenario_is_reproduced() -> None:
    recorded = with_decisions(run_scenario(make_scenario(*NODES, *PODS)))
    verification = verify(run_scenario(load_scenario(dump_scenario(recorded))))
    assert verification is not None and verification.same
    assert verification.sentence == "reproduced 8/8 decisions"
    assert verify(run_scenario(make_scenario(*NODES))) is None


def test_a_corrupted_decision_is_named_by_its_cycle() -> None:
    recorded = with_decisions(run_scenario(make_scenario(*NODES, *PODS)))
    assert recorded.decisions is not None
    lines = list(recorded.decisions.cycles)
    lines[4] = f"{'0' * 12} default/p4 bound elsewhere"
    decisions = dataclasses.replace(recorded.decisions, cycles=tuple(lines), digest="0" * 64)
    verification = verify(run_scenario(dataclasses.replace(recorded, decisions=decisions)))
    assert verification is not None and not verification.same
    assert (verification.first_difference, verification.n_same) == (5, 4)
    assert (
        "cycle 5 differs. Recorded: default/p4 bound elsewhere. Now: default/p4 bound to n"
        in verification.sentence
    )


def test_a_run_that_ends_early_differs_where_it_ends() -> None:
    recorded = with_decisions(run_scenario(make_scenario(*NODES, *PODS))).decisions
    verification = verify(run_scenario(make_scenario(*NODES, *PODS[:6])), recorded)
    assert verification is not None and verification.first_difference == 7
    assert verification.sentence.endswith("Now: nothing, the run is over.")


def test_another_process_with_another_hash_seed_decides_the_same() -> None:
    scenario = gallery_scenario("gpu-isolation")
    run = "run_scenario(load_scenario(sys.stdin.read()))"
    code = f"import sys; from scheduler_core.scenario import *; print({run}.digest)"
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            input=dump_scenario(scenario),
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert digests == {run_scenario(scenario).digest}


# ---- comparison


def test_two_configurations_part_at_a_cycle_and_its_scores_say_why() -> None:
    spread, packed = (run_scenario(make_scenario(*NODES, *PODS, scheduler=config)) for config in (None, MOST))
    parted = compare(spread, packed)
    assert parted is not None and parted.number == 2
    assert {item.plugin for item in parted.scores} >= {"NodeResourcesFit"}
    assert parted.a.startswith("default/p1 bound to") and set(parted.totals) == {"n0", "n1", "n2", "n3"}
    assert (spread.metrics()["nodesUsed"], packed.metrics()["nodesUsed"]) == (1.0, 0.5)


def test_runs_that_kept_summaries_are_run_again_for_the_scores() -> None:
    scenarios = [make_scenario(*NODES, *PODS, scheduler=config) for config in (None, MOST)]
    short = compare(*(run_scenario(scenario, full_traces=False) for scenario in scenarios))
    full = compare(*(run_scenario(scenario) for scenario in scenarios))
    assert short == full and short is not None and short.scores


def test_a_run_compared_with_itself_shows_no_difference() -> None:
    run = run_scenario(make_scenario(*NODES, *PODS))
    assert compare(run, run_scenario(make_scenario(*NODES, *PODS))) is None


def test_a_node_feasible_in_one_run_only_is_shown_with_its_reason() -> None:
    tainted = {**NODES[0], "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    a, b = (
        run_scenario(make_scenario(node, make_node("x", "1"), make_pod("p", "2")))
        for node in (NODES[0], tainted)
    )
    parted = compare(a, b)
    assert parted is not None
    assert parted.reasons == {"n0": ("", "TaintToleration: node(s) had untolerated taint {k: }")}


# ---- luck


def test_ties_are_marked_as_luck_with_their_alternatives() -> None:
    lucky = lucky_cycles(run_scenario(make_scenario(*NODES, PODS[0])))
    assert [(item.cycle, item.kind, item.n_alternatives) for item in lucky] == [(1, "tie", 4)]
    assert sorted(lucky[0].nodes) == ["n0", "n1", "n2", "n3"]


def test_room_for_one_of_two_equals_is_luck_of_the_queue() -> None:
    scenario = make_scenario(NODES[0], make_pod("first", "3"), make_pod("second", "3"))
    assert [(item.pod, item.kind) for item in lucky_cycles(run_scenario(scenario))] == [
        ("default/first", "queueOrder")
    ]


def test_seeds_lead_to_each_end() -> None:
    scenario = make_scenario(make_node("a"), make_node("b"), make_pod("p"))
    nodes = [run_scenario(with_seed(scenario, seed)).placement()["default/p"] for seed in range(40)]
    assert min(nodes.count("a"), nodes.count("b")) > 8 and set(nodes) == {"a", "b"}
