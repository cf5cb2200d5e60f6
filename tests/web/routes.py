"""Every route of the site, which of them show a page, and where that page is.

Pages that need no argument, or the id of a cluster alone, are found here by themselves, and walked by
`tests.web.test_pages`, `test_words`, `tests.browser.test_pages`, `test_keyboard` and `test_every_page`.
Of the others `MORE` has an address in a small cluster, and `tests.browser.test_every_page` one in a real one's size.
"""

import re
from typing import Final

from django.urls import URLPattern

from playground.web.routes import patterns
from tests.tables import table

ROUTES: Final[dict[str, URLPattern]] = {
    f"{area}:{route.name}": route
    for area in ("web", "scenarios", "accounts")
    for route in patterns(area)
    if route.name and route.name != "page-without-slash"
}

NO_PAGES: Final = {route: why for why, routes in table(__file__, "NO_PAGES").items() for route in routes}
"""Routes that show no page of their own, each with the reason."""

C = "/c/{c}/"
PLAIN: Final[dict[str, str]] = {
    name: re.sub(r"<\w+:cluster_id>", "{c}", f"/{route.pattern}")
    for name, route in ROUTES.items()
    if {*route.pattern.converters} <= {"cluster_id"}
    and name not in NO_PAGES
    and not name.startswith("accounts:")
}
"""Pages that need nothing, or ``{c}``: route -> address. Those of accounts are of a site with a login."""

MORE: Final[dict[str, tuple[str, ...]]] = table(__file__, "MORE")
"""Addresses in `factories.full_cluster` of pages that need more, or of which one says too little."""

PAGES: Final = {**{route: (address,) for route, address in PLAIN.items()}, **MORE}
"""Route -> its addresses in `factories.full_cluster`."""
ADDRESSES: Final = tuple((route, address) for route, addresses in PAGES.items() for address in addresses)
