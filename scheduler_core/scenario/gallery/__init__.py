"""Scenarios that teach: each has a lesson, a guided path through its cycles and expectations our own tests run.

To add one: a YAML file here and its name in `ORDER`.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from scheduler_core.scenario.load import load_scenario
from scheduler_core.scenario.types import Scenario

ORDER: tuple[str, ...] = (
    "gpu-isolation",
    "gpu-four-ways",
    "packing-and-spreading",
    "ties-spread",
    "preemption-budget",
    "greedy-against-optimum",
    "spread-surprises",
    "anti-affinity-symmetry",
    "non-preempting-priority",
    "nominated-overtaken",
    "filtering-twice",
    "daemonset-preempts",
    "tie-break-1-violations",
    "tie-break-2-highest-priority",
    "tie-break-3-priority-sum",
    "tie-break-4-fewest-victims",
    "tie-break-5-latest-start",
    "tie-break-6-draw",
    "backoff-and-flush",
    "manual-approval",
    "gang-timeout",
    "gang-evicts-around-a-veto",
    "extender-veto",
    "extender-timeout",
    "extender-timeout-ignorable",
    "extender-preempt-bind",
    "volumes-bind-zone",
    "lose-a-zone",
    "drain-in-time",
    "balanced-moves",
    "partitioned-gpu",
    "gang-almost-fits",
    "differs-hints",
    "differs-pop-from-backoff",
    "differs-node-phase",
    "differs-sampled-scoring",
    "differs-retired-plugins",
    "differs-normalize-50-25-25",
)
"""Names, in the order they are shown: group by group."""


def gallery_text(name: str) -> str:
    """The file of a gallery scenario, comments and all.

    Raises
    ------
    KeyError
        There is none of that name.
    """
    if name not in ORDER:
        raise KeyError(name)
    return resources.files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")


@cache
def gallery_scenario(name: str) -> Scenario:
    """A gallery scenario. Raises KeyError as `gallery_text`."""
    return load_scenario(gallery_text(name))


def gallery() -> list[Scenario]:
    """All of them, in order."""
    return [gallery_scenario(name) for name in ORDER]
