"""Pages of a list: `{"items": [...], "next": path or null}`."""

from __future__ import annotations

from urllib.parse import urlencode

from rest_framework.request import Request


def next_page(request: Request, **changed: object) -> str | None:
    """The path of the next page: this request's with other parameters; None if one of them is None."""
    if None in changed.values():
        return None
    wanted = {key: values[-1] for key, values in request.GET.lists()} | changed
    return f"{request.path}?{urlencode(wanted)}"
