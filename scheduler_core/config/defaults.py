"""Defaults, filled into a checked document; filling in twice changes nothing.

Source: pkg/scheduler/apis/config/v1/defaults.go, default_plugins.go,
staging/src/k8s.io/component-base/config/v1alpha1/defaults.go, v1.34
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from scheduler_core.config.default_plugins import DEFAULT_MULTI_POINT, EXTENSION_POINTS, MULTI_POINT
from scheduler_core.config.types import API_VERSION, ARGS_TYPES, LEAST_ALLOCATED, SYSTEM_DEFAULTING
from scheduler_core.config.wire import typed

DEFAULT_SCHEDULER_NAME = "default-scheduler"


def with_defaults(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with every default written out.

    Parameters
    ----------
    document
        A checked document (`decode_configuration`); it is not changed.

    Returns
    -------
    dict
        A checked document again: what a person can read to see what applies.
    """
    result = copy.deepcopy(dict(document))
    result.setdefault("parallelism", 16)
    profiles = result.setdefault("profiles", [{}])
    if len(profiles) == 1:
        # Several profiles must name themselves; validation says so.
        profiles[0].setdefault("schedulerName", DEFAULT_SCHEDULER_NAME)
    for profile in profiles:
        _default_profile(profile)
    result.setdefault("percentageOfNodesToScore", 0)

    election = result["leaderElection"]
    for key, value in (
        ("resourceLock", "leases"),
        ("resourceNamespace", "kube-system"),
        ("resourceName", "kube-scheduler"),
    ):
        election[key] = election[key] or value
    for key, duration in (("leaseDuration", "15s"), ("renewDeadline", "10s"), ("retryPeriod", "2s")):
        if election[key] == "0s":
            election[key] = duration
    election.setdefault("leaderElect", True)

    connection = result["clientConnection"]
    connection["contentType"] = connection["contentType"] or "application/vnd.kubernetes.protobuf"
    connection["qps"] = connection["qps"] or 50
    connection["burst"] = connection["burst"] or 100

    result.setdefault("podInitialBackoffSeconds", 1)
    result.setdefault("podMaxBackoffSeconds", 10)
    result.setdefault("enableProfiling", True)
    if result["enableProfiling"]:
        result.setdefault("enableContentionProfiling", True)
    return result


def _default_profile(profile: dict[str, Any]) -> None:
    plugins = profile.setdefault("plugins", {})
    defaults = [
        {"name": name, **({"weight": weight} if weight else {})} for name, weight in DEFAULT_MULTI_POINT
    ]
    plugins[MULTI_POINT] = merge_plugin_set(defaults, plugins.get(MULTI_POINT, {}))
    for point in EXTENSION_POINTS:
        plugins[point] = merge_plugin_set([], plugins.get(point, {}))

    plugin_configs = profile.setdefault("pluginConfig", [])
    for plugin_config in plugin_configs:
        if plugin_config["name"] in ARGS_TYPES:
            args = plugin_config.setdefault("args", _empty_args(plugin_config["name"]))
            default_args(plugin_config["name"], args)
    configured = {plugin_config["name"] for plugin_config in plugin_configs}
    enabled = {plugin["name"] for plugin_set in plugins.values() for plugin in plugin_set.get("enabled", [])}
    for name in sorted(enabled - configured):
        if name in ARGS_TYPES:
            plugin_configs.append({"name": name, "args": default_args(name, _empty_args(name))})


def merge_plugin_set(defaults: list[dict[str, Any]], custom: Mapping[str, Any]) -> dict[str, Any]:
    """Merge what a profile says of one extension point with the default set there.

    A default plugin that is enabled again is replaced in its place; all other enabled plugins follow.

    Source: pkg/scheduler/apis/config/v1/default_plugins.go mergePluginSet, v1.34
    """
    custom_enabled = custom.get("enabled", [])
    disabled = [{"name": plugin["name"]} for plugin in custom.get("disabled", [])]
    disabled_names = {plugin["name"] for plugin in disabled}
    last_index = {plugin["name"]: index for index, plugin in enumerate(custom_enabled)}
    replaced: set[int] = set()
    enabled: list[dict[str, Any]] = []
    if "*" not in disabled_names:
        for plugin in defaults:
            if plugin["name"] in disabled_names:
                continue
            index = last_index.get(plugin["name"])
            if index is not None:
                plugin = custom_enabled[index]
                replaced.add(index)
            enabled.append(dict(plugin))
    enabled += [dict(plugin) for index, plugin in enumerate(custom_enabled) if index not in replaced]
    merged: dict[str, Any] = {}
    if enabled:
        merged["enabled"] = enabled
    if disabled:
        merged["disabled"] = disabled
    return merged


def _empty_args(plugin: str) -> dict[str, Any]:
    fields: dict[str, Any] = typed(ARGS_TYPES[plugin]).written_zero()
    return {"apiVersion": API_VERSION, "kind": f"{plugin}Args", **fields}


def default_args(plugin: str, args: dict[str, Any]) -> dict[str, Any]:
    """Fill in the defaults of the args of `plugin`, in place; returns `args`."""
    if plugin == "DefaultPreemption":
        args.setdefault("minCandidateNodesPercentage", 10)
        args.setdefault("minCandidateNodesAbsolute", 100)
    elif plugin == "DynamicResources":
        args.setdefault("filterTimeout", "10s")
    elif plugin == "InterPodAffinity":
        args.setdefault("hardPodAffinityWeight", 1)
    elif plugin == "NodeResourcesBalancedAllocation":
        _default_resources(args)
    elif plugin == "NodeResourcesFit":
        # Only an absent strategy gets a type: one without `type` is refused later.
        _default_resources(args.setdefault("scoringStrategy", {"type": LEAST_ALLOCATED}))
    elif plugin == "PodTopologySpread":
        args.setdefault("defaultingType", SYSTEM_DEFAULTING)
    elif plugin == "VolumeBinding":
        args.setdefault("bindTimeoutSeconds", 600)
    return args


def _default_resources(holder: dict[str, Any]) -> None:
    if not holder.get("resources"):
        holder["resources"] = [{"name": "cpu"}, {"name": "memory"}]
    for resource in holder["resources"]:
        resource.setdefault("weight", 1)
