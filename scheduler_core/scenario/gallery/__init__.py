"""Scenarios that teach: each has a lesson, a guided path through its cycles and expectations our own tests run.

To add one: a YAML file here and its name in `order.txt`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from scheduler_core.scenario.load import load_scenario
from scheduler_core.scenario.types import Manifest, Scenario

_FOLDER = resources.files(__package__)
ORDER = tuple((_FOLDER / "order.txt").read_text("utf-8").split())
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
    return (_FOLDER / f"{name}.yaml").read_text("utf-8")


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
