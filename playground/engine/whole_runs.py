"""Answers from runs of a whole scenario: an upgrade's preview, the formal model, the best joint placement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from playground.engine.scenarios import RUN_TIMEOUT_S, Told, ask_process, asked
from scheduler_core.errors import CannotAnswer
from scheduler_core.releases import release_from
from scheduler_core.whatif.model import DEPARTURES
from scheduler_core.whatif.optimum import Progress, Unsolvable, joint_problem, optimum_document, solve

MOST_TOLD: Final = 500
"""Differences of each cause that are kept; all are counted."""


def upgrade_document(
    text: str | bytes,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    told: Told,
    timeout_s: float = RUN_TIMEOUT_S,
) -> dict[str, Any]:
    """Decide a scenario by two releases.

    Parameters
    ----------
    before, after
        Releases as documents (`Cluster.release`).
    told
        Asked about twice a second; False ends the process.

    Returns
    -------
    dict
        `scheduler_core.scenario.upgrade.UpgradePreview.document`, differences cut to `MOST_TOLD`.

    Raises
    ------
    ScenarioError
    RunStopped
        It took too long, broke off, or was ended.
    """
    how = {"before": before, "after": after, "limit": MOST_TOLD}
    watched = partial(ask_process, told=told)
    return asked("upgrade", text, dict[str, Any], ask=watched, timeout_s=timeout_s, **how)


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
    CannotAnswer
    """
    everything = list(manifests)
    try:
        problem = joint_problem(everything, config, movable, release_from(release))
        found = solve(problem, time_limit_s=time_limit_s, progress=progress)
    except (Unsolvable, ValueError) as error:
        raise CannotAnswer(str(error)) from None
    return optimum_document(problem, everything, found)


MODEL_DEPARTURES: Final[Mapping[str, str]] = DEPARTURES
"""Where Kubernetes leaves the model on purpose: key -> sentence."""
MOST_CYCLES_TOLD: Final = 2000
"""Cycles whose verdicts are kept: those first of which there is something to tell."""


def check_document(text: str | bytes, *, timeout_s: float = RUN_TIMEOUT_S) -> dict[str, Any]:
    """Check every cycle of a scenario.

    Returns
    -------
    dict
        `scheduler_core.whatif.model.ModelReport.document`, with ``nCycles``, and ``cycles`` cut to
        `MOST_CYCLES_TOLD`.

    Raises
    ------
    ScenarioError, RunStopped
    """
    found = asked("model", text, dict[str, Any], timeout_s=timeout_s)
    cycles = found["cycles"]
    found["nCycles"] = len(cycles)
    if len(cycles) > MOST_CYCLES_TOLD:
        cycles.sort(key=lambda cycle: all(verdict["status"] == "holds" for verdict in cycle["verdicts"]))
        found["cycles"] = sorted(cycles[:MOST_CYCLES_TOLD], key=lambda cycle: cycle["cycle"])
    return found
