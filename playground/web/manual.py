"""The manual: docs/ of the tree as pages, and which chapter helps with which page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

import nh3
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.templatetags.static import static
from markdown_it import MarkdownIt

from playground.web.pages import INDEX

CHAPTERS: Final = (
    "reading", "import", "follow", "scenarios", "releases", "plan", "controllers", "extenders", "plugins", "team",
    "api", "drive", "glossary",
)  # fmt: skip
"""Their order; each is a file of docs/."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """One page of the manual.

    Attributes
    ----------
    name : str
        Its file, without `.md`.
    html : str
        Sanitised.
    headings : tuple of (str, str)
        (id, words) of its second level.
    """

    name: str
    title: str
    html: str
    headings: tuple[tuple[str, str], ...]


def folder() -> Path:
    return Path(settings.RESOURCES) / "docs"


@cache
def chapter(name: str) -> Chapter:
    """A chapter, rendered.

    Raises
    ------
    KeyError
        There is none of this name.
    """
    if name != INDEX and name not in CHAPTERS:
        raise KeyError(name)
    # HTML inside of Markdown is words, and what comes out is sanitised all the same.
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse((folder() / f"{name}.md").read_text(encoding="utf-8"))
    title, headings = "", []
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            ident = _ident(inline.content)
            token.attrSet("id", ident)
            if token.tag == "h1":
                title = inline.content
            elif token.tag == "h2":
                headings.append((ident, inline.content.replace("`", "")))
        elif token.type == "fence":
            token.info = token.info.partition(" ")[0]
    html = nh3.clean(
        reader.renderer.render(tokens, reader.options, {}),
        attribute_filter=_with_path,
        attributes={
            "*": {"id"},
            "a": {"href"},
            "img": {"src", "alt"},
            "code": {"class"},
            "td": {"style"},
            "th": {"style"},
        },
        url_schemes={"http", "https"},
        link_rel="noopener",
        filter_style_properties=set(),
    )
    # Of a link that leads nowhere here only its words are left.
    html = re.sub(r'<a rel="noopener">(.*?)</a>', r"\1", html, flags=re.S)
    # What scrolls sideways is reached with the keyboard.
    return Chapter(name, title, html.replace("<pre>", '<pre tabindex="0">'), tuple(headings))


def _ident(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower().replace("'", "")).strip("-")


def _with_path(tag: str, attribute: str, value: str) -> str | None:
    """The target of a link: of one to a file of docs/ its path on the site, of one to another file none.

    A picture of docs/pictures/ is a static file.
    """
    if attribute == "src":
        return static(value) if re.fullmatch(r"pictures/[a-z-]+\.jpg", value) else None
    file, _, heading = value.partition("#")
    name = file.removesuffix(".md")
    if attribute != "href" or value.startswith(("http:", "https:", "/", "#")):
        return value
    if not file.endswith(".md") or name not in (*CHAPTERS, INDEX):
        return None
    path = "/manual/" if name == INDEX else f"/manual/{name}/"
    return f"{path}#{heading}" if heading else path


def page(request: HttpRequest, name: str = INDEX) -> HttpResponse:
    """A chapter; without a name the list of them."""
    try:
        found = chapter(name)
    except KeyError:
        raise Http404(f'the manual has no chapter "{name}"') from None
    place = CHAPTERS.index(name) if name in CHAPTERS else -1
    chapters = [chapter(one) for one in CHAPTERS]
    return render(
        request,
        "manual/page.html",
        {
            "chapter": found,
            "chapters": chapters,
            "next": chapters[place + 1] if place + 1 < len(chapters) else None,
        },
    )
