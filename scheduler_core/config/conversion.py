"""Configurations of removed versions, converted to v1; and what a refusal says of the way there.

The conversion keeps what the old scheduler did where v1 can say it: default weights that changed are written out, a
plugin that was switched off everywhere stays off at points it did not have then. What has no counterpart is named.

Source: staging/src/k8s.io/kube-scheduler/config/v1alpha1, v1alpha2, v1beta1, v1beta2, v1beta3,
pkg/scheduler/apis/config/v1beta1/default_plugins.go, v1beta2/default_plugins.go, v1beta3/default_plugins.go, v1.12 to
v1.28; KEP-785; kubernetes 68639, 89298, 91420, 117649, 119994
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_core.config import types
from scheduler_core.config.catalog import POST_FILTER, PRE_SCORE, RESERVE, SCORE, Catalog
from scheduler_core.config.policy import legacy, modern_extender, spelled_today
from scheduler_core.config.wire import ListOf, typed
from scheduler_core.errors import ConfigurationError, DecodeError, FieldError

_GROUP = types.API_VERSION.partition("/")[0]

REMOVED_IN = {
    "componentconfig/v1alpha1": "1.13",
    f"{_GROUP}/v1alpha1": "1.19",
    f"{_GROUP}/v1alpha2": "1.19",
    f"{_GROUP}/v1beta1": "1.23",
    f"{_GROUP}/v1beta2": "1.28",
    f"{_GROUP}/v1beta3": "1.29",
}
"""Old version -> the release that no longer reads it; oldest first."""
_AGE = {version: age for age, version in enumerate(REMOVED_IN)}
_ALPHA1, _ALPHA2, _BETA1, _BETA2 = (
    _AGE[f"{_GROUP}/{name}"] for name in ("v1alpha1", "v1alpha2", "v1beta1", "v1beta2")
)
_CURRENT = len(_AGE)

_STRATEGIES = {
    "NodeResourcesLeastAllocated": types.LEAST_ALLOCATED,
    "NodeResourcesMostAllocated": types.MOST_ALLOCATED,
    "RequestedToCapacityRatio": types.REQUESTED_TO_CAPACITY_RATIO,
}
_FIT = "NodeResourcesFit"
_OTHER_PROGRAM = (
    "it is a plugin of sigs.k8s.io/scheduler-plugins, another program than kube-scheduler, and not built in here: "
    "remove it, or install a Python plugin of that name"
)
_INSTEAD = {
    "Coscheduling": "; GangPermit is its Permit part for pods with the label scheduling.x-k8s.io/pod-group, and "
    "GangScheduling (a PodGroup of scheduling.k8s.io, from 1.35) is kube-scheduler's own"
}


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One thing the conversion did.

    Attributes
    ----------
    field : str
        Its place in the old document, e.g. `profiles[0].plugins.score.enabled[1]`.
    value : object
        What is written there.
    detail : str
        What became of it, for a person.
    is_kept : bool
        v1 says the same; False where it has no effect any more.
    """

    field: str
    value: Any
    detail: str
    is_kept: bool = True


@dataclass(frozen=True, slots=True)
class Conversion:
    """A v1 document, and everything in which it differs; no changes where there was nothing to do."""

    document: dict[str, Any]
    changes: tuple[FieldChange, ...]


def convert(document: Mapping[str, Any], catalog: Catalog) -> Conversion:
    """A KubeSchedulerConfiguration of any version as v1. What is wrong in it otherwise stays as it is."""
    if document.get("kind") != types.KIND or document.get("apiVersion") not in (*_AGE, types.API_VERSION):
        return Conversion(dict(document), ())
    return _Conversion(document, catalog).result()


def with_the_way(
    error: ConfigurationError, document: Mapping[str, Any], catalog: Catalog
) -> ConfigurationError:
    """The same error; fields and plugins that are gone say what became of them."""
    ways = {change.field: change for change in convert(document, catalog).changes}
    errors = []
    for one in error.errors:
        change = ways.pop(one.field, None) or ways.pop(one.field.removesuffix(".name"), None)
        detail = one.detail if change is None else f"{one.detail}; {change.detail}"
        if (
            isinstance(one.value, str)
            and one.value in legacy("schedulerPlugins")
            and one.value not in catalog
        ):
            detail = f"{detail}; {_OTHER_PROGRAM}{_INSTEAD.get(one.value, '')}"
        errors.append(dataclasses.replace(one, detail=detail))
    if isinstance(error, DecodeError) and error.kind == "notRegistered":
        errors += [
            FieldError("FieldValueNotSupported", way.field, way.value, way.detail) for way in ways.values()
        ]
    error.errors = tuple(errors)
    return error


class _Conversion:
    def __init__(self, document: Mapping[str, Any], catalog: Catalog) -> None:
        self.document = copy.deepcopy(dict(document))
        self.version = str(document["apiVersion"])
        self.age = _AGE.get(self.version, _CURRENT)
        self.catalog = catalog
        self.changes: list[FieldChange] = []
        self.places: dict[int, int] = {}
        """Identity of a list's entry -> its index there; the document lives as long as this does."""

    def result(self) -> Conversion:
        if self.age < _CURRENT:
            self.document["apiVersion"] = types.API_VERSION
            self._say("apiVersion", self.version, self._removed())
        self._leader_election()
        self._one_profile()
        for index, profile in enumerate(_mappings(self.document, "profiles")):
            if isinstance(profile.get("plugins"), dict):
                self._points(profile["plugins"], f"profiles[{index}].plugins")
        self._top_level()
        if self.age <= _BETA2 and not self.document.get("profiles"):
            self.document["profiles"] = [{}]
        for index, profile in enumerate(_mappings(self.document, "profiles")):
            self._profile(profile, f"profiles[{index}]")
        extenders = self.document.get("extenders")
        if self.age <= _ALPHA2 and isinstance(extenders, list):
            modern = [modern_extender(spelled_today(one, typed(types.Extender))) for one in extenders]
            if modern != extenders:
                self._say(
                    "extenders",
                    extenders,
                    "v1 reads enableHTTPS in this spelling, and httpTimeout as a duration",
                )
                self.document["extenders"] = modern
        return Conversion(self.document, tuple(self.changes))

    def _say(self, field: str, value: Any, detail: str, *, is_kept: bool = True) -> None:
        self.changes.append(FieldChange(field, value, detail, is_kept))

    def _removed(self) -> str:
        return f"was removed in Kubernetes {REMOVED_IN[self.version]}: it is {types.API_VERSION} now"

    # --- outside profiles ---

    def _leader_election(self) -> None:
        election = self.document.get("leaderElection")
        if not isinstance(election, dict):
            return
        for old, new in (("lockObjectNamespace", "resourceNamespace"), ("lockObjectName", "resourceName")):
            if old in election:
                value = election.pop(old)
                election[new] = election.get(new) or value
                self._say(f"leaderElection.{old}", value, f"is {new} now")
        lock = election.get("resourceLock")
        if self.age < _CURRENT and lock and lock != "leases":
            election["resourceLock"] = "leases"
            self._say("leaderElection.resourceLock", lock, "leases are the only lock now; none is taken here")

    def _one_profile(self) -> None:
        """Convert v1alpha1, which had no profiles, to one profile."""
        names = [name for name in ("schedulerName", "plugins", "pluginConfig") if name in self.document]
        for name in names:
            profile = self._profiles()[0]
            value = self.document.pop(name)
            profile.setdefault(name, value)
            self._say(name, value, f"is profiles[0].{name} now")

    def _top_level(self) -> None:
        take = self.document.pop
        if "algorithmSource" in self.document:
            self._algorithm_source(take("algorithmSource"))
        if "disablePreemption" in self.document:
            value = take("disablePreemption")
            for profile in self._profiles() if value is True else ():
                _list(profile, "plugins", POST_FILTER, "disabled").append({"name": "DefaultPreemption"})
            self._say(
                "disablePreemption",
                value,
                "is plugins.postFilter.disabled [DefaultPreemption] of each profile now",
            )
        for name, plugin, arg in (
            ("bindTimeoutSeconds", "VolumeBinding", "bindTimeoutSeconds"),
            ("hardPodAffinitySymmetricWeight", "InterPodAffinity", "hardPodAffinityWeight"),
        ):
            if name in self.document:
                value = take(name)
                for profile in self._profiles():
                    self._args(profile, plugin).setdefault(arg, value)
                self._say(name, value, f"is {arg} of {plugin}'s args in each profile now")
        for name, detail in legacy("goneFields").items():
            if name in self.document:
                self._say(name, take(name), detail, is_kept=False)

    def _algorithm_source(self, source: Any) -> None:
        provider = source.get("provider") if isinstance(source, Mapping) else None
        if isinstance(source, Mapping) and source.get("policy"):
            detail = "was removed in v1alpha2: the Policy it names is read here, too: give that"
            self._say("algorithmSource", source, detail, is_kept=False)
        elif provider == "ClusterAutoscalerProvider":
            for profile in self._profiles():
                self._args(profile, _FIT).setdefault("scoringStrategy", {"type": types.MOST_ALLOCATED})
            self._say(
                "algorithmSource", source, f"is the scoring strategy {types.MOST_ALLOCATED} of {_FIT} now"
            )
        else:
            is_kept = provider in (None, "DefaultProvider")
            self._say(
                "algorithmSource", source, "was removed in v1alpha2: profiles take its place", is_kept=is_kept
            )

    def _profiles(self) -> list[dict[str, Any]]:
        """Its profiles; one is made where there is none."""
        if not self.document.get("profiles"):
            self.document["profiles"] = [{}]
        return _mappings(self.document, "profiles") or [{}]

    def _args(self, profile: dict[str, Any], plugin: str) -> dict[str, Any]:
        """The args of a plugin, to be written to."""
        configs = _list(profile, "pluginConfig")
        for config in configs:
            if isinstance(config, dict) and config.get("name") == plugin:
                args = config.setdefault("args", {})
                return args if isinstance(args, dict) else {}
        configs.append({"name": plugin, "args": {}})
        written: dict[str, Any] = configs[-1]["args"]
        return written

    # --- a profile ---

    def _place(self, entry: dict[str, Any]) -> int:
        """The index a plugin, or a plugin's config, had in its list."""
        return self.places.get(id(entry), 0)

    def _profile(self, profile: dict[str, Any], path: str) -> None:
        plugins = profile.get("plugins")
        lists = [profile.get("pluginConfig")]
        lists += [found for _, _, found in _sets(plugins if isinstance(plugins, dict) else {})]
        self.places.update(
            (id(one), index)
            for found in lists
            for index, one in enumerate(found if isinstance(found, list) else ())
        )
        self._strategies(profile, path)
        if isinstance(plugins, dict):
            self._retired(plugins, f"{path}.plugins")
        self._plugin_configs(profile, path)
        if self.age <= _BETA2:
            self._switched_off(profile, f"{path}.plugins")
            self._weights(profile, f"{path}.plugins.score")

    def _points(self, plugins: dict[str, Any], path: str) -> None:
        """Extension points under other names."""
        if self.age <= _ALPHA1 and "postFilter" in plugins:
            value = plugins.pop("postFilter")
            plugins.setdefault(PRE_SCORE, value)
            self._say(f"{path}.postFilter", value, "is preScore since v1alpha2")
        if "unreserve" in plugins:
            value = plugins.pop("unreserve")
            written = value if isinstance(value, dict) else {}
            for part in ("enabled", "disabled"):
                here = _list({"plugins": plugins}, "plugins", RESERVE, part)
                known = {plugin["name"] for plugin in _named(here)}
                here += [one for one in _named(written.get(part)) if one["name"] not in known]
            self._say(f"{path}.unreserve", value, "is part of reserve since v1beta1")

    def _strategies(self, profile: dict[str, Any], path: str) -> None:
        """Three score plugins that are scoring strategies of NodeResourcesFit since v1beta2."""
        configs = [one for one in _named(profile.get("pluginConfig")) if one.get("name") in _STRATEGIES]
        score = _plugin_set(profile, SCORE)
        wanted = [one for one in _named(score.get("enabled")) if one["name"] in _STRATEGIES]
        off = {one["name"] for one in _named(score.get("disabled"))}
        if not configs and not wanted and not off & set(_STRATEGIES):
            return
        is_default = self.age <= _BETA1 and not off & {"*", "NodeResourcesLeastAllocated"}
        chosen = wanted[0] if wanted else {"name": "NodeResourcesLeastAllocated"} if is_default else None
        args = next((one.get("args") for one in configs if chosen and one["name"] == chosen["name"]), None)
        if chosen is not None:
            self._choose(profile, chosen["name"], args if isinstance(args, dict) else {})
        self._score_by_fit(
            score, wanted, f"{path}.plugins.score", is_off=chosen is None and bool(off & set(_STRATEGIES))
        )
        if wanted and is_default and all(one["name"] != "NodeResourcesLeastAllocated" for one in wanted):
            detail = f"{_FIT} scores by one strategy, {_STRATEGIES[wanted[0]['name']]}: the default is lost"
            self._say(f"{path}.plugins.score", ["NodeResourcesLeastAllocated"], detail, is_kept=False)
        for config in configs:
            is_kept = chosen is not None and config["name"] == chosen["name"]
            detail = (
                f"is scoringStrategy in the args of {_FIT} now"
                if is_kept
                else f"has no effect: {config['name']} is not enabled to score"
            )
            self._say(f"{path}.pluginConfig[{self._place(config)}]", config["name"], detail, is_kept=is_kept)
        if configs:
            profile["pluginConfig"] = [one for one in profile["pluginConfig"] if one not in configs]

    def _choose(self, profile: dict[str, Any], name: str, args: dict[str, Any]) -> None:
        strategy: dict[str, Any] = {"type": _STRATEGIES[name]}
        if args.get("resources"):
            strategy["resources"] = spelled_today(args["resources"], ListOf(typed(types.ResourceSpec)))
        if args.get("shape"):
            shape = spelled_today(args["shape"], ListOf(typed(types.UtilizationShapePoint)))
            strategy["requestedToCapacityRatio"] = {"shape": shape}
        self._args(profile, _FIT).setdefault("scoringStrategy", strategy)

    def _score_by_fit(
        self, score: dict[str, Any], wanted: list[dict[str, Any]], path: str, *, is_off: bool
    ) -> None:
        enabled: list[Any] = []
        for one in score.get("enabled") or () if wanted else ():
            if one not in wanted:
                enabled.append(one)
            elif one is wanted[0]:
                enabled.append({**one, "name": _FIT})
                detail = f"is the scoring strategy {_STRATEGIES[one['name']]} of {_FIT} since v1beta2"
                self._say(f"{path}.enabled[{self._place(one)}]", one["name"], detail)
            else:
                detail = f"{_FIT} scores by one strategy, which is {_STRATEGIES[wanted[0]['name']]}"
                self._say(f"{path}.enabled[{self._place(one)}]", one["name"], detail, is_kept=False)
        if wanted:
            score["enabled"] = enabled
        for one in _named(score.get("disabled")):
            if one["name"] in _STRATEGIES:
                detail = f"is a scoring strategy of {_FIT} since v1beta2"
                self._say(f"{path}.disabled[{self._place(one)}]", one["name"], detail)
                score["disabled"] = [other for other in score["disabled"] if other is not one]
        if is_off:
            score["disabled"].append({"name": _FIT})

    def _retired(self, plugins: dict[str, Any], path: str) -> None:
        for point, part, names in _sets(plugins):
            for one in _named(names):
                if one["name"] in legacy("retired") and one["name"] not in self.catalog:
                    here = f"{path}.{point}.{part}[{self._place(one)}]"
                    self._say(here, one["name"], legacy("retired")[one["name"]], is_kept=part == "disabled")
                    plugins[point][part] = [other for other in plugins[point][part] if other is not one]

    def _plugin_configs(self, profile: dict[str, Any], path: str) -> None:
        for config in _named(profile.get("pluginConfig")):
            name, args = config["name"], config.get("args")
            here = f"{path}.pluginConfig[{self._place(config)}]"
            if name in legacy("retired") and name not in self.catalog:
                self._say(here, name, legacy("retired")[name], is_kept=False)
                profile["pluginConfig"] = [one for one in profile["pluginConfig"] if one is not config]
                continue
            if not isinstance(args, dict):
                continue
            if str(args.get("apiVersion")) in _AGE:
                self._say(f"{here}.args.apiVersion", args["apiVersion"], f"is {types.API_VERSION} now")
                args["apiVersion"] = types.API_VERSION
            if self.age <= _BETA1 and args.get("defaultConstraints") and not args.get("defaultingType"):
                args["defaultingType"] = types.LIST_DEFAULTING
                detail = f"v1 uses them with defaultingType: {types.LIST_DEFAULTING} only"
                self._say(f"{here}.args.defaultConstraints", args["defaultConstraints"], detail)

    def _switched_off(self, profile: dict[str, Any], path: str) -> None:
        """A plugin that is off wherever it ran stays off where it runs since."""
        names = {name for point in legacy("oldPoints") for name in legacy("oldPoints")[point]}
        for name in sorted(names & set(self.catalog)):
            ran = [point for point, there in legacy("oldPoints").items() if name in there]
            if not all(_is_off(_plugin_set(profile, point), name) for point in ran):
                continue
            for point in self.catalog[name].points:
                if point not in ran and not _says(_plugin_set(profile, point), name):
                    _list(profile, "plugins", point, "disabled").append({"name": name})
                    detail = f"{name} runs at {point} since: a conversion switches it off there, too"
                    self._say(f"{path}.{point}", name, detail)

    def _weights(self, profile: dict[str, Any], path: str) -> None:
        score = _plugin_set(profile, SCORE)
        names = [
            name
            for name in legacy("oldWeights")
            if name in self.catalog and not _says(score, name) and not _is_off(score, name)
        ]
        if names:
            enabled = _list(profile, "plugins", SCORE, "enabled")
            enabled += [{"name": name, "weight": legacy("oldWeights")[name]} for name in names]
            now = {name: weight for name, weight in self.catalog.defaults if name in names}
            told = ", ".join(str(now.get(name, 0)) for name in names)
            detail = (
                f"{', '.join(names)} had weight 1 by default, since v1beta3 {told}: a conversion writes 1"
            )
            self._say(path, names, detail)


def _mappings(parent: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = parent.get(key)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _named(plugins: Any) -> list[dict[str, Any]]:
    """The plugins of a list; what is none is left to be refused."""
    here = plugins if isinstance(plugins, list) else []
    return [one for one in here if isinstance(one, dict) and isinstance(one.get("name"), str)]


def _plugin_set(profile: Mapping[str, Any], point: str) -> dict[str, Any]:
    plugins = profile.get("plugins")
    found = plugins.get(point) if isinstance(plugins, dict) else None
    return found if isinstance(found, dict) else {}


def _list(parent: dict[str, Any], *keys: str) -> list[Any]:
    """The list at a path, made where it is not there; a stray one where something else is."""
    here: Any = parent
    for key in keys[:-1]:
        if here.get(key) is None:
            here[key] = {}
        here = here[key]
        if not isinstance(here, dict):
            return []
    if here.get(keys[-1]) is None:
        here[keys[-1]] = []
    found = here[keys[-1]]
    return found if isinstance(found, list) else []


def _sets(plugins: Mapping[str, Any]) -> Iterator[tuple[str, str, list[Any]]]:
    for point, plugin_set in plugins.items():
        for part in ("enabled", "disabled"):
            if isinstance(plugin_set, dict) and isinstance(plugin_set.get(part), list):
                yield point, part, plugin_set[part]


def _is_off(plugin_set: Mapping[str, Any], name: str) -> bool:
    off = {one["name"] for one in _named(plugin_set.get("disabled"))}
    return bool(off & {"*", name}) and all(one["name"] != name for one in _named(plugin_set.get("enabled")))


def _says(plugin_set: Mapping[str, Any], name: str) -> bool:
    return any(
        one["name"] == name for part in ("enabled", "disabled") for one in _named(plugin_set.get(part))
    )
