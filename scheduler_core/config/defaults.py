"""Defaults, filled into a checked document; filling in twice changes nothing.

Source: pkg/scheduler/apis/config/v1/defaults.go, default_plugins.go,
staging/src/k8s.io/component-base/config/v1alpha1/defaults.go, v1.34
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from scheduler_core.config.args import PluginArgs
from scheduler_core.config.catalog import EXTENSION_POINTS, MULTI_POINT, Catalog, args_kind
from scheduler_core.config.types import API_VERSION
from scheduler_core.config.wire import typed

DEFAULT_SCHEDULER_NAME = "default-scheduler"


def with_defaults(document: Mapping[str, Any], catalog: Catalog) -> dict[str, Any]:
    """The document with every default written out.

    Parameters
    ----------
    document
        A checked document (`decode_configuration`); it is not changed.
    catalog
        Says which plugins are on by default, and the defaults of their args.

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
        _default_profile(profile, catalog)
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


def _default_profile(profile: dict[str, Any], catalog: Catalog) -> None:
    plugins = profile.setdefault("plugins", {})
    defaults = [{"name": name, **({"weight": weight} if weight else {})} for name, weight in catalog.defaults]
    plugins[MULTI_POINT] = merge_plugin_set(defaults, plugins.get(MULTI_POINT, {}))
    for point in EXTENSION_POINTS:
        plugins[point] = merge_plugin_set([], plugins.get(point, {}))

    plugin_configs = profile.setdefault("pluginConfig", [])
    for plugin_config in plugin_configs:
        cls = catalog.args_of(plugin_config["name"])
        if cls is not None:
            cls.set_defaults(plugin_config.setdefault("args", _empty_args(plugin_config["name"], cls)))
    configured = {plugin_config["name"] for plugin_config in plugin_configs}
    enabled = {plugin["name"] for plugin_set in plugins.values() for plugin in plugin_set.get("enabled", [])}
    for name in sorted(enabled - configured):
        cls = catalog.args_of(name)
        if cls is not None:
            args = _empty_args(name, cls)
            cls.set_defaults(args)
            plugin_configs.append({"name": name, "args": args})


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


def _empty_args(plugin: str, cls: type[PluginArgs]) -> dict[str, Any]:
    fields: dict[str, Any] = typed(cls).written_zero()
    return {"apiVersion": API_VERSION, "kind": args_kind(plugin), **fields}
