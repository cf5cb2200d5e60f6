"""Every page in a real browser: accessible in light, dark and on a phone, and without sideways scrolling."""

from functools import partial

import pytest
from django.template.loader import render_to_string

from playground.clusters.models import Cycle
from playground.clusters.objects.apply import apply_documents
from tests import rare_cycles
from tests.browser.boxes import read_across
from tests.browser.looks import EVERY_LOOK, LIGHT, LOOKS, PHONE, nightly, seen_wrong, wear, what_is_wrong
from tests.browser.tabs import Walker
from tests.browser.test_looks import unexplained
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.manifests import priority_class
from tests.tables import table
from tests.web.routes import ADDRESSES
from tests.web.test_classes_page import make_budget


@pytest.mark.slow
@pytest.mark.timeout(900)
@EVERY_LOOK
def test_every_page_is_accessible_fits_and_is_walked_by_keyboard(
    page, asgi_server, cluster, complaints, looks
):
    pages = {address: address.format(c=cluster.public_id) for _, address in ADDRESSES}
    walker = Walker(page)

    def walked(address):
        found = [f"{address} does not explain its letter {letter}" for letter in unexplained(page)]
        found += [f"{address} on a phone: {name} scrolls sideways" for name in read_across(page)]
        wear(page, *(LOOKS[0] if looks == LIGHT else PHONE))
        return found + walker.lost_on(address)

    assert not (found := what_is_wrong(page, asgi_server, pages, looks, walked)), "\n".join(found)


@nightly
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_pages_of_rare_cycles_are_accessible_and_fit(
    page, asgi_server, transactional_db, wakes, settings, complaints
):
    settings.PLAYGROUND_OWN_URL = asgi_server  # where the mock extender answers
    pages = {}
    for name in rare_cycles.RARE_CYCLES:
        cluster = rare_cycles.make(name)
        base = f"/c/{cluster.public_id}/"
        pages[name] = f"{base}cycles/{cluster.next_cycle - 1}/"
        pages[f"{name}, board"] = f"{base}?pod=default/web-0"
        pages[f"{name}, story"] = f"{base}pods/default/web-0/"
    assert not (found := what_is_wrong(page, asgi_server, pages, LOOKS)), "\n".join(found)


def test_names_as_long_as_a_cloud_gives_them_are_shown_whole(page, asgi_server, transactional_db, complaints):
    nodes = [
        f"gke-production-europe-west1-n2-standard-8-spot-a1b2c3d4-{i}.c.my-company-423817.internal"
        for i in "01"
    ]
    worker, budget = (
        "recommendation-engine-nightly-feature-recomputation-worker-7c9d8f6b5",
        "availability-budget" * 4,
    )
    important = "production-customer-facing-latency-critical-checkout-and-payments-tier"
    labels = {"app": "recomputation"}
    cluster = make_cluster(
        *(make_node(name, cpu="8") for name in nodes),
        priority_class(important, 900_000),
        *(
            make_pod(f"{worker}-{i}", cpu="4") | {"metadata": {"name": f"{worker}-{i}", "labels": labels}}
            for i in range(4)
        ),
        make_budget(budget, {"matchLabels": labels}, minAvailable=4),
    )
    rare_cycles.run_until(cluster, "idle")
    evicts = [make_pod(f"checkout-payments-service-production-blue-6d5f7c8b9-{i}", cpu="5", priorityClassName=important)
              for i in range(2)]  # fmt: skip
    apply_documents(cluster=cluster, objects=evicts)
    rare_cycles.run_until(cluster, "idle")
    base, found = f"/c/{cluster.public_id}/", []
    second = Cycle.objects.filter(cluster=cluster, outcome="preempting").latest("number").number
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 844})
        for path in ("", "config/classes/", f"cycles/{second}/", "cycles/1/", "model/"):
            page.goto(f"{asgi_server}{base}{path}")
            wide = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            found += [f"{path or 'board'} at {width}: {wide} px too wide"] if wide > 0 else []
            cut = page.evaluate(CUT_NAMES, nodes)
            found += [f"{path or 'board'} at {width}: {name} is cut" for name in cut]
        if width == 1440:
            page.goto(f"{asgi_server}{base}config/classes/")
            assert page.evaluate(
                "[...document.querySelectorAll('.scroll')].every(e => e.scrollWidth <= e.clientWidth)"
            )
    assert not found, "\n".join(found)


# Node names that are drawn narrower than they are, in headings, cards and the first column of a table.
CUT_NAMES = """names => [...document.querySelectorAll('h1, h3, h4, th[scope=row]')]
    .filter(e => names.some(name => e.textContent.includes(name)) && e.scrollWidth > e.clientWidth + 1)
    .map(e => e.textContent.trim())"""


ERRORS = table(__file__, "ERRORS")


def answered_with(answer, route):
    route.fulfill(**answer)


def test_error_pages_are_accessible_and_lead_on(page, asgi_server, db):
    found = []
    for status, (template, context) in ERRORS.items():
        html = render_to_string(template, context)
        answer = {"status": status, "body": html, "content_type": "text/html; charset=utf-8"}
        page.route(f"**/failed-{status}/", partial(answered_with, answer))
        page.goto(f"{asgi_server}/failed-{status}/")
        assert page.get_by_role("heading", level=1).count() == 1
        found += seen_wrong(page, template)
        page.get_by_role("link", name="All clusters", exact=True).click()
        assert page.url == f"{asgi_server}/"
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", ["/c/nosuch/", "/nothing/here/"])
def test_a_wrong_address_says_so(page, asgi_server, db, path):
    response = page.goto(asgi_server + path)
    assert response.status == 404
    assert page.get_by_role("heading", name="Not found").is_visible()
