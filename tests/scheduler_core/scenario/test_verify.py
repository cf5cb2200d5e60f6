"""Proof, comparison and luck."""

import subprocess
import sys

from scheduler_core.scenario import dump_scenario, lucky_cycles, run_scenario, verify, with_decisions
from scheduler_core.scenario.gallery import gallery_scenario
from tests.scheduler_core.scenario.builders import make_node, make_pod, make_scenario

NODES = tuple(make_node(f"n{index}") for index in range(4))
PODS = tuple(make_pod(f"p{index}") for index in range(8))


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


# ---- luck


def test_ties_are_marked_as_luck_with_their_alternatives() -> None:
    lucky = lucky_cycles(run_scenario(make_scenario(*NODES, PODS[0])))
    assert [(item.cycle, item.kind, item.n_alternatives) for item in lucky] == [(1, "tie", 4)]
    assert sorted(lucky[0].nodes) == ["n0", "n1", "n2", "n3"]
