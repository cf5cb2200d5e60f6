"""From an empty site to an explained decision, with the real engine and nothing in between made up."""

from playwright.sync_api import expect

from playground.clusters import wake
from playground.clusters.drive.advance import advance
from playground.clusters.models import Cluster, Run
from tests.tables import table

CLUSTER = table(__file__, "CLUSTER")


def work(cluster: Cluster) -> None:
    """Be the worker until nothing is open."""
    for _ in range(20):
        advance(cluster_id=cluster.pk)
        if not Run.objects.filter(cluster=cluster, state__in=Run.OPEN).exists():
            return
    raise AssertionError("the run did not end")


def test_import_run_and_read_why(page, asgi_server, monkeypatch):
    monkeypatch.setattr(wake, "send", lambda *_, **__: True)
    page.goto(asgi_server)
    page.get_by_role("link", name="Paste or upload YAML").click()
    page.get_by_label("Or pasted").fill(CLUSTER)
    for words in ("create", "1 ignored", "Gadget g"):
        expect(page.locator("#import-preview")).to_contain_text(words)
    assert not Cluster.objects.exists()
    page.get_by_role("button", name="Create cluster").click()
    expect(page.locator("#lane-active")).to_contain_text("giant")
    page.get_by_role("button", name="Run until idle").click()
    expect(page.locator("#runbar")).to_contain_text("waiting for a worker")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Step one cycle")).to_be_visible()
    page.get_by_role("button", name="Run until idle").click()
    expect(page.locator("#runbar")).to_contain_text("waiting for a worker")
    work(Cluster.objects.get())
    # No reload: the tick brings the feed, the queue and the nodes.
    expect(page.locator("#feed")).to_contain_text("web-0 bound")
    expect(page.locator("#lane-unschedulable")).to_contain_text("giant")
    page.locator("#feed").get_by_role("link", name="web-0 bound").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("web-0 bound to large")
    expect(page.locator("#score")).to_contain_text("NodeResourcesFit")
    page.get_by_role("link", name="Cycle 2").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("giant")
    expect(page.locator("#filter")).to_contain_text("Insufficient cpu")
    page.get_by_role("link", name="Story of the pod").click()
    expect(page.locator("#story")).to_contain_text("Attempt 1")
