"""The GPU use case in four ways: no rule, the taint alone, the node affinity alone, and both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from scheduler_core.scenario.gallery import gallery_scenario
from scheduler_core.scenario.types import Manifest, Scenario

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
