"""`dra-shared-and-own-claim.yaml`: a label says a patch level, and what was mended later is not mended under it."""

from pathlib import Path

import pytest

from scheduler_core.releases import release_named
from scheduler_core.scenario import load_scenario, run_scenario

CASE = Path(__file__).parent / "data" / "dra-shared-and-own-claim.yaml"
SCORE_FAILS = (
    'running Score plugins: plugin "DynamicResources" failed with: '
    "number of allocations 1 is smaller than number of claims"
)


@pytest.mark.parametrize(
    ("release", "fails"),
    [("1.34", False), ("1.35", True), ("1.35.4", True), ("1.35.6", False), ("1.36", False)],
)
def test_dra_shared_and_own_claim(release: str, fails: bool) -> None:
    ran = run_scenario(load_scenario(CASE.read_text()), release=release_named(release)).simulation
    bound = {stored.typed.name: bool(stored.typed.node_name) for stored in ran.world.all("Pod")}
    assert bound == {"w0": True, "w1": not fails, "w2": not fails}
    for name in ("w1", "w2") if fails else ():
        pod = ran.world.pod("default", name)
        assert pod is not None
        [condition] = [
            item for item in pod.manifest["status"]["conditions"] if item["type"] == "PodScheduled"
        ]
        assert (condition["reason"], condition["message"]) == ("SchedulerError", SCORE_FAILS)
