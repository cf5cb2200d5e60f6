"""Scenarios that teach: each has a lesson, a guided path through its cycles and expectations our own tests run.

To add one: a YAML file here and its name in `ORDER`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from scheduler_core.scenario.load import load_scenario
from scheduler_core.scenario.types import Manifest, Scenario

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


USE_CASE = "gpu-four-ways"


class Way(NamedTuple):
    """One way.

    Attributes
    ----------
    taint : bool
        GPU nodes are tainted, and the pods that use GPUs tolerate it.
    affinity : bool
        The pods that use GPUs require GPU nodes.
    """

    key: str
    title: str
    taint: bool
    affinity: bool


WAYS = (
    Way("no-rule", "No rule", False, False),
    Way("taint", "Taint and toleration", True, False),
    Way("affinity", "Node affinity", False, True),
    Way("both", "Taint and node affinity", True, True),
)


def four_ways() -> list[tuple[Way, Scenario]]:
    """Each way with its scenario; they differ in nothing but the rules."""
    whole = gallery_scenario(USE_CASE)
    return [(way, whole if way.taint and way.affinity else _in(way, whole)) for way in WAYS]


def _in(way: Way, whole: Scenario) -> Scenario:
    objects = tuple(_with_rules(way, manifest) for manifest in whole.objects)
    name = f"{USE_CASE}-{way.key}"
    return replace(
        whole,
        name=name,
        title=f"GPU nodes: {way.title.lower()}",
        lesson="",
        objects=objects,
        expect=(),
        path=(),
    )


def _with_rules(way: Way, manifest: Manifest) -> Manifest:
    spec: Mapping[str, Any] = manifest.get("spec") or {}
    left = {
        key: value
        for key, value in spec.items()
        if not (key in ("taints", "tolerations") and not way.taint)
        and not (key == "affinity" and not way.affinity)
    }
    return {**manifest, "spec": left} if spec else manifest
