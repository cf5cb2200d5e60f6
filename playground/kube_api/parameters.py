"""Query parameters the Kubernetes API knows. An API server passes over others; `?dryrun=All` would then write.

Source: ListOptions, GetOptions, DeleteOptions, CreateOptions, UpdateOptions, PatchOptions and TableOptions in
staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go, v1.36
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from playground.engine.schema import nearest_name
from playground.kube_api.status import Refusal

KNOWN: Final = frozenset(
    (
        "allowWatchBookmarks",
        "continue",
        "dryRun",
        "fieldManager",
        "fieldSelector",
        "fieldValidation",
        "force",
        "gracePeriodSeconds",
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "includeObject",
        "labelSelector",
        "limit",
        "orphanDependents",
        "pretty",
        "propagationPolicy",
        "resourceVersion",
        "resourceVersionMatch",
        "sendInitialEvents",
        "shardSelector",
        "timeout",
        "timeoutSeconds",
        "watch",
    )
)


def unknown_parameters(given: Iterable[str]) -> list[str]:
    """A sentence for each unknown parameter.

    Raises
    ------
    Refusal
        BadRequest: one that is most likely another, misspelt.
    """
    told = []
    for name in given:
        if name in KNOWN:
            continue
        near = nearest_name(name, sorted(KNOWN))
        if near:
            raise Refusal("BadRequest", f'unknown query parameter "{name[:80]}" (did you mean {near}?)')
        told.append(f'unknown query parameter "{name[:80]}"')
    return told
