"""A share in a frame of another site's page: only the frame may be framed; it fits in each look and has no script."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import expect

from playground.scenarios.services.moments import request_moment
from playground.scenarios.services.shares import share
from tests.browser.looks import seen_wrong
from tests.scenarios.documents import small_text

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scenario(work):
    shared = share(document=small_text(), opens_at=2).scenario
    work()
    request_moment(scenario=shared, cycle=2)
    work()
    return shared


def test_the_frame_is_accessible_fits_and_says_how_the_share_stands(browser, asgi_server, scenario):
    context = browser.new_context()
    page = context.new_page()
    for query, nodes in (("", 3), ("?view=line", 0)):
        page.goto(f"{asgi_server}/s/{scenario.public_id}/embed/{query}")
        expect(page.locator(".badge")).to_contain_text("reproduced on 1.34")
        expect(page.locator("main")).to_contain_text("Cycle 2 of 5.")
        expect(page.locator(".nd")).to_have_count(nodes)
        expect(page.locator("script")).to_have_count(0)
        # 760 is what oEmbed answers; a phone gives less.
        assert seen_wrong(page, query, looks=(("light", 760), ("dark", 760), ("light", 390))) == []
    context.close()


@pytest.fixture
def elsewhere():
    """Serves a page from another origin on this machine: a browser asks before a public site reaches loopback."""
    servers = []

    def serve(body):
        class Page(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *args):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_another_sites_page_shows_the_frame_and_no_other_page_of_the_site(
    browser, asgi_server, scenario, elsewhere
):
    context = browser.new_context()
    page = context.new_page()
    address = f"{asgi_server}/s/{scenario.public_id}/"
    page.goto(elsewhere(f'<iframe id="share" src="{address}embed/"></iframe>'))
    inside = page.frame_locator("#share")
    expect(inside.locator(".badge")).to_contain_text("reproduced on 1.34")
    expect(inside.get_by_role("link", name="Open in the playground")).to_have_attribute("rel", "noopener")
    with page.expect_console_message(lambda message: "frame-ancestors 'none'" in message.text):
        page.evaluate(
            "address => { const f = document.createElement('iframe'); f.src = address; document.body.append(f); }",
            address,
        )
    context.close()
