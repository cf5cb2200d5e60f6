"""The objects of `kubescheduler.config.k8s.io/v1`: what a configuration says, as frozen values.

Every field that has an upstream default is filled in by `load_configuration`; times are nanoseconds (`_ns`)
or seconds (`_s`) as the name says. A class called from code without arguments holds zero values, not the
defaults.

Args of plugins are declared with the plugins (`config.args.PluginArgs`).

Source: staging/src/k8s.io/kube-scheduler/config/v1/types.go,
staging/src/k8s.io/component-base/config/v1alpha1/types.go, v1.34
"""

# ruff: noqa: RUF009 - `wire` is dataclasses.field under another name

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.config.args import Errors, PluginArgs, invalid, required
from scheduler_core.config.catalog import EXTENSION_POINTS
from scheduler_core.config.wire import (
    ANY,
    BOOLEAN,
    BYTES,
    DURATION,
    FLOAT32,
    INT32,
    INT64,
    KEEP,
    POINTER,
    STRING,
    Document,
    ListOf,
    typed,
    wire,
)
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

    name: str = wire("name", STRING, KEEP)
    weight: int = wire("weight", INT64)


@dataclass(frozen=True, slots=True)
class UtilizationShapePoint:
    """One point of a scoring function: utilization in percent, score 0 to 10."""

    utilization: int = wire("utilization", INT32, KEEP)
    score: int = wire("score", INT32, KEEP)


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

    name: str = wire("name", STRING, KEEP)
    weight: int = wire("weight", INT32, POINTER)


@dataclass(frozen=True, slots=True)
class PluginSet:
    """What is enabled and disabled at one extension point."""

    enabled: tuple[Plugin, ...] = wire("enabled", ListOf(typed(Plugin)))
    disabled: tuple[Plugin, ...] = wire("disabled", ListOf(typed(Plugin)))


@dataclass(frozen=True, slots=True)
class Plugins:
    """The plugin sets of a profile, merged with the default set."""

    pre_enqueue: PluginSet = wire("preEnqueue", typed(PluginSet))
    queue_sort: PluginSet = wire("queueSort", typed(PluginSet))
    pre_filter: PluginSet = wire("preFilter", typed(PluginSet))
    filter: PluginSet = wire("filter", typed(PluginSet))
    post_filter: PluginSet = wire("postFilter", typed(PluginSet))
    pre_score: PluginSet = wire("preScore", typed(PluginSet))
    score: PluginSet = wire("score", typed(PluginSet))
    reserve: PluginSet = wire("reserve", typed(PluginSet))
    permit: PluginSet = wire("permit", typed(PluginSet))
    pre_bind: PluginSet = wire("preBind", typed(PluginSet))
    bind: PluginSet = wire("bind", typed(PluginSet))
    post_bind: PluginSet = wire("postBind", typed(PluginSet))
    multi_point: PluginSet = wire("multiPoint", typed(PluginSet))

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

    name: str = wire("name", STRING, KEEP)
    args: Args = wire("args", ANY, POINTER, None)


@dataclass(frozen=True, slots=True)
class KubeSchedulerProfile:
    """One scheduler name and what it runs."""

    scheduler_name: str = wire("schedulerName", STRING, POINTER)
    percentage_of_nodes_to_score: int | None = wire("percentageOfNodesToScore", INT32, POINTER, None)
    plugins: Plugins = wire("plugins", typed(Plugins), POINTER)
    plugin_config: tuple[PluginConfig, ...] = wire("pluginConfig", ListOf(typed(PluginConfig)))


@dataclass(frozen=True, slots=True)
class ExtenderManagedResource:
    """An extended resource an extender answers for."""

    name: str = wire("name", STRING, KEEP)
    ignored_by_scheduler: bool = wire("ignoredByScheduler", BOOLEAN)


@dataclass(frozen=True, slots=True)
class ExtenderTLSConfig:
    """How to speak TLS with an extender; `*_file` are paths that are not read here."""

    insecure: bool = wire("insecure", BOOLEAN)
    server_name: str = wire("serverName", STRING)
    cert_file: str = wire("certFile", STRING)
    key_file: str = wire("keyFile", STRING)
    ca_file: str = wire("caFile", STRING)
    cert_data: bytes = wire("certData", BYTES)
    key_data: bytes = wire("keyData", BYTES)
    ca_data: bytes = wire("caData", BYTES)


@dataclass(frozen=True, slots=True)
class Extender:
    """An HTTP extender; an empty verb is one it does not offer."""

    url_prefix: str = wire("urlPrefix", STRING, KEEP)
    filter_verb: str = wire("filterVerb", STRING)
    preempt_verb: str = wire("preemptVerb", STRING)
    prioritize_verb: str = wire("prioritizeVerb", STRING)
    weight: int = wire("weight", INT64)
    bind_verb: str = wire("bindVerb", STRING)
    enable_https: bool = wire("enableHTTPS", BOOLEAN)
    tls_config: ExtenderTLSConfig | None = wire("tlsConfig", typed(ExtenderTLSConfig), POINTER, None)
    http_timeout_ns: int = wire("httpTimeout", DURATION, KEEP)
    node_cache_capable: bool = wire("nodeCacheCapable", BOOLEAN)
    managed_resources: tuple[ExtenderManagedResource, ...] = wire(
        "managedResources", ListOf(typed(ExtenderManagedResource))
    )
    ignorable: bool = wire("ignorable", BOOLEAN)


@dataclass(frozen=True, slots=True)
class LeaderElectionConfiguration:
    """Checked and kept; no leader is elected here."""

    leader_elect: bool = wire("leaderElect", BOOLEAN, POINTER)
    lease_duration_ns: int = wire("leaseDuration", DURATION, KEEP)
    renew_deadline_ns: int = wire("renewDeadline", DURATION, KEEP)
    retry_period_ns: int = wire("retryPeriod", DURATION, KEEP)
    resource_lock: str = wire("resourceLock", STRING, KEEP)
    resource_name: str = wire("resourceName", STRING, KEEP)
    resource_namespace: str = wire("resourceNamespace", STRING, KEEP)


@dataclass(frozen=True, slots=True)
class ClientConnectionConfiguration:
    """Checked and kept; there is no API server to connect to."""

    kubeconfig: str = wire("kubeconfig", STRING, KEEP)
    accept_content_types: str = wire("acceptContentTypes", STRING, KEEP)
    content_type: str = wire("contentType", STRING, KEEP)
    qps: float = wire("qps", FLOAT32, KEEP)
    burst: int = wire("burst", INT32, KEEP)


@dataclass(frozen=True, slots=True)
class KubeSchedulerConfiguration:
    """A whole configuration, defaults filled in."""

    parallelism: int = wire("parallelism", INT32, POINTER)
    leader_election: LeaderElectionConfiguration = wire(
        "leaderElection", typed(LeaderElectionConfiguration), KEEP
    )
    client_connection: ClientConnectionConfiguration = wire(
        "clientConnection", typed(ClientConnectionConfiguration), KEEP
    )
    enable_profiling: bool = wire("enableProfiling", BOOLEAN, POINTER)
    enable_contention_profiling: bool = wire("enableContentionProfiling", BOOLEAN, POINTER)
    percentage_of_nodes_to_score: int = wire("percentageOfNodesToScore", INT32, POINTER)
    pod_initial_backoff_s: int = wire("podInitialBackoffSeconds", INT64, POINTER)
    pod_max_backoff_s: int = wire("podMaxBackoffSeconds", INT64, POINTER)
    profiles: tuple[KubeSchedulerProfile, ...] = wire("profiles", ListOf(typed(KubeSchedulerProfile)))
    extenders: tuple[Extender, ...] = wire("extenders", ListOf(typed(Extender)))
    delay_cache_until_active: bool = wire("delayCacheUntilActive", BOOLEAN)
