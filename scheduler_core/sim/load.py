"""What pods use: a curve of cpu and memory over time, drawn on a workload or a pod by an annotation (`LOAD`).

Lines, or parts between `;`: `TIME RESOURCE=AMOUNT ...` is a point, and use is straight between points, even before the
first and after the last. `from 2026-01-01T00:00:00Z` says when time 0 is (without it, when the object was created),
`every 24h` begins anew, `each` gives the use of each pod where otherwise all ready pods of the workload share it.
`web/cpu=1` is the use of one container. A pod without a curve uses nothing; no container uses more than its limit.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from scheduler_core.objects.duration import duration_ns
from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.objects.quantity import QuantityError, quantity_from

LOAD = "playground.dev/load"
RESOURCES = ("cpu", "memory")
MAX_POINTS = 1000
Point = tuple[int, int]
"""(ns after the start, amount in nano units)"""
Use = dict[str, dict[str, int]]
"""Container -> resource -> nano units."""
Manifest = Mapping[str, Any]
FindOwner = Callable[[str, str, str], Manifest | None]
"""An object of a kind, namespace and name."""


class LoadError(ValueError):
    """A curve that cannot be read; says in which line, from 1, and why."""


@dataclass(frozen=True, slots=True)
class Load:
    """A curve.

    Attributes
    ----------
    curves : mapping of (str, str) to tuple of Point
        (container or empty, resource) -> points in order of time.
    start_ns : int or None
        When its time 0 is.
    every_ns : int
        It begins anew after so long; 0 is never.
    each : bool
        Amounts are of each pod, not of all together.
    """

    curves: Mapping[tuple[str, str], tuple[Point, ...]]
    start_ns: int | None = None
    every_ns: int = 0
    each: bool = False

    def at(self, now_ns: int, created_ns: int) -> dict[tuple[str, str], int]:
        """Amounts at a moment, in nano units.

        Examples
        --------
        >>> load_from("0s cpu=1; 10m cpu=3").at(300 * 10**9, created_ns=0)
        {('', 'cpu'): 2000000000}
        """
        after_ns = now_ns - (created_ns if self.start_ns is None else self.start_ns)
        if self.every_ns:
            after_ns %= self.every_ns
        return {key: _amount(points, after_ns) for key, points in self.curves.items()}

    @property
    def end_ns(self) -> int:
        """The time of the last point."""
        return max(points[-1][0] for points in self.curves.values())


def _amount(points: tuple[Point, ...], after_ns: int) -> int:
    place = bisect_right(points, after_ns, key=lambda point: point[0])
    if place == 0:
        return points[0][1]
    if place == len(points):
        return points[-1][1]
    (before_ns, before), (next_ns, following) = points[place - 1], points[place]
    return before + (following - before) * (after_ns - before_ns) // (next_ns - before_ns)


@lru_cache(maxsize=1024)
def load_from(text: str) -> Load:
    """Read a curve.

    Raises
    ------
    LoadError
    """
    curves: dict[tuple[str, str], list[Point]] = {}
    start_ns, every_ns, each = None, 0, False
    lines = [line for whole in text.splitlines() for line in whole.split(";")]
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            match words:
                case ["from", when]:
                    start_ns = parse_time_ns(when)
                case ["every", lasting]:
                    every_ns = duration_ns(lasting)
                    if every_ns <= 0:
                        raise ValueError("must be longer than nothing")
                case ["each"]:
                    each = True
                case [when, *amounts] if amounts and "=" in amounts[0]:
                    at_ns = duration_ns(when)
                    for amount in amounts:
                        _add(curves, at_ns, amount)
                case _:
                    raise ValueError('is none of "TIME cpu=AMOUNT", "from TIME", "every DURATION" and "each"')
        except (ValueError, QuantityError) as error:
            raise LoadError(f'line {number} "{line.strip()}": {error}') from None
    if not curves:
        raise LoadError("has no point like 10m cpu=500m")
    if sum(map(len, curves.values())) > MAX_POINTS:
        raise LoadError(f"has more than {MAX_POINTS:,} points")
    return Load({key: tuple(points) for key, points in curves.items()}, start_ns, every_ns, each)


def _add(curves: dict[tuple[str, str], list[Point]], at_ns: int, written: str) -> None:
    match = re.fullmatch(r"(?:([a-z0-9-]+)/)?([a-z]+)=(\S+)", written)
    if match is None or match[2] not in RESOURCES:
        raise ValueError(f'"{written}" is no amount like cpu=500m or memory=1Gi')
    amount = quantity_from(match[3]).nano_value()
    if amount < 0:
        raise ValueError(f'"{written}" must not be negative')
    points = curves.setdefault((match[1] or "", match[2]), [])
    if points and at_ns < points[-1][0]:
        raise ValueError("times must not go back")
    points.append((at_ns, amount))


def carrier_of(pod: Manifest, find_owner: FindOwner) -> Manifest:
    """Who says what a pod uses: itself, or the first of its owners that has a curve; itself where none has."""
    found: Manifest | None = pod
    while found is not None:
        if LOAD in (found["metadata"].get("annotations") or {}):
            return found
        found = _controller_of(found, find_owner)
    return pod


def _controller_of(manifest: Manifest, find_owner: FindOwner) -> Manifest | None:
    for item in manifest["metadata"].get("ownerReferences") or ():
        if item.get("controller"):
            owner = find_owner(item["kind"], manifest["metadata"].get("namespace") or "", item["name"])
            return owner if owner is not None and owner["metadata"].get("uid") == item.get("uid") else None
    return None


def use_of(pods: Iterable[Manifest], find_owner: FindOwner, now_ns: int) -> dict[tuple[str, str], Use]:
    """What running pods use, by namespace and name.

    Parameters
    ----------
    pods
        All that may share a curve.
    """
    return use_of_likes(((pod, 1) for pod in pods), find_owner, now_ns)


def use_of_likes(
    likes: Iterable[tuple[Manifest, int]], find_owner: FindOwner, now_ns: int
) -> dict[tuple[str, str], Use]:
    """What running pods use, as `use_of`, where pods that are alike are given as one and their number."""
    running = [(pod, n) for pod, n in likes if (pod.get("status") or {}).get("phase") == "Running"]
    carriers = [carrier_of(pod, find_owner) for pod, _ in running]
    ready = [_is_ready(pod) for pod, _ in running]
    n_sharing: dict[int, int] = {}
    for (_, n), carrier, is_ready in zip(running, carriers, ready, strict=True):
        n_sharing[id(carrier)] = n_sharing.get(id(carrier), 0) + n * is_ready
    used: dict[tuple[str, str], Use] = {}
    alike: dict[tuple[int, int, bool], Use] = {}
    for (pod, _), carrier, is_ready in zip(running, carriers, ready, strict=True):
        meta = pod["metadata"]
        # Pods of one template have the same list of containers.
        kind = (id(carrier), id(pod["spec"].get("containers")), is_ready)
        if kind not in alike or carrier is pod:
            n_pods = max(n_sharing[id(carrier)], 1) if is_ready else 0
            alike[kind] = _use_of_pod(pod, carrier, n_pods, now_ns)
        used[str(meta.get("namespace") or ""), str(meta["name"])] = alike[kind]
    return used


def _use_of_pod(pod: Manifest, carrier: Manifest, n_sharing: int, now_ns: int) -> Use:
    containers = pod["spec"].get("containers") or []
    use: Use = {str(item.get("name", "")): dict.fromkeys(RESOURCES, 0) for item in containers}
    text = (carrier["metadata"].get("annotations") or {}).get(LOAD)
    if text is None or not n_sharing:
        return use
    try:
        load = load_from(str(text))
    except LoadError:
        # Admission refuses such a curve; one that got in otherwise says nothing.
        return use
    amounts = load.at(now_ns, _created_ns(carrier))
    shared_by = 1 if load.each or carrier is pod else n_sharing
    for (name, resource), amount in amounts.items():
        share = amount // shared_by
        if name:
            if name in use:
                use[name][resource] = share
            continue
        others = [item for item in containers if (str(item.get("name", "")), resource) not in amounts]
        weights = [_amount_of(item, "requests", resource) for item in others]
        if not any(weights):
            weights = [1] * len(others)
        for item, weight in zip(others, weights, strict=True):
            use[str(item.get("name", ""))][resource] = share * weight // sum(weights)
    for item in containers:
        for resource, amount in use[str(item.get("name", ""))].items():
            limit = _amount_of(item, "limits", resource)
            if limit and amount > limit:
                use[str(item.get("name", ""))][resource] = limit
    return use


def _amount_of(container: Manifest, which: str, resource: str) -> int:
    written = ((container.get("resources") or {}).get(which) or {}).get(resource)
    return 0 if written is None else quantity_from(written).nano_value()


def _created_ns(manifest: Manifest) -> int:
    text = manifest["metadata"].get("creationTimestamp")
    return parse_time_ns(str(text)) if text else 0


def _is_ready(pod: Manifest) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)
