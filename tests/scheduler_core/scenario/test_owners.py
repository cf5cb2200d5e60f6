"""A scenario that lists owners and what they own: they make nothing once more; what ran before goes on as it did."""

import pytest

from scheduler_core.scenario import load_scenario
from scheduler_core.scenario.canonical import in_run_order
from scheduler_core.scenario.expectations import run_scenario as run
from scheduler_core.scenario.make import make_scenario
from tests.scheduler_core.scenario.builders import Recorded, document
from tests.tables import table

START_NS = 1_800_000_000_000_000_000
DUMP = table(__file__, "DUMP")
"""Owners first. One pod of two is on its node, the other pending."""


@pytest.mark.parametrize("turned", [False, True])
def test_owners_come_after_what_they_own(turned: bool) -> None:
    listed = DUMP[::-1] if turned else DUMP
    ran = run(load_scenario(document(*listed)))
    assert set(ran.placement()) == {"default/web-1", "default/web-2"}
    assert [trace.pod for trace in ran.cycles] == ["default/web-2"]


@pytest.mark.parametrize("turned", [False, True])
def test_a_log_becomes_a_scenario_that_does_what_the_log_did(turned: bool) -> None:
    """In which order the log has owners decides what they made; a run must not sort them."""
    from scheduler_core.releases import release_named

    release = release_named("1.36")
    listed = DUMP[::-1] if turned else DUMP
    log = [Recorded(seq, "api", "write", START_NS, {"manifest": item}) for seq, item in enumerate(listed, 1)]
    made = make_scenario(log, start_ns=START_NS, release=release).scenario
    written = [*in_run_order(made.objects)]
    written += [item for step in made.steps for item in step.apply or ()]
    workloads = [item["kind"] for item in written if item["kind"] in ("Deployment", "ReplicaSet")]
    assert workloads == [item["kind"] for item in listed if item["kind"] in ("Deployment", "ReplicaSet")]
    order = [item["metadata"]["name"] for item in written if item["kind"] != "Node"]
    assert order == [item["metadata"]["name"] for item in listed if item["kind"] != "Node"]
