"""What axe says of a page, and whether it fits, as it looks in light, in the dark and on a phone.

With ``PLAYGROUND_SHOTS=DIR`` each page that is looked at is photographed there, to be looked at by people, too. With
``PLAYGROUND_ONLY=WORDS`` the walks over all pages visit those alone whose address, without its ids, has them in it.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

LOOKS = (("light", 1440), ("dark", 1440), ("light", 390))
PHONE = LOOKS[-1]

# What axe is asked: everything, and in the dark, where a page has other colors and nothing else, of those.
ALL = {"resultTypes": ["violations"]}
COLORS = ALL | {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}


NONE_WANTED = "no address of this walk has what PLAYGROUND_ONLY says"


def is_wanted(address: str) -> bool:
    """Whether a walk visits a page now."""
    return os.environ.get("PLAYGROUND_ONLY", "") in address


def wear(page: Any, scheme: str, width: int) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 844})


def violations(page: Any, options: dict[str, Any] = ALL) -> list[str]:
    """What axe says of the page as it is now: rule and first places."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    found = page.evaluate("async options => (await axe.run(document, options)).violations", options)
    return [
        f"{one['id']} {[' '.join(map(str, node['target'])) for node in one['nodes'][:3]]}" for one in found
    ]


def seen_wrong(page: Any, name: str, looks: tuple[tuple[str, int], ...] = LOOKS) -> list[str]:
    """What is wrong with the page that is open, in each look, the light first; the last one, a phone's, stays."""
    found = []
    for scheme, width in looks:
        wear(page, scheme, width)
        if folder := os.environ.get("PLAYGROUND_SHOTS"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            shot = f"{name.strip('/').replace('/', '-').replace(' ', '-')}-{scheme}-{width}.png"
            # Without its caret hidden: the style for that is what the content policy refuses.
            page.screenshot(path=Path(folder) / shot, full_page=True, caret="initial")
        where, asked = f"{name}, {scheme} at {width}", COLORS if scheme == "dark" else ALL
        found += [f"{where}: {violation}" for violation in violations(page, asked)]
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if wide > 0:
            found.append(f"{where}: {wide} px too wide")
    return found


def what_is_wrong(page: Any, url: str, pages: dict[str, str]) -> list[str]:
    """`seen_wrong` of pages by name and path, with everything opened."""
    found = []
    if not any(map(is_wanted, pages)):
        pytest.skip(NONE_WANTED)
    for name, path in pages.items():
        if not is_wanted(name):
            continue
        wear(page, *LOOKS[0])
        page.goto(url + path)
        page.locator("details").evaluate_all("all => all.forEach(d => { d.open = true; })")
        found += seen_wrong(page, name)
    return found
