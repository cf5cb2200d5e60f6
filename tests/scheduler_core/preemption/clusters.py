"""Random full clusters: candidates share domains, budgets protect some pods, some nodes have nominated pods."""

from collections.abc import Sequence
from random import Random
from typing import Any

from scheduler_core.cli.conformance_cycles import CaseCluster
from scheduler_core.framework.interface import ChoiceOptions
from scheduler_core.framework.runtime import Framework
from scheduler_core.releases import RELEASES
from scheduler_core.schedule_one import Decision
from tests.scheduler_core.plugins.shared_domain_clusters import HOSTNAME, ZONE

APPS = ("web", "db")
Document = dict[str, Any]


class FullCluster:
    """A cluster in which a pod of priority 5 or 20 probably fits nowhere.

    Parameters
    ----------
    seed : int
        Also says of which release the scheduler is.
    pod_affinity : bool
        Whether the incoming pod may require affinity to others.
    """

    def __init__(self, seed: int, *, pod_affinity: bool = True) -> None:
        self.random = Random(seed)
        self._n_pods = 0
        objects = [self._node(number) for number in range(self.random.randint(1, 6))]
        objects += [
            self._running(node["metadata"]["name"])
            for node in objects
            for _ in range(self.random.choice((0, 2, 3, 4, 5)))
        ]
        nodes = [item["metadata"]["name"] for item in objects if item["kind"] == "Node"]
        objects += [
            self._nominated(self.random.choice(nodes)) for _ in range(self.random.choice((0, 0, 1, 2, 3)))
        ]
        objects += [self._budget(number) for number in range(self.random.choice((0, 1, 2)))]
        self.release = list(RELEASES.values())[seed % len(RELEASES)]
        self.cluster = CaseCluster(objects, None, release=self.release)
        self.pod = self.cluster.pending_pod(self._incoming(pod_affinity))

    @property
    def framework(self) -> Framework:
        return self.cluster.framework_for(self.pod)

    def schedule(self) -> Decision:
        return self.cluster.schedule(self.pod)

    # ---- manifests

    def _node(self, number: int) -> Document:
        labels = {HOSTNAME: f"n{number}"}
        if self.random.random() < 0.9:
            labels[ZONE] = self.random.choice("aab")
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{number}", "labels": labels},
            "status": {
                "allocatable": {
                    "cpu": self.random.choice("234"),
                    "memory": "8Gi",
                    "pods": self.random.choice(("4", "9")),
                }
            },
        }

    def _pod(self, *, priorities: Sequence[int], cpu: Sequence[str]) -> Document:
        random = self.random
        self._n_pods += 1
        container: Document = {
            "name": "c",
            "resources": {"requests": {"cpu": random.choice(cpu), "memory": "500Mi"}},
        }
        if random.random() < 0.2:
            container["ports"] = [{"containerPort": 80, "hostPort": random.choice((80, 81))}]
        labels = {"app": random.choice(APPS)} if random.random() < 0.9 else {}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{self._n_pods}", "labels": labels},
            "spec": {"priority": random.choice(priorities), "containers": [container]},
        }

    def _running(self, node_name: str) -> Document:
        random = self.random
        manifest = self._pod(priorities=(-1, 0, 0, 5, 10), cpu=("0", "500m", "1", "1500m"))
        manifest["spec"]["nodeName"] = node_name
        if random.random() < 0.9:
            manifest["status"] = {"startTime": f"2026-01-01T00:{random.randint(0, 20):02}:00Z"}
        if random.random() < 0.1:
            manifest["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
        if random.random() < 0.25:
            manifest["spec"]["affinity"] = {"podAntiAffinity": self._required()}
        return manifest

    def _nominated(self, node_name: str) -> Document:
        manifest = self._pod(priorities=(0, 5, 20, 30), cpu=("500m", "1"))
        manifest["status"] = {"nominatedNodeName": node_name}
        if self.random.random() < 0.3:
            manifest["spec"]["affinity"] = {"podAntiAffinity": self._required()}
        return manifest

    def _incoming(self, pod_affinity: bool) -> Document:
        random = self.random
        manifest = self._pod(priorities=(5, 20), cpu=("1", "2", "3"))
        spec = manifest["spec"]
        affinity = {}
        if random.random() < 0.3:
            affinity["podAntiAffinity"] = self._required()
        if pod_affinity and random.random() < 0.15:
            affinity["podAffinity"] = self._required()
        if affinity:
            spec["affinity"] = affinity
        if random.random() < 0.4:
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": random.choice((1, 2)),
                    "topologyKey": random.choice((HOSTNAME, ZONE)),
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": random.choice(APPS)}},
                }
                for _ in range(random.choice((1, 1, 2)))
            ]
        return manifest

    def _required(self) -> Document:
        term = {
            "topologyKey": self.random.choice((HOSTNAME, ZONE)),
            "labelSelector": {"matchLabels": {"app": self.random.choice(APPS)}},
        }
        return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}

    def _budget(self, number: int) -> Document:
        random = self.random
        selector: Document = random.choice(
            (
                {"matchLabels": {"app": "web"}},
                {"matchLabels": {"app": "db"}},
                {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
                {},
            )
        )
        status: Document = {"disruptionsAllowed": random.choice((0, 0, 1, 2))}
        if random.random() < 0.4:
            status["disruptedPods"] = {f"p{random.randint(1, 9)}": "2026-01-01T00:00:00Z"}
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"b{number}", "namespace": random.choice(("default", "default", "other"))},
            "spec": {"selector": selector},
            "status": status,
        }


def set_choices(cluster: CaseCluster, choices: ChoiceOptions) -> None:
    """Have the cluster's plugins choose in another way."""
    for framework in cluster.profiles.values():
        framework.handle.choices = choices
