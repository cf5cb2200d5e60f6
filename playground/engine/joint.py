"""The best joint placement of a cluster's pods (`scheduler_core.whatif`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler_core.releases import release_from
from scheduler_core.whatif.optimum import Progress, Unsolvable, joint_problem, optimum_document, solve


def best_placement(
    manifests: Iterable[Mapping[str, Any]],
    config: Mapping[str, Any] | None,
    movable: frozenset[str],
    *,
    release: Mapping[str, Any] | None = None,
    time_limit_s: float,
    progress: Progress,
) -> dict[str, Any]:
    """Find it.

    Parameters
    ----------
    manifests
        Everything in the cluster.
    config
        Its scheduler configuration; extenders are left out.
    movable
        ``namespace/name`` of the pods that may be placed anew.
    release
        The release of Kubernetes it follows; None is the oldest.
    progress
        Is told what is being solved, and the share that is done.

    Returns
    -------
    dict
        `scheduler_core.whatif.optimum.optimum_document`.

    Raises
    ------
    Unsolvable
    """
    everything = list(manifests)
    problem = joint_problem(everything, config, movable, release_from(release))
    return optimum_document(problem, everything, solve(problem, time_limit_s=time_limit_s, progress=progress))


__all__ = ["Unsolvable", "best_placement"]
