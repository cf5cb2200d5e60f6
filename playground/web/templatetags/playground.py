"""Small things every template needs: icons, amounts, and words of plugins that may break."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.template import Library
from django.utils import timezone
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from playground.bodies import size_words
from playground.clusters.history.queue import LANE_TITLES
from playground.web import amounts
from playground.web.amounts import name_parts
from playground.web.looks import outcome_of
from playground.web.pages import tabs_of
from scheduler_core.fork import POOL_LABELS
from scheduler_core.framework.record import headline, of_one, placed
from scheduler_core.releases import release_from

register = Library()

register.filter("cores", amounts.cores)
register.filter("gib", amounts.gib)
register.filter("memory", amounts.memory)
register.filter("duration", amounts.duration)
register.filter("took", amounts.took)
register.filter("resource_words", amounts.resource_words)
register.filter("since", amounts.since_start)
register.filter("rfc3339", amounts.rfc3339)
register.filter("patch", lambda document: release_from(document).patch)
register.filter("release_title", lambda document: release_from(document).title)
register.simple_tag(tabs_of)

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[/-])|(?<=\.)(?!\d)")


@register.simple_tag
@lru_cache(maxsize=512)  # a page draws some of them a thousand times
def icon(name: str, label: str = "", size: str = "") -> SafeString:
    """Draw a symbol of components/icons.html; with a label it speaks, without it is decoration."""
    css = "i i-s" if size == "s" else "i"
    if label:
        return format_html(
            '<svg class="{}" role="img" aria-label="{}"><use href="#i-{}"/></svg>', css, label, name
        )
    return format_html('<svg class="{}" aria-hidden="true"><use href="#i-{}"/></svg>', css, name)


@register.simple_tag
def node_boxes(nodes: Sequence[Mapping[str, Any]], base: str = "") -> SafeString:
    """Draw nodes of a `view_look`, as links where there is a query to open them with: a page has up to a thousand."""
    drawn = []
    for node in nodes:
        css, label, name = node["css"], escape(node["label"]), escape(node["name"])
        if base:
            href = f"{escape(base)}node={name}#inspector"
            begin = f'<a class="nd{css}" id="node-{name}" href="{href}" aria-label="{label}">'
        else:
            begin = f'<span class="nd{css}" role="img" aria-label="{label}" title="{name}">'
        drawn.append(f"{begin}{_node_bars(node)}</{'a' if base else 'span'}>")
    return mark_safe("".join(drawn))


def _node_bars(node: Mapping[str, Any]) -> str:
    tail = f'<text x="3" y="10">{escape(node["tail"])}</text>' if node["tail"] else ""
    paths = "".join(f'<path class="{css}" d="{path}"/>' for css, path in node["paths"])
    pods = "".join(
        f'<g><title>{escape(pod["title"])}</title><path class="{pod["css"]}" d="{pod["path"]}"/>'
        + (f'<path class="{pod["over"]}" d="{pod["path"]}"/>' if pod["over"] else "")
        + (
            f'<text class="on" x="{pod["x"]}" y="{pod["y"]}">{escape(pod["text"])}</text>'
            if pod["text"]
            else ""
        )
        + "</g>"
        for pod in node["pods"]
    )
    return f'<svg width="{node["width"]}" height="{node["height"]}">{tail}{paths}{pods}</svg>'


@register.filter
def breakable(name: Any) -> SafeString:
    """Let a camel case name or a path break at its words, and no number.

    >>> breakable("NodeResourcesFit"), breakable("15.89 of a.b")
    ('Node<wbr>Resources<wbr>Fit', '15.89 of a.<wbr>b')
    """
    return format_html_join(mark_safe("<wbr>"), "{}", ((part,) for part in _WORD_START.split(str(name))))


@register.filter
def as_code(words: str) -> SafeString:
    """Draw what is between backticks as code.

    >>> as_code("by ``name``, `a & b`")
    'by <code>name</code>, <code>a &amp; b</code>'
    """
    parts = re.split(r"`+([^`]+)`+", words)
    return mark_safe(
        "".join(f"<code>{escape(part)}</code>" if i % 2 else escape(part) for i, part in enumerate(parts))
    )


@register.filter
def requests(pod: Any) -> str:
    """Tell what a pod requests, in words."""
    return amounts.requested(pod.cpu_milli, pod.memory_bytes, pod.extended)


@register.filter
@lru_cache(maxsize=8192)
def shortened(name: str) -> SafeString:
    """Draw a long name so that it may be cut in the middle; the whole of it is its text and its title.

    >>> shortened("node-3")
    'node-3'
    >>> shortened("ip-10-0-131-74.eu-central-1.compute.internal")[:80]
    '<span class="nm" title="ip-10-0-131-74.eu-central-1.compute.internal"><span clas'
    """
    head, tail, domain = name_parts(str(name))
    if not head and not domain:
        return format_html("{}", tail)
    before = format_html('<span class="h">{}</span>', head) if head else ""
    after = format_html('<span class="dm">{}</span>', domain) if domain else ""
    return format_html('<span class="nm" title="{}">{}<b>{}</b>{}</span>', name, before, tail, after)


@register.simple_tag
def upload_limit() -> SafeString:
    """Attributes of a field for a dump: its limit, and the message beyond it (playground.js)."""
    most = settings.PLAYGROUND_MAX_UPLOAD_BYTES
    return format_html('data-most="{}" data-too-large="{}"', most, size_words("{size}"))


@register.simple_tag(takes_context=True)
def href(context: Any, **changes: Any) -> str:
    """The query of this board with changes: `{% href view="table" %}`."""
    return str(context["address"].href(**changes))


@register.filter
def label_words(label: str) -> str:
    """Name a label of nodes: a cloud's pool is a pool, else the part after the domain.

    >>> label_words("topology.kubernetes.io/zone"), label_words("karpenter.sh/nodepool")
    ('zone', 'pool')
    """
    return "pool" if label in POOL_LABELS else label.rpartition("/")[2].replace("-", " ")


@register.filter
def lane(key: str) -> str:
    """Name a lane of the queue as the board does.

    >>> lane("backoff")
    'backoffQ'
    """
    return LANE_TITLES.get(key, key)


@register.filter
def thousands(number: Any) -> str:
    """Write an int with separators; anything else as it is."""
    return f"{number:,}" if isinstance(number, int) else str(number)


@register.filter
def signed(number: int) -> str:
    """Write a difference with its sign (and a real minus)."""
    return f"+{number:,}" if number > 0 else f"−{-number:,}"


@register.filter
def ordinal(number: int | None) -> str:
    """1st, 2nd, 3rd, 4th, 11th."""
    if number is None:
        return ""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


_AVAILABLE = re.compile(r"^(\d+/\d+) nodes are available: ")


@register.filter
def brief(words: str) -> str:
    """A FailedScheduling message for a narrow column: counts and reasons without the words around them.

    >>> brief("0/3 nodes are available: 2 node(s) were unschedulable, 1 Insufficient cpu. no new claims")
    '0/3: 2 unschedulable, 1 Insufficient cpu.'
    """
    found = _AVAILABLE.match(words)
    if not found:
        return words
    rest = re.split(r"\. (?=preemption:|no new claims)", words[found.end() :])[0].removesuffix(".")
    rest = re.sub(r"node\(s\) (had |were |didn't |did not )?", _not, rest).replace(
        "untolerated taint", "taint"
    )
    return f"{found[1]}: {rest}."


def _not(found: re.Match[str]) -> str:
    return "not " if found[1] and found[1].startswith("did") else ""


register.filter(of_one)


@register.filter
def news(cycle: Any) -> str:
    """A cycle's sentence without the pod's name, which the feed has said already."""
    if cycle.message and cycle.outcome != "preempting":
        return brief(cycle.message)
    return f"{placed(cycle) if cycle.node else headline(cycle)}."


@register.filter
def lastpart(label: str) -> str:
    """The part of a label key after its domain: topology.kubernetes.io/zone is called zone."""
    return label.rpartition("/")[2]


@register.filter
def age(moment: datetime) -> str:
    """Write how long ago a moment was, in one unit."""
    seconds = int((timezone.now() - moment).total_seconds())
    for unit, size in (("day", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            n = seconds // size
            return f"{n} {unit}{'s' if unit == 'day' and n > 1 else ''} ago"
    return "just now"


@register.filter
def outcome(key: str) -> Any:
    """The drawing of an outcome, by its word."""
    return outcome_of(key)


@register.filter
def amount(value: int, resource: str) -> str:
    """An amount of a resource in its own unit.

    >>> amount(1500, "cpu"), amount(2**31, "memory"), amount(3, "nvidia.com/gpu")
    ('1.5', '2 Gi', '3')
    """
    if resource == "cpu":
        return amounts.cores(value)
    return (
        amounts.memory(value) if resource in _IN_BYTES or resource.startswith("hugepages-") else f"{value:,}"
    )


_IN_BYTES = ("memory", "ephemeral-storage")


@register.filter
def of(part: float, whole: float) -> int:
    """Share in whole percent."""
    return amounts.percent(part, whole)


@register.filter
def lastpiece(name: Any) -> str:
    """The end of a name, which differs from that of others, for narrow places.

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
