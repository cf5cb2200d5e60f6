"""A log of inputs that touches all that version 3 of the simulation changed, and what came of it before.

`python -m tests.scheduler_core.sim.a_log_of_before` prints the digests of a checkout; those here are of commit 4335b6e.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from scheduler_core.objects.defaults import prepare
from scheduler_core.releases import OLDEST
from scheduler_core.sim.changes import DeleteObject, WriteObject
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.sim.builders import row_by_row

DIGESTS = {
    1: "8938becf686784ddd31c1e53f6ddf5340cd7416db5b1431fe96e58f2be499a17",
    2: "0cc1b9e8b2486b9b8aefc9bd5bbeee2a2fb43cbf470917c26b9fb7aac61b77b2",
}
START_NS = 1_767_225_630 * 10**9
SECOND_NS = 10**9


def _object(kind: str, name: str, version: str, spec: dict[str, Any], **meta: Any) -> WriteObject:
    whole = {
        "namespace": "default",
        "uid": f"{name}-uid",
        "creationTimestamp": "2026-01-01T00:00:30Z",
        **meta,
    }
    manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": name, **whole}, "spec": spec}
    return WriteObject(prepare(manifest))


def _template(app: str, **more: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}
    return {
        "metadata": {"labels": {"app": app}, **more},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


def changes() -> list[Any]:
    """Writes and deletions, with seconds that pass between them."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"}},
    }
    owned = [
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "name": "nightly",
            "uid": "nightly-uid",
            "controller": True,
        }
    ]
    scaled = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    fleeting = _template("once", annotations={"playground.dev/duration": "5s"})
    bad = _template("bad", annotations={"playground.dev/duration": "5s", "playground.dev/ends-as": "Failed"})
    one = {"completions": 1, "ttlSecondsAfterFinished": 20, "template": fleeting}
    lasting = {"completions": 1, "activeDeadlineSeconds": 30, "template": _template("lasting")}
    failing = {"completions": 1, "backoffLimit": 1, "template": bad}
    web = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": _template("web")}
    return [
        WriteObject(prepare(node)),
        WriteObject(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "q", "namespace": "default"},
                "spec": {"hard": {"pods": "2"}},
            }
        ),
        WriteObject(
            {
                "apiVersion": "v1",
                "kind": "LimitRange",
                "metadata": {"name": "l", "namespace": "default"},
                "spec": {"limits": [{"type": "Container", "default": {"cpu": "1", "memory": "1Gi"}}]},
            }
        ),
        _object("Deployment", "web", "apps/v1", web, annotations={"playground.dev/load": "0s cpu=4"}),
        _object(
            "HorizontalPodAutoscaler", "web", "autoscaling/v2", {"scaleTargetRef": scaled, "maxReplicas": 9}
        ),
        _object("CronJob", "nightly", "batch/v1", {"schedule": "* * * * *", "jobTemplate": {"spec": one}}),
        _object("Job", "once", "batch/v1", one, ownerReferences=owned),
        _object("Job", "lasting", "batch/v1", lasting),
        _object("Job", "bad", "batch/v1", failing),
        120,
        _object(
            "Deployment",
            "web",
            "apps/v1",
            web,
            finalizers=["foregroundDeletion"],
            deletionTimestamp="2026-01-01T00:02:30Z",
        ),
        60,
        DeleteObject("Deployment", "default", "web"),
        DeleteObject("CronJob", "default", "nightly"),
        600,
    ]


def digest(simulation: int) -> str:
    """Of everything that comes out, and of what a checkpoint holds."""
    made = Simulation(None, seed=7, start_ns=START_NS, release=OLDEST.with_simulation(simulation))
    said: list[Any] = []
    for change in changes():
        if isinstance(change, int):
            said.append(made.advance(change * SECOND_NS).message)
        else:
            made.submit(change)
            said.append(made.run_until_idle(until_ns=made.now_ns + 600 * SECOND_NS).message)
        said += [repr(outcome) for outcome in made.drain_outcomes()]
    checkpoint = made.checkpoint()
    world = checkpoint["world"]
    # As checkpoints had them then.
    manifests = [dict(stored.manifest) for stored in made.world.everything()]
    world["manifests"] = row_by_row(world["manifests"], manifests)
    text = json.dumps([said, world, checkpoint["timers"]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    print({version: digest(version) for version in DIGESTS})
