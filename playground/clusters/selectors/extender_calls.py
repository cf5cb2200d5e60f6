"""Extender calls as they went over the wire: how long they took by the wall clock, and what came back."""

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from playground.clusters.models import Cluster, ExtenderCall


@dataclass(frozen=True, slots=True)
class WireCall:
    """One call that was made, or is about to be.

    Attributes
    ----------
    took_ms
        Wall time; None before the answer.
    is_open
        No answer has come yet.
    """

    verb: str
    url: str
    status: int | None
    error: str
    took_ms: float | None
    request: str
    answer: str
    is_open: bool


def calls_of_cycle(cluster: Cluster, number: int) -> list[WireCall]:
    """The calls of one cycle in the order they were made, its bind call among them. One query."""
    return _read(ExtenderCall.objects.filter(cluster=cluster, cycle=number))


def matched(
    told: Iterable[tuple[str, str]], made: Sequence[WireCall]
) -> tuple[list[WireCall | None], list[WireCall]]:
    """Calls that a cycle's record tells of beside those that were made.

    Parameters
    ----------
    told
        (verb, url) of each recorded call, in order.

    Returns
    -------
    list of WireCall or None
        Aligned with `told`; None where what went over the wire is not kept.
    list of WireCall
        Bind calls, which are made after the cycle's decision.
    """
    left = list(made)
    found: list[WireCall | None] = []
    for key in told:
        wire = next((one for one in left if (one.verb, one.url) == key), None)
        if wire is not None:
            left.remove(wire)
        found.append(wire)
    return found, [wire for wire in left if wire.verb == "bind"]


def bind_calls_of(cluster: Cluster, uid: str) -> list[WireCall]:
    """The bind calls that were made for a pod. One query."""
    return _read(ExtenderCall.objects.filter(cluster=cluster, pod_uid=uid, verb="bind"))


def _read(rows: Any) -> list[WireCall]:
    return [
        WireCall(
            row.verb,
            row.url,
            row.status,
            row.error,
            row.took_ms,
            _text(row.request),
            _text(row.answer),
            row.state == ExtenderCall.State.INTENDED,
        )
        for row in rows.order_by("pk")
    ]


def _text(data: Any) -> str:
    """A kept body, indented where it is JSON."""
    if data is None:
        return ""
    text = zlib.decompress(bytes(data)).decode()
    try:
        return json.dumps(json.loads(text), indent=2)
    except ValueError:
        return text
