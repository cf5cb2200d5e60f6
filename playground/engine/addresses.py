"""Which IP addresses are hosts of the public internet, and which lead back inside.

The ranges are those of IANA's special-purpose address registries (RFC 6890 and its updates), written out: Python's own
`is_global` differs from release to release, and calls public what a router of this network may lead inside.
"""

import ipaddress
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(text) for text in texts)


_SPECIAL_V4: Final = _networks(
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",  # carriers' own NAT
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",  # IETF protocol assignments
    "192.0.2.0/24",  # documentation
    "192.88.99.0/24",  # relays of 6to4, deprecated
    "192.168.0.0/16",
    "198.18.0.0/15",  # benchmarks
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
)
_GLOBAL_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""What IANA gives out; all of IPv6 that is outside of it is special."""
_SPECIAL_V6: Final = _networks(
    "2001::/23",  # IETF protocol assignments: Teredo, benchmarks, ORCHID and others
    "2001:db8::/32",  # documentation
    "2002::/16",  # 6to4
    "3fff::/20",  # documentation
)
_LAST_32_BITS: Final = _networks(
    "::/96",  # IPv4-compatible
    "::ffff:0:0/96",  # IPv4-mapped
    "::ffff:0:0:0/96",  # IPv4-translated (SIIT)
    "64:ff9b::/96",  # NAT64
    "64:ff9b:1::/48",  # NAT64 of this very network
)
NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)


def embedded(address: Address) -> tuple[ipaddress.IPv4Address, ...]:
    """The IPv4 addresses a packet to an IPv6 address may end at, by any of the schemes that hide one in it."""
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    bits = int(address)
    found: list[int] = []
    if any(address in network for network in _LAST_32_BITS) and bits > 1:  # :: and ::1 are themselves
        found.append(bits & 0xFFFF_FFFF)
    if address in _LAST_32_BITS[-1]:
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
        return not any(address in network for network in _SPECIAL_V4)
    if not all(is_public(inner) for inner in embedded(address)):
        return False
    if address in NAT64 or address.ipv4_mapped is not None:
        return True
    return address in _GLOBAL_UNICAST and not any(address in network for network in _SPECIAL_V6)
