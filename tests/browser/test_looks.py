"""What measures all pages finds what it is made to find, and nothing on a page that is right."""

from pathlib import Path

import pytest

from playground.clusters import questions
from playground.clusters.demo import create_demo
from playground.clusters.drive.memory import EngineMemory
from playground.scenarios.services.comparing import request_comparison
from playground.scenarios.services.shares import share
from tests.browser.boxes import out_of_bounds, sideways
from tests.browser.looks import LOOKS, seen_wrong
from tests.browser.tabs import Walker
from tests.rare_cycles import run_until
from tests.scenarios.documents import PACKING, small, text_of
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
        ('<p>Words <a href="#it" style="color: #333; text-decoration: none">link</a></p>',
         ["light at 1440: link-in-text-block ['a']", "dark at 1440: color-contrast ['a']",
          "light at 390: link-in-text-block ['a']"]),
        ('<p style="position: absolute; left: 0; width: 500px">wide</p>',
         ["light at 390: the page is 110 px too wide"]),
    ],
)  # fmt: skip
def test_each_look_has_its_own_faults(page, body, said):
    page.set_content(PAGE % body)
    assert seen_wrong(page, "it", LOOKS) == [f"it, {one}" for one in said]
    by_day = [
        one
        for one in said
        if not one.startswith(("dark", "light at 390: color", "light at 390: button", "light at 390: link"))
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


# ---- A letter that stands for something says for what: in its title, beside it, or as the key of what it is on


LETTERS = Path(__file__).with_name("letters.js").read_text()


def letters_on(page) -> dict[str, bool]:
    """Letters that are drawn on the page as it is now, with their places; whether they say what they stand for."""
    return page.evaluate(LETTERS)


def unexplained(page) -> list[str]:
    """Those that do not."""
    return [where for where, explained in letters_on(page).items() if not explained]


@pytest.fixture
def places(transactional_db, work):
    """The demo after its run, asked everything that is answered with letters, and two runs compared."""
    demo = create_demo()
    run_until(demo, "idle")
    for params in ({"kind": "seeds", "params": {"seeds": 3}}, {"kind": "weights", "params": {"cycle": 1}}):
        asked = questions.ask(cluster=demo, **params)
        questions.answer(question_id=asked.pk, memory=EngineMemory())
    sides = [
        share(document=text_of(small() | changes)).scenario
        for changes in ({}, {"scheduler": PACKING, "title": "The same, packed"})
    ]
    a, b = ({"kind": "scenario", "id": side.public_id, "cycle": None} for side in sides)
    compared = request_comparison(a=a, b=b)
    work()
    c = f"/c/{demo.public_id}"
    return {
        f"{c}/": "TA", f"{c}/pods/": "", f"{c}/cycles/1/": "", f"{c}/cycles/1/weights/": "", f"{c}/luck/": "",
        f"{c}/config/classes/": "", f"{c}/replay/": "U", f"/s/{sides[0].public_id}/": "U",
        f"/compare/{compared.public_id}/": "AB", "/compare/": "AB",
    }  # fmt: skip


def test_each_letter_on_a_page_says_what_it_stands_for(page, asgi_server, places):
    found = []
    for path, letters in places.items():
        page.goto(asgi_server + path)
        drawn = letters_on(page)
        assert set(letters) <= {where[0] for where in drawn}, (path, drawn)
        found += [f"{path}: {where}" for where in unexplained(page)]
    assert not found, "\n".join(found)
