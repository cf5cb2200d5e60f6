"""The page whose engine runs in the browser, at `/page/`."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client


@pytest.mark.django_db
def test_a_built_page_is_served_and_one_that_is_not_says_how(
    client: Client, settings: Any, tmp_path: Path
) -> None:
    assert "kube-scheduler-playground page DIR" in client.get("/page/").content.decode()
    assert client.get("/page/page.js").status_code == 404

    (tmp_path / "index.html").write_text("the page")
    (tmp_path / "page.js").write_text("a script")
    (tmp_path.parent / "secret").write_text("of others")
    settings.PLAYGROUND_PAGE = tmp_path
    page = client.get("/page/?embed")
    assert page.content == b"the page" and page["Content-Type"] == "text/html"
    # The page's own policy says what it loads; this one whose frames it may be in.
    assert page["Content-Security-Policy"] == "frame-ancestors *" and "X-Frame-Options" not in page
    script = client.get("/page/page.js")
    assert script["Content-Type"].startswith("text/javascript")
    assert script["Cross-Origin-Resource-Policy"] == "cross-origin"
    for name in ("none.js", "..", "%2e%2e%2fsecret", ".hidden"):
        assert client.get(f"/page/{name}").status_code in (301, 404)
