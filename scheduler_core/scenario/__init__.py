"""Scenarios: a cluster and what happens to it as one document that gives every reader the same decisions.

`load_scenario` reads one, `run_scenario` runs it and answers its expectations, `verify` compares with the decisions
it carries, `compare` puts two runs beside each other. `README.md` tells the format.
"""

from scheduler_core.scenario.canonical import canonical_document, scenario_digest
from scheduler_core.scenario.difference import ComparedRuns, Divergence, Moved, compare
from scheduler_core.scenario.errors import Problem, ScenarioError
from scheduler_core.scenario.expectations import first_failing
from scheduler_core.scenario.load import dump_scenario, json_schema, load_scenario, scenario_document
from scheduler_core.scenario.luck import EndState, LuckyCycle, end_states, lucky_cycles, with_seed
from scheduler_core.scenario.mock_extender import MockExtender, MockReply, MockRule, MockTransport
from scheduler_core.scenario.ran import ScenarioRun
from scheduler_core.scenario.record import Evicted, Finding, Placed, PodFacts
from scheduler_core.scenario.run import Verification, decisions_of, run_to_cycle, verify, with_decisions
from scheduler_core.scenario.run import run as run_scenario
from scheduler_core.scenario.types import (
    API_VERSION,
    KIND,
    Advance,
    Decisions,
    Deletion,
    Expectation,
    Extenders,
    Patch,
    PathStop,
    PermitAnswer,
    Run,
    Scenario,
    Step,
)

__all__ = [
    "API_VERSION",
    "KIND",
    "Advance",
    "ComparedRuns",
    "Decisions",
    "Deletion",
    "Divergence",
    "EndState",
    "Evicted",
    "Expectation",
    "Extenders",
    "Finding",
    "LuckyCycle",
    "MockExtender",
    "MockReply",
    "MockRule",
    "MockTransport",
    "Moved",
    "Patch",
    "PathStop",
    "PermitAnswer",
    "Placed",
    "PodFacts",
    "Problem",
    "Run",
    "Scenario",
    "ScenarioError",
    "ScenarioRun",
    "Step",
    "Verification",
    "canonical_document",
    "compare",
    "decisions_of",
    "dump_scenario",
    "end_states",
    "first_failing",
    "json_schema",
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
