"""A pod whose volume is not bound yet: the writes, the waiting and the end of it, through the whole scheduler."""

from typing import Any

import pytest

from scheduler_core.actions import Action, BindPod, WriteBeforeBind
from scheduler_core.clock import Clock
from scheduler_core.events import ObjectChanged, PreBindAnswered
from scheduler_core.objects.kinds import parse
from scheduler_core.plugins import default_configuration
from scheduler_core.randomness import Randomness
from scheduler_core.scheduler import Scheduler
from tests.scheduler_core.plugins.storage_clusters import (
    claim_manifest,
    class_manifest,
    mount,
    node_manifest,
    pod_manifest,
    volume_manifest,
)
from tests.scheduler_core.stored import prepare

POD = pod_manifest("p", [mount("c0")])
UID = "default/p"


class Site:
    """A scheduler and what the API server would tell it."""

    def __init__(self) -> None:
        self.clock = Clock(0)
        self.scheduler = Scheduler(default_configuration(), self.clock, Randomness(0))
        self.known: dict[tuple[str, str, str], Any] = {}
        self.version = 0
        allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        for name in ("n1", "n2"):
            self.put({**node_manifest(name), "status": {"allocatable": allocatable}})
        self.put(class_manifest("wait", "csi.x"))
        self.put(claim_manifest("c0"))

    def put(self, manifest: Any) -> list[Action]:
        self.version += 1
        meta = {**manifest["metadata"], "resourceVersion": str(self.version)}
        kind, namespace, name, typed = parse(prepare({**manifest, "metadata": meta}))
        old = self.known.get((kind, namespace, name))
        self.known[kind, namespace, name] = typed
        return self.scheduler.handle(ObjectChanged(kind, old, typed))

    def delete(self, kind: str, namespace: str, name: str) -> list[Action]:
        return self.scheduler.handle(ObjectChanged(kind, self.known.pop((kind, namespace, name)), None))

    def begin(self) -> WriteBeforeBind:
        """The pod comes and gets its node; what is to be written then."""
        self.put(POD)
        (action,) = self.scheduler.schedule_one()
        assert isinstance(action, WriteBeforeBind)
        return action

    def write(self, action: WriteBeforeBind) -> list[Action]:
        for manifest in action.writes:
            assert self.put(manifest) == []
        return self.scheduler.handle(PreBindAnswered(UID))


@pytest.fixture
def site() -> Site:
    return Site()


def test_a_volume_is_provisioned_for_the_chosen_node(site: Site) -> None:
    action = site.begin()
    (claim,) = action.writes
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == action.node_name
    assert site.write(action) == []
    assert site.put(volume_manifest("made", csi={"driver": "csi.x", "volumeHandle": "h"})) == []
    annotations = claim["metadata"]["annotations"]
    (bind,) = site.put(claim_manifest("c0", bound_to="made", annotations=annotations))
    assert isinstance(bind, BindPod)


def test_a_pod_that_is_deleted_meanwhile_gives_its_volume_back(site: Site) -> None:
    action = site.begin()
    assert site.write(action) == []
    site.delete("Pod", "default", "p")
    assert site.scheduler.bindings == {}
    assert not site.scheduler.cache.is_assumed(UID)


def test_a_write_that_fails_ends_the_binding(site: Site) -> None:
    site.begin()
    site.scheduler.handle(PreBindAnswered(UID, "the object has been modified"))
    assert site.scheduler.bindings == {}
