"""Who writes to a cluster during its batches: requests drawn by a seed, and a note of what was acknowledged."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass, field
from typing import Any

from tests.clusters.builders import make_node, make_pod
from tests.faults.site import Site
from tests.manifests import deployment, make_object, priority_class, scheduler_config

REQUEST = "faults/request"
CHANGE = "faults/change"
MERGE_PATCH = "application/merge-patch+json"


@dataclass
class Acknowledged:
    """What the site said yes to; all of it must be found when all is quiet."""

    pods: set[str] = field(default_factory=set)
    together: dict[str, set[str]] = field(default_factory=dict)
    """Value of the label `REQUEST` -> names of the pods of that request."""
    changes: dict[str, str] = field(default_factory=dict)
    """Pod -> the newest value of its label `CHANGE`."""
    deleted: set[str] = field(default_factory=set)
    undone: set[str] = field(default_factory=set)
    """Pods whose creation was undone."""
    permits: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    resets: int = 0
    rewinds: int = 0
    """Resets and undone changes: both take back what was bound since."""
    rewinds_begun: int = 0
    refused: list[str] = field(default_factory=list)


class Person:
    """Writes to one cluster for as long as its story goes.

    Parameters
    ----------
    realtime
        The clock runs at 1x; otherwise runs until idle are asked for.
    permit
        Some pods wait at Permit, and are allowed, rejected, or left to time out.
    extender
        URL of an extender that filters, scores and binds; None: none.
    programs
        A cluster autoscaler, a descheduler and an autoscaler of a Deployment are on.
    """

    def __init__(
        self,
        site: Site,
        name: str,
        dice: random.Random,
        *,
        realtime: bool,
        permit: bool,
        extender: str | None,
        programs: bool,
    ) -> None:
        self.site, self.name, self.dice = site, name, dice
        self.programs = programs
        self.realtime, self.permit, self.extender = realtime, permit, extender
        self.said = Acknowledged()
        self.id = ""
        self.twin: Person | None = None
        self._n = 0
        self._prefix = ""

    # ---- the story

    def begin(self) -> None:
        """A cluster with nodes, a priority class, its configuration and its clock."""
        _, answer = self._ask(
            "POST", "/api/v1/clusters/", {"name": self.name, "seed": self.dice.randrange(10**6)}
        )
        self.id = answer["id"]
        nodes = [machine(f"n{number}") for number in range(self.dice.randint(2, 4))]
        objects = [*nodes, priority_class("urgent", 1000)]
        if self.programs:
            objects.append(programs())
        self._ask("POST", self._path("apply"), _list(objects))
        if self.permit or self.extender:
            self._ask("PUT", self._path("config/"), configuration(self.permit, self.extender))
        if self.realtime:
            self._ask("PUT", self._path("clock/"), {"mode": "1x"})

    def second(self) -> Person:
        """Another person who writes to the same cluster, to pods of its own."""
        if self.twin is None:
            self.twin = Person(
                *(self.site, self.name, random.Random(self.dice.random())),
                realtime=self.realtime,
                permit=False,
                extender=self.extender,
                programs=self.programs,
            )
            self.twin.id, self.twin._prefix = self.id, "s"
        return self.twin

    def live(self, n_acts: int, pause_s: float) -> None:
        """So many requests, drawn."""
        acts = [
            *(self.create, self.create, self.create, self.apply, self.apply, self.change, self.change),
            *(self.delete, self.run, self.run, self.run, self.ask, self.deploy, self.node, self.undo),
            *((self.decide, self.decide, self.decide) if self.permit else ()),
        ]
        self.apply()
        for _ in range(n_acts):
            self.dice.choice(acts)()
            time.sleep(self.dice.random() * pause_s)

    def end(self) -> None:
        """Stop the clock, and let what is left be done."""
        if self.realtime:
            self._ask("PUT", self._path("clock/"), {"mode": "paused"})
        self.run("idle")
        if (self.permit or self.programs) and self.dice.random() < 0.5:
            self.run("100s")  # every wait that is left ends in time

    # ---- requests

    def create(self) -> str:
        name = self._name("p")
        pod = self._pod(name)
        code, _ = self._ask("POST", self._kube("pods"), pod, also=(409,))
        if code in (201, 409):  # an earlier try of ours had come through
            self.said.pods.add(name)
        return name

    def apply(self, n_pods: int = 0) -> list[str]:
        request = self._name("r")
        pods = []
        for _ in range(n_pods or self.dice.randint(2, 5)):
            pod = self._pod(self._name("a"))
            pod["metadata"].setdefault("labels", {})[REQUEST] = request
            pods.append(pod)
        names = [pod["metadata"]["name"] for pod in pods]
        self.said.together[request] = set(names)
        self._ask("POST", self._path("apply"), _list(pods))
        self.said.pods |= set(names)
        return names

    def change(self, name: str = "") -> None:
        name = name or self._known()
        if not name:
            return
        value = self._name("c")
        code, _ = self._ask(
            *("PATCH", self._kube(f"pods/{name}"), {"metadata": {"labels": {CHANGE: value}}}),
            media=MERGE_PATCH,
            also=(404, 409),
        )
        if code == 200:
            self.said.changes[name] = value

    def delete(self, name: str = "") -> None:
        name = name or self._known()
        if not name:
            return
        grace = self.dice.choice([0, 0, 1])
        code, _ = self._ask(
            "DELETE", self._kube(f"pods/{name}"), {"gracePeriodSeconds": grace}, also=(404, 409)
        )
        if code in (200, 202, 404):
            self.said.deleted.add(name)

    def undo(self) -> None:
        """Create a pod and take that back, if nothing else was done meanwhile."""
        name = self._name("u")
        code, _ = self._ask("POST", self._kube("pods"), self._pod(name), also=(409,))
        _, answer = self._ask("GET", f"{self._path('changes/')}?limit=1")
        last = next(iter((answer or {}).get("items", ())), None)
        if code not in (201, 409) or last is None or not last["words"].endswith(f"Pod default/{name}"):
            return
        self.said.rewinds_begun += 1
        code, _ = self._ask("POST", self._path("undo"), {"change": last["change"]}, also=(409,))
        self.said.rewinds += 1
        if code == 200:
            self.said.undone.add(name)

    def deploy(self) -> None:
        if self.dice.random() < 0.4:
            load = "0s cpu=900m" if self.programs else ""
            objects = [deployment("web", self.dice.randint(1, 4), cpu="300m")]
            if load:
                objects[0]["metadata"]["annotations"] = {"playground.dev/load": load}
                objects.append(scaler("web"))
            self._ask("POST", self._path("apply"), _list(objects))

    def node(self) -> None:
        if self.dice.random() < 0.3:
            self._ask("DELETE", f"/k8s/{self.id}/api/v1/nodes/n0", also=(404,))
        elif self.dice.random() < 0.4:
            self._ask("POST", self._path("apply"), _list([machine(self._name("n"))]))

    def run(self, until: str = "") -> None:
        if self.realtime and not until:
            return
        until = until or self.dice.choice(["idle", "idle", "cycle", "40s" if self.programs else "5s"])
        code, answer = self._ask("POST", self._path("run"), {"until": until}, also=(409,))
        if code == 202:
            self.said.runs.append(answer["id"])
        elif "parked" in str(answer):
            self._ask("POST", self._path("unpark"))

    def ask(self) -> None:
        name = self._known()
        if self.dice.random() < 0.6 or not name:
            path = f"seeds?seeds={self.dice.randint(2, 4)}"
        else:
            path = "fix"
        body = {"pod": f"default/{name}"} if path == "fix" else None
        code, answer = self._ask("POST", self._path(path), body, also=(404, 409))
        if code == 202:
            self.said.questions.append(answer["id"])

    def decide(self) -> None:
        """Answer for one pod that waits at Permit."""
        _, queue = self._ask("GET", self._path("queue/"))
        waiting = [item["pod"] for item in (queue or {}).get("permit", ())]
        if not waiting:
            return
        pod = self.dice.choice(waiting)
        decision = self.dice.choice(["allow", "allow", "reject"])
        code, answer = self._ask(
            "POST", self._path(f"permits/{pod}/"), {"decision": decision}, also=(404, 409)
        )
        if code == 202:
            self.said.permits.append(answer["resourceVersion"])

    def n_rewinds(self) -> int | None:
        """How often its people reset the cluster or took a change back; None while they do."""
        said = [one.said for one in (self, self.twin) if one is not None]
        n_done = sum(one.rewinds for one in said)
        return n_done if n_done == sum(one.rewinds_begun for one in said) else None

    def reset(self) -> None:
        self.said.rewinds_begun += 1
        self._ask("POST", self._path("reset"))
        self.said.resets += 1
        self.said.rewinds += 1
        if self.realtime:
            self._ask("PUT", self._path("clock/"), {"mode": "1x"})

    # ---- the parts

    def _ask(
        self, method: str, path: str, body: Any = None, *, media: str = "", also: tuple[int, ...] = ()
    ) -> tuple[int, Any]:
        code, answer = self.site.insist(method, path, body, media)
        if code >= 400 and code not in also:
            self.said.refused.append(f"{method} {path}: {code} {str(answer)[:300]}")
        return code, answer

    def _path(self, end: str) -> str:
        return f"/api/v1/clusters/{self.id}/{end}"

    def _kube(self, end: str) -> str:
        return f"/k8s/{self.id}/api/v1/namespaces/default/{end}"

    def _name(self, letter: str) -> str:
        self._n += 1
        return f"{self._prefix}{letter}{self._n}"

    def _known(self) -> str:
        known = sorted(self.said.pods - self.said.deleted)
        return self.dice.choice(known) if known else ""

    def _pod(self, name: str) -> dict[str, Any]:
        dice = self.dice
        more = {"priorityClassName": "urgent"} if dice.random() < 0.15 else {}
        pod = make_pod(name, dice.choice(["250m", "250m", "500m", "1", "2", "64"]), **more)
        annotations = pod["metadata"].setdefault("annotations", {})
        if dice.random() < 0.4:
            annotations["playground.dev/duration"] = dice.choice(["2s", "5s", "20s"])
        if self.permit and dice.random() < 0.5:
            annotations["playground.dev/approval"] = "required"
            annotations["playground.dev/approval-timeout"] = dice.choice(["1s", "2s", "90s"])
        return pod


def machine(name: str) -> dict[str, Any]:
    made = make_node(name, "4")
    made["metadata"]["labels"] = {"pool": "web"}
    return made


def programs() -> dict[str, Any]:
    """The namespace that turns them on: what waits gets nodes, what is spread unevenly is evicted, each minute."""
    autoscaler = {
        "options": {"scale-down-unneeded-time": "1m", "scale-down-delay-after-add": "30s"},
        "nodeGroups": [{"name": "web", "minSize": 1, "maxSize": 6}],
    }
    profile = {
        "name": "default",
        "pluginConfig": [{"name": "RemoveDuplicates", "args": {}}, {"name": "DefaultEvictor", "args": {}}],
        "plugins": {"balance": {"enabled": ["RemoveDuplicates"]}},
    }
    policy = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": [profile]}
    settings = {
        "playground.dev/cluster-autoscaler": json.dumps(autoscaler),
        "playground.dev/descheduler": json.dumps({"policy": policy, "descheduling-interval": "40s"}),
    }
    namespace = make_object("v1", "Namespace", "kube-system")
    namespace["metadata"]["annotations"] = settings
    return namespace


def configuration(permit: bool, extender: str | None) -> dict[str, Any]:
    document: dict[str, Any] = scheduler_config()
    if permit:
        document["profiles"] = [{"plugins": {"permit": {"enabled": [{"name": "ManualApproval"}]}}}]
    if extender:
        document["extenders"] = [
            {
                "urlPrefix": extender,
                "filterVerb": "filter",
                "prioritizeVerb": "prioritize",
                "bindVerb": "bind",
                "weight": 1,
                "nodeCacheCapable": True,
                "ignorable": True,
                "httpTimeout": "600ms",
            }
        ]
    return document


def _list(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": items}


def scaler(name: str) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"maxReplicas": 6, "scaleTargetRef": target}
    return make_object("autoscaling/v2", "HorizontalPodAutoscaler", name, namespace="default", spec=spec)
