"""A pod whose volume is never bound: how its binding ends (sim/test_volumes.py: volumes that are)."""

import pytest

from scheduler_core.events import PreBindAnswered
from scheduler_core.sim.changes import DeleteObject
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.sim.builders import claim, make_cluster, make_pod, storage_class


@pytest.fixture
def waiting() -> Simulation:
    """The pod `db` has a node and waits in PreBind; there is no one who binds claims."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    objects = (storage_class("fast"), claim("data", "fast"), make_pod("db", volumes=volumes))
    simulation = make_cluster(1, *objects, controllers=False)
    simulation.step()
    assert simulation.scheduler.bindings["default/db"].step == "PreBind"
    return simulation


def test_a_pod_that_is_deleted_meanwhile_gives_its_room_back(waiting: Simulation) -> None:
    waiting.submit(DeleteObject("Pod", "default", "db", 0))
    assert waiting.scheduler.bindings == {}
    assert not waiting.scheduler.cache.is_assumed("default/db")


def test_a_write_that_fails_ends_the_binding(waiting: Simulation) -> None:
    waiting.scheduler.handle(PreBindAnswered("default/db", "the object has been modified"))
    assert waiting.scheduler.bindings == {}
