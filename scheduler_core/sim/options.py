"""What a simulation is told before it begins: how the cluster is simulated, and the scheduler's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler_core.config.construction import ReadFile, files_unread
from scheduler_core.config.load import LoadedConfiguration
from scheduler_core.config.types import API_VERSION, KIND
from scheduler_core.framework.profile import check_plugins
from scheduler_core.framework.registry import Registry
from scheduler_core.installed_plugins import known
from scheduler_core.plugins import load_configuration
from scheduler_core.releases import Release
from scheduler_core.sim.faults import FaultOptions


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
    faults : FaultOptions
    """

    full_traces: bool = True
    first_of_ties: bool = False
    extenders_post_bindings: bool = False
    adaptive_sampling: bool = False
    assumed_pod_ttl_ns: int = 0
    default_tolerations: bool = False
    controllers: bool = True
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
