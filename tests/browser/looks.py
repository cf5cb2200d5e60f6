"""What axe says of a page, and whether its boxes fit, as it looks in light, in the dark and on a phone.

By day a page is looked at in light, and whether it fits on a phone, too; where static files or templates have changed
(`nightly`), also in the dark and on the phone, and what is done with it is done on a phone, too.

With ``PLAYGROUND_SHOTS=DIR`` each page that is looked at is photographed there, to be looked at by people, too. With
``PLAYGROUND_ONLY=WORDS`` the walks over all pages visit those alone whose address, without its ids, has them in it.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.boxes import out_of_bounds

LOOKS = (("light", 1440), ("dark", 1440), ("light", 390))
LIGHT, PHONE = LOOKS[:1], LOOKS[-1]
nightly = pytest.mark.nightly("static/", "templates/")
EVERY_LOOK = pytest.mark.parametrize(
    "looks",
    [pytest.param(LIGHT, id="light"), pytest.param(LOOKS[1:], id="dark-and-phone", marks=nightly)],
)
BOTH_WIDTHS = pytest.mark.parametrize("width", [1440, pytest.param(390, marks=nightly)])

# What axe is asked of a whole page: everything, but of colors, which take longer than all else together, only where a
# text has colors, a size or a place that none had on the pages before; in the dark, where a page has other colors and
# nothing else, of those alone.
OF_COLORS = ("color-contrast", "link-in-text-block")
ALL = {
    "resultTypes": ["violations"],
    "rules": {rule: {"enabled": False} for rule in OF_COLORS},
    "preload": False,  # each time it would ask for all styles again, for rules that are not used
}

SEEN_WITHOUT_FAULT: set[str] = set()
"""Colors of text that axe found readable, as `ASK` calls them."""

ASK = Path(__file__).with_name("contrast.js").read_text()


NONE_WANTED = "no address of this walk has what PLAYGROUND_ONLY says"


def is_wanted(address: str) -> bool:
    """Whether a walk visits a page now."""
    return os.environ.get("PLAYGROUND_ONLY", "") in address


def wear(page: Any, scheme: str, width: int) -> None:
    """Make a page look so, as wide; not again where it is: each time all is drawn anew."""
    if getattr(page, "scheme", None) != scheme:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.scheme = scheme  # until `conftest.page` hands it to another test
    if page.viewport_size != (size := {"width": width, "height": 844}):
        page.set_viewport_size(size)


def violations(page: Any, options: dict[str, Any] | None = ALL) -> list[str]:
    """What axe says of the page as it is now, without options of its colors alone: rule and first places."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    answer = page.evaluate(ASK, [options, sorted(SEEN_WITHOUT_FAULT)])
    SEEN_WITHOUT_FAULT.update(answer["readable"])
    return [
        f"{one['id']} {[' '.join(map(str, node['target'])) for node in one['nodes'][:3]]}"
        for one in answer["found"]
    ]


Looks = tuple[tuple[str, int], ...]


def seen_wrong(page: Any, name: str, looks: Looks = LIGHT) -> list[str]:
    """What is wrong with the page that is open, in each look, and whether its boxes fit on a phone, which stays."""
    found = []
    for scheme, width in (*looks, *(() if PHONE in looks else (PHONE,))):
        wear(page, scheme, width)
        if folder := os.environ.get("PLAYGROUND_SHOTS"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            shot = f"{name.strip('/').replace('/', '-').replace(' ', '-')}-{scheme}-{width}.png"
            # Without its caret hidden: the style for that is what the content policy refuses.
            page.screenshot(path=Path(folder) / shot, full_page=True, caret="initial")
        where, asked = f"{name}, {scheme} at {width}", None if scheme == "dark" else ALL
        if (scheme, width) in looks:
            found += [f"{where}: {violation}" for violation in violations(page, asked)]
        found += [f"{where}: {wrong}" for wrong in out_of_bounds(page)]
    return found


def what_is_wrong(
    page: Any,
    url: str,
    pages: dict[str, str],
    looks: Looks = LIGHT,
    more: Callable[[str], list[str]] = lambda name: [],
) -> list[str]:
    """`seen_wrong` of pages by name and path, with everything opened; and what `more` finds on each, by its name."""
    found = []
    if not any(map(is_wanted, pages)):
        pytest.skip(NONE_WANTED)
    for name, path in pages.items():
        if not is_wanted(name):
            continue
        wear(page, *LOOKS[0])
        page.goto(url + path)
        page.locator("details").evaluate_all("all => all.forEach(d => { d.open = true; })")
        found += seen_wrong(page, name, looks) + more(name)
    return found
