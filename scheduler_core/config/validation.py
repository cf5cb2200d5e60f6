"""Validation of a configuration: every error at once, each with its field path.

Source: pkg/scheduler/apis/config/validation/validation.go,
staging/src/k8s.io/component-base/config/validation/validation.go, v1.34
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from scheduler_core.config import types
from scheduler_core.config.args import Errors, PluginArgs
from scheduler_core.config.catalog import EXTENSION_POINTS, Catalog, args_kind
from scheduler_core.config.wire import encode
from scheduler_core.errors import FieldError, invalid, required
from scheduler_core.objects.duration import format_duration
from scheduler_core.objects.labels import is_extended_resource_name, qualified_name_errors


def validation_errors(configuration: types.KubeSchedulerConfiguration, catalog: Catalog) -> Errors:
    """Everything that is wrong with a configuration, in field order; empty when it is valid.

    Parameters
    ----------
    configuration
        With defaults filled in.
    catalog
        The plugins there are. A plugin removed from v1 is an error unless it was registered on purpose.
    """
    errors: Errors = []
    if configuration.client_connection.burst < 0:
        burst = configuration.client_connection.burst
        errors.append(invalid("clientConnection.burst", burst, "must be non-negative"))
    errors += _leader_election(configuration.leader_election)
    if configuration.parallelism <= 0:
        detail = "should be an integer value greater than zero"
        errors.append(invalid("parallelism", configuration.parallelism, detail))
    seen: set[str] = set()
    for index, profile in enumerate(configuration.profiles):
        path = f"profiles[{index}]"
        errors += _profile(profile, path, catalog)
        if profile.scheduler_name in seen:
            # Upstream's value is an unexported path, which prints as {}.
            errors.append(FieldError("FieldValueDuplicate", f"{path}.schedulerName", {}, ""))
        seen.add(profile.scheduler_name)
    if configuration.profiles:
        errors += _common_queue_sort(configuration.profiles)
    else:
        errors.append(required("profiles"))
    errors += _percentage(configuration.percentage_of_nodes_to_score, "percentageOfNodesToScore")
    if configuration.pod_initial_backoff_s <= 0:
        initial = configuration.pod_initial_backoff_s
        errors.append(invalid("podInitialBackoffSeconds", initial, "must be greater than 0"))
    if configuration.pod_max_backoff_s < configuration.pod_initial_backoff_s:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        errors.append(invalid("podMaxBackoffSeconds", configuration.pod_max_backoff_s, detail))
    errors += extender_errors(configuration.extenders)
    unique = {(error.type, error.field, error.detail): error for error in errors}
    worded = map(catalog.release.worded, unique.values())
    return sorted(worded, key=lambda error: (error.field, str(error)))


def _leader_election(election: types.LeaderElectionConfiguration) -> Errors:
    errors: Errors = []
    if not election.leader_elect:
        return errors
    for name, duration_ns in (
        ("leaseDuration", election.lease_duration_ns),
        ("renewDeadline", election.renew_deadline_ns),
        ("retryPeriod", election.retry_period_ns),
    ):
        if duration_ns <= 0:
            value = format_duration(duration_ns)
            errors.append(invalid(f"leaderElection.{name}", value, "must be greater than zero"))
    if election.lease_duration_ns <= election.renew_deadline_ns:
        # The value is the deadline, not the lease: so upstream.
        value = format_duration(election.renew_deadline_ns)
        errors.append(invalid("leaderElection.leaseDuration", value, "must be greater than `RenewDeadline`"))
    for name, text in (
        ("resourceLock", election.resource_lock),
        ("resourceNamespace", election.resource_namespace),
        ("resourceName", election.resource_name),
    ):
        if not text:
            errors.append(required(f"leaderElection.{name}"))
    if election.resource_lock != "leases":
        detail = 'resourceLock value must be "leases"'
        errors.append(invalid("leaderElection.resourceLock", election.resource_lock, detail))
    return errors


def _percentage(value: int | None, path: str) -> Errors:
    if value is not None and not 0 <= value <= 100:
        return [invalid(path, value, "not in valid range [0-100]")]
    return []


def _profile(profile: types.KubeSchedulerProfile, path: str, catalog: Catalog) -> Errors:
    errors: Errors = []
    if not profile.scheduler_name:
        errors.append(required(f"{path}.schedulerName"))
    errors += _percentage(profile.percentage_of_nodes_to_score, f"{path}.percentageOfNodesToScore")
    removed = catalog.refused
    words = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{types.API_VERSION}")'
    for point in EXTENSION_POINTS:
        for index, plugin in enumerate(profile.plugins.at(point).enabled):
            if plugin.name in removed:
                errors.append(invalid(f"{path}.plugins.{point}.enabled[{index}]", plugin.name, words))
    seen: set[str] = set()
    for index, plugin_config in enumerate(profile.plugin_config):
        here = f"{path}.pluginConfig[{index}]"
        if plugin_config.name in seen:
            errors.append(FieldError("FieldValueDuplicate", here, plugin_config.name, ""))
        seen.add(plugin_config.name)
        if plugin_config.name in removed:
            errors.append(invalid(here, plugin_config.name, words))
        elif isinstance(plugin_config.args, PluginArgs):
            errors += _named(plugin_config.name, plugin_config.args.problems(f"{here}.args"))
    return errors


def _named(plugin: str, errors: Iterable[FieldError]) -> Errors:
    """Check arguments; members of a family are known by name, other errors are in upstream's words."""
    if "/" not in plugin:
        return list(errors)
    return [dataclasses.replace(error, detail=f"{plugin}: {error.detail}") for error in errors]


def _common_queue_sort(profiles: tuple[types.KubeSchedulerProfile, ...]) -> Errors:
    """All profiles share one queue, hence one way of sorting it."""
    errors: Errors = []
    first = profiles[0].plugins.queue_sort
    name = first.enabled[0].name if first.enabled else ""
    if len(first.enabled) > 1:
        path = "profiles[0].plugins.queueSort.Enabled"
        errors.append(invalid(path, len(first.enabled), "only one queue sort plugin can be enabled"))
    args: Any = None
    for plugin_config in profiles[0].plugin_config:
        if name and plugin_config.name == name:
            args = plugin_config.args
    for index, profile in enumerate(profiles[1:], 1):
        path = f"profiles[{index}]"
        if profile.plugins.queue_sort != first:
            value = _shown(profile.plugins.queue_sort)
            errors.append(invalid(f"{path}.plugins.queueSort", value, "must be the same for all profiles"))
        for plugin_config in profile.plugin_config:
            if plugin_config.name == name and plugin_config.args != args:
                detail = "queueSort must be the same for all profiles"
                shown = args_document(name, plugin_config.args)
                errors.append(invalid(f"{path}.pluginConfig.args", shown, detail))
    return errors


def _shown(plugin_set: types.PluginSet) -> dict[str, Any]:
    """A plugin set in upstream's internal spelling."""
    return {
        title: [{"Name": plugin.name, "Weight": plugin.weight} for plugin in plugins] or None
        for title, plugins in (("Enabled", plugin_set.enabled), ("Disabled", plugin_set.disabled))
    }


def extender_errors(extenders: tuple[types.Extender, ...]) -> Errors:
    """Source: validateExtenders."""
    errors: Errors = []
    seen: set[str] = set()
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if extender.prioritize_verb and extender.weight <= 0:
            detail = "must have a positive weight applied to it"
            errors.append(invalid(f"{path}.weight", extender.weight, detail))
        for position, resource in enumerate(extender.managed_resources):
            here = f"{path}.managedResources[{position}].name"
            problems = qualified_name_errors(resource.name)
            if not problems and not is_extended_resource_name(resource.name):
                problems = ("is an invalid extended resource name",)
            errors += [invalid(here, resource.name, problem) for problem in problems]
            if resource.name in seen:
                errors.append(invalid(here, resource.name, "duplicate extender managed resource name"))
            seen.add(resource.name)
    n_binders = sum(1 for extender in extenders if extender.bind_verb)
    if n_binders > 1:
        value = f"found {n_binders} extenders implementing bind"
        errors.append(invalid("extenders", value, "only one extender can implement bind"))
    return errors


def args_document(plugin: str, args: Any) -> Any:
    """A plugin's args as a document, with apiVersion and kind where they have a kind."""
    if isinstance(args, PluginArgs):
        return {"apiVersion": types.API_VERSION, "kind": args_kind(plugin), **encode(args)}
    return args
