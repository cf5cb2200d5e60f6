"""Bring your own scheduler, in a browser: what is to be copied is copied whole, and it looks right in three forms."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.looks import seen_wrong
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.web.test_schedulers_page import LEASES, lease


@pytest.mark.usefixtures("wakes")
def test_what_starts_a_scheduler_is_copied_whole_and_those_seen_are_told(
    page: Any, asgi_server: str, complaints: Any
) -> None:
    wanted = (("mine", "bin-packer"), ("lost", "gone"), ("own", "default-scheduler"))
    pods = [make_pod(name, cpu="1", schedulerName=scheduler) for name, scheduler in wanted]
    cluster = make_cluster(make_node("n1"), *pods)
    kube, by = f"{asgi_server}/k8s/{cluster.public_id}", {"User-Agent": "bin-packer/v0.9 (linux/amd64)"}
    binding = {"metadata": {"name": "mine"}, "target": {"kind": "Node", "name": "n1"}}
    place = f"{kube}/api/v1/namespaces/default/pods/mine/binding"
    assert page.request.post(place, data=binding, headers=by).status == 201
    held = lease("bin-packer", "2020-01-01T00:00:00.000000Z", "packer-7c9d8f6b5-x2x4z_0d4a6c1e-6d0f-4f0b")
    assert page.request.post(f"{kube}{LEASES}", data=held).status == 201

    page.goto(f"{asgi_server}/c/{cluster.public_id}/config/")
    page.get_by_role("link", name="Bring your own").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("1 pending pod")
    expect(page.get_by_role("row").filter(has_text="bin-packer/v0.9 (linux/amd64)")).to_be_visible()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for what in ("kubeconfig", "command", "program"):
        page.evaluate("document.getElementById('status').textContent = ''")
        page.get_by_role("button", name=f"Copy the {what}").click()
        expect(page.locator("#status")).to_have_text("Copied")
        text = page.get_by_label(f"The {what}", exact=True).text_content()
        assert page.evaluate("navigator.clipboard.readText()") == text
    page.evaluate("scrollTo(0, 0)")
    assert not seen_wrong(page, "schedulers")
