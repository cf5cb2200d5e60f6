"""The objects of `kubescheduler.config.k8s.io/v1`: what a configuration says, as frozen values.

Every field that has an upstream default is filled in by `load_configuration`; times are nanoseconds (`_ns`)
or seconds (`_s`) as the name says. A class called from code without arguments holds zero values, not the
defaults.

Source: staging/src/k8s.io/kube-scheduler/config/v1/types.go, types_pluginargs.go,
staging/src/k8s.io/component-base/config/v1alpha1/types.go, v1.34
"""

# ruff: noqa: RUF009 - `wire` is dataclasses.field under another name

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.config.default_plugins import EXTENSION_POINTS
from scheduler_core.config.wire import (
    ANY,
    BOOLEAN,
    BYTES,
    DURATION,
    FLOAT32,
    INT32,
    INT64,
    KEEP,
    OPTIONAL_DURATION,
    POINTER,
    STRING,
    Document,
    Field,
    Fields,
    ListOf,
    MapOf,
    NullableListOf,
    typed,
    wire,
)

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"

SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"

# --- pieces of core/v1 that args hold; they stay documents for the parsers in scheduler_core.objects ---

_NODE_SELECTOR_REQUIREMENT = Fields(
    Field("key", STRING, KEEP), Field("operator", STRING, KEEP), Field("values", ListOf(STRING))
)
_NODE_SELECTOR_TERM = Fields(
    Field("matchExpressions", ListOf(_NODE_SELECTOR_REQUIREMENT)),
    Field("matchFields", ListOf(_NODE_SELECTOR_REQUIREMENT)),
)
_NODE_AFFINITY = Fields(
    Field(
        "requiredDuringSchedulingIgnoredDuringExecution",
        Fields(Field("nodeSelectorTerms", NullableListOf(_NODE_SELECTOR_TERM), KEEP)),
        POINTER,
    ),
    Field(
        "preferredDuringSchedulingIgnoredDuringExecution",
        ListOf(Fields(Field("weight", INT32, KEEP), Field("preference", _NODE_SELECTOR_TERM, KEEP))),
    ),
)
_LABEL_SELECTOR = Fields(
    Field("matchLabels", MapOf(STRING)),
    Field(
        "matchExpressions",
        ListOf(
            Fields(
                Field("key", STRING, KEEP), Field("operator", STRING, KEEP), Field("values", ListOf(STRING))
            )
        ),
    ),
)
_TOPOLOGY_SPREAD_CONSTRAINT = Fields(
    Field("maxSkew", INT32, KEEP),
    Field("topologyKey", STRING, KEEP),
    Field("whenUnsatisfiable", STRING, KEEP),
    Field("labelSelector", _LABEL_SELECTOR, POINTER),
    Field("minDomains", INT32, POINTER),
    Field("nodeAffinityPolicy", STRING, POINTER),
    Field("nodeTaintsPolicy", STRING, POINTER),
    Field("matchLabelKeys", ListOf(STRING)),
)

# --- plugin args ---


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


@dataclass(frozen=True, slots=True)
class RequestedToCapacityRatioParam:
    """The scoring function of the strategy RequestedToCapacityRatio."""

    shape: tuple[UtilizationShapePoint, ...] = wire("shape", ListOf(typed(UtilizationShapePoint)))


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """How NodeResourcesFit scores."""

    type: str = wire("type", STRING)
    resources: tuple[ResourceSpec, ...] = wire("resources", ListOf(typed(ResourceSpec)))
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = wire(
        "requestedToCapacityRatio", typed(RequestedToCapacityRatioParam), POINTER, None
    )


@dataclass(frozen=True, slots=True)
class DefaultPreemptionArgs:
    """How many candidate nodes preemption looks for at least."""

    min_candidate_nodes_percentage: int = wire("minCandidateNodesPercentage", INT32, POINTER)
    min_candidate_nodes_absolute: int = wire("minCandidateNodesAbsolute", INT32, POINTER)


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs:
    """Time limit of Filter for one node, nanoseconds; 0 = none."""

    filter_timeout_ns: int = wire("filterTimeout", OPTIONAL_DURATION, POINTER)


@dataclass(frozen=True, slots=True)
class InterPodAffinityArgs:
    """Score of a required affinity of existing pods towards the incoming one."""

    hard_pod_affinity_weight: int = wire("hardPodAffinityWeight", INT32, POINTER)
    ignore_preferred_terms_of_existing_pods: bool = wire("ignorePreferredTermsOfExistingPods", BOOLEAN, KEEP)


@dataclass(frozen=True, slots=True)
class NodeAffinityArgs:
    """`added_affinity` is a core/v1 NodeAffinity document that holds for every pod of the profile."""

    added_affinity: Document | None = wire("addedAffinity", _NODE_AFFINITY, POINTER, None)


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocationArgs:
    """The resources whose use is to be balanced."""

    resources: tuple[ResourceSpec, ...] = wire("resources", ListOf(typed(ResourceSpec)))


@dataclass(frozen=True, slots=True)
class NodeResourcesFitArgs:
    """What Filter ignores and how Score counts."""

    ignored_resources: tuple[str, ...] = wire("ignoredResources", ListOf(STRING))
    ignored_resource_groups: tuple[str, ...] = wire("ignoredResourceGroups", ListOf(STRING))
    scoring_strategy: ScoringStrategy | None = wire("scoringStrategy", typed(ScoringStrategy), POINTER, None)


@dataclass(frozen=True, slots=True)
class PodTopologySpreadArgs:
    """`default_constraints` are core/v1 TopologySpreadConstraint documents (no labelSelector)."""

    default_constraints: tuple[Document, ...] = wire(
        "defaultConstraints", ListOf(_TOPOLOGY_SPREAD_CONSTRAINT)
    )
    defaulting_type: str = wire("defaultingType", STRING)


@dataclass(frozen=True, slots=True)
class VolumeBindingArgs:
    """`shape` needs a feature gate that is off by default: any value but None is invalid."""

    bind_timeout_s: int = wire("bindTimeoutSeconds", INT64, POINTER)
    shape: tuple[UtilizationShapePoint, ...] | None = wire(
        "shape", ListOf(typed(UtilizationShapePoint)), POINTER, None
    )


# Args of retired plugins, which only a Policy file makes.


@dataclass(frozen=True, slots=True)
class NodeLabelArgs:
    """Labels nodes must or must not have, or are preferred to have or not to have."""

    present_labels: tuple[str, ...] = wire("presentLabels", ListOf(STRING))
    absent_labels: tuple[str, ...] = wire("absentLabels", ListOf(STRING))
    present_labels_preference: tuple[str, ...] = wire("presentLabelsPreference", ListOf(STRING))
    absent_labels_preference: tuple[str, ...] = wire("absentLabelsPreference", ListOf(STRING))


@dataclass(frozen=True, slots=True)
class ServiceAffinityArgs:
    """Labels that pods of one service share, and labels they are spread over."""

    affinity_labels: tuple[str, ...] = wire("affinityLabels", ListOf(STRING))
    anti_affinity_labels_preference: tuple[str, ...] = wire("antiAffinityLabelsPreference", ListOf(STRING))


KnownArgs = (
    DefaultPreemptionArgs
    | DynamicResourcesArgs
    | InterPodAffinityArgs
    | NodeAffinityArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeResourcesFitArgs
    | PodTopologySpreadArgs
    | VolumeBindingArgs
    | NodeLabelArgs
    | ServiceAffinityArgs
)
Args = KnownArgs | Document | None
"""What a plugin is configured with; a document (or nothing) for plugins without an args kind in v1."""

ARGS_TYPES: dict[str, type[KnownArgs]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}
"""Plugin name -> its args class, for the args kinds registered in v1 (`<plugin>Args`)."""

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
    """How to speak TLS with an extender; `*_file` are paths nobody reads here."""

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
    """Checked and kept; nobody elects a leader here."""

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
