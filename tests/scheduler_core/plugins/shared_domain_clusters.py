"""Random small clusters in which nodes share topology domains, and ways to change them."""

import random
from typing import Any

from scheduler_core.cli.conformance_cycles import CaseCluster
from scheduler_core.objects.meta import plain_object_from
from scheduler_core.objects.node import node_from
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.objects.policy import selecting_object_from
from tests.scheduler_core.stored import prepare

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
KEYS = (HOSTNAME, ZONE, "rack")
NAMESPACES = ("default", "ns1", "ns2", "unknown")
APPS = ("web", "db", "cache")


class RandomCluster:
    """A cluster that is filled and changed at random, the same way for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.cluster = CaseCluster([], None)
        self.cache = self.cluster.cache
        self._n_pods = 0
        self._uids: list[str] = []
        for name in NAMESPACES[:3]:
            self.change_namespace(name)
        for number in range(self.random.randint(1, 8)):
            self.set_node(f"n{number}")
        for _ in range(self.random.randint(0, 24)):
            self.add_pod()
        if self.random.random() < 0.5:
            self._set_service()

    def change(self) -> None:
        """One thing happens."""
        pick = self.random.random()
        if pick < 0.45:
            self.add_pod()
        elif pick < 0.75 and self._uids:
            self.cache.remove_pod(self._uids.pop(self.random.randrange(len(self._uids))))
        elif pick < 0.87:
            self.set_node(f"n{self.random.randint(0, 8)}")
        elif pick < 0.94:
            self.cache.remove_node(f"n{self.random.randint(0, 8)}")
        else:
            self.change_namespace(self.random.choice(NAMESPACES[:3]))

    def set_node(self, name: str) -> None:
        chance = self.random.random
        labels = {}
        if chance() < 0.9:
            labels[HOSTNAME] = name
        if chance() < 0.85:
            labels[ZONE] = self.random.choice(("a", "a", "b", "b", "c", ""))
        if chance() < 0.7:
            labels["rack"] = self.random.choice(("1", "2"))
        if chance() < 0.5:
            labels["disk"] = self.random.choice(("ssd", "hdd"))
        taints = [{"key": "k", "effect": self.random.choice(("NoSchedule", "PreferNoSchedule"))}]
        self.cache.set_node(
            node_from(
                {
                    "kind": "Node",
                    "metadata": {"name": name, "labels": labels},
                    "spec": {"taints": taints if chance() < 0.3 else []},
                    "status": {"allocatable": {"pods": "110"}},
                }
            )
        )

    def change_namespace(self, name: str) -> None:
        labels = {"team": self.random.choice("xy")} if self.random.random() < 0.7 else {}
        namespace = plain_object_from({"kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        self.cache.listers.set("Namespace", "", name, namespace)

    def add_pod(self) -> None:
        """A pod comes to a node, now and then to an unknown one."""
        node_name = f"n{self.random.randint(0, 9)}"
        pod = self.make_pod(node_name)
        self._uids.append(pod.uid)
        self.cache.add_pod(pod)

    def make_pod(self, node_name: str = "", *, spread: bool = False) -> Pod:
        chance = self.random.random
        self._n_pods += 1
        name = f"p{self._n_pods}"
        metadata: dict[str, Any] = {
            "name": name,
            "uid": name,
            "namespace": "default" if chance() < 0.7 else self.random.choice(NAMESPACES),
            "labels": {"app": self.random.choice(APPS), **({"tier": "front"} if chance() < 0.5 else {})},
        }
        if node_name and chance() < 0.15:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        spec: dict[str, Any] = {"nodeName": node_name} if node_name else {}
        if chance() < 0.5:
            spec["affinity"] = {
                kind: {field: self._terms(field) for field in (_REQUIRED, _PREFERRED) if chance() < 0.4}
                for kind in ("podAffinity", "podAntiAffinity")
                if chance() < 0.6
            }
        if spread:
            spec["topologySpreadConstraints"] = [
                self._constraint() for _ in range(self.random.choice((0, 1, 1, 1, 2, 3)))
            ]
            if chance() < 0.3:
                spec["nodeSelector"] = {"disk": "ssd"}
            if chance() < 0.3:
                spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
        return pod_from(prepare({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))

    def incoming(self) -> Pod:
        return self.make_pod(spread=self.random.random() < 0.5)

    def _set_service(self) -> None:
        service = {
            "kind": "Service",
            "metadata": {"name": "s", "namespace": "default"},
            "spec": {"selector": {"app": "web"}},
        }
        self.cache.listers.set("Service", "default", "s", selecting_object_from(service))

    def _terms(self, field: str) -> list[dict[str, Any]]:
        terms = [self._term() for _ in range(self.random.choice((1, 1, 2)))]
        if field == _REQUIRED:
            return terms
        return [{"weight": self.random.choice((1, 5, 100)), "podAffinityTerm": term} for term in terms]

    def _term(self) -> dict[str, Any]:
        term: dict[str, Any] = {"topologyKey": self.random.choice(KEYS)}
        if self.random.random() < 0.95:
            term["labelSelector"] = self._selector()
        if self.random.random() < 0.3:
            term["namespaces"] = self.random.sample(NAMESPACES, self.random.choice((1, 2)))
        if self.random.random() < 0.3:
            term["namespaceSelector"] = self.random.choice(
                (
                    {},
                    {"matchLabels": {"team": "x"}},
                    {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]},
                    {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
                )
            )
        return term

    def _constraint(self) -> dict[str, Any]:
        constraint: dict[str, Any] = {
            "maxSkew": self.random.choice((1, 1, 2, 3)),
            "topologyKey": self.random.choice(KEYS),
            "whenUnsatisfiable": self.random.choice(("DoNotSchedule", "ScheduleAnyway")),
        }
        if self.random.random() < 0.95:
            constraint["labelSelector"] = self._selector()
        if self.random.random() < 0.3 and constraint["whenUnsatisfiable"] == "DoNotSchedule":
            constraint["minDomains"] = self.random.choice((1, 2, 4))
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if self.random.random() < 0.4:
                constraint[field] = self.random.choice(("Honor", "Ignore"))
        return constraint

    def _selector(self) -> dict[str, Any]:
        app = self.random.choice(APPS)
        expressions = (
            {"key": "app", "operator": "In", "values": [app, "web"]},
            {"key": "app", "operator": "NotIn", "values": [app]},
            {"key": "tier", "operator": "Exists"},
            {"key": "tier", "operator": "DoesNotExist"},
        )
        pick = self.random.random()
        if pick < 0.55:
            return {"matchLabels": {"app": app}}
        if pick < 0.95:
            return {"matchExpressions": self.random.sample(expressions, self.random.choice((1, 2)))}
        return {}


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
