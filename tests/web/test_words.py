"""Every page of a populated cluster: its title names the cluster, and its own sentences have the right number."""

import re

import pytest
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from playground.clusters.demo import create_demo
from playground.web import manual
from playground.web.pages import PAGES, help_path
from tests.markup import html_of
from tests.rare_cycles import run_until
from tests.web import factories
from tests.web.routes import ADDRESSES

pytestmark = pytest.mark.django_db

MESSAGES = {f"web:{name}" for name in ("cycle", "cycle-why", "weights", "pod", "explain", "board", "cycles")}
"""Pages that quote the scheduler, who says node(s) of any number."""
NOUNS = (
    "nodes|pods|cycles|branches|groups|decisions|attempts|seeds|pages|problems|edits|objects|events|times|workloads|"
    "victims|candidates|clusters|steps|scenarios|zones|owners|errors|reasons|plugins|profiles|classes|budgets|kinds"
)
ONE_OF_MANY = re.compile(r"(?<![\d.,/])1 (?!is\b|was\b|has\b)[a-z]+[^\Wsu]s\b")
"""Any plural after a 1."""
_SINGULAR = NOUNS.replace("s|", "|").removesuffix("s")
MANY_OF_ONE = re.compile(rf"(?<![\d.,/])(?:[02-9]|\d[\d,]*\d) (?:{_SINGULAR})\b(?!-|'|\(s\))")
UNDECIDED = re.compile(r"[a-z]\(s\)")
UPSTREAM = "such as: node(s) had no fast disk"
"""An example of a reason in upstream's form."""


def words_of(html):
    """What a person reads, without what the scheduler or an API server says in its own words."""
    html = re.sub(r"(?s)<(pre|code|textarea|option|script)\b.*?</\1>", " ", html)
    attributes = " . ".join(re.findall(r'(?:title|aria-label|data-say)="([^"]*)"', html))
    in_line = re.sub(r"</?(?:b|wbr|span|i)\b[^>]*>", "", html)
    text = re.sub(r"<[^>]+>", " . ", in_line) + attributes
    return re.sub(r"\s+", " ", text).replace(UPSTREAM, "")


def miscounted(html, route, cluster):
    """What a page of a cluster says with the wrong number, and a title that does not name the cluster."""
    title = " ".join(re.search(r"(?s)<title>(.*?)</title>", html)[1].split())
    named = re.fullmatch(rf".+ · {re.escape(cluster.name)} · Scheduling Playground", title)
    words = words_of(html)
    patterns = (ONE_OF_MANY, MANY_OF_ONE, *(() if route in MESSAGES else (UNDECIDED,)))
    return ([] if named else [f"title {title!r}"]) + [
        f"…{words[max(0, found.start() - 40) : found.end() + 40]}…"
        for pattern in patterns
        for found in pattern.finditer(words)
    ]


def test_every_page_of_one_of_each_names_the_cluster_and_counts_rightly(client, db, wakes):
    """Of much of everything: `test_pages`."""
    cluster = factories.make_cluster("one-of-each", n_nodes=1)
    factories.add_cycle(cluster, "scored", number=1)
    seen, wrong = [], {}
    for route, address in ADDRESSES:
        response = client.get(address.format(c=cluster.public_id))
        if "{c}" in address and response.status_code != 404:
            assert response.status_code == 200, (route, response.status_code)
            seen.append(route)
            if found := miscounted(html_of(response), route, cluster):
                wrong[address] = found
    assert not wrong
    assert len(seen) >= 20, seen


@pytest.fixture
def demo(db, wakes):
    cluster = create_demo()
    run_until(cluster, "idle")
    cluster.refresh_from_db()
    return cluster


def test_a_reason_beside_one_node_is_of_one_node(client, demo):
    row = demo.cycles.filter(outcome="unschedulable").first()
    html = html_of(client.get(reverse("web:cycle", args=[demo.public_id, row.number])))
    for part in ("filter", "reasons"):
        rows = re.search(rf'(?s)id="{part}".*?</section>|id="{part}".*?</details>', html)[0]
        cells = re.findall(r"(?s)<small>(.*?)</small>", rows)
        assert not any("node(s)" in cell for cell in cells), part
    assert "<small>was unschedulable" in html or "was unschedulable" in html
    assert "node(s) were unschedulable" in html, "the scheduler's own message stays as it is"


def test_a_preemption_names_its_victim_on_top(client, demo):
    row = demo.cycles.filter(outcome="preempting").first()
    html = html_of(client.get(reverse("web:cycle", args=[demo.public_id, row.number])))
    told = " ".join(re.sub(r"<[^>]+>", "", re.search(r'(?s)id="victims".*?</p>', html)[0]).split())
    evicted = re.search(r"It evicts (\S+)", told)[1].rstrip(",")
    # What was evicted is terminating or gone, and was on the node.
    assert evicted.startswith("default/") and row.n_victims == 1
    assert not demo.pods.filter(name=evicted.partition("/")[2], terminating=False).exists()


def test_home_and_board_count_alike(client, demo):
    board = html_of(client.get(reverse("web:board", args=[demo.public_id])))
    home = re.sub(r"\s+", "", html_of(client.get("/")))
    n_placed = int(re.search(r"12 nodes, (\d+) pods", re.sub(r"<[^>]+>", "", board))[1])
    assert f"<dt>Podsplaced</dt><dd>{n_placed}</dd>" in home
    assert "<dt>Pending</dt><dd>3</dd>" in home


def test_why_not_says_at_which_step_a_candidate_for_preemption_lost(client, cluster):
    for row in cluster.cycles.filter(outcome="preempting"):
        html = html_of(client.get(reverse("web:cycle", args=[cluster.public_id, row.number])))
        for step in sorted(set(re.findall(r"out at (\d)", html))):
            line = re.search(rf"(?s)<tr[^>]*>(?:(?!</tr>).)*out at {step}", html)[0]
            node = re.search(r'<th scope="row"[^>]*>\s*(?:<[^>]+>\s*)*([\w.-]+)', line)[1]
            page = html_of(
                client.get(reverse("web:cycle-why", args=[cluster.public_id, row.number]), {"node": node})
            )
            assert f"lost at step {step}: " in page
            return
    raise AssertionError("no candidate lost")


# ---- The manual's pages, and the way into them from every other page


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


OF_PAGES = ("reading", "import", "scenarios", "releases", "plan")
"""Chapters that describe pages."""


def test_chapters_of_pages_have_pictures_and_each_picture_is_shown_once() -> None:
    shown = [
        name
        for one in OF_PAGES
        for name in re.findall(r"<img [^>]*src=\"[^\"]*pictures/([a-z-]+)", html(one))
    ]
    assert all("<img " in html(one) for one in OF_PAGES)
    assert sorted(shown) == sorted(path.stem for path in (manual.folder() / "pictures").iterdir())
    assert all(path.stat().st_size < 60_000 for path in (manual.folder() / "pictures").iterdir())


def html(chapter: str) -> str:
    return manual.chapter(chapter).html
