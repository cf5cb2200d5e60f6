"""The manual's pages."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from playground.web import manual


@require_safe
def page(request: HttpRequest, name: str = manual.INDEX) -> HttpResponse:
    """A chapter; without a name the list of them."""
    try:
        found = manual.chapter(name)
    except KeyError:
        raise Http404(f'the manual has no chapter "{name}"') from None
    place = manual.CHAPTERS.index(name) if name in manual.CHAPTERS else -1
    chapters = [manual.chapter(one) for one in manual.CHAPTERS]
    return render(
        request,
        "manual/page.html",
        {
            "chapter": found,
            "chapters": chapters,
            "next": chapters[place + 1] if place + 1 < len(chapters) else None,
        },
    )
