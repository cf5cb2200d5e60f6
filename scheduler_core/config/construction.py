"""From a valid configuration to the plugins each profile runs: what upstream does when it builds a scheduler.

Source: pkg/scheduler/scheduler.go New and buildExtenders, pkg/scheduler/profile/profile.go,
pkg/scheduler/framework/runtime/framework.go NewFramework, v1.34
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from scheduler_core.config import types
from scheduler_core.config.args import PluginArgs
from scheduler_core.config.catalog import (
    BIND,
    CONSTRUCTION_ORDER,
    EXTENSION_POINTS,
    MULTI_POINT,
    QUEUE_SORT,
    SCORE,
    Catalog,
    interface_name,
)
from scheduler_core.errors import ConstructionError, FieldError, aggregate

DEFAULT_EXTENDER_TIMEOUT_NS = 5_000_000_000
MAX_NODE_SCORE = 100
MAX_TOTAL_SCORE = 2**63 - 1

ReadFile = Callable[[str], bytes]
"""Reads a file an extender's tlsConfig names; raises OSError."""


@dataclass(frozen=True, slots=True)
class ProfilePlan:
    """What one profile runs.

    Attributes
    ----------
    plugins : mapping of str to tuple of str
        Extension point -> plugin names in execution order; every extension point is there.
    weights : mapping of str to int
        Weight of each score plugin, in execution order.
    args : mapping of str to Args
        Args of the plugins that have some, by plugin name.
    run_all_filters : bool
        Every filter is heard about a node, not only the first that rejects it (a Policy may ask for it).
    """

    scheduler_name: str
    percentage_of_nodes_to_score: int | None
    plugins: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, int]
    args: Mapping[str, types.Args]
    run_all_filters: bool = False

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """Every plugin in use once, in order of extension points."""
        return tuple(dict.fromkeys(name for point in EXTENSION_POINTS for name in self.plugins[point]))


def no_files(path: str) -> bytes:
    """The file system of an engine that has none: every path is missing."""
    raise FileNotFoundError(2, "no such file or directory", path)


def files_unread(path: str) -> bytes:
    """For an engine that opens no files itself: the transport that carries its calls reads them then, or refuses."""
    return b"-----BEGIN CERTIFICATE-----"


def construct(
    configuration: types.KubeSchedulerConfiguration,
    catalog: Catalog,
    read_file: ReadFile = no_files,
) -> tuple[types.KubeSchedulerConfiguration, tuple[ProfilePlan, ...]]:
    """Build the plan of every profile.

    Returns
    -------
    configuration
        With what construction settles: extender timeouts, and the resources extenders want ignored.
    plans
        One a profile, in their order.

    Raises
    ------
    ConstructionError
        With upstream's message; `errors` names the field.
    """
    configuration = prepare_extenders(configuration, catalog, read_file)
    plans = []
    queue_sort: tuple[str, types.Args] | None = None
    for index, profile in enumerate(configuration.profiles):
        plan = _Construction(profile, f"profiles[{index}]", catalog).plan()
        name = plan.plugins[QUEUE_SORT][0]
        args = plan.args.get(name)
        path = f"profiles[{index}].plugins.queueSort"
        quoted = f'"{profile.scheduler_name}"'
        if queue_sort is None:
            queue_sort = name, args
        elif queue_sort[0] != name:
            words = f'different queue sort plugins for profile {quoted}: "{name}", first: "{queue_sort[0]}"'
            raise _failed("initializing profiles: ", path, name, words)
        elif queue_sort[1] != args:
            words = f"different queue sort plugin args for profile {quoted}"
            raise _failed("initializing profiles: ", path, name, words)
        plans.append(plan)
    return configuration, tuple(plans)


def prepare_extenders(
    configuration: types.KubeSchedulerConfiguration, catalog: Catalog, read_file: ReadFile = no_files
) -> types.KubeSchedulerConfiguration:
    """Settle extender timeouts and hand the resources that extenders want ignored to the plugin that can ignore some.

    Source: pkg/scheduler/scheduler.go buildExtenders, pkg/scheduler/extender.go NewHTTPExtender, v1.34
    """
    configuration = with_extender_timeouts(configuration)
    ignored: list[str] = []
    for index, extender in enumerate(configuration.extenders):
        _check_tls(extender, f"extenders[{index}].tlsConfig", read_file)
        ignored += [resource.name for resource in extender.managed_resources if resource.ignored_by_scheduler]
    if not ignored:
        return configuration
    profiles = tuple(
        _with_ignored_resources(profile, catalog, f"profiles[{index}]", tuple(ignored))
        for index, profile in enumerate(configuration.profiles)
    )
    return dataclasses.replace(configuration, profiles=profiles)


def with_extender_timeouts(
    configuration: types.KubeSchedulerConfiguration,
) -> types.KubeSchedulerConfiguration:
    """Give extenders without a timeout the default one."""
    extenders = tuple(
        extender
        if extender.http_timeout_ns
        else dataclasses.replace(extender, http_timeout_ns=DEFAULT_EXTENDER_TIMEOUT_NS)
        for extender in configuration.extenders
    )
    return dataclasses.replace(configuration, extenders=extenders)


def _with_ignored_resources(
    profile: types.KubeSchedulerProfile, catalog: Catalog, path: str, ignored: tuple[str, ...]
) -> types.KubeSchedulerProfile:
    plugin_configs: list[types.PluginConfig] = []
    found = False
    for plugin_config in profile.plugin_config:
        args = plugin_config.args
        changed = args.ignoring(ignored) if isinstance(args, PluginArgs) else None
        if changed is not None:
            plugin_config = dataclasses.replace(plugin_config, args=changed)
            found = True
        plugin_configs.append(plugin_config)
    if not found:
        kinds = [kind for kind, cls in catalog.args_kinds.items() if cls.ignoring is not PluginArgs.ignoring]
        words = f"can't find {' or '.join(kinds)} in plugin config"
        raise _failed("couldn't build extenders: ", f"{path}.pluginConfig", None, words)
    return dataclasses.replace(profile, plugin_config=tuple(plugin_configs))


def _check_tls(extender: types.Extender, path: str, read_file: ReadFile) -> None:
    """Source: staging/src/k8s.io/client-go/transport/transport.go TLSConfigFor, v1.34."""
    tls = extender.tls_config or types.ExtenderTLSConfig()
    has_ca = bool(tls.ca_file or tls.ca_data)
    insecure = tls.insecure or (extender.enable_https and not has_ca)
    has_cert = bool((tls.cert_data or tls.cert_file) and (tls.key_data or tls.key_file))
    if not (has_ca or has_cert or insecure or tls.server_name):
        return
    prefix = "couldn't build extenders: "
    if has_ca and insecure:
        words = "specifying a root certificates file with the insecure flag is not allowed"
        raise _failed(prefix, f"{path}.insecure", True, words)
    loaded: dict[str, bytes] = {}
    for name, data, file in (
        ("ca", tls.ca_data, tls.ca_file),
        ("cert", tls.cert_data, tls.cert_file),
        ("key", tls.key_data, tls.key_file),
    ):
        if not data and file:
            try:
                data = read_file(file)
            except OSError as error:
                words = f"open {file}: {(error.strerror or str(error)).lower()}"
                raise _failed(prefix, f"{path}.{name}File", file, words) from error
        loaded[name] = data
    if has_ca and b"-----BEGIN CERTIFICATE-----" not in loaded["ca"]:
        words = "unable to load root certificates: unable to parse bytes as PEM block"
        raise _failed(prefix, f"{path}.caData", None, words)
    if has_cert:
        for name, words in (
            ("cert", "tls: failed to find any PEM data in certificate input"),
            ("key", "tls: failed to find any PEM data in key input"),
        ):
            if b"-----BEGIN " not in loaded[name]:
                raise _failed(prefix, f"{path}.{name}Data", None, words)


def _failed(prefix: str, path: str, value: object, words: str, *, panic: bool = False) -> ConstructionError:
    error = FieldError("FieldValueInvalid", path, value, words)
    return ConstructionError(f"{prefix}{words}", (error,), panic=panic)


class _Construction:
    """One profile under construction."""

    def __init__(self, profile: types.KubeSchedulerProfile, path: str, catalog: Catalog) -> None:
        self.profile = profile
        self.path = path
        self.catalog = catalog
        self.prefix = f"initializing profiles: creating profile for scheduler name {profile.scheduler_name}: "
        self.needed = {
            plugin.name
            for point in (*EXTENSION_POINTS, MULTI_POINT)
            for plugin in profile.plugins.at(point).enabled
        }
        configs = {one.name: one.args for one in profile.plugin_config}
        self.args = {
            name: configs[name]
            # Members of families are in no list of plugins.
            for name in dict.fromkeys((*catalog, *configs))
            if name in self.needed and name in catalog and configs.get(name) is not None
        }

    def plan(self) -> ProfilePlan:
        self._check_args()
        plugins = {point: self._specific(point) for point in CONSTRUCTION_ORDER}
        if self.profile.plugins.multi_point.enabled:
            for point in CONSTRUCTION_ORDER:
                plugins[point] = self._expanded(point, plugins[point])
        name = self.profile.scheduler_name
        n_sorts = len(plugins[QUEUE_SORT])
        if n_sorts != 1:
            raise self._failed(
                "plugins.queueSort",
                list(plugins[QUEUE_SORT]),
                f'only one queue sort plugin required for profile with scheduler name "{name}", '
                f"but got {n_sorts}",
            )
        if not plugins[BIND]:
            words = f'at least one bind plugin is needed for profile with scheduler name "{name}"'
            raise self._failed("plugins.bind", [], words)
        weights = self._weights()
        return ProfilePlan(
            scheduler_name=name,
            percentage_of_nodes_to_score=self.profile.percentage_of_nodes_to_score,
            plugins={point: tuple(plugins[point]) for point in EXTENSION_POINTS},
            weights={plugin: weights[plugin] for plugin in plugins[SCORE]},
            args=self.args,
        )

    def _failed(self, where: str, value: object, words: str, *, panic: bool = False) -> ConstructionError:
        return _failed(self.prefix, f"{self.path}.{where}", value, words, panic=panic)

    def _check_args(self) -> None:
        """What is found wrong with args only when their plugin is made."""
        for name, args in self.args.items():
            if not isinstance(args, PluginArgs):
                continue
            position = [one.name for one in self.profile.plugin_config].index(name)
            path = f"{self.path}.pluginConfig[{position}].args"
            prefix = f'{self.prefix}initializing plugin "{name}": '
            relative = tuple(map(self.catalog.release.worded, args.problems_when_made()))
            if relative:
                errors = tuple(
                    dataclasses.replace(error, field=f"{path}.{error.field}") for error in relative
                )
                raise ConstructionError(f"{prefix}{aggregate(relative)}", errors)
            crash = args.crash_when_made()
            if crash is not None:
                crash = dataclasses.replace(crash, field=f"{path}.{crash.field}")
                raise ConstructionError(f"{prefix}{crash}", (crash,), panic=True)

    def _specific(self, point: str) -> list[str]:
        """The plugins named at the extension point itself.

        Source: updatePluginList
        """
        names: list[str] = []
        interface = interface_name(point)
        for index, plugin in enumerate(self.profile.plugins.at(point).enabled):
            where = f"plugins.{point}.enabled[{index}].name"
            if plugin.name not in self.catalog:
                raise self._failed(where, plugin.name, f'{interface} "{plugin.name}" does not exist')
            if point not in self.catalog[plugin.name].points:
                words = f'plugin "{plugin.name}" does not extend {interface} plugin'
                raise self._failed(where, plugin.name, words)
            if plugin.name in names:
                words = f'plugin "{plugin.name}" already registered as "{interface}"'
                raise self._failed(where, plugin.name, words)
            names.append(plugin.name)
        return names

    def _expanded(self, point: str, specific: list[str]) -> list[str]:
        """The plugins of an extension point with those of multiPoint.

        Order: plugins of the point that are in multiPoint too, the rest of multiPoint, the rest of the point.

        Source: expandMultiPointPlugins
        """
        disabled = {plugin.name for plugin in self.profile.plugins.at(point).disabled}
        if "*" in disabled:
            return specific
        interface = interface_name(point)
        from_multi_point: list[str] = []
        overridden: set[str] = set()
        for index, plugin in enumerate(self.profile.plugins.multi_point.enabled):
            where = f"plugins.multiPoint.enabled[{index}].name"
            if plugin.name not in self.catalog:
                raise self._failed(where, plugin.name, f'{interface} "{plugin.name}" does not exist')
            if point not in self.catalog[plugin.name].points or plugin.name in disabled:
                continue
            if plugin.name in specific:
                overridden.add(plugin.name)
            elif plugin.name in from_multi_point:
                words = f'plugin "{plugin.name}" already registered as "{interface}"'
                raise self._failed(where, plugin.name, words)
            else:
                from_multi_point.append(plugin.name)
        return [
            *(name for name in specific if name in overridden),
            *from_multi_point,
            *(name for name in specific if name not in overridden),
        ]

    def _weights(self) -> dict[str, int]:
        """Weights of all score plugins named anywhere; the extension point's own weight wins.

        Source: getScoreWeights

        Differs: a negative weight is always refused. Upstream refuses it with the same words, but only where
        the running total is negative when the next plugin comes.
        """
        weights: dict[str, int] = {}
        total = 0
        for where, plugin in self._scored():
            spec = self.catalog.get(plugin.name)
            if spec is None:
                # Every extension point disables "*", so the name was not looked up; upstream crashes.
                words = f'plugin "{plugin.name}" does not exist'
                raise self._failed(f"{where}.name", plugin.name, words, panic=True)
            if SCORE not in spec.points or plugin.name in weights:
                continue
            weights[plugin.name] = plugin.weight or 1
            score = weights[plugin.name] * MAX_NODE_SCORE
            if score < 0 or score > MAX_TOTAL_SCORE - total:
                words = "total score of Score plugins could overflow"
                raise self._overflow(where, plugin, words)
            total += score
        return weights

    def _scored(self) -> Iterable[tuple[str, types.Plugin]]:
        for point in (SCORE, MULTI_POINT):
            for index, plugin in enumerate(self.profile.plugins.at(point).enabled):
                yield f"plugins.{point}.enabled[{index}]", plugin

    def _overflow(self, where: str, plugin: types.Plugin, words: str) -> ConstructionError:
        error = FieldError("FieldValueInvalid", f"{self.path}.{where}.weight", plugin.weight, words)
        kind = "score plugins: " if self.catalog.release.has("OverflowNamesPoint") else ""
        return ConstructionError(f"{self.prefix}{kind}{words}", (error,))
