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
from markdown_it import MarkdownIt
from markdown_it.token import Token

from playground.web.pages import INDEX

CHAPTERS: Final = (
    "reading", "import", "scenarios", "releases", "plan", "extenders", "plugins", "team", "api", "drive", "glossary",
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
    for token in tokens:
        if token.children:
            token.children = _with_paths(token.children)
    html = nh3.clean(
        reader.renderer.render(tokens, reader.options, {}),
        attributes={"*": {"id"}, "a": {"href"}, "code": {"class"}, "td": {"style"}, "th": {"style"}},
        url_schemes={"http", "https"},
        link_rel="noopener",
        filter_style_properties=set(),
    )
    # What scrolls sideways is reached with the keyboard.
    return Chapter(name, title, html.replace("<pre>", '<pre tabindex="0">'), tuple(headings))


def _ident(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower().replace("'", "")).strip("-")


def _with_paths(tokens: list[Token]) -> list[Token]:
    """Links between files of docs/ as paths of the site; of a link to another file only its words are left."""
    kept: list[Token] = []
    leaves_out = False
    for token in tokens:
        if token.type == "link_open":
            target = str(token.attrGet("href"))
            file, _, heading = target.partition("#")
            name = file.removesuffix(".md")
            leaves_out = False
            if file.endswith(".md") and (name in CHAPTERS or name == INDEX):
                path = "/manual/" if name == INDEX else f"/manual/{name}/"
                token.attrSet("href", f"{path}#{heading}" if heading else path)
            elif not target.startswith(("http:", "https:", "/", "#")):
                leaves_out = True
        if not (leaves_out and token.type in ("link_open", "link_close")):
            kept.append(token)
    return kept


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
