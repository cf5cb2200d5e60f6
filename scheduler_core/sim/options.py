"""Options of a simulation: how the cluster is simulated, and the scheduler's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler_core.config.construction import ReadFile, files_unread
from scheduler_core.config.load import LoadedConfiguration
from scheduler_core.config.types import API_VERSION, KIND
from scheduler_core.framework.registry import Registry
from scheduler_core.framework.runtime import check_plugins
from scheduler_core.installed_plugins import known
from scheduler_core.plugins import load_configuration
from scheduler_core.randomness import Randomness
from scheduler_core.releases import Release

# --- Seeded faults: an API server that is slow or refuses, and a watch that loses events.


SLOW_BIND, SLOW_EVICT, RELIST = "bind-answers", "evictions-answered", "watch-lists-again"
"""Timers."""

REFUSAL = "the API server is not answering"


@dataclass(frozen=True, slots=True)
class FaultOptions:
    """How often what goes wrong; all off by default.

    Attributes
    ----------
    slow_binds_percent : int
        Bindings that take `slow_bind_ms`.
    failed_binds_percent : int
        Bindings that are refused (slow ones included).
    slow_evictions_percent : int
        Preemptions whose evictions are asked for `slow_eviction_ms` later: the preemptor is held meanwhile.
    failed_evictions_percent : int
        Preemptions whose evictions are refused.
    lost_events_percent : int
        Changes of assigned pods the scheduler is not told of until its watch lists again, `relist_ms` later.
    """

    slow_binds_percent: int = 0
    slow_bind_ms: int = 2_000
    failed_binds_percent: int = 0
    slow_evictions_percent: int = 0
    slow_eviction_ms: int = 2_000
    failed_evictions_percent: int = 0
    lost_events_percent: int = 0
    relist_ms: int = 60_000

    @property
    def any(self) -> bool:
        return bool(
            self.slow_binds_percent
            or self.failed_binds_percent
            or self.slow_evictions_percent
            or self.failed_evictions_percent
            or self.lost_events_percent
        )


class Faults:
    """Draws what goes wrong next."""

    def __init__(self, options: FaultOptions, randomness: Randomness) -> None:
        self.options = options
        self._randomness = randomness

    def bind(self) -> tuple[int, str | None]:
        """How long the next binding takes in nanoseconds, and why it is refused (None when it is not)."""
        delay_ns = self.options.slow_bind_ms * 1_000_000 if self._hits(self.options.slow_binds_percent) else 0
        return delay_ns, REFUSAL if self._hits(self.options.failed_binds_percent) else None

    def evict(self) -> tuple[int, str | None]:
        """How long the next preemption's evictions take in nanoseconds, and why they are refused, if they are."""
        slow = self._hits(self.options.slow_evictions_percent)
        delay_ns = self.options.slow_eviction_ms * 1_000_000 if slow else 0
        return delay_ns, REFUSAL if self._hits(self.options.failed_evictions_percent) else None

    def loses_event(self) -> bool:
        """Whether the next change of an assigned pod is lost on its way to the scheduler."""
        return self._hits(self.options.lost_events_percent)

    def _hits(self, percent: int) -> bool:
        return percent > 0 and self._randomness.stream("faults").below(100) < percent


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """How the cluster is simulated.

    Attributes
    ----------
    full_traces : bool
        Keep the body of every cycle's trace.
    first_of_ties : bool
        Take the first name of equals.
    extenders_post_bindings : bool
        Extenders are real: a bind call is made by the simulation's caller (`bind_calls`, answered by the change
        `BindCallAnswered`), and the pod stays assumed until the Binding is posted. Runs stop at such a call,
        and the clock stands still while it is outstanding. Otherwise the call goes over the transport at once, and
        the simulated cluster binds the pod on the extender's success.
    adaptive_sampling : bool
        Let an unset percentageOfNodesToScore mean upstream's adaptive share of the nodes.
    assumed_pod_ttl_ns : int
        How long a bound pod is assumed without the watch confirming it; 0 for ever, as v1.34. `SetAssumedPodExpiry`
        changes it.
    default_tolerations : bool
        Give pods that controllers make the default not-ready and unreachable tolerations of 300 s (admission gives
        them to all others).
    controllers : bool
        Whether anything but scheduler, API server and kubelets runs.
    mirrors : bool
        Its objects are those of a live cluster, whose programs act on them: here no cycle, controller or kubelet does.
        The scheduler knows the objects and the pending pods, so forks of it answer questions.
    faults : FaultOptions
    """

    full_traces: bool = True
    first_of_ties: bool = False
    extenders_post_bindings: bool = False
    adaptive_sampling: bool = False
    assumed_pod_ttl_ns: int = 0
    default_tolerations: bool = False
    controllers: bool = True
    mirrors: bool = False
    faults: FaultOptions = field(default_factory=FaultOptions)


def load(
    config: Mapping[str, Any] | None,
    registry: Registry | None = None,
    release: Release | None = None,
    read_file: ReadFile = files_unread,
) -> LoadedConfiguration:
    """A configuration as a simulation takes it: None is the default one.

    Parameters
    ----------
    registry : Registry, optional
        The plugins it may name; those this process knows (`installed_plugins.known`) by default.
    read_file : ReadFile
        Reads files an extender's tlsConfig names. By default they are left to the transport.

    Raises
    ------
    ConfigurationError
    """
    document = {"apiVersion": API_VERSION, "kind": KIND} if config is None else config
    registry = known() if registry is None else registry
    loaded = load_configuration(document, registry=registry, read_file=read_file, release=release)
    check_plugins(loaded, registry)
    return loaded
