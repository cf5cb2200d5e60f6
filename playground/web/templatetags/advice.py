"""What the pages of questions need beside the common filters."""

from typing import Any

from django.template import Library

register = Library()


@register.filter
def lastpiece(name: Any) -> str:
    """The end of a name that tells it from others, for narrow places.

    >>> lastpiece("node-b1"), lastpiece("pool-general-0012")
    ('b1', '0012')
    """
    text = str(name)
    piece = text.rpartition("-")[2] or text
    return piece[-5:]


@register.filter
def times(number: int, factor: int) -> int:
    """A product, for places in a drawing."""
    return number * factor


@register.filter
def minus(number: int, less: int) -> int:
    """A difference."""
    return number - less
