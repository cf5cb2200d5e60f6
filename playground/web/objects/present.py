"""All that a cluster holds, as its pages show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.http import Http404

from playground.clusters.board.nodes import autoscalers_of, sharing, total
from playground.clusters.board.overview import counts_by_kind, objects_of_kind
from playground.clusters.clock import virtual_now_ns
from playground.clusters.kinds import Kind
from playground.clusters.row_types import Cluster
from playground.engine.columns import curves_of
from playground.web import amounts
from scheduler_core.objects.fields import format_seconds, parse_time_ns
from scheduler_core.schema.tables import table_beside
from scheduler_core.sim.load import LOAD, Load, LoadError, load_from

SHOWN: Final = 25
_TABLES: Final = table_beside(__package__, "tables.yaml")
_WORDS: Final[Mapping[str, Sequence[str]]] = _TABLES["effects"]


def view_kinds(cluster: Cluster, *, effect: str, with_none: bool) -> dict[str, Any]:
    """Every kind, those with objects only unless asked otherwise.

    Returns
    -------
    dict
        `facets`: all kinds, then those of each effect; `built_in` and `custom`: rows of the chosen one; `n_hidden`
        kinds without an object are left out.
    """
    if effect and effect not in _WORDS:
        raise Http404(f'There is no effect "{effect}".')
    rows = [_row(kind, count) for kind, count in counts_by_kind(cluster)]
    there = [row for row in rows if row["count"]]
    wanted = [row for row in rows if effect in ("", row["effect"])]
    shown = [row for row in wanted if row["count"] or with_none]
    facets = []
    for key, (icon, _, title, words) in {"": ("grid", "", "All", ""), **_WORDS}.items():
        some = [row["count"] for row in there if key in ("", row["effect"])]
        look = {"key": key, "icon": icon, "title": title, "words": words}
        facets.append({**look, "n_kinds": len(some), "n_objects": sum(some)})
    return {
        "n_objects": facets[0]["n_objects"],
        "n_kinds": len(there),
        "n_shaping": facets[1]["n_objects"],
        "effect": effect,
        "facets": facets,
        "built_in": [row for row in shown if row["kind"].custom is None],
        "custom": [row for row in shown if row["kind"].custom is not None],
        "n_hidden": len(wanted) - len(shown),
        "with_none": with_none,
    }


def _row(kind: Kind, count: int) -> dict[str, Any]:
    """One kind: how many there are, what they do, and what of them counts."""
    icon, words, _, _ = _WORDS[kind.role]
    return {
        "kind": kind, "count": count, "effect": kind.role, "icon": icon, "words": words, "counts": kind.effect
    }  # fmt: skip


def view_objects(cluster: Cluster, kind: Kind, *, named: str, after: str) -> dict[str, Any]:
    """Objects of a kind, a page of them.

    Parameters
    ----------
    after
        ``namespace/name`` of the last one of the page before.
    """
    namespace, _, name = after.rpartition("/")
    place = (namespace, name) if name else None
    found = list(objects_of_kind(cluster, kind, named=named[:253], after=place, limit=SHOWN + 1))
    last = found[SHOWN - 1]["metadata"] if len(found) > SHOWN else None
    count = next(number for each, number in counts_by_kind(cluster) if each.row_kind == kind.row_kind)
    return {
        "row": _row(kind, count),
        "objects": [item["metadata"] for item in found[:SHOWN]],
        "named": named,
        "next_after": f"{last.get('namespace') or ''}/{last['name']}" if last else "",
    }


CARRIERS: Final = (
    "Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "DaemonSet", "Job", "Pod",
)  # fmt: skip
"""Kinds on which a load is drawn."""
WIDTH: Final = 720
HEIGHT: Final = 160
LEAST_S: Final = 600.0


def view_load(
    cluster: Cluster, kind: Kind, manifest: Mapping[str, Any], text: str | None = None
) -> dict[str, Any]:
    """The load of an object, or what it would be with another text.

    Returns
    -------
    dict
        `charts` of each resource with their `lines`; `ticks` (x, time in words) of the lower edge; `now_x`, where the
        clock stands, None beyond the drawing; `sharing` (pod, cpu, memory) of running pods; `in_use`, what they use
        together; manifests of `autoscalers` that scale it.
    """
    meta = manifest["metadata"]
    if text is None:
        text = str((meta.get("annotations") or {}).get(LOAD) or "")
    now_ns = virtual_now_ns(cluster)
    load, problem = None, ""
    try:
        load = load_from(text) if text.strip() else None
    except LoadError as error:
        problem = str(error)
    charts, ticks, now_x = ([], [], None) if load is None else _drawn(load, manifest, now_ns)
    place = (cluster, kind, str(meta.get("namespace") or "default"), str(meta["name"]))
    pods = sharing(*place)
    return {
        "text": text,
        "problem": problem,
        "width": WIDTH,
        "height": HEIGHT,
        "example": _TABLES["example"],
        "charts": charts,
        "ticks": ticks,
        "now_x": now_x,
        "now": format_seconds(now_ns),
        "sharing": [(pod, *_used([use])) for pod, use in pods],
        "in_use": _used([use for _, use in pods]),
        "autoscalers": autoscalers_of(*place),
    }


def _used(uses: Sequence[Any]) -> tuple[str, str]:
    """Cpu and memory of pods together, in words."""
    together = total(uses)
    return _cores(together["cpu"]), _memory(together["memory"])


def _cores(nano: int) -> str:
    return amounts.cores(round(nano / 10**6))


def _memory(nano: int) -> str:
    return amounts.memory(nano // 10**9)


def anchored(text: str, now_ns: int) -> str:
    """A load whose time 0 is now."""
    kept = [line for line in text.replace(";", "\n").splitlines() if line.split()[:1] != ["from"]]
    return "\n".join([f"from {format_seconds(now_ns)}", *(line for line in kept if line.strip())])


def _drawn(
    load: Load, manifest: Mapping[str, Any], now_ns: int
) -> tuple[list[dict[str, Any]], list[tuple[int, str]], int | None]:
    curves = curves_of(load)
    span_s = load.every_ns / 1e9 or max(LEAST_S, load.end_ns / 1e9 * 1.1)
    charts = []
    for resource, words in (("cpu", _cores), ("memory", _memory)):
        own = [curve for curve in curves if curve.resource == resource]
        if not own:
            continue
        top = max((amount for curve in own for _, amount in curve.points), default=0) or 1
        lines = [
            {
                "name": curve.container or ("each pod" if load.each else "all pods together"),
                "peak": words(round(max(amount for _, amount in curve.points) * 1e9)),
                "path": _path(curve.points, span_s, top),
                "css": f"l{number % 3 + 1}",
            }
            for number, curve in enumerate(own)
        ]
        charts.append({"resource": resource, "top": words(round(top * 1e9)), "lines": lines})
    created = manifest["metadata"].get("creationTimestamp")
    start_ns = load.start_ns if load.start_ns is not None else parse_time_ns(created) if created else 0
    after_s = (now_ns - start_ns) / 1e9
    if load.every_ns:
        after_s %= span_s
    now_x = round(after_s / span_s * WIDTH) if 0 <= after_s <= span_s else None
    return charts, [(WIDTH * part // 4, lasting(span_s * part / 4)) for part in range(5)], now_x


def _path(points: tuple[tuple[float, float], ...], span_s: float, top: float) -> str:
    """The path of a line from edge to edge: level before the first point and after the last."""
    inside = [(at_s, amount) for at_s, amount in points if at_s <= span_s]
    whole = [(0.0, points[0][1]), *inside, (span_s, inside[-1][1] if inside else points[0][1])]
    places = [
        f"{at_s / span_s * WIDTH:.1f} {HEIGHT - amount / top * (HEIGHT - 10):.1f}" for at_s, amount in whole
    ]
    return f"M{'L'.join(places)}"


def lasting(seconds: float) -> str:
    """`0`, `90s`, `15m`, `6h`, `2.5d`."""
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length or seconds == length:
            return f"{seconds / length:.3g}{unit}"
    return f"{seconds:.3g}s" if seconds else "0"
