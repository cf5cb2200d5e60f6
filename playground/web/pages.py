"""Where pages are led to from: the palette, a cluster's header, and Help; `pages.yaml` is their table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.urls import reverse

from scheduler_core.schema.tables import table_beside

INDEX: Final = "README"
"""The first chapter of the manual."""


@dataclass(frozen=True, slots=True)
class Page:
    """A row of the table; what is empty is not led to from there.

    Attributes
    ----------
    find, about
        Its words in the palette.
    tab
        Its words in a cluster's header.
    help
        A chapter of the manual, and a heading of it.
    """

    route: str
    find: str = ""
    about: str = ""
    tab: str = ""
    help: str = ""
    of_site: bool = False

    @property
    def key(self) -> str:
        """The name views have for the tab."""
        return self.route.partition(":")[2]


PAGES: Final = {
    route: Page(route, **row) for route, row in table_beside(__package__ or __name__, "pages.yaml").items()
}
OF_A_BRANCH: Final = "web:difference"
OF_A_LIVE_ONE: Final = "web:followed"


def tabs_of(cluster: Any) -> list[tuple[Page, str]]:
    """The tabs of a cluster with their paths; a branch has its difference before all others."""
    rows = [
        page
        for page in PAGES.values()
        if page.tab
        and (page.route != OF_A_BRANCH or getattr(cluster, "parent_id", None))
        and (page.route != OF_A_LIVE_ONE or getattr(cluster, "is_followed", False))
    ]
    return [(page, reverse(page.route, args=[cluster.public_id])) for page in rows]


def help_path(area: str, page: str) -> str:
    """The path of the chapter that helps with a page."""
    for route in (f"{area}:{page}", f"{area}:"):
        if route in PAGES and PAGES[route].help:
            chapter, _, heading = PAGES[route].help.partition("#")
            return f"/manual/{'' if chapter == INDEX else f'{chapter}/'}{f'#{heading}' if heading else ''}"
    return "/manual/"
