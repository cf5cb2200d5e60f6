"""A cluster in one look: zones beside each other, pools below each other, and every node with a bar for each resource.

A node is as wide as its share of the resource that binds the cluster; the bar of the resource that binds the node is
thick. Room is stranded where it is free and not one more pod of the usual shape of its pool fits, as another resource
is out. Up to 24 nodes pods are boxes with names, up to 100 a node has its name, up to 1,000 its bars alone; above, a
cell is a histogram that opens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from playground.clusters.board.nodes import NodeUse, PodUse, Shape
from playground.engine.columns import ZONE_LABELS
from playground.web import amounts
from playground.web.amounts import resource_words
from playground.web.looks import PriorityScale, View
from scheduler_core.fork import group_of
from scheduler_core.objects.prices import shipped_prices

TYPE_LABEL: Final = "node.kubernetes.io/instance-type"


class LookForm(NamedTuple):
    """How up to `most` nodes are drawn: the width of the median one, and heights of its bars, in pixels."""

    name: str
    most: int
    width: int
    thin: int
    thick: int


FORMS: Final = (
    LookForm("boxes", 24, 120, 13, 30),
    LookForm("squares", 100, 50, 4, 9),
    LookForm("rows", 1000, 24, 3, 5),
)
LEAST_WIDTH, MOST_WIDTH, NAMED_WIDTH = 24, 250, 40
MOST_OPEN, MOST_NEW = 1000, 24
"""Nodes drawn of a cell that opens; of nodes that a fix adds, which are alike."""
BINS: Final = 10
_EDGE, _NAME_ROW, _LETTER = 2, 13, 6.4
_DEVICE_SHARE: Final = 0.8
"""Of the price of a node with devices; cpu and memory are the rest, each half."""
_WITHOUT_DEVICES: Final = 0.5


class Bar(NamedTuple):
    """A resource of a node: what is requested, what there is, and what of the rest is stranded."""

    resource: str
    used: int
    has: int
    stranded: int = 0

    @property
    def share(self) -> float:
        return self.used / self.has if self.has else 0.0


@dataclass(slots=True)
class Box:
    """A node, its bars, the place of the one that binds it, and what its stranded room costs an hour."""

    use: NodeUse
    bars: list[Bar]
    binds: int
    price: float | None
    stranded: float = 0.0


@dataclass(slots=True)
class PoolRow:
    """Nodes of one pool and instance type, by zone."""

    name: str
    shape: str
    zones: dict[str, list[Box]] = field(default_factory=dict)

    @property
    def boxes(self) -> list[Box]:
        return [box for members in self.zones.values() for box in members]


@dataclass(frozen=True, slots=True)
class Marks:
    """What is marked: nodes on which pods land, the new ones among them, and what each says of a picked pod.

    Attributes
    ----------
    fits
        Name -> ``f``, ``p`` or ``n``, and its place in `reasons` (`scheduler_core.whatif.causes.every_node`).
    """

    lands: Collection[str] = ()
    new: Collection[str] = ()
    fits: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    reasons: Sequence[Mapping[str, Any]] = ()


NO_MARKS: Final = Marks()


def shapes_of(pods: Mapping[str, Iterable[PodUse]]) -> dict[str, Counter[Shape]]:
    """What pods on each node request; pods that a node brings with it are left out."""
    return {
        node: Counter(
            (pod.cpu_milli, pod.memory_bytes, tuple(sorted(pod.extended.items())))
            for pod in members
            if not pod.is_of_node
        )
        for node, members in pods.items()
    }


def view_landing(uses: Sequence[NodeUse], lands: Collection[str]) -> View:
    """The nodes, with those on which pods land, new ones last."""
    new = sorted({*lands} - {use.name for use in uses})
    made = [NodeUse(name, {TYPE_LABEL: "new"}, [], False, True, 1000, 0, 0, {}, 0, 0, 0, {}) for name in new]
    return view_look([*uses, *made], marks=Marks(lands, new))


def view_look(
    uses: Sequence[NodeUse],
    pods: Mapping[str, Sequence[PodUse]] = MappingProxyType({}),
    scale: PriorityScale | None = None,
    *,
    shapes: Mapping[str, Counter[Shape]] | None = None,
    group_by: str = "",
    opened: str = "",
    marks: Marks = NO_MARKS,
    by_name: bool = False,
) -> View:
    """Draw the nodes for `board/look.html`.

    Parameters
    ----------
    pods
        On each node, where they are drawn: of up to 200 nodes.
    shapes
        `shapes_of` all pods, where `pods` are not all of them.
    group_by
        A label whose values are the rows; empty = pools and instance types, ``none`` = all in one.
    opened
        The cell that is opened, as `cells` have them.
    by_name
        Whether nodes stay in the order given; else the fullest of a cell comes first.

    Returns
    -------
    dict
        `form`, `zones` (name, nodes, pods, price), `pools` with their `cells`, `sums` by resource, and what is
        `stranded`: its price, of how much, and how many nodes have no price.
    """
    scale = PriorityScale(()) if scale is None else scale
    shapes = shapes_of(pods) if shapes is None else shapes
    rows = _rows(uses, group_by)
    zoned = [row for row in rows if any(row.zones)] or rows
    zones = sorted({zone for row in zoned for zone in row.zones}, key=lambda zone: (not zone, zone))
    for row in rows:
        _strand(row, shapes)
    rows.sort(key=_in_order)
    form = next((form for form in FORMS if len(uses) <= form.most), None)
    widest = _binding(uses)
    whole = [use.amounts(widest)[1] for use in uses if use.name not in marks.new]
    unit = (form or FORMS[-1]).width / (median(whole) or 1) if whole else 1
    drawn = [
        _view_row(place, row, zones, form, _Drawing(pods, scale, unit, widest, marks, by_name), opened)
        for place, row in enumerate(rows)
    ]
    boxes = [box for row in rows for box in row.boxes]
    return {
        "form": form.name if form else "bins",
        "n_nodes": len(uses),
        "zones": [
            _view_zone(zone, [box for row in rows for box in row.zones.get(zone, ())]) for zone in zones
        ],
        "is_zoned": any(zones),
        "pools": drawn,
        "sums": _sums(boxes),
        "stranded": _stranded_price(boxes),
        "headline": _headline(rows),
        "n_not_ready": sum(not use.ready for use in uses),
        "n_cordoned": sum(use.unschedulable for use in uses),
        "n_lands": sum(use.name in marks.lands for use in uses),
        "n_new": len(marks.new),
        "picked": bool(marks.fits),
        "counts": Counter(letter for letter, _ in marks.fits.values()),
        "legend": scale.legend() if pods and form is not None and form.name != "rows" else (),
    }


def _rows(uses: Sequence[NodeUse], group_by: str) -> list[PoolRow]:
    rows: dict[tuple[str, str], PoolRow] = {}
    prices: dict[str, float | None] = {}
    for use in uses:
        pool = group_of(use.labels)
        key = (pool.name, pool.shape if pool.shape != pool.name else "")
        if group_by:
            key = ("All nodes" if group_by == "none" else use.labels.get(group_by, "no such label"), "")
        if pool.shape not in prices:
            prices[pool.shape] = shipped_prices().price_of(use.labels)
        row = rows.setdefault(key, PoolRow(*key))
        zone = next((use.labels[key] for key in ZONE_LABELS if key in use.labels), "")
        row.zones.setdefault(zone, []).append(_box(use, prices[pool.shape]))
    return [*rows.values()]


def _box(use: NodeUse, price: float | None) -> Box:
    bars = [
        Bar("cpu", use.used_cpu_milli, use.cpu_milli),
        Bar("memory", use.used_memory_bytes, use.memory_bytes),
        Bar("pods", use.n_pods, use.max_pods),
        *(
            Bar(name, use.used_extended.get(name, 0), has)
            for name, has in sorted(use.extended.items())
            if has and is_device(name)
        ),
    ]
    shares = [bar.share for bar in bars]
    return Box(use, bars, shares.index(max(shares)), price)


def is_device(resource: str) -> bool:
    """Whether a resource of a node is drawn: not its disk, nor its huge pages."""
    return resource != "ephemeral-storage" and not resource.startswith("hugepages-")


def _binding(uses: Sequence[NodeUse]) -> str:
    """The resource nodes are as wide as they have of it."""
    cpu, memory = (
        sum(use.amounts(name)[0] for use in uses) / (sum(use.amounts(name)[1] for use in uses) or 1)
        for name in ("cpu", "memory")
    )
    return "memory" if memory > cpu else "cpu"


def _strand(row: PoolRow, shapes: Mapping[str, Counter[Shape]]) -> None:
    """Say of each node what is stranded: no pod of the row's usual shape fits, and it is not this resource's fault."""
    counts: Counter[Shape] = Counter()
    for box in row.boxes:
        counts.update(shapes.get(box.use.name, ()))
    if not counts:
        return
    usual = min(counts, key=lambda shape: (-counts[shape], shape))
    asks = {"cpu": usual[0], "memory": usual[1], "pods": 1, **dict(usual[2])}
    for box in row.boxes:
        has_room = [bar.has - bar.used >= asks.get(bar.resource, 0) for bar in box.bars]
        if all(has_room):
            continue
        box.bars = [
            bar._replace(stranded=max(0, bar.has - bar.used))
            if room and bar.has and bar.resource != "pods"
            else bar
            for bar, room in zip(box.bars, has_room, strict=True)
        ]
        has_devices = len(box.bars) > 3
        for bar in box.bars:
            part = (1 - _DEVICE_SHARE) / 2 if has_devices else _WITHOUT_DEVICES
            part = part if bar.resource in ("cpu", "memory") else _DEVICE_SHARE / (len(box.bars) - 3 or 1)
            box.stranded += (box.price or 0.0) * part * bar.stranded / (bar.has or 1)


def _in_order(row: PoolRow) -> tuple[bool, float, str, str]:
    """Pools that are kept for others last; of the others what costs most first."""
    first = row.boxes[0]
    return (
        bool(taint_words(first.use.taints)),
        -sum(box.price or 0.0 for box in row.boxes),
        row.name,
        row.shape,
    )


def taint_words(taints: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Taints in words, without those that only repeat the state of their node."""
    found = []
    for taint in taints:
        key, value = str(taint.get("key", "")), taint.get("value")
        if not key.startswith("node.kubernetes.io/"):
            soft = "~" if taint.get("effect") == "PreferNoSchedule" else ""
            found.append(f"{soft}{key}{'=' + str(value) if value else ''}")
    return tuple(found)


# ---- amounts in words


def amount(resource: str, value: int) -> str:
    """An amount of a resource, without its name: whole ones from a hundred on."""
    unit = {"cpu": 1000, "memory": amounts.GIB}.get(resource, 1)
    if value >= 100 * unit:
        return f"{value / unit:,.0f}"
    if resource == "cpu":
        return amounts.cores(value)
    return amounts.gib(value) if resource == "memory" else f"{value:,}"


def of_words(resource: str, used: int, has: int) -> str:
    """``CPU 7.5 of 11``."""
    unit = " Gi" if resource == "memory" else ""
    return f"{resource_words(resource)} {amount(resource, used)} of {amount(resource, has)}{unit}"


def _money(price: float) -> str:
    return f"${price:,.2f}"


def _sums(boxes: Sequence[Box]) -> list[View]:
    totals: dict[str, list[int]] = {}
    most: Counter[str] = Counter()
    for box in boxes:
        for bar in box.bars:
            total = totals.setdefault(bar.resource, [0, 0, 0])
            total[0] += bar.used
            total[1] += bar.has
            total[2] += bar.stranded
            most[bar.resource] = max(most[bar.resource], bar.has - bar.used)
    found = []
    for resource, (used, has, stranded) in totals.items():
        free, unit = max(0, has - used), " Gi" if resource == "memory" else ""
        rest = f"of it {amount(resource, stranded)}{unit} stranded" if stranded else "none stranded"
        if resource not in ("cpu", "memory", "pods"):
            rest = f"at most {most[resource]:,} on one node"
        share = round(min(100.0, 100 * used / has), 1) if has else 0
        found.append(
            {
                "name": resource_words(resource),
                "of": f"{amount(resource, used)} of {amount(resource, has)}{unit}",
                "share": share,
                "stranded": round(min(100.0 - share, 100 * stranded / has), 1) if has else 0,
                "free": f"{amount(resource, free)}{unit} free, {rest}",
            }
        )
    return found


def _stranded_price(boxes: Sequence[Box]) -> View:
    return {
        "price": _money(sum(box.stranded for box in boxes)),
        "of": _money(sum(box.price or 0.0 for box in boxes)),
        "n_nodes": sum(any(bar.stranded for bar in box.bars) for box in boxes),
        "n_unpriced": sum(box.price is None for box in boxes),
        "is_priced": any(box.price is not None for box in boxes),
    }


def _binds_on(boxes: Sequence[Box]) -> Counter[str]:
    return Counter(box.bars[box.binds].resource for box in boxes if box.bars[box.binds].used)


def _binds(resource: str) -> str:
    return f"{resource_words(resource)} bind{'' if resource == 'pods' else 's'}"


def _headline(rows: Sequence[PoolRow]) -> str:
    """Which resource binds in which pools: ``memory binds in web and db, CPU in general``."""
    pools: dict[str, dict[str, None]] = {}
    for row in rows:
        if counts := _binds_on(row.boxes):
            pools.setdefault(counts.most_common(1)[0][0], {})[row.name] = None
    if len(rows) == 1:
        return "".join(f"{_binds(resource)[:1].upper()}{_binds(resource)[1:]}." for resource in pools)
    words: list[str] = []
    for resource, names in pools.items():
        shown = [*names][:3]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        listed = (
            " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))) if not more else ", ".join(shown)
        )
        words.append(f"{resource_words(resource) if words else _binds(resource)} in {listed}{more}")
    said = "; ".join(words)
    return f"{said[:1].upper()}{said[1:]}." if said else ""


def _view_zone(zone: str, boxes: Sequence[Box]) -> View:
    price = sum(box.price or 0.0 for box in boxes)
    return {
        "name": zone or "no zone",
        "n_nodes": len(boxes),
        "n_pods": sum(box.use.n_pods for box in boxes),
        "price": _money(price) if price else "",
    }


# ---- rows, cells and nodes


class _Drawing(NamedTuple):
    """What all cells are drawn with."""

    pods: Mapping[str, Sequence[PodUse]]
    scale: PriorityScale
    unit: float
    widest: str
    marks: Marks
    by_name: bool


def _view_row(
    place: int, row: PoolRow, zones: Sequence[str], form: LookForm | None, how: _Drawing, opened: str
) -> View:
    boxes = row.boxes
    first = boxes[0].use
    stranded = sum(box.stranded for box in boxes)
    facts = []
    if first.memory_bytes and all(box.use.cpu_milli == first.cpu_milli for box in boxes):
        facts.append(f"{amounts.cores(first.cpu_milli)} CPU, {amounts.memory(first.memory_bytes)} each")
    if boxes[0].price is not None and len({box.price for box in boxes}) == 1:
        facts.append(f"{_money(boxes[0].price)} an hour")
    binds = [f"{_binds(name)} on {n:,}" for name, n in _binds_on(boxes).most_common(2)]
    shared = [
        one for one in taint_words(first.taints) if all(one in taint_words(box.use.taints) for box in boxes)
    ]
    return {
        "name": row.name,
        "shape": row.shape,
        "n_nodes": len(boxes),
        "facts": ", ".join(facts),
        "taints": shared,
        "note": ", ".join(
            (*binds, *((f"{_money(stranded)} an hour stranded",) if stranded >= 0.005 else ()))
        ),
        "cells": [
            _view_cell(f"{place}-{at}", row.zones.get(zone, []), zone, form, how, opened)
            for at, zone in enumerate(zones if any(row.zones) else ("",))
        ],
    }


def _view_cell(
    key: str, members: Sequence[Box], zone: str, form: LookForm | None, how: _Drawing, opened: str
) -> View:
    is_open = form is None and opened == key
    if is_open:
        form = next((form for form in FORMS[1:] if len(members) <= form.most), FORMS[-1])
    in_order = members if how.by_name else sorted(members, key=lambda box: -box.bars[box.binds].share)
    most = MOST_NEW if members and members[0].use.name in how.marks.new else MOST_OPEN
    shown = in_order[:most] if form else ()
    return {
        "key": key,
        "zone": zone or "no zone",
        "n_nodes": len(members),
        "is_open": is_open,
        "nodes": [_view_node(box, form, how) for box in shown] if form else (),
        "n_more": len(members) - len(shown) if form else 0,
        "bins": _bins(members) if form is None and members else None,
        "phrase": _phrase(members, how.marks),
    }


def _bins(members: Sequence[Box]) -> View:
    """How many nodes are how full, by the resource that binds each."""
    counts = [0] * BINS
    for box in members:
        counts[min(BINS - 1, int(BINS * box.bars[box.binds].share))] += 1
    most = max(counts)
    heights = [max(1, round(36 * n / most)) if n else 0 for n in counts]
    n_full = counts[-1]
    full = "none is" if not n_full else "1 is" if n_full == 1 else f"{n_full:,} are"
    return {
        "path": "".join(f"M{12 * i} 38v-{h}h10v{h}z" for i, h in enumerate(heights) if h),
        "words": f"{len(members):,} node{'s' if len(members) != 1 else ''}, {full} 90 % full",
    }


def _view_node(box: Box, form: LookForm, how: _Drawing) -> View:
    use, marks = box.use, how.marks
    has = use.amounts(how.widest)[1]
    width = max(LEAST_WIDTH, min(MOST_WIDTH, round(has * how.unit)))
    is_named = form.name != "rows" and width >= NAMED_WIDTH
    y, inner, gap = (_NAME_ROW if is_named else _EDGE), width - 2 * _EDGE, 1 if form.name == "rows" else 2
    paths: dict[str, list[str]] = {"bg": []}
    pods = how.pods.get(use.name, ())
    boxes = {} if form.name != "boxes" else {i: _Pieces([], None) for i in range(len(pods))}
    for place, bar in enumerate(box.bars):
        height = form.thick if place == box.binds else form.thin
        paths["bg"].append(_rect(_EDGE, y, inner, height))
        end = _draw_bar(bar, y, height, inner, pods, how, paths, boxes)
        if bar.stranded:
            paths.setdefault("str", []).append(_rect(end, y, _EDGE + inner - end, height))
        y += height + gap
    letter, why = marks.fits.get(use.name, ("", 0))
    state = {"f": " fits", "p": " evicts", "n": " out"}.get(letter, "")
    return {
        "name": use.name,
        "tail": amounts.name_parts(use.name).tail if is_named else "",
        "css": f"{_css(use, marks)}{state}",
        "label": f"{amounts.name_parts(use.name).tail}: {(says := _says(box, marks, letter, why))}",
        "says": says,
        "width": width,
        "height": y - gap + _EDGE,
        "paths": [(css, "".join(parts)) for css, parts in paths.items() if parts],
        "pods": [_view_pod(pods[i], piece, how.scale) for i, piece in boxes.items() if piece.parts],
    }


class _Pieces(NamedTuple):
    """What a pod has of the bars of its node: rectangles, and where its name has room."""

    parts: list[str]
    name_at: tuple[float, float, int] | None


def _draw_bar(
    bar: Bar,
    y: float,
    height: int,
    inner: int,
    pods: Sequence[PodUse],
    how: _Drawing,
    paths: dict[str, list[str]],
    boxes: dict[int, _Pieces],
) -> float:
    """Stack what is requested: a box a pod, a piece a priority class, or one piece; where it ends."""
    x, end = float(_EDGE), float(_EDGE + inner)
    if not bar.has:
        return x
    per = inner / bar.has
    if not pods:
        taken = min(inner, bar.used * per)
        if taken > 0.2:
            paths.setdefault("u", []).append(_rect(x, y, taken, height))
        return x + taken
    by_class: dict[str, float] = {}
    asks = _ASKS.get(bar.resource) or (lambda pod: pod.extended.get(bar.resource, 0))
    for i, pod in enumerate(pods):
        width = asks(pod) * per
        if not width or pod.nominated:
            if width and i in boxes:
                boxes[i].parts.append(_rect(max(_EDGE, end - width), y, min(width, inner), height))
            continue
        if i not in boxes:
            css = how.scale.mark(pod.priority, pod.priority_class).css
            by_class[css] = by_class.get(css, 0.0) + width
        elif x < end:
            width = min(width, end - x)
            boxes[i].parts.append(_rect(x, y, max(0.4, width - (0.8 if width > 2 else 0)), height))
            room = int((width - 5) / _LETTER)
            if room >= 3 and height >= 12 and boxes[i].name_at is None:
                boxes[i] = boxes[i]._replace(name_at=(x + 3, y + height / 2, room))
            x += width
    for css, width in by_class.items():
        width = min(width, end - x)
        if width > 0.2:
            paths.setdefault(css, []).append(_rect(x, y, width, height))
            x += width
    return x


_ASKS: Final[Mapping[str, Callable[[PodUse], int]]] = {
    "cpu": lambda pod: pod.cpu_milli,
    "memory": lambda pod: pod.memory_bytes,
    "pods": lambda pod: 1,
}


def _rect(x: float, y: float, width: float, height: float) -> str:
    x, width = round(x, 1), round(width, 1)
    return f"M{x:g} {y:g}h{width:g}v{height:g}H{x:g}z"


def _view_pod(pod: PodUse, pieces: _Pieces, scale: PriorityScale) -> View:
    mark = scale.mark(pod.priority, pod.priority_class)
    x, y, room = pieces.name_at or (0.0, 0.0, 0)
    return {
        "path": "".join(pieces.parts),
        "css": "ghost" if pod.nominated else mark.css,
        "over": "hatch" if pod.terminating else "dots" if pod.reserved else "",
        "title": pod_words(pod, mark.title),
        "text": pod.name[:room].rstrip("-."),
        "x": round(x, 1),
        "y": round(y, 1),
    }


_AWAITS: Final = {"permit": "waiting at Permit", "binding": "waiting for its Binding"}


def pod_words(pod: PodUse, class_title: str) -> str:
    """A pod, what it requests and its state: the words under the pointer."""
    words = (
        f"{pod.namespace}/{pod.name}: {amounts.requested(pod.cpu_milli, pod.memory_bytes)}, "
        f"priority {pod.priority} ({class_title})"
    )
    if pod.nominated:
        return f"{words}, nominated"
    if pod.reserved:
        return f"{words}, reserved, {_AWAITS.get(pod.held_in, _AWAITS['permit'])}"
    return f"{words}, terminating" if pod.terminating else words


def _css(use: NodeUse, marks: Marks) -> str:
    if use.name in marks.new:
        return " new"
    state = "" if use.ready and not use.unschedulable else " off" if use.ready else " off lost"
    state += " over" if use.overcommitted else ""
    return f"{state} takes" if use.name in marks.lands else state


def _says(box: Box, marks: Marks, letter: str, why: int) -> str:
    use = box.use
    words = [of_words(bar.resource, bar.used, bar.has) for bar in box.bars if bar.has]
    said = ", ".join(words)
    if box.bars[box.binds].used:
        said += f"; {_binds(box.bars[box.binds].resource)}"
    for bar in box.bars:
        if bar.stranded:
            unit = " Gi" if bar.resource == "memory" else ""
            said += f"; {amount(bar.resource, bar.stranded)}{unit} {resource_words(bar.resource)} stranded"
    if use.state != "ready":
        said += f"; {use.state}"
    if use.overcommitted:
        said += f"; overcommitted: {use.overcommitted}"
    if taints := taint_words(use.taints):
        said += f"; {', '.join(taints)}"
    if use.name in marks.lands:
        said += "; new" if use.name in marks.new else "; takes pods"
    if letter == "p":
        said += ". Fits only by preemption"
    elif letter == "f":
        said += ". Fits"
    elif letter:
        said += f". {_refused(marks.reasons[why], [box])}"
    return said


# ---- what nodes say of a picked pod

_WORDS: Final[Mapping[str, str]] = {
    "cordoned": "cordoned",
    "dead": "not ready",
    "selector": "not what its selector or affinity asks for",
    "rules": "refused by spread or affinity",
    "volume": "away from its volume",
    "port": "the port is taken",
}


def _phrase(members: Sequence[Box], marks: Marks) -> str:
    """What the nodes of a cell say, in one phrase; empty for nothing."""
    if n_lands := sum(box.use.name in marks.lands for box in members):
        return f"{n_lands:,} {'takes' if n_lands == 1 else 'take'} pods"
    found = Counter(marks.fits[box.use.name] for box in members if box.use.name in marks.fits)
    counts = Counter({letter: sum(n for (one, _), n in found.items() if one == letter) for letter in "fp"})
    words = [
        f"{n:,} {what}"
        for letter, what in (("f", "fit"), ("p", "only by preemption"))
        if (n := counts[letter])
    ]
    for (letter, why), n in found.most_common():
        if letter == "n":
            there = [box for box in members if marks.fits.get(box.use.name) == (letter, why)]
            words.append(f"{n:,} {_refused(marks.reasons[why], there)}")
    return "; ".join((*words[:3], *(("other reasons",) if len(words) > 3 else ())))


def _refused(reason: Mapping[str, Any], boxes: Sequence[Box]) -> str:
    resource, kind = reason["resource"], reason["reason"]
    if kind == "tainted":
        return f"kept for others: {', '.join(one.partition(':')[0] for one in reason['taints'])}"
    if kind not in ("full", "small") or not resource:
        return _WORDS.get(kind, f"refused by {reason['plugin']}" if reason["plugin"] else "refused")
    if resource == "pods":
        return "as many pods as they may have"
    amounts_of = [box.use.amounts(resource) for box in boxes]
    unit = f"{' Gi' if resource == 'memory' else ''} {resource_words(resource)}"
    asked = amount(resource, reason["asked"])
    if not any(has for _, has in amounts_of):
        return f"no {resource_words(resource)}"
    if kind == "small":
        return f"too small: {amount(resource, max(has for _, has in amounts_of))} of {asked}{unit} in all"
    most = amount(resource, max(0, *(has - used for used, has in amounts_of)))
    return f"too full: {most} of {asked}{unit} free at most"
