"""A letter that stands for something says for what: in its title, beside it, or as the key of what it is on."""

from pathlib import Path

import pytest

from playground.clusters import questions
from playground.clusters.demo import create_demo
from playground.clusters.drive.memory import EngineMemory
from playground.scenarios.services import request_comparison, share
from tests.rare_cycles import run_until
from tests.scenarios.documents import PACKING, small, text_of

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
