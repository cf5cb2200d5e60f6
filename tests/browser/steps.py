"""The steps of a forked scenario, done on its Share page."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect


def do_every_step(page: Any, work: Callable[[], Any]) -> None:
    """Press "Do the next step" until all are done; the page is the Share page, still loading or loaded."""
    told = page.locator("#steps header .sub")
    expect(told).to_contain_text("0 of ")
    n_steps = int(told.inner_text().split()[2])
    for n_done in range(1, n_steps + 1):
        page.get_by_role("button", name="Do the next step").click()
        expect(told).to_contain_text(f"{n_done} of {n_steps} done")
        work()
