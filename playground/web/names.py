"""Long names in little room: the end, which tells them apart, is never cut; the whole is in the text."""

import re
from functools import lru_cache
from typing import Final, NamedTuple

SHORT: Final = 14
"""Names up to this length stand as they are."""
_LEAST_TAIL: Final = 4
_MOST_TAIL: Final = 12
_DOMAIN: Final = re.compile(r"^[a-z0-9-]+(?=\.)")


class NameParts(NamedTuple):
    """A name in the order of reading; `head` and `domain` may be cut, `tail` never."""

    head: str
    tail: str
    domain: str


@lru_cache(maxsize=8192)
def name_parts(name: str) -> NameParts:
    """Split a name before its last words of at least four characters, and its domain off.

    >>> name_parts("ip-10-0-131-74.eu-central-1.compute.internal")
    NameParts(head='ip-10-0-', tail='131-74', domain='.eu-central-1.compute.internal')
    >>> name_parts("gke-prod-pool-1-8f3a2c1d-x7kq")
    NameParts(head='gke-prod-pool-1-8f3a2c1d-', tail='x7kq', domain='')
    >>> name_parts("node-3")
    NameParts(head='', tail='node-3', domain='')
    """
    if len(name) <= SHORT:
        return NameParts("", name, "")
    found = _DOMAIN.match(name)
    host = found[0] if found else name
    domain = name[len(host) :]
    if domain and len(host) <= SHORT and "-" not in host:
        return NameParts("", host, domain)
    start = len(host)
    while start > 0 and len(host) - start < _LEAST_TAIL:
        start = host.rfind("-", 0, max(0, start - 1)) + 1
    if len(host) - start > _MOST_TAIL:
        start = len(host) - _LEAST_TAIL * 2
    return NameParts(host[:start], host[start:], domain)


def without_domain(name: str) -> str:
    """A name without its domain.

    >>> without_domain("ip-10-0-131-74.eu-central-1.compute.internal")
    'ip-10-0-131-74'
    >>> without_domain("node-3")
    'node-3'
    """
    return name.removesuffix(name_parts(name).domain)
