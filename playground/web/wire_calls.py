"""Extender calls of a cycle or a pod beside what went over the wire."""

from collections.abc import Sequence
from dataclasses import replace

from playground.clusters.selectors.extender_calls import WireCall, matched
from playground.web.explanation.cycle import ExtenderCall


def with_wire_calls(told: Sequence[ExtenderCall], made: Sequence[WireCall]) -> tuple[ExtenderCall, ...]:
    """The calls of an explanation with the time each took by the wall clock, and bind calls made after the cycle."""
    found, binds = matched([(call.verb, call.url) for call in told], made)
    calls = [
        call if wire is None else replace(call, took_ms=wire.took_ms)
        for call, wire in zip(told, found, strict=True)
    ]
    return (*calls, *map(drawn, binds))


def drawn(wire: WireCall) -> ExtenderCall:
    """A call the explanation does not tell."""
    status = "waits for its answer" if wire.is_open else "" if wire.status is None else str(wire.status)
    return ExtenderCall(
        url=wire.url,
        verb=wire.verb,
        status=status,
        duration_ms=None,
        took_ms=wire.took_ms,
        request=wire.request,
        answer=wire.answer,
        error=wire.error,
    )
