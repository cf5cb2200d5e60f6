"""Proof, comparison and luck."""

from scheduler_core.scenario import lucky_cycles, run_scenario, verify, with_decisions
from tests.scheduler_core.scenario.builders import make_node, make_pod, make_scenario

NODES = tuple(make_node(f"n{index}") for index in range(4))
PODS = tuple(make_pod(f"p{index}") for index in range(8))


def test_a_run_that_ends_early_differs_where_it_ends() -> None:
    recorded = with_decisions(run_scenario(make_scenario(*NODES, *PODS))).decisions
    verification = verify(run_scenario(make_scenario(*NODES, *PODS[:6])), recorded)
    assert verification is not None and verification.first_difference == 7
    assert verification.sentence.endswith("Now: nothing, the run is over.")


def test_ties_are_marked_as_luck_with_their_alternatives() -> None:
    lucky = lucky_cycles(run_scenario(make_scenario(*NODES, PODS[0])))
    assert [(item.cycle, item.kind, item.n_alternatives) for item in lucky] == [(1, "tie", 4)]
    assert sorted(lucky[0].nodes) == ["n0", "n1", "n2", "n3"]
