"""Who writes: the program at the other end of the request that is being answered.

A request has one author, and all that it writes is his; so the surface says it once, where the request comes in.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

MOST_CHARACTERS: Final = 200

_author: ContextVar[str] = ContextVar("author", default="")


def author() -> str:
    """The User-Agent of the request; empty for pages, and for what the site does itself."""
    return _author.get()


@contextmanager
def written_by(user_agent: str) -> Iterator[None]:
    """What is written within is this program's."""
    token = _author.set("".join(item for item in user_agent if item.isprintable())[:MOST_CHARACTERS])
    try:
        yield
    finally:
        _author.reset(token)
