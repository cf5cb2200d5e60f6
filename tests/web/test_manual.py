"""The manual's pages, and the way into them from every other page."""

from __future__ import annotations

import re

import pytest
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from playground.web import manual
from playground.web.pages import PAGES, help_path

pytestmark = pytest.mark.django_db


def help_of(html: str) -> set[str]:
    """Where Help leads: in the header, and in the footer for phones."""
    header, footer = html.partition("<main")[0], html.rpartition('<footer class="foot-bar">')[2]
    [above] = re.findall(r'href="([^"]*)">Help</a>', header)
    [below] = re.findall(r'href="([^"]*)">help</a>', footer)
    return {above, below}


def leads(client, target: str) -> None:
    path, _, heading = target.partition("#")
    response = client.get(path)
    assert response.status_code == 200, target
    assert not heading or f'id="{heading}"' in response.content.decode(), target


def test_help_of_the_api_leads_there_too(client, db):
    [target] = help_of(client.get("/api/v1/docs/", follow=True).content.decode())
    assert target != "/manual/"
    leads(client, target)


def names(resolver: URLResolver, area: str = "") -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for one in resolver.url_patterns:
        if isinstance(one, URLResolver):
            found |= names(one, one.app_name or area)
        elif isinstance(one, URLPattern) and one.name:
            found.add((area, one.name))
    return found


def test_the_table_of_help_names_pages_there_are_and_headings_there_are(client):
    there = names(get_resolver())
    for route in PAGES:
        area, _, name = route.partition(":")
        assert not name or (area, name) in there, route
        leads(client, help_path(area, name))
    areas = {route.removesuffix(":") for route in PAGES if route.endswith(":")}
    assert {area for area, _ in there} - {"", "kube_api", "mock_extender"} == areas


def test_chapters_link_to_each_other_and_hold_no_html_of_their_own(client, settings, tmp_path):
    index = client.get(reverse("web:manual")).content.decode()
    for name in manual.CHAPTERS:
        assert f'href="/manual/{name}/"' in index
    assert client.get("/manual/none/").status_code == 404
    assert client.get("/manual/README/").status_code == 200
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "plan.md").write_text(
        "# A\n\n<script>alert(1)</script> [x](javascript:alert(1)) [y](../gone.md) [z](team.md#people)\n"
    )
    settings.RESOURCES = tmp_path
    manual.chapter.cache_clear()
    try:
        html = manual.chapter("plan").html
    finally:
        manual.chapter.cache_clear()
    assert "<script" not in html and "javascript:" not in html.replace("[x](javascript:alert(1))", "")
    assert "gone.md" not in html and 'href="/manual/team/#people"' in html
