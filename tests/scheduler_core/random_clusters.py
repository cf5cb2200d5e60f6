"""Random small clusters that bring node-local plugins into trouble: full nodes, taints, ports, odd resources."""

from random import Random
from typing import Any

from scheduler_core.cli.conformance_cycles import CaseCluster
from scheduler_core.cluster.node_table import normal_port
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.node import Node, node_from
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.releases import RELEASES
from tests.scheduler_core.stored import prepare

GPU = "example.com/gpu"
CLAIMS = ("one", "other")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
IMAGES = ("app:v1", "db:v2", "registry/cache")


class RandomCluster:
    """A cluster that can be changed step by step, all of it drawn from one source."""

    def __init__(self, random: Random | int, n_nodes: int = 6, *, with_devices: bool = False) -> None:
        self.with_devices = with_devices
        random = self.random = random if isinstance(random, Random) else Random(random)
        self.release = random.choice(list(RELEASES.values()))
        self.cluster = CaseCluster([], None, release=self.release)
        self.n_pods = 0
        self.running: list[Pod] = []
        for index in range(n_nodes):
            self.set_node(index)
        for _ in range(random.randint(0, 2 * n_nodes)):
            self.run_pod()

    def set_node(self, index: int) -> None:
        """Add a node, or give a known one another face."""
        self.cluster.cache.set_node(self.node(index))

    def node(self, index: int) -> Node:
        random = self.random
        allocatable = {
            "cpu": random.choice(["1", "2", "4", "0"]),
            "memory": random.choice(["1Gi", "4Gi", "8Gi"]),
            "pods": random.choice(["2", "4", "110"]),
        }
        if random.random() < 0.4:
            allocatable[GPU] = random.choice(["0", "1", "4"])
        labels = {
            "kubernetes.io/hostname": f"n{index}",
            "zone": random.choice("abc"),
            "n": str(random.randint(0, 9)),
        }
        spec: dict[str, Any] = {"unschedulable": random.random() < 0.15}
        if random.random() < 0.4:
            spec["taints"] = [
                {"key": random.choice("kl"), "value": random.choice("xy"), "effect": random.choice(EFFECTS)}
                for _ in range(random.randint(1, 2))
            ]
        images = [
            {"names": [name if ":" in name else f"{name}:latest"], "sizeBytes": random.randint(1, 900) << 20}
            for name in IMAGES
            if random.random() < 0.4
        ]
        status: dict[str, Any] = {"allocatable": allocatable, "images": images}
        if random.random() < 0.3:
            status["declaredFeatures"] = ["UserNamespacesHostNetworkSupport"]
        meta = {"name": f"n{index}", "labels": labels}
        return node_from(
            prepare({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status})
        )

    def pod(self, node_name: str = "", priority: int | None = None) -> Pod:
        """A pod that asks for a little of everything."""
        random = self.random
        self.n_pods += 1
        requests: dict[str, str] = {}
        if random.random() < 0.8:
            requests["cpu"] = random.choice(["100m", "500m", "1", "3", "0"])
        if random.random() < 0.7:
            requests["memory"] = random.choice(["128Mi", "1Gi", "5Gi"])
        if random.random() < 0.3:
            requests[GPU] = random.choice(["1", "2"])
        container: dict[str, Any] = {
            "name": "c",
            "image": random.choice(IMAGES),
            "resources": {"requests": requests},
        }
        if random.random() < 0.3:
            container["ports"] = [
                {
                    "containerPort": 80,
                    "hostPort": random.choice([80, 81]),
                    "hostIP": random.choice(["", "10.0.0.1", "0.0.0.0"]),
                }
            ]
        spec: dict[str, Any] = {"containers": [container], "priority": random.choice([0, 10, 20])}
        if priority is not None:
            spec["priority"] = priority
        if random.random() < 0.5:
            spec["tolerations"] = [
                {"key": random.choice("kl"), "operator": "Exists", "effect": random.choice(("", *EFFECTS))}
            ]
        if random.random() < 0.15:
            spec |= {"hostNetwork": True, "hostUsers": False}
        if random.random() < 0.3:
            spec["nodeSelector"] = {"zone": random.choice("abc")}
        if random.random() < 0.3:
            expression = random.choice(
                [
                    {"key": "n", "operator": "Gt", "values": [str(random.randint(0, 9))]},
                    {"key": "zone", "operator": "NotIn", "values": ["a", "b"][: random.randint(1, 2)]},
                    {"key": "gone", "operator": "DoesNotExist"},
                ]
            )
            spec["affinity"] = {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [expression]}]
                    },
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": random.randint(1, 100),
                            "preference": {
                                "matchExpressions": [
                                    {"key": "zone", "operator": "In", "values": [random.choice("abc")]}
                                ]
                            },
                        }
                    ],
                }
            }
        if node_name:
            spec["nodeName"] = node_name
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{self.n_pods}", "labels": {"app": random.choice("xy")}},
            "spec": spec,
            "status": {"startTime": f"2026-01-01T00:{self.n_pods % 60:02d}:00Z"},
        }
        return pod_from(prepare(manifest))

    def incoming(self) -> Pod:
        if self.with_devices and self.random.randrange(2):
            return self.pod_with_a_claim(self.random.choice(CLAIMS))
        return self.pod()

    def run_pod(self) -> Pod:
        """Put a pod on some node, fitting or not.

        No two pods of a node share a host port: a node keeps a set of ports, so what is free after one of the two
        left would depend on history.
        """
        names = list(self.cluster.cache.nodes.row_of)
        pod = self.pod(self.random.choice(names))
        others = [other for other in self.running if other.node_name == pod.node_name]
        taken = {normal_port(port) for other in others for port in other.host_ports}
        while taken & {normal_port(port) for port in pod.host_ports}:
            pod = self.pod(pod.node_name)
        self.cluster.cache.add_pod(pod)
        self.running.append(pod)
        return pod

    def stop_pod(self) -> None:
        if self.running:
            pod = self.running.pop(self.random.randrange(len(self.running)))
            self.cluster.cache.remove_pod(pod.uid)

    def pod_with_a_claim(self, name: str) -> Pod:
        """It wants a device of its claim, which may or may not be there."""
        manifest = {**self.pod().manifest, "metadata": {"name": f"wants-{name}-{self.n_pods}"}}
        claims = [{"name": "device", "resourceClaimName": name}]
        return pod_from(prepare({**manifest, "spec": {**manifest["spec"], "resourceClaims": claims}}))

    def change_devices(self) -> None:
        """A class, a claim or a node's slice comes, changes or goes."""
        random, listers = self.random, self.cluster.cache.listers
        match random.randrange(3):
            case 0:
                kind, namespace, name = "DeviceClass", "", random.choice(("plain", "behind"))
                spec: dict[str, Any] = {"extendedResourceName": GPU} if name == "behind" else {}
            case 1:
                kind, namespace, name = "ResourceClaim", "default", random.choice(CLAIMS)
                exactly = {"deviceClassName": "plain", "count": random.randint(1, 2)}
                spec = {"devices": {"requests": [{"name": "device", "exactly": exactly}]}}
            case _:
                kind, namespace, name = "ResourceSlice", "", f"n{random.randrange(6)}"
                pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
                devices = [{"name": f"d{number}"} for number in range(random.randint(1, 3))]
                spec = {"driver": "example.com", "nodeName": name, "pool": pool, "devices": devices}
        if random.random() < 0.3:
            listers.remove(kind, namespace, name)
            return
        meta = {"name": name, **({"namespace": namespace} if namespace else {}), "uid": f"{kind}-{name}"}
        document = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": meta, "spec": spec}
        listers.set(kind, namespace, name, parse(prepare(document)).typed)

    def change(self) -> None:
        """Something happens."""
        if self.with_devices and self.random.randrange(2):
            self.change_devices()
            return
        match self.random.randrange(4):
            case 0:
                self.set_node(self.random.randrange(8))
            case 1:
                self.stop_pod()
            case _:
                self.run_pod()
