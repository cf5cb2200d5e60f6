"""Where an extender's URL may lead: one resolved, permitted address, or a refusal in words.

A person writes these URLs, and the server follows them. So an address is looked up once, judged, and used as
judged; a name that resolves to something else a moment later gains nothing.
"""

import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from scheduler_core.schema.tables import table_beside

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


_NETWORKS: Final = {
    name: tuple(ipaddress.ip_network(text) for text in texts)
    for name, texts in table_beside(__package__, "outbound.yaml").items()
}
_GLOBAL_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""What IANA gives out; all of IPv6 that is outside of it is special."""
NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)


def embedded(address: Address) -> tuple[ipaddress.IPv4Address, ...]:
    """The IPv4 addresses a packet to an IPv6 address may end at, by any of the schemes that hide one in it."""
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    bits = int(address)
    found: list[int] = []
    if (
        any(address in network for network in _NETWORKS["last_32_bits"]) and bits > 1
    ):  # :: and ::1 are themselves
        found.append(bits & 0xFFFF_FFFF)
    if address in _NETWORKS["last_32_bits"][-1]:
        # RFC 6052, a prefix of 48 bits: two bytes, a zero byte, two bytes.
        found.append((bits >> 64 & 0xFFFF) << 16 | bits >> 40 & 0xFFFF)
    if address.sixtofour is not None:
        found.append(int(address.sixtofour))
    if address.teredo is not None:
        found += [int(part) for part in address.teredo]
    if bits >> 32 & 0xFFFF_FFFF in _ISATAP:
        found.append(bits & 0xFFFF_FFFF)
    return tuple(ipaddress.IPv4Address(number) for number in found)


def is_public(address: Address) -> bool:
    """Whether it is a single host of the public internet, by whatever way it is reached."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _NETWORKS["special_v4"])
    if not all(is_public(inner) for inner in embedded(address)):
        return False
    if address in NAT64 or address.ipv4_mapped is not None:
        return True
    return address in _GLOBAL_UNICAST and not any(address in network for network in _NETWORKS["special_v6"])


Resolve = Callable[[str, int], Sequence[str]]
OwnExtender = Callable[[str], bool]


class URLRefused(Exception):
    """A URL that may not be called; the message is for the person who wrote it."""


@dataclass(frozen=True, slots=True)
class OwnSite:
    """The playground itself, as its own workers reach it.

    Attributes
    ----------
    host, port
        Where it listens.
    host_header
        The name it answers to.
    """

    host: str
    port: int
    host_header: str


@dataclass(frozen=True, slots=True)
class OutboundPolicy:
    """Who may be called.

    Attributes
    ----------
    allowed_hosts
        ``host`` or ``host:port`` that may be called although they are inside the network.
    only_allowed
        No other may be called (team mode); else any public address may.
    own_site
        Where this playground listens.
    """

    allowed_hosts: frozenset[str] = frozenset()
    only_allowed: bool = False
    own_site: OwnSite | None = None


@dataclass(frozen=True, slots=True)
class Destination:
    """A judged address.

    Attributes
    ----------
    address
        To connect to; an IP address, never a name.
    host_header
        What the request's `Host` says.
    server_name
        Whose certificate is expected.
    is_own
        It is the playground's own mock extender.
    """

    scheme: str
    address: str
    port: int
    host_header: str
    server_name: str
    target: str
    is_own: bool = False


def resolve_host(host: str, port: int) -> Sequence[str]:
    """Addresses of a host, in the resolver's order."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def destination(
    url: str,
    policy: OutboundPolicy,
    *,
    is_own: OwnExtender = lambda path: False,
    resolve: Resolve = resolve_host,
) -> Destination:
    """Judge a URL and pin its address.

    Parameters
    ----------
    url
        As the extender's configuration makes it.
    is_own
        Whether a path is that of a mock extender of the cluster at hand. Its id decides, whatever the URL's
        host: such a call goes to this playground, so a scenario works on any server.

    Raises
    ------
    Refused
    """
    parts, host, port = _parsed(url)
    target = parts.path or "/"
    if parts.query:
        target = f"{target}?{parts.query}"
    own = policy.own_site
    if own is not None and is_own(parts.path):
        return Destination("http", own.host, own.port, own.host_header, own.host, target, is_own=True)
    bracketed = f"[{host}]" if ":" in host else host
    is_listed = bool(policy.allowed_hosts & {host, bracketed, f"{bracketed}:{port}"})
    if policy.only_allowed and not is_listed:
        raise URLRefused(f'host "{bracketed}:{port}" is not on the list of hosts extenders may have here')
    try:
        found = resolve(host, port)
    except (OSError, UnicodeError) as error:
        raise URLRefused(f"dial tcp: lookup {host}: no such host") from error
    if not found:
        raise URLRefused(f"dial tcp: lookup {host}: no such host")
    addresses = [ipaddress.ip_address(text.partition("%")[0]) for text in found]
    for address in addresses:
        # One bad address among several is enough: which one is used would be up to the resolver's order.
        _judge(address, host, is_listed=is_listed)
    return Destination(parts.scheme, str(addresses[0]), port, parts.netloc.rpartition("@")[2], host, target)


def host_of(url: str) -> str:
    """``host:port`` as a list of allowed hosts names it; empty for what is no URL."""
    try:
        _, host, port = _parsed(url)
    except URLRefused:
        return ""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def may_be_called(url: str, policy: OutboundPolicy) -> bool:
    """Whether a URL with a host inside the network is on the list; one with a name is judged when it is called."""
    try:
        _, host, port = _parsed(url)
        address = ipaddress.ip_address(host)
    except URLRefused:
        return False
    except ValueError:
        if host != "localhost" and not host.endswith(".localhost"):
            return True
        address = ipaddress.ip_address("127.0.0.1")
    bracketed = f"[{host}]" if ":" in host else host
    return is_public(address) or bool(policy.allowed_hosts & {host, bracketed, f"{bracketed}:{port}"})


def _parsed(url: str) -> tuple[SplitResult, str, int]:
    if any(ord(letter) <= 32 or ord(letter) == 127 for letter in url):
        raise URLRefused("the URL holds a space or a control character")
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise URLRefused(f"not a URL: {error}") from error
    if parts.scheme not in ("http", "https"):
        raise URLRefused(f'unsupported protocol scheme "{parts.scheme}"')
    if not parts.hostname:
        raise URLRefused("no Host in request URL")
    if parts.username is not None:
        raise URLRefused("a user name in the URL is not sent")
    return parts, parts.hostname.lower().rstrip("."), port


def _judge(address: Address, host: str, *, is_listed: bool) -> None:
    inner = embedded(address)
    if any(
        end.is_link_local or any(end in one for one in _NETWORKS["metadata"]) for end in (address, *inner)
    ):
        raise URLRefused(f"{host} has the address {address}, which no extender may have")
    if all(end.is_multicast or end.is_unspecified for end in inner or (address,)):
        raise URLRefused(f"{host} has the address {address}, which is not the address of one host")
    if not is_listed and not is_public(address):
        raise URLRefused(
            f"{host} has the address {address}, which is inside this server's network; "
            "its owner allows it on the cluster's configuration page, or by PLAYGROUND_EXTENDER_HOSTS"
        )
