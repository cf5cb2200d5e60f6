"""Other people's schedulers, small: they list, decide and write over HTTP, as programs of any language do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playground.clusters.drive.runs import request_run
from playground.clusters.models import Cluster
from tests.kube_api.conftest import PODS, Kube

RECORDED = json.loads((Path(__file__).parent / "data" / "kube_scheduler_decides.json").read_text())


def replay(kube: Kube, run: str, before_binding: Callable[[], None] = lambda: None) -> None:
    """Send what a stock kube-scheduler v1.34.1 wrote about pods, in its order.

    Parameters
    ----------
    before_binding
        Called before a pod is bound for which pods were evicted: the real one waited until they were gone.
    """
    evicted = False
    for line in RECORDED[run]["requests"]:
        if line["path"].endswith("/binding") and evicted:
            before_binding()
            evicted = False
        evicted |= line["method"] == "DELETE"
        agent = RECORDED["userAgent"] if line["by"] == "scheduler" else "kubectl/v1.34.1"
        body = json.dumps(line["body"])
        answer = kube.send(line["method"], line["path"], body, media=line["type"], user_agent=agent)
        assert answer.status_code == line["status"], (line, answer.content)


class Packing:
    """Binds to the fullest node that has room for the cpu; knows nothing else."""

    agent = "bin-packer/v0.9 (linux/amd64)"
    name = "bin-packer"

    def __init__(self, kube: Kube) -> None:
        self.kube = kube

    def decide(self) -> None:
        """One round over all pods that wait for it."""
        pods = self.kube.get(PODS, user_agent=self.agent).json()["items"]
        for pod in pods:
            if pod["spec"].get("schedulerName") == self.name and not pod["spec"].get("nodeName"):
                self.place(pod)

    def free_milli(self) -> dict[str, int]:
        """Cpu left by node, fullest first."""
        nodes = self.kube.get("/api/v1/nodes", user_agent=self.agent).json()["items"]
        free = {node["metadata"]["name"]: _milli(node["status"]["allocatable"]["cpu"]) for node in nodes}
        for pod in self.kube.get(PODS, user_agent=self.agent).json()["items"]:
            if pod["spec"].get("nodeName") in free:
                free[pod["spec"]["nodeName"]] -= _requests(pod)
        return dict(sorted(free.items(), key=lambda item: (item[1], item[0])))

    def choose(self, pod: dict[str, Any]) -> str | None:
        return next((name for name, left in self.free_milli().items() if left >= _requests(pod)), None)

    def place(self, pod: dict[str, Any]) -> None:
        name, node = pod["metadata"]["name"], self.choose(pod)
        if node is None:
            condition = {
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "no node has so much cpu",
            }  # fmt: skip
            patch = json.dumps({"status": {"conditions": [condition]}})
            kind = "application/strategic-merge-patch+json"
            sent = self.kube.send("PATCH", f"{PODS}/{name}/status", patch, media=kind, user_agent=self.agent)
            assert sent.status_code == 200
            return
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        assert (
            self.kube.send("POST", f"{PODS}/{name}/binding", binding, user_agent=self.agent).status_code
            == 201
        )


class Faulty(Packing):
    """Takes the node with the last name, whatever is free there; its name does not tell that it schedules."""

    agent = "OpenAPI-Generator/31.0.0/python"
    name = "faulty"

    def choose(self, pod: dict[str, Any]) -> str | None:
        return max(self.free_milli())


def _milli(cpu: str) -> int:
    return int(cpu[:-1]) if cpu.endswith("m") else int(cpu) * 1000


def _requests(pod: dict[str, Any]) -> int:
    containers = pod["spec"]["containers"]
    return sum(_milli(item["resources"].get("requests", {}).get("cpu", "0m")) for item in containers)


def pass_time(cluster: Cluster, visit: Callable[[Cluster], None], until: str = "5s") -> None:
    """Let virtual time go on."""
    request_run(cluster=cluster, until=until)
    visit(cluster)
