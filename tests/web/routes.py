"""Every route of the site, which of them show a page, and where that page is.

Pages that need no argument, or the id of a cluster alone, are found here by themselves, and walked by
`tests.web.test_pages`, `test_words`, `test_manual`, `tests.browser.test_pages`, `test_keyboard` and `test_every_page`.
Of the others `MORE` has an address in a small cluster, and `tests.browser.test_every_page` one in a real one's size.
"""

import re
from typing import Final

from django.urls import URLPattern

from playground.web.routes import patterns

ROUTES: Final[dict[str, URLPattern]] = {
    f"{area}:{route.name}": route
    for area in ("web", "scenarios", "accounts")
    for route in patterns(area)
    if route.name and route.name != "page-without-slash"
}

POSTED = "is posted to and leads to another page"
PART = "is a part of another page, asked for by that page"
FILE = "answers with a file"
NO_PAGES: Final = {
    **{
        f"web:{name}": POSTED
        for name in (
            "watch", "draft-cancel", "draft-commit", "run", "clock", "run-cancel", "cordon", "permit", "apply-branch",
            "undo", "act", "try", "question-cancel", "edit-branch", "plan-branch", "plan-share", "verdict-end",
            "object-delete", "cluster-action",
        )
    },
    **{f"scenarios:{name}": POSTED for name in (
        "verify", "fork", "branch", "gallery-large", "gallery-open", "compare-delete", "replay-branch", "next-step",
    )},
    **{
        f"accounts:{name}": POSTED
        for name in (
            "logout", "token-delete", "sessions-end", "session-end", "team-new", "team-invite", "team-member",
            "team-withdraw", "people-invite", "people-withdraw", "people-reset", "people-action",
        )
    },
    **dict.fromkeys(("web:live", "web:ticks", "web:inspector", "scenarios:proof"), PART),
    **dict.fromkeys(("web:verdict-answer", "web:verdict-cluster", "web:export"), FILE),
    **{f"scenarios:{name}": FILE for name in ("saved", "raw", "oembed")},
    "scenarios:gallery-show": "leads to the page of the share",
    "scenarios:whole-cycle": PART,
}  # fmt: skip
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

MORE: Final[dict[str, tuple[str, ...]]] = {
    "web:difference": (),  # of a branch
    "web:manual-chapter": ("/manual/reading/",),
    "web:board": (C, f"{C}?node=node-3", f"{C}?view=heat", f"{C}?view=table"),
    "web:settings": (f"{C}cluster/?confirm=delete",),
    "web:pod": (f"{C}pods/default/train-2/",),
    "web:fix": (f"{C}pods/default/train-2/fix/",),
    "web:object": (f"{C}objects/Node/-/node-1/", f"{C}objects/Pod/default/train-2/"),
    "web:objects-of-kind": (f"{C}objects/Node/",),
    "web:cycle": tuple(f"{C}cycles/{number}/" for number in range(1, 10)),
    "web:cycle-why": (f"{C}cycles/3/why-not/",),
    "web:cycle-devices": (f"{C}cycles/3/devices/",),
    "web:weights": (f"{C}cycles/1/weights/",),
}
"""Addresses in `factories.full_cluster` of pages that need more, or of which one says too little."""

PAGES: Final = {**{route: (address,) for route, address in PLAIN.items()}, **MORE}
"""Route -> its addresses in `factories.full_cluster`."""
ADDRESSES: Final = tuple((route, address) for route, addresses in PAGES.items() for address in addresses)
