"""exec, attach and port-forward over WebSockets: refused with the Status that kubectl gets over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import websocket
from kubernetes import client as official
from kubernetes.stream import portforward, stream

from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.in_thread import served

SAID = 'there are no containers in a playground: pod "p1" is simulated: nothing can be run or reached in it'


@pytest.fixture(params=["auto", "none"])
def site(request: pytest.FixtureRequest, transactional_db: None, wakes: list[Any]) -> Iterator[str]:
    """With uvicorn's WebSockets, and by the commands of README, which have none."""
    cluster = make_cluster(make_node("n1"), make_pod("p1"))
    with served(ws=request.param) as address:
        yield f"http://{address}/k8s/{cluster.public_id}"


def test_clients_get_the_status(site: str) -> None:
    for part in ("exec?command=ls&stdout=true", "attach?stdout=true", "portforward?ports=80"):
        url = f"{site.replace('http', 'ws', 1)}/api/v1/namespaces/default/pods/p1/{part}"
        with pytest.raises(websocket.WebSocketBadStatusException) as refused:
            websocket.create_connection(
                url, subprotocols=["v5.channel.k8s.io", "v4.channel.k8s.io"], timeout=20
            )
        assert refused.value.status_code == 400
        status = json.loads(refused.value.resp_body)
        assert (status["kind"], status["reason"], status["message"]) == ("Status", "BadRequest", SAID)


def test_the_official_client_is_told_why(site: str) -> None:
    core = official.CoreV1Api(official.ApiClient(official.Configuration(host=site)))
    with pytest.raises(official.ApiException) as refused:
        stream(core.connect_get_namespaced_pod_exec, "p1", "default", command=["ls"], stdout=True)
    assert "nothing can be run or reached in it" in str(refused.value) and "status 400" in str(refused.value)
    with pytest.raises(official.ApiException):
        portforward(core.connect_get_namespaced_pod_portforward, "p1", "default", ports="80")
