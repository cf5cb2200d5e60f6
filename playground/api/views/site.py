"""What this API says about itself."""

from __future__ import annotations

from typing import Any

from playground.api.documentation import REASONS
from playground.api.representations import shown
from playground.api.views.base import Call
from playground.clusters.errors import NotFound
from playground.engine import releases
from scheduler_core.releases import release_named
from scheduler_core.version import ENGINE_VERSION

PATHS = {
    "version": "/api/v1/version",
    "clusters": "/api/v1/clusters/",
    "tokens": "/api/v1/tokens/",
    "problems": "/api/v1/problems/",
    "openapi": "/api/v1/openapi.json",
    "docs": "/api/v1/docs/",
}


def index_read(call: Call) -> Any:
    """Paths to begin with."""
    return PATHS


def version_read(call: Call) -> Any:
    """The release new clusters follow, all there are, the engine's own, where they are known to differ."""
    return {
        "emulates": release_named(releases.DEFAULT).patch,
        "releases": [release.name for release in releases.release_outlines()],
        "engine": ENGINE_VERSION,
        "api": "v1",
        "sampling": {
            "default": "every node is evaluated",
            "profiles": "a profile's percentageOfNodesToScore is honoured; a cycle's nodesEvaluated"
            " says how many nodes it looked at",
        },
        "knownDifferences": releases.known_differences(releases.engine_readme()),
    }


def releases_list(call: Call) -> Any:
    """Those a cluster may follow, oldest first, with their feature gates."""
    return [
        shown(
            "ReleaseAnswer",
            release,
            default=release.name == releases.DEFAULT,
            gates=[shown("GateAnswer", gate, name=name) for name, gate in sorted(release.gates.items())],
        )
        for release in releases.release_outlines()
    ]


def problems_list(call: Call) -> Any:
    """Every `reason` a problem may have."""
    return [problems_read(call, name) for name in REASONS]


def problems_read(call: Call, reason: str) -> Any:
    """What a problem's `type` points at."""
    if reason not in REASONS:
        raise NotFound(f'there is no reason "{reason}"', name=reason)
    status, title, about = REASONS[reason]
    return {"reason": reason, "status": status, "title": title, "about": about}
