"""Spread and affinity of a cycle, a lane a domain: what the engine counted, in every look."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.looks import LOOKS, seen_wrong, wear
from tests.clusters.builders import make_cluster, make_node, make_pod, run

pytestmark = pytest.mark.django_db(transaction=True)
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
WEB = {"matchLabels": {"app": "web"}}


def zoned(name: str, zone: str) -> dict[str, Any]:
    return make_node(name, labels={ZONE: zone, HOST: name})


def web(name: str, **spec: Any) -> dict[str, Any]:
    return make_pod(name, labels={"app": "web"}, **spec)


def spread(key: str, action: str, max_skew: int = 1) -> dict[str, Any]:
    return {"maxSkew": max_skew, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": WEB}


def apart(key: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": WEB}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_lanes_of_zones_and_hosts(page: Any, asgi_server: str, complaints: Any) -> None:
    nodes = [zoned(f"node-{zone}-{n}", f"zone-{zone}") for zone in "abc" for n in range(6)]
    placed = [web(f"old-{n}", nodeName=f"node-a-{n}") for n in range(2)] + [web("old-b", nodeName="node-b-0")]
    rules = [spread(ZONE, "DoNotSchedule"), spread(HOST, "ScheduleAnyway")]
    cluster = make_cluster(
        *nodes, *placed, web("spread", topologySpreadConstraints=rules), web("apart", affinity=apart(HOST))
    )
    run(cluster)
    page.goto(f"{asgi_server}/c/{cluster.public_id}/cycles/1/")
    zones = page.locator("#domains details").nth(0)
    expect(zones.locator("summary")).to_contain_text("rejects 2 of 3 zones")
    expect(zones.locator("li").nth(0)).to_contain_text("2 pods, 3 with this one: skew 3, 2 too many")
    expect(zones.locator("li").nth(2)).to_contain_text("0 pods, 1 with this one: skew 1")
    hosts = page.locator("#domains details").nth(1)
    hosts.locator("summary").click()
    expect(hosts.locator("li")).to_have_count(3)
    expect(hosts.locator("li").nth(1)).to_contain_text("chosen")
    for look in LOOKS:
        wear(page, *look)
        assert not seen_wrong(page, "spread")
    page.goto(f"{asgi_server}/c/{cluster.public_id}/cycles/2/")
    expect(page.locator("#domains summary").first).to_contain_text("InterPodAffinity rejects 4 of 18 hosts")
    assert not seen_wrong(page, "apart")
