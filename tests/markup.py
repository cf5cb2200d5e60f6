"""What a page's HTML says, however its template is indented."""

import re
from typing import Any


def html_of(response: Any) -> str:
    """
    The HTML of an answer with white space as a browser draws it: one space for any run of it, none at the
    beginning and end of an element and none between two tags.
    """
    text = re.sub(r"\s+", " ", response.content.decode())
    text = re.sub(r"(<[a-z][^<>]*>) ", r"\1", text)
    return re.sub(r" (?=</)|(?<=>) (?=<)", "", text)


def words(response: Any) -> str:
    """What an answer says without its tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))
