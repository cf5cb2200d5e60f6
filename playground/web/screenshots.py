"""Pictures of pages in light, dark and phone width, taken with a headless Chromium."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Look:
    """One way to look at a page."""

    name: str
    width: int
    height: int
    scheme: str
    is_phone: bool = False


LOOKS = (
    Look("light", 1440, 900, "light"),
    Look("dark", 1440, 900, "dark"),
    Look("phone", 390, 844, "light", is_phone=True),
)


def find_chromium() -> str | None:
    """Path of a Chromium on this machine."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


@contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium.

    Raises
    ------
    RuntimeError
        There is none on this machine, or Playwright (a development dependency) is not installed.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise RuntimeError("playwright is not installed; it comes with the dev extra") from error
    path = find_chromium()
    if path is None:
        raise RuntimeError("there is no Chromium on this machine")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--disable-dev-shm-usage"])
        try:
            yield started
        finally:
            started.close()


def shoot(
    started: Any, base_url: str, pages: Iterable[tuple[str, str]], directory: Path, *, whole: bool = False
) -> Iterator[Path]:
    """Take each page in every look; yields the files as they are written.

    Parameters
    ----------
    started
        From `browser`.
    pages
        ``(name, path)``.
    whole
        The whole page instead of the first screen.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for look in LOOKS:
        context = started.new_context(
            viewport={"width": look.width, "height": look.height},
            color_scheme=look.scheme,
            has_touch=look.is_phone,
            reduced_motion="reduce",
        )
        page = context.new_page()
        for name, path in pages:
            page.goto(f"{base_url}{path}", wait_until="load")
            file = directory / f"{name}-{look.name}.png"
            page.screenshot(path=str(file), full_page=whole)
            yield file
        context.close()
