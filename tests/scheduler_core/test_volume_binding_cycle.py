"""A pod whose volume is not bound yet: the writes, the waiting and the end of it, through the whole scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.actions import Action, BindPod, RecordEvent, WriteBeforeBind
from scheduler_core.clock import Clock
from scheduler_core.events import ObjectChanged, PreBindAnswered, TimeReached
from scheduler_core.objects.kinds import parse
from scheduler_core.plugins import default_configuration
from scheduler_core.randomness import Randomness
from scheduler_core.scheduler import Scheduler
from tests.scheduler_core.plugins.storage_clusters import (
    HOSTNAME,
    claim_manifest,
    class_manifest,
    expression,
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
        self.put(claim_manifest("c0", size="1Gi"))

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


def local_volume() -> dict[str, Any]:
    terms = [{"matchExpressions": [expression(HOSTNAME, "n2")]}]
    return volume_manifest("pv", size="2Gi", local={"path": "/d"}, terms=terms)


def test_a_pod_is_bound_once_its_claim_is(site: Site) -> None:
    site.put(class_manifest("wait", "kubernetes.io/no-provisioner"))
    site.put(local_volume())
    action = site.begin()
    assert action.node_name == "n2"
    assert [item["kind"] for item in action.writes] == ["PersistentVolume"]
    assert site.write(action) == []
    (bind,) = site.put(claim_manifest("c0", bound_to="pv"))
    assert isinstance(bind, BindPod)
    assert bind.node_name == "n2"


def test_a_volume_is_provisioned_for_the_chosen_node(site: Site) -> None:
    action = site.begin()
    (claim,) = action.writes
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == action.node_name
    assert site.write(action) == []
    assert site.put(volume_manifest("made", csi={"driver": "csi.x", "volumeHandle": "h"})) == []
    annotations = claim["metadata"]["annotations"]
    (bind,) = site.put(claim_manifest("c0", bound_to="made", annotations=annotations))
    assert isinstance(bind, BindPod)


def test_a_volume_that_never_comes_is_waited_for_ten_minutes(site: Site) -> None:
    action = site.begin()
    assert site.write(action) == []
    deadline_ns = 600 * 10**9
    assert site.scheduler.next_deadline_ns() is not None
    site.clock.move_to(deadline_ns - 1)
    assert site.scheduler.handle(TimeReached()) == []
    site.clock.move_to(deadline_ns)
    actions = site.scheduler.handle(TimeReached())
    (event,) = [action for action in actions if isinstance(action, RecordEvent)]
    assert event.message == (
        'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    )
    assert site.scheduler.bindings == {}


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
