"""The objects of `kubescheduler.config.k8s.io/v1`: what a configuration says, as frozen values.

Every field that has an upstream default is filled in by `load_configuration`; times are nanoseconds (`_ns`)
or seconds (`_s`) as the name says. A class called from code without arguments holds zero values, not the
defaults.

Args of plugins are declared with the plugins (`config.args.PluginArgs`).

Source: staging/src/k8s.io/kube-scheduler/config/v1/types.go,
staging/src/k8s.io/component-base/config/v1alpha1/types.go, v1.34
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from scheduler_core.config.args import Errors, PluginArgs
from scheduler_core.config.catalog import EXTENSION_POINTS
from scheduler_core.config.wire import ANY, Document, DurationNs, Float32, Int32, keep, omit, pointer
from scheduler_core.errors import invalid, required
from scheduler_core.objects.labels import qualified_name_errors

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"
POLICY_KIND = "Policy"

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"

LIST_DEFAULTING = "List"

# --- pieces of args that a Policy has too ---


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """A resource and what it counts for."""

    name: str = keep("")
    weight: int = omit(0)


@dataclass(frozen=True, slots=True)
class UtilizationShapePoint:
    """One point of a scoring function: utilization in percent, score 0 to 10."""

    utilization: Int32 = keep(0)
    score: Int32 = keep(0)


def label_name_errors(name: str, path: str) -> Errors:
    """Source: apis/meta/v1/validation ValidateLabelName."""
    return [invalid(path, name, problem) for problem in qualified_name_errors(name)]


def shape_errors(shape: tuple[UtilizationShapePoint, ...], path: str) -> Errors:
    """Source: validateFunctionShape."""
    if not shape:
        return [required(path, "at least one point must be specified")]
    errors: Errors = []
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            here = f"{path}[{index}].utilization"
            errors.append(
                invalid(here, shape[index].utilization, "values must be sorted in increasing order")
            )
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            here = f"{path}[{index}].utilization"
            errors.append(invalid(here, point.utilization, "not in valid range [0, 100]"))
        if not 0 <= point.score <= 10:
            errors.append(invalid(f"{path}[{index}].score", point.score, "not in valid range [0, 10]"))
    return errors


Args = PluginArgs | Document | None
"""What a plugin is configured with; a document (or nothing) for plugins that declare no args."""

# --- the configuration ---


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin in a set; weight 0 = none given."""

    name: str = keep("")
    weight: Int32 = 0


@dataclass(frozen=True, slots=True)
class PluginSet:
    """What is enabled and disabled at one extension point."""

    enabled: tuple[Plugin, ...] = omit(())
    disabled: tuple[Plugin, ...] = omit(())


@dataclass(frozen=True, slots=True)
class Plugins:
    """The plugin sets of a profile, merged with the default set."""

    pre_enqueue: PluginSet = omit(PluginSet())
    queue_sort: PluginSet = omit(PluginSet())
    pre_filter: PluginSet = omit(PluginSet())
    filter: PluginSet = omit(PluginSet())
    post_filter: PluginSet = omit(PluginSet())
    pre_score: PluginSet = omit(PluginSet())
    score: PluginSet = omit(PluginSet())
    reserve: PluginSet = omit(PluginSet())
    permit: PluginSet = omit(PluginSet())
    pre_bind: PluginSet = omit(PluginSet())
    bind: PluginSet = omit(PluginSet())
    post_bind: PluginSet = omit(PluginSet())
    multi_point: PluginSet = omit(PluginSet())

    def at(self, point: str) -> PluginSet:
        """The set of an extension point under its name in the configuration (`preFilter`)."""
        found: PluginSet = getattr(self, _ATTRIBUTES[point])
        return found


_ATTRIBUTES = {
    point: "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in point)
    for point in (*EXTENSION_POINTS, "multiPoint")
}


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """The args of one plugin."""

    name: str = keep("")
    args: Annotated[Args, ANY] = None


@dataclass(frozen=True, slots=True)
class KubeSchedulerProfile:
    """One scheduler name and what it runs."""

    scheduler_name: str = ""
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = omit(())


@dataclass(frozen=True, slots=True)
class ExtenderManagedResource:
    """An extended resource an extender answers for."""

    name: str = keep("")
    ignored_by_scheduler: bool = omit(False)


@dataclass(frozen=True, slots=True)
class ExtenderTLSConfig:
    """How to speak TLS with an extender; `*_file` are paths that are not read here."""

    insecure: bool = omit(False)
    server_name: str = omit("")
    cert_file: str = omit("")
    key_file: str = omit("")
    ca_file: str = omit("")
    cert_data: bytes = omit(b"")
    key_data: bytes = omit(b"")
    ca_data: bytes = omit(b"")


@dataclass(frozen=True, slots=True)
class Extender:
    """An HTTP extender; an empty verb is one it does not offer."""

    url_prefix: str = keep("")
    filter_verb: str = omit("")
    preempt_verb: str = omit("")
    prioritize_verb: str = omit("")
    weight: int = omit(0)
    bind_verb: str = omit("")
    enable_https: bool = omit(False, "enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout_ns: DurationNs = keep(0, "httpTimeout")
    node_cache_capable: bool = omit(False)
    managed_resources: tuple[ExtenderManagedResource, ...] = omit(())
    ignorable: bool = omit(False)


@dataclass(frozen=True, slots=True)
class LeaderElectionConfiguration:
    """Checked and kept; no leader is elected here."""

    leader_elect: bool = False
    lease_duration_ns: DurationNs = keep(0, "leaseDuration")
    renew_deadline_ns: DurationNs = keep(0, "renewDeadline")
    retry_period_ns: DurationNs = keep(0, "retryPeriod")
    resource_lock: str = keep("")
    resource_name: str = keep("")
    resource_namespace: str = keep("")


@dataclass(frozen=True, slots=True)
class ClientConnectionConfiguration:
    """Checked and kept; there is no API server to connect to."""

    kubeconfig: str = keep("")
    accept_content_types: str = keep("")
    content_type: str = keep("")
    qps: Float32 = keep(0.0)
    burst: Int32 = keep(0)


@dataclass(frozen=True, slots=True)
class KubeSchedulerConfiguration:
    """A whole configuration, defaults filled in."""

    parallelism: Int32 = 0
    leader_election: LeaderElectionConfiguration = keep(LeaderElectionConfiguration())
    client_connection: ClientConnectionConfiguration = keep(ClientConnectionConfiguration())
    enable_profiling: bool = False
    enable_contention_profiling: bool = False
    percentage_of_nodes_to_score: Int32 = 0
    pod_initial_backoff_s: int = pointer(0, "podInitialBackoffSeconds")
    pod_max_backoff_s: int = pointer(0, "podMaxBackoffSeconds")
    profiles: tuple[KubeSchedulerProfile, ...] = omit(())
    extenders: tuple[Extender, ...] = omit(())
    delay_cache_until_active: bool = omit(False)
