"""From where a request comes, also behind proxies."""

from __future__ import annotations

import logging
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

from django.conf import settings
from django.http import HttpRequest

logger = logging.getLogger(__name__)

IPV6_PREFIX: Final = 64
"""A client that has one IPv6 address has the 2^64 around it."""
_warned: set[str] = set()


def client_address(request: HttpRequest) -> str:
    """The address a request comes from; empty if the server does not know.

    `X-Forwarded-For` is believed as far as its hops are in `PLAYGROUND_TRUSTED_PROXIES`: read from its end, the first
    address that is none of ours is the client's. What a client wrote before that is not looked at.
    """
    address = _parsed(request.META.get("REMOTE_ADDR", ""))
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "")
    if forwarded and not _is_trusted(address):
        _warn_of_a_proxy(address)
    hops = [hop.strip() for hop in forwarded.split(",")] if forwarded else []
    while hops and _is_trusted(address):
        before = _parsed(hops.pop())
        if before is None:
            break
        address = before
    return "" if address is None else str(address)


def origin_of(address: str) -> str:
    """The addresses of one client: an IPv4 address, or the /64 of an IPv6 one."""
    parsed = _parsed(address)
    if isinstance(parsed, IPv6Address):
        return str(IPv6Network((parsed, IPV6_PREFIX), strict=False))
    return address


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text.strip().removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def _is_trusted(address: IPv4Address | IPv6Address | None) -> bool:
    if address is None:
        # A server that listens on a Unix socket has no address of its peer.
        return bool(settings.PLAYGROUND_TRUST_UNIX_SOCKET)
    return any(address in network for network in settings.PLAYGROUND_TRUSTED_PROXIES)


def _warn_of_a_proxy(address: IPv4Address | IPv6Address | None) -> None:
    """Say once what is likely forgotten: behind an unknown proxy everybody shares its address."""
    name = str(address)
    if address is not None and address.is_private and not _warned:
        _warned.add(name)
        logger.warning(
            "a request from %s has X-Forwarded-For; if that is your proxy, name it in PLAYGROUND_TRUSTED_PROXIES,"
            " or all people behind it count as one address",
            name,
        )
