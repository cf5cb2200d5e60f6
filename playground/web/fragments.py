"""Fragments a live page asks for again: is this one another than the one it shows?"""

import hashlib
import re

_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="\w+"')


def digest_of(html: str) -> str:
    """A short digest of a rendered fragment; the token of its forms, masked anew every time, does not count."""
    return hashlib.sha256(_TOKEN.sub("", html).encode()).hexdigest()[:10]
