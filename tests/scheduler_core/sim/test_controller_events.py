"""What controllers tell of what they do, in upstream's words, in clusters made since they do."""

from scheduler_core.sim.changes import EventRecorded
from scheduler_core.sim.controllers.base import MOST_TOLD
from tests.scheduler_core.sim.builders import make_cluster, make_workload, pods_of


def test_of_many_pods_so_many_are_told_as_upstreams_filter_lets_through() -> None:
    simulation = make_cluster(2, make_workload("ReplicaSet", "web", replicas=60))
    simulation.run_until_idle()
    events = [item.manifest for item in simulation.drain_outcomes() if isinstance(item, EventRecorded)]
    told = [event["reason"] for event in events if event["source"]["component"].endswith("-controller")]
    assert told == ["SuccessfulCreate"] * MOST_TOLD
    assert len(pods_of(simulation)) == 60
