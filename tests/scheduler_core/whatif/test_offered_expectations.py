"""The expectation that an answer offers is what should hold: it holds where the answer is good, and fails elsewhere."""

from typing import Any

import pytest

from scheduler_core.scenario import load_scenario, run_scenario
from scheduler_core.whatif.answers import answer_question
from scheduler_core.whatif.questions import BAD, GOOD
from tests.manifests import deployment
from tests.scheduler_core.scenario.builders import document, make_node, make_pod
from tests.tables import table


@pytest.mark.parametrize(
    "asked",
    table(__file__, "what_is_offered_is_what_should_hold"),
    ids=lambda asked: str(asked["ask"]),
)
@pytest.mark.parametrize(("replicas", "cpu", "tone"), [(1, "1", GOOD), (2, "4", BAD)])
def test_what_is_offered_is_what_should_hold(
    asked: dict[str, Any], replicas: int, cpu: str, tone: str
) -> None:
    nodes = [make_node(name, **{"topology.kubernetes.io/zone": name}) for name in "ab"]
    objects = [*nodes, deployment("web", replicas, cpu)]
    if asked["ask"] == "backlog" and tone == BAD:
        objects.append(make_pod("waits", "640"))
    written = document(*objects)
    answer = answer_question(run_scenario(load_scenario(written)).simulation, asked)
    assert (answer["tone"] == BAD) is (tone == BAD)
    [finding] = run_scenario(load_scenario({**written, "expect": [answer["test"]]})).findings
    assert finding.holds is (tone == GOOD), finding.sentence
