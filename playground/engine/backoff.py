"""How long a pod backs off, as a configuration says."""

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler_core.errors import ConfigurationError
from scheduler_core.queue.backoff_queue import BackoffQueue
from scheduler_core.releases import release_from
from scheduler_core.sim.options import load

SECOND_NS = 1_000_000_000


def backoffs_ns(
    document: Mapping[str, Any] | None,
    failures: Sequence[bool],
    release: Mapping[str, Any] | None = None,
) -> list[int]:
    """How long a pod backs off after each of its failed attempts, in nanoseconds.

    Parameters
    ----------
    document
        The cluster's KubeSchedulerConfiguration; None = the default one.
    failures
        Of each attempt in order: whether it ended in an error, and not because no node fitted.
    release
        The cluster's release of Kubernetes; None is the oldest.

    Returns
    -------
    list of int
        0 where the configuration cannot be used any more.
    """
    try:
        configuration = load(document, release=release_from(release)).configuration
    except ConfigurationError:
        # A plugin it names was uninstalled: how long pods backed off is unknown.
        return [0] * len(failures)
    queue = BackoffQueue(
        configuration.pod_initial_backoff_s * SECOND_NS,
        configuration.pod_max_backoff_s * SECOND_NS,
        lambda _: (),
    )
    unschedulable = errors = 0
    found = []
    for is_error in failures:
        errors = errors + 1 if is_error else 0
        unschedulable += not is_error
        found.append(queue.backoff_ns(errors or unschedulable))
    return found
