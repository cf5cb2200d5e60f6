"""The front door: a text or document in, a checked configuration with its plans out, or one clear error."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_core.config import types
from scheduler_core.config.catalog import Catalog
from scheduler_core.config.construction import ProfilePlan, ReadFile, construct, no_files
from scheduler_core.config.conversion import with_the_way
from scheduler_core.config.decode import decode_configuration, read_document, type_of
from scheduler_core.config.defaults import with_defaults
from scheduler_core.config.policy import Untranslated, translate_policy
from scheduler_core.config.validation import validation_errors
from scheduler_core.config.wire import Document, build
from scheduler_core.errors import ConfigurationError, ConstructionError, aggregate
from scheduler_core.releases import OLDEST, Release


@dataclass(frozen=True, slots=True)
class LoadedConfiguration:
    """A configuration that can run.

    Attributes
    ----------
    configuration : KubeSchedulerConfiguration
        Typed, every default filled in.
    plans : tuple of ProfilePlan
        What each profile runs, in order.
    document : mapping
        The same configuration as a v1 document with its defaults written out. For a Policy: the v1 document
        it amounts to; it names retired plugins, so it loads again only with a registry that has them.
    source_kind : str
        `KubeSchedulerConfiguration` or `Policy`.
    untranslated : tuple of Untranslated
        Entries of a Policy that have no counterpart; empty for a v1 configuration.
    run_all_filters : bool
        A Policy's alwaysCheckAllPredicates.
    lower_case_wire : bool
        Extenders are sent `pod` and `nodes`, as before 1.6 (a Policy's `kubernetesVersion`).
    release : Release
        The release it was read for, with its feature gates.
    """

    configuration: types.KubeSchedulerConfiguration
    plans: tuple[ProfilePlan, ...]
    document: Document
    source_kind: str = types.KIND
    untranslated: tuple[Untranslated, ...] = ()
    run_all_filters: bool = False
    lower_case_wire: bool = False
    release: Release = OLDEST


def load_configuration(
    source: str | bytes | Mapping[str, Any],
    catalog: Catalog,
    *,
    read_file: ReadFile = no_files,
) -> LoadedConfiguration:
    """Load a KubeSchedulerConfiguration v1 or a legacy Policy.

    Parameters
    ----------
    source
        YAML or JSON text, or a document already read from JSON.
    catalog
        The plugins there are (`plugins.load_configuration` gives those of the tree); its retired plugins count
        for a Policy only.
    read_file
        Reads files an extender's tlsConfig names. By default there are none: certificates come as data.

    Raises
    ------
    DecodeError
        The text has not the form of a configuration.
    ConstructionError
        It is valid, but no scheduler can be built from it.
    ConfigurationError
        It is not valid. Every error names its field; nothing has been run.
    """
    document = read_document(source)
    try:
        return _load_any(document, catalog, read_file)
    except ConfigurationError as error:
        raise with_the_way(error, document, catalog) from None


def _load_any(document: Document, catalog: Catalog, read_file: ReadFile) -> LoadedConfiguration:
    api_version, kind = type_of(document)
    if kind == types.POLICY_KIND and api_version in ("", "v1"):
        with_retired = catalog.with_retired()
        policy = translate_policy(document, with_retired)
        loaded = _load(policy.document, with_retired, read_file)
        return dataclasses.replace(
            loaded,
            plans=tuple(
                dataclasses.replace(plan, run_all_filters=policy.run_all_filters) for plan in loaded.plans
            ),
            source_kind=types.POLICY_KIND,
            untranslated=policy.untranslated,
            run_all_filters=policy.run_all_filters,
            lower_case_wire=policy.lower_case_wire,
        )
    return _load(document, catalog, read_file)


def _load(document: Document, catalog: Catalog, read_file: ReadFile) -> LoadedConfiguration:
    checked = decode_configuration(document, catalog)
    defaulted = with_defaults(checked, catalog)
    configuration = configuration_from(defaulted, catalog)
    errors = validation_errors(configuration, catalog)
    if errors:
        raise ConfigurationError(aggregate(errors), tuple(errors))
    try:
        configuration, plans = construct(configuration, catalog, read_file)
    except ConstructionError as error:
        raise _as_written(error, checked, defaulted) from error
    return LoadedConfiguration(configuration, plans, defaulted, release=catalog.release)


_MULTI_POINT_FIELD = re.compile(r"profiles\[(\d+)\]\.plugins\.multiPoint\.enabled\[(\d+)\](.*)")


def _as_written(error: ConstructionError, checked: Document, defaulted: Document) -> ConstructionError:
    """The error with places in multiPoint, which defaults were merged into, as the document counts them."""
    errors = []
    for one in error.errors:
        match = _MULTI_POINT_FIELD.fullmatch(one.field)
        if match is not None:
            profile = int(match[1])
            name = _multi_point(defaulted, profile)[int(match[2])]
            written = [index for index, other in enumerate(_multi_point(checked, profile)) if other == name]
            if written:
                place = f"profiles[{profile}].plugins.multiPoint.enabled[{written[-1]}]{match[3]}"
                one = dataclasses.replace(one, field=place)
        errors.append(one)
    return ConstructionError(str(error), tuple(errors), panic=error.panic)


def _multi_point(document: Document, profile: int) -> list[str]:
    profiles = document.get("profiles", [])
    plugins = profiles[profile].get("plugins", {}) if profile < len(profiles) else {}
    return [plugin["name"] for plugin in plugins.get("multiPoint", {}).get("enabled", [])]


def configuration_from(defaulted: Document, catalog: Catalog) -> types.KubeSchedulerConfiguration:
    """Typed objects from a document with defaults (`with_defaults`)."""
    configuration = build(types.KubeSchedulerConfiguration, defaulted)
    profiles = tuple(_with_typed_args(profile, catalog) for profile in configuration.profiles)
    return dataclasses.replace(configuration, profiles=profiles)


def _with_typed_args(profile: types.KubeSchedulerProfile, catalog: Catalog) -> types.KubeSchedulerProfile:
    plugin_configs = []
    for plugin_config in profile.plugin_config:
        cls = catalog.args_of(plugin_config.name)
        if cls is not None and isinstance(plugin_config.args, Mapping):
            plugin_config = types.PluginConfig(plugin_config.name, build(cls, plugin_config.args))
        plugin_configs.append(plugin_config)
    return dataclasses.replace(profile, plugin_config=tuple(plugin_configs))
