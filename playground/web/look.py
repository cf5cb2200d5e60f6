"""A cluster in one look: zones beside each other, pools below each other, and every node with a bar for each resource.

A node is as wide as its share of the resource that binds the cluster; the bar of the resource that binds the node is
thick. Room is stranded where it is free and not one more pod of the usual shape of its pool fits, as another resource
is out. Up to 24 nodes pods are boxes with names, up to 100 a node has its name, up to 1,000 its bars alone; above, a
cell is a histogram that opens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final, NamedTuple

from playground.clusters.board.nodes import NodeUse, PodUse
from playground.engine.columns import ZONE_LABELS
from playground.web import amounts
from playground.web.amounts import resource_words
from playground.web.looks import PriorityScale, View
from scheduler_core.fork import INSTANCE_TYPE, group_of
from scheduler_core.objects.prices import shipped_prices
from scheduler_core.schema.tables import table_beside

_TABLES: Final = table_beside(__package__, "looks.yaml")
_REFUSALS: Final[Mapping[str, str]] = _TABLES["refusals"]
_NEW: Final = "new"
"""The instance type of nodes that a fix adds."""


class LookForm(NamedTuple):
    """How up to `most` nodes are drawn; in pixels."""

    name: str
    most: int
    width: int
    thin: int
    thick: int


FORMS: Final = tuple(LookForm(*form) for form in _TABLES["forms"])
LEAST_WIDTH, MOST_WIDTH, NAMED_WIDTH = 24, 250, 40
MOST_OPEN, MOST_NEW = 1000, 24
"""Nodes drawn of a cell that opens; of nodes that a fix adds, which are alike."""
BINS: Final = 10
_EDGE, _NAME_ROW, _LETTER = 2, 13, 6.4
_DEVICE_SHARE: Final = 0.8
"""Of the price of a node with devices; cpu and memory are the rest, each half."""
_UNITS: Final[Mapping[str, tuple[int, str]]] = {"cpu": (1000, ""), "memory": (amounts.GIB, " Gi")}
_PLAIN: Final = ("cpu", "memory", "pods")
"""What every node has bars of; then come those of its devices."""


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

    def place(self) -> tuple[bool, bool, float, str, str]:
        """New nodes last, before them pools that are kept for others; of the others what costs most first."""
        boxes = self.boxes
        is_new, is_kept = self.name == _NEW, bool(taint_words(boxes[0].use.taints))
        return is_new, is_kept, -sum(box.price or 0.0 for box in boxes), self.name, self.shape


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


def view_landing(uses: Sequence[NodeUse], lands: Collection[str]) -> View:
    """The nodes, with those on which pods land, new ones last."""
    new = sorted({*lands} - {use.name for use in uses})
    made = [
        NodeUse(name, {INSTANCE_TYPE: _NEW}, [], False, True, 1000, 0, 0, {}, 0, 0, 0, {}) for name in new
    ]
    return view_look([*uses, *made], marks=Marks(lands, new))


def view_look(
    uses: Sequence[NodeUse],
    pods: Mapping[str, Sequence[PodUse]] | None = None,
    scale: PriorityScale | None = None,
    *,
    group_by: str = "",
    opened: str = "",
    marks: Marks = NO_MARKS,
    by_name: bool = False,
) -> View:
    """Draw the nodes for `board/look.html`.

    Parameters
    ----------
    pods
        On each node, where they are drawn; None = of no node, so that few nodes are small, too.
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
    rows = _rows(uses, group_by)
    zoned = [row for row in rows if any(row.zones)] or rows
    zones = sorted({zone for row in zoned for zone in row.zones}, key=lambda zone: (not zone, zone))
    rows.sort(key=PoolRow.place)
    form = next((form for form in FORMS[pods is None :] if len(uses) <= form.most), None)
    widest = _binding(uses)
    whole = [use.amounts(widest)[1] for use in uses if use.name not in marks.new]
    unit = (form or FORMS[-1]).width / (median(whole) or 1) if whole else 1
    drawn = [
        _view_row(place, row, zones, form, _Drawing(pods or {}, scale, unit, widest, marks, by_name), opened)
        for place, row in enumerate(rows)
    ]
    boxes = [box for row in rows for box in row.boxes]
    return {
        "form": form.name if form else "bins",
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
        "legend": scale.legend() if pods else (),
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
    """The bars of a node. Room is stranded where no pod of the usual shape fits, through no fault of its resource."""
    devices = sorted(name for name, has in use.extended.items() if has and is_device(name))
    bars = [Bar(name, *use.amounts(name)) for name in (*_PLAIN, *devices)]
    shares = [bar.share for bar in bars]
    box = Box(use, bars, shares.index(max(shares)), price)
    if use.usual is None:
        return box
    cpu, memory, others = use.usual
    asks = {"cpu": cpu, "memory": memory, "pods": 1, **dict(others)}
    has_room = [bar.has - bar.used >= asks.get(bar.resource, 0) for bar in bars]
    if all(has_room):
        return box
    half = (1 - _DEVICE_SHARE if devices else 1) / 2
    for place, bar in enumerate(bars):
        if has_room[place] and bar.has > bar.used and bar.resource != "pods":
            bars[place] = bar._replace(stranded=bar.has - bar.used)
            part = half if bar.resource in _PLAIN else _DEVICE_SHARE / len(devices)
            box.stranded += (price or 0.0) * part * bars[place].stranded / bar.has
    return box


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
    unit, _ = _UNITS.get(resource, (1, ""))
    if value >= 100 * unit or unit == 1:
        return f"{value / unit:,.0f}"
    return amounts.cores(value) if resource == "cpu" else amounts.gib(value)


def _with_unit(resource: str, *values: int) -> str:
    """``7.5 of 11``, ``8 Gi``."""
    _, unit = _UNITS.get(resource, (1, ""))
    return f"{' of '.join(amount(resource, value) for value in values)}{unit}"


def _of_words(resource: str, *values: int) -> str:
    """``7.5 of 11 CPU``, ``8 Gi memory``."""
    return f"{_with_unit(resource, *values)} {resource_words(resource)}"


def _money(price: float) -> str:
    return f"${price:,.2f}"


def _sums(boxes: Sequence[Box]) -> list[View]:
    by_resource: dict[str, list[Bar]] = {}
    for box in boxes:
        for bar in box.bars:
            by_resource.setdefault(bar.resource, []).append(bar)
    found = []
    for name, bars in by_resource.items():
        used, has, stranded = (sum(of) for of in zip(*(bar[1:] for bar in bars), strict=True))
        rest = f"of it {_with_unit(name, stranded)} stranded" if stranded else "none stranded"
        if name not in _PLAIN:
            rest = f"at most {max(bar.has - bar.used for bar in bars):,} on one node"
        share = round(min(100.0, 100 * used / has), 1) if has else 0
        found.append(
            {
                "name": resource_words(name),
                "of": _with_unit(name, used, has),
                "share": share,
                "stranded": round(min(100.0 - share, 100 * stranded / has), 1) if has else 0,
                "free": f"{_with_unit(name, max(0, has - used))} free, {rest}",
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
    """Which resource binds in which pools: ``Memory binds in web and db; CPU in general.``"""
    pools: dict[str, dict[str, None]] = {}
    for row in rows:
        if counts := _binds_on(row.boxes):
            pools.setdefault(counts.most_common(1)[0][0], {})[row.name] = None
    words: list[str] = []
    for resource, names in pools.items():
        shown, last = [*names][:3], f"{len(names) - 3} more"
        if len(names) <= 3:
            last = shown.pop()
        there = f" in {', '.join(shown)}{' and ' if shown else ''}{last}" if len(rows) > 1 else ""
        words.append(f"{resource_words(resource) if words else _binds(resource)}{there}")
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
    width = max(LEAST_WIDTH, min(MOST_WIDTH, round(use.amounts(how.widest)[1] * how.unit)))
    is_named = form.name != "rows" and width >= NAMED_WIDTH
    y, gap = (_NAME_ROW if is_named else _EDGE), 1 if form.name == "rows" else 2
    pods = how.pods.get(use.name, ())
    paths, boxes = {"bg": ""}, [_PodBox() for _ in pods] if form.name == "boxes" else []
    for place, bar in enumerate(box.bars):
        height = form.thick if place == box.binds else form.thin
        shown = pods if form.name != "rows" or place == box.binds else ()
        _draw_bar(bar, _Strip(y, height, width - 2 * _EDGE), shown, how.scale, paths, boxes)
        y += height + gap
    letter, why = marks.fits.get(use.name, ("", 0))
    state = {"f": " fits", "p": " evicts", "n": " out"}.get(letter, "")
    says, tail = _says(box, marks, letter, why), amounts.name_parts(use.name).tail
    return {
        "name": use.name,
        "tail": tail if is_named else "",
        "css": f"{_css(use, marks)}{state}",
        "label": f"{tail}: {says}",
        "says": says,
        "width": width,
        "height": y - gap + _EDGE,
        "paths": [(css, path) for css, path in paths.items() if path],
        "pods": [
            _view_pod(pod, drawn, how.scale) for pod, drawn in zip(pods, boxes, strict=False) if drawn.path
        ],
    }


@dataclass(slots=True)
class _PodBox:
    """What a pod has of the bars of its node, and where its name has room for how many letters."""

    path: str = ""
    name_at: tuple[float, float, int] = (0, 0, 0)


class _Strip(NamedTuple):
    """Where a bar is drawn."""

    y: int
    height: int
    width: int

    def piece(self, x: float, width: float) -> str:
        """The path of a part of the bar."""
        x, width = round(x, 1), round(width, 1)
        return f"M{x:g} {self.y}h{width:g}v{self.height}H{x:g}z"


def _draw_bar(
    bar: Bar,
    at: _Strip,
    pods: Sequence[PodUse],
    scale: PriorityScale,
    paths: dict[str, str],
    boxes: Sequence[_PodBox],
) -> None:
    """Stack what is requested: a box a pod, a piece a priority class, or one piece; then what is stranded."""
    x, end = float(_EDGE), float(_EDGE + at.width)
    paths["bg"] += at.piece(x, at.width)
    per = at.width / bar.has if bar.has else 0.0
    for pod, drawn in zip(pods, boxes, strict=False):
        width = min(pod.amount(bar.resource) * per, at.width)
        if width and pod.nominated:
            drawn.path += at.piece(end - width, width)
        elif width and x < end:
            width = min(width, end - x)
            drawn.path += at.piece(x, max(0.4, width - (0.8 if width > 2 else 0)))
            room = int((width - 5) / _LETTER)
            if room >= 3 and at.height >= 12 and not drawn.name_at[2]:
                drawn.name_at = (x + 3, at.y + at.height / 2, room)
            x += width
    by_class: Counter[str] = Counter()
    if not pods:
        by_class["u"] = bar.used
    elif not boxes:
        for pod in pods:
            if not pod.nominated:
                by_class[scale.mark(pod.priority, pod.priority_class).css] += pod.amount(bar.resource)
    for css, used in by_class.items():
        width = min(used * per, end - x)
        if width > 0.2:
            paths[css] = paths.get(css, "") + at.piece(x, width)
            x += width
    if bar.stranded:
        paths["str"] = paths.get("str", "") + at.piece(x, end - x)


def _view_pod(pod: PodUse, drawn: _PodBox, scale: PriorityScale) -> View:
    mark = scale.mark(pod.priority, pod.priority_class)
    x, y, room = drawn.name_at
    return {
        "path": drawn.path,
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
    said = [
        ", ".join(
            f"{resource_words(bar.resource)} {_with_unit(bar.resource, bar.used, bar.has)}"
            for bar in box.bars
            if bar.has
        )
    ]
    if box.bars[box.binds].used:
        said.append(_binds(box.bars[box.binds].resource))
    said += [f"{_of_words(bar.resource, bar.stranded)} stranded" for bar in box.bars if bar.stranded]
    if use.state != "ready":
        said.append(use.state)
    if use.overcommitted:
        said.append(f"overcommitted: {use.overcommitted}")
    if taints := taint_words(use.taints):
        said.append(", ".join(taints))
    if use.name in marks.lands:
        said.append("new" if use.name in marks.new else "takes pods")
    answer = {"": "", "p": ". Fits only by preemption", "f": ". Fits"}.get(letter)
    return "; ".join(said) + (f". {_refused(marks.reasons[why], [box])}" if answer is None else answer)


# ---- what nodes say of a picked pod


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
        return _REFUSALS.get(kind, f"refused by {reason['plugin']}" if reason["plugin"] else "refused")
    if resource == "pods":
        return "as many pods as they may have"
    there = [box.use.amounts(resource) for box in boxes]
    if not any(has for _, has in there):
        return f"no {resource_words(resource)}"
    if kind == "small":
        return f"too small: {_of_words(resource, max(has for _, has in there), reason['asked'])} in all"
    most = max(0, *(has - used for used, has in there))
    return f"too full: {_of_words(resource, most, reason['asked'])} free at most"
