"""What measures all pages finds what it is made to find, and nothing on a page that is right."""

import pytest

from tests.browser.boxes import out_of_bounds, sideways
from tests.browser.looks import LOOKS, seen_wrong
from tests.browser.tabs import Walker
from tests.tables import table

PAGE = """<!doctype html><html lang="en"><head><title>A page</title>
<meta name="viewport" content="width=device-width"><style>
body { margin: 0; background: #fff; color: #111 } main { width: 300px }
@media (prefers-color-scheme: dark) { body { background: #111; color: #eee } .pale { color: #333 } }
</style></head><body><main><h1>A page</h1>%s</main></body></html>"""
RIGHT = '<p>Right <button>Press</button></p><svg width="20" height="20"><text y="10">x</text></svg>'
WIDE = '<div id="wide" style="width: 340px">too wide</div>'


@pytest.mark.parametrize(
    ("body", "said"),
    table(__file__, "boxes_out_of_their_place_are_found"),
)
def test_boxes_out_of_their_place_are_found(page, body, said):
    page.set_content(PAGE % body)
    found = out_of_bounds(page)
    assert len(found) == len(said), found
    assert all(part in one for part, one in zip(said, found, strict=True)), found


def test_what_scrolls_sideways_is_called_by_its_name(page):
    page.set_content(PAGE % f'<div class="scroll" aria-label="Nodes" style="overflow: auto">{WIDE}</div>')
    assert sideways(page) == ["Nodes"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (RIGHT, []),
        ("<button></button>", ["light at 1440: button-name ['button']", "light at 390: button-name ['button']"]),
        ('<p class="pale">pale in the dark</p>', ["dark at 1440: color-contrast ['p']"]),
        ('<p style="color: #bbb; background: #fff">pale</p>',
         [f"{look}: color-contrast ['p']" for look in ("light at 1440", "dark at 1440", "light at 390")]),
        ('<p style="width: 500px">wide</p>', ["light at 390: 110 px too wide"]),
    ],
)  # fmt: skip
def test_each_look_has_its_own_faults(page, body, said):
    page.set_content(PAGE % body)
    assert seen_wrong(page, "it", LOOKS) == [f"it, {one}" for one in said]
    by_day = [
        one for one in said if not one.startswith(("dark", "light at 390: color", "light at 390: button"))
    ]
    assert seen_wrong(page, "it") == [f"it, {one}" for one in by_day]


@pytest.mark.parametrize(
    ("body", "said"),
    table(__file__, "what_a_keyboard_does_not_reach_is_found"),
)
def test_what_a_keyboard_does_not_reach_is_found(page, body, said):
    page.set_content(PAGE % body)
    assert Walker(page).lost_on("it") == [f"it: {one}" for one in said]


def test_what_is_around_a_page_is_walked_once(page):
    walker = Walker(page)
    for said in (["it: button top does not show that it has the focus"], []):
        page.set_content('<button id="top" style="outline: none">Top</button>' + PAGE % RIGHT)
        assert walker.lost_on("it") == said
