"""What this API says about itself."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from playground.api.errors import REASONS
from playground.api.views.base import PlaygroundView
from playground.clusters.errors import NotFound
from playground.engine.releases import (
    DEFAULT,
    engine_readme,
    known_differences,
    patch_of,
    release_names,
    release_outlines,
)
from scheduler_core.version import ENGINE_VERSION

PATHS = {
    "version": "/api/v1/version",
    "clusters": "/api/v1/clusters/",
    "tokens": "/api/v1/tokens/",
    "problems": "/api/v1/problems/",
    "openapi": "/api/v1/openapi.json",
    "docs": "/api/v1/docs/",
}


class Index(PlaygroundView):
    one_cluster_reads = True

    def get(self, request: Request) -> Response:
        """Paths to begin with."""
        return Response(PATHS)


class Version(PlaygroundView):
    one_cluster_reads = True

    def get(self, request: Request) -> Response:
        """The release new clusters follow, all there are, the engine's own, where they are known to differ."""
        return Response(
            {
                "emulates": patch_of({"name": DEFAULT}),
                "releases": list(release_names()),
                "engine": ENGINE_VERSION,
                "api": "v1",
                "sampling": {
                    "default": "every node is evaluated",
                    "profiles": "a profile's percentageOfNodesToScore is honoured; a cycle's nodesEvaluated"
                    " says how many nodes it looked at",
                },
                "knownDifferences": known_differences(engine_readme()),
            }
        )


class Releases(PlaygroundView):
    one_cluster_reads = True

    def get(self, request: Request) -> Response:
        """Those a cluster may follow, oldest first, with their feature gates."""
        default = DEFAULT
        return Response(
            {
                "items": [
                    {
                        "name": release.name,
                        "emulates": release.patch,
                        "default": release.name == default,
                        "agreedDecisions": release.n_agreed,
                        "gates": [
                            {
                                "name": gate.name,
                                "stage": gate.stage,
                                "default": gate.default,
                                "locked": gate.locked,
                            }
                            for gate in release.gates
                        ],
                        "changes": [{"name": name, "sentence": said} for name, said in release.changes],
                    }
                    for release in release_outlines()
                ]
            }
        )


class Problems(PlaygroundView):
    one_cluster_reads = True

    def get(self, request: Request) -> Response:
        """Every `reason` a problem may have."""
        return Response({"items": [_reason(name) for name in REASONS]})


class OneProblem(PlaygroundView):
    one_cluster_reads = True

    def get(self, request: Request, reason: str) -> Response:
        """What a problem's `type` points at."""
        if reason not in REASONS:
            raise NotFound(f'there is no reason "{reason}"', name=reason)
        return Response(_reason(reason))


class Nothing(PlaygroundView):
    """Every other path: the same shape of refusal as everywhere."""

    throttle_classes = []
    parser_classes: list[Any] = []

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise NotFound(f"there is nothing at {request.path}")

    def get(self, request: Request, rest: str = "") -> Response:
        raise AssertionError("initial refuses first")

    post = put = patch = delete = get


def _reason(name: str) -> dict[str, Any]:
    status, title, about = REASONS[name]
    return {"reason": name, "status": status, "title": title, "about": about}
