"""Walks a page by the Tab key: everything is reached in turn, and seen when it has the focus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Marks what a keyboard must reach: visible, enabled, and one of each group of radio buttons; of what is around the page
# itself (header, tabs, run bar) what no page before had. Keeps what has the focus at each key, before the key moves it.
MARK = Path(__file__).with_name("tabs.js").read_text()

# Focus is found again by the id after a part has been swapped for a newer one.
WITHOUT_ID = """() => [...document.querySelectorAll('[hx-trigger*=every][hx-swap^=outerHTML] [data-stop]')]
  .filter(el => !el.id).map(el => el.outerHTML.slice(0, 120))"""

MISSED = """() => {
  const met = new Set(window.met.map(at => at.stop));
  return [...document.querySelectorAll('[data-stop]')].filter(el => !met.has(el.dataset.stop))
    .map(el => el.outerHTML.slice(0, 120));
}"""

TAB = {"type": "rawKeyDown", "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}


class Walker:
    """Presses Tab on one page after the other; what was around a page before is not walked again."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.keys = page.context.new_cdp_session(page)  # one message for each key, not four
        self.around: list[str] = []

    def lost_on(self, name: str) -> list[str]:
        """What is not reached, or not seen, on the page that is open; in words."""
        page = self.page
        marked = page.evaluate(MARK, self.around)
        self.around += marked["news"]
        found = [f"{name}: would lose the focus: {html}" for html in page.evaluate(WITHOUT_ID)]
        for n_keys in (
            marked["n"] + 1,
            20,
            60,
        ):  # later: past what was around pages before, or newly swapped in
            for _ in range(n_keys):
                self.keys.send("Input.dispatchKeyEvent", TAB)
            missed = page.evaluate(MISSED)
            if not missed:
                break
        for at in {at["stop"]: at for at in page.evaluate("window.met")}.values():
            if not at["drawn"]:
                found.append(f"{name}: {at['name']} does not show that it has the focus")
            if not at["seen"]:
                found.append(f"{name}: {at['name']} is hidden while it has the focus")
        return found + [f"{name}: not reached: {html}" for html in missed]
