"""What pods use, from the curves drawn on workloads and pods."""

from dataclasses import dataclass

from scheduler_core.sim.load import LOAD, FindOwner, Load, LoadError, Use, carrier_of, load_from, use_of

__all__ = [
    "LOAD",
    "Curve",
    "FindOwner",
    "Load",
    "LoadError",
    "Use",
    "carrier_of",
    "curves_of",
    "load_from",
    "use_of",
]


@dataclass(frozen=True, slots=True)
class Curve:
    """One resource of a load over time.

    Attributes
    ----------
    container
        Of which it is; empty = the whole workload or pod.
    resource
        ``cpu`` or ``memory``.
    points
        (seconds after the start, cores or bytes), in order of time; straight in between.
    """

    container: str
    resource: str
    points: tuple[tuple[float, float], ...]


def curves_of(load: Load) -> list[Curve]:
    """The curves of a load, cpu first."""
    return [
        Curve(container, resource, tuple((at_ns / 1e9, amount / 1e9) for at_ns, amount in points))
        for (container, resource), points in sorted(
            load.curves.items(), key=lambda item: (item[0][1], item[0][0])
        )
    ]
