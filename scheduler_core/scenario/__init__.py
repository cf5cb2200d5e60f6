"""Scenarios: a cluster and what happens to it as one document that gives every reader the same decisions.

`load_scenario` reads one, `run_scenario` runs it and answers its expectations, `verify` compares with the decisions
it carries, `compare` puts two runs beside each other. `README.md` tells the format.
"""

from scheduler_core.scenario.canonical import scenario_digest
from scheduler_core.scenario.difference import compare
from scheduler_core.scenario.errors import Problem, ScenarioError
from scheduler_core.scenario.expectations import run_scenario
from scheduler_core.scenario.load import dump_scenario, load_scenario, scenario_document
from scheduler_core.scenario.luck import lucky_cycles, with_seed
from scheduler_core.scenario.mock_extender import MockExtender, MockTransport
from scheduler_core.scenario.ran import ScenarioRun
from scheduler_core.scenario.record import Finding
from scheduler_core.scenario.run import Verification, run_to_cycle, verify, with_decisions
from scheduler_core.scenario.types import Scenario

__all__ = [
    "Finding",
    "MockExtender",
    "MockTransport",
    "Problem",
    "Scenario",
    "ScenarioError",
    "ScenarioRun",
    "Verification",
    "compare",
    "dump_scenario",
    "load_scenario",
    "lucky_cycles",
    "run_scenario",
    "run_to_cycle",
    "scenario_digest",
    "scenario_document",
    "verify",
    "with_decisions",
    "with_seed",
]
