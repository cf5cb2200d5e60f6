"""Numbers as people read them: cpu in cores, memory in Gi, durations and the cluster's own clock."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from scheduler_core.objects.fields import format_time_ns

GIB = 1024**3
MIB = 1024**2
SECOND_NS = 1_000_000_000


def cores(milli: int | None) -> str:
    """Return millicores as cores with at most two digits.

    >>> cores(7100), cores(250), cores(8000), cores(5)
    ('7.1', '0.25', '8', '0.005')
    """
    value = (milli or 0) / 1000
    digits = 3 if 0 < value < 0.01 else 2
    return f"{value:,.{digits}f}".rstrip("0").rstrip(".") or "0"


def gib(size_bytes: int | None) -> str:
    """Return bytes in Gi with at most one digit, two below one Gi.

    >>> gib(32 * 1024**3), gib(134217728), gib(23756800000)
    ('32', '0.12', '22.1')
    """
    value = (size_bytes or 0) / GIB
    digits = 1 if value >= 1 else 3 if 0 < value < 0.01 else 2
    text = f"{value:,.{digits}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def memory(size_bytes: int | None) -> str:
    """Return bytes with the unit that suits them.

    >>> memory(4 * 1024**3), memory(64 * 1024**2), memory(0)
    ('4 Gi', '64 Mi', '0')
    """
    size = size_bytes or 0
    if size == 0:
        return "0"
    if size < GIB:
        return f"{size / MIB:,.0f} Mi" if size >= MIB else f"{size / 1024:,.0f} Ki"
    return f"{gib(size)} Gi"


def requested(
    cpu_milli: int | None, memory_bytes: int | None, extended: Mapping[str, int] | None = None
) -> str:
    """Return what a pod requests; a resource of which it requests nothing is left out.

    >>> requested(1500, 4 * 1024**3, {"nvidia.com/gpu": 2}), requested(1000, 0, {}), requested(0, 0, {})
    ('1.5 CPU, 4 Gi memory, 2 nvidia.com/gpu', '1 CPU', 'nothing')
    """
    words = [f"{cores(cpu_milli)} CPU"] if cpu_milli else []
    words += [f"{memory(memory_bytes)} memory"] if memory_bytes else []
    for name, amount in (extended or {}).items():
        in_bytes = name == "ephemeral-storage" or name.startswith("hugepages-")
        words += [f"{memory(amount) if in_bytes else amount} {name}"] if amount else []
    return ", ".join(words) or "nothing"


def percent(part: float | None, whole: float | None) -> int:
    """Return the share in whole percent, 0 when there is nothing to share."""
    return round(100 * (part or 0) / whole) if whole else 0


def duration(span_ns: int | None) -> str:
    """Return a span in words short enough for a queue lane.

    >>> duration(400_000_000), duration(65_000_000_000), duration(7_200_000_000_000)
    ('0.4 s', '1 min 5 s', '2 h')
    """
    span_s = (span_ns or 0) / SECOND_NS
    for size, unit, part, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if span_s >= size:
            rest = int(span_s % size // part)
            return f"{int(span_s // size)} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{span_s:.1f} s"


def took(span_ms: int) -> str:
    """Return how long a worker took.

    >>> took(629), took(45_794), took(65_000)
    ('629 ms', '45.8 s', '1 min 5 s')
    """
    return duration(span_ms * 1_000_000) if span_ms >= 1000 else f"{span_ms} ms"


def since_start(at_ns: int | None, start_ns: int | None) -> str:
    """Return a moment as minutes and seconds since the cluster's clock started.

    >>> since_start(192_400_000_000, 0), since_start(3_723_000_000_000, 0)
    ('03:12.4', '1:02:03.0')
    """
    if at_ns is None or start_ns is None:
        return ""
    span = max(0, at_ns - start_ns)
    tenths = span // 100_000_000
    hours, rest = divmod(tenths, 36_000)
    minutes, rest = divmod(rest, 600)
    seconds = f"{rest // 10:02}.{rest % 10}"
    return f"{hours}:{minutes:02}:{seconds}" if hours else f"{minutes:02}:{seconds}"


def rfc3339(at_ns: int | None) -> str:
    """Return virtual time as the API writes it."""
    return "" if at_ns is None else format_time_ns(at_ns)


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
def resource_words(resource: str) -> str:
    """A resource as people call it.

    >>> resource_words("cpu"), resource_words("nvidia.com/gpu"), resource_words("memory")
    ('CPU', 'GPU', 'memory')
    """
    name = resource.rpartition("/")[2]
    return name.upper() if name in ("cpu", "gpu") else name


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
    if len(name) <= SHORT or " " in name:
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
