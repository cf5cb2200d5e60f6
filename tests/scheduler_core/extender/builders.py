"""Nodes, pods, extenders and a scripted transport for the tests of extenders."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scheduler_core.cli.conformance_cycles import CaseCluster
from scheduler_core.extender.chain import ExtenderChain, extender_chain
from scheduler_core.extender.transport import ExtenderAnswer, ExtenderRequest
from scheduler_core.objects.node import Node, node_from
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.plugins import load_configuration
from tests.manifests import pod, scheduler_config
from tests.scheduler_core.stored import prepare

URL = "http://a.test"


def node_manifest(name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, **metadata},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


def make_node(name: str, **metadata: Any) -> Node:
    return node_from(prepare(node_manifest(name, **metadata)))


def pod_manifest(
    name: str, *, cpu: str = "1", node: str = "", priority: int = 0, **spec: Any
) -> dict[str, Any]:
    return pod(name, cpu, **{"priority": priority, "nodeName": node, **spec})


def make_pod(name: str = "p", **options: Any) -> Pod:
    return pod_from(prepare(pod_manifest(name, **options)))


def extender(url: str = URL, **fields: Any) -> dict[str, Any]:
    """An extender of a configuration; it knows the nodes by name unless told otherwise."""
    return {"urlPrefix": url, "nodeCacheCapable": True, "weight": 1, **fields}


def configuration(*extenders: Mapping[str, Any]) -> dict[str, Any]:
    return scheduler_config(extenders=list(extenders))


def policy(*extenders: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Policy", "extenders": list(extenders)}


class Answers:
    """A transport that knows an answer for each URL, and remembers what it carried.

    An answer is a JSON-able body, a text, a whole `ExtenderAnswer`, or a function of the request.
    """

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = answers
        self.batches: list[list[ExtenderRequest]] = []

    def __call__(self, requests: Sequence[ExtenderRequest]) -> list[ExtenderAnswer]:
        self.batches.append(list(requests))
        return [self._answer(request) for request in requests]

    def _answer(self, request: ExtenderRequest) -> ExtenderAnswer:
        said = self.answers[request.url]
        if isinstance(said, Callable):  # type: ignore[arg-type]
            said = said(request)
        if isinstance(said, ExtenderAnswer):
            return said
        return ExtenderAnswer(200, said if isinstance(said, str) else json.dumps(said))

    @property
    def requests(self) -> list[ExtenderRequest]:
        return [request for batch in self.batches for request in batch]

    @property
    def urls(self) -> list[str]:
        return [request.url for request in self.requests]


def make_chain(answers: Answers, *extenders: Mapping[str, Any]) -> ExtenderChain:
    return extender_chain(load_configuration(configuration(*extenders)), answers)


def make_cluster(
    answers: Answers, objects: Sequence[Mapping[str, Any]], *extenders: Mapping[str, Any]
) -> CaseCluster:
    return CaseCluster(objects, configuration(*extenders), answers)
