"""A GPU pool with claims, built in a browser and by kubectl: devices on the board, and the allocator opened up."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest
from playwright.sync_api import expect

from playground.clusters.models import Pod
from scheduler_core.objects.reading import dump_yaml
from tests import servers
from tests.browser.looks import seen_wrong
from tests.clusters.builders import make_cluster
from tests.clusters.devices import claiming, gpu_node, template

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kubectl]


@pytest.mark.timeout(400)
def test_a_gpu_pool_with_claims_by_browser_and_kubectl(
    page: Any, asgi_server: str, work: Any, complaints: Any, tmp_path: Any
) -> None:
    cluster = make_cluster()
    place = f"{asgi_server}/c/{cluster.public_id}"
    large = 'device.attributes["gpu.playground.dev"].model == "A100-80GB"'
    wanting = template("large", selectors=[{"cel": {"expression": large}}])
    page.goto(f"{place}/import/")
    page.locator("textarea").fill(
        dump_yaml([gpu_node("g1", "gpu=2"), gpu_node("g2", "gpu=1:L4"), wanting, claiming("a", of="large")])
    )
    page.get_by_role("button", name="Import").click()
    page.goto(f"{place}/")
    page.get_by_role("button", name="Run until idle").click()
    expect(page.locator("#runbar")).to_contain_text("waiting for a worker")
    work()
    page.goto(f"{place}/")
    expect(page.get_by_role("link", name="GPU 1 of 2")).to_be_visible()
    expect(page.get_by_role("link", name="GPU 0 of 1")).to_be_visible()

    def kubectl(*words: str, text: str | None = None) -> str:
        program = [str(servers.kubectl()), "--server", f"{asgi_server}/k8s/{cluster.public_id}", *words]
        home = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "KUBECONFIG": str(tmp_path / "none")}
        done = subprocess.run(
            program, input=text, capture_output=True, text=True, env=home, timeout=90, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    for name in ("b", "c"):
        kubectl("apply", "-f", "-", text=json.dumps(claiming(name, of="large")))
    page.goto(f"{place}/")
    page.get_by_role("button", name="Run until idle").click()
    expect(page.locator("#runbar")).to_contain_text("waiting for a worker")
    work()
    assert sorted(Pod.objects.filter(cluster=cluster, node_name="g1").values_list("name", flat=True)) == [
        "a",
        "b",
    ]
    shown = kubectl("get", "resourceclaims")
    assert shown.count("allocated,reserved") == 2
    assert shown.count("pending") == 1

    page.goto(f"{place}/cycles/3/")
    expect(page.locator("#asking")).to_be_visible()
    work()
    allocation = page.locator("#alloc")
    expect(allocation).to_contain_text("0 of 2 nodes can serve the claims")
    expect(allocation).to_contain_text("held by claim a-gpu-")
    page.goto(f"{place}/cycles/3/devices/?node=g2")
    expect(page.locator("#asking")).to_be_visible()
    work()
    expect(page.locator("#alloc")).to_contain_text("request selector")
    expect(page.locator("#whynot")).to_contain_text(large)
    assert not seen_wrong(page, "devices")
