"""A profile as columns of extension points: what is on, what is off, what differs from the default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from playground.clusters.errors import InvalidInput
from playground.clusters.extenders.mock import mock_extender_url
from playground.clusters.row_types import MockExtender
from playground.engine.configuration import POINTS, is_policy, loaded
from playground.engine.plugins import args_shown, installed, plugin_points
from playground.web.looks import View
from playground.web.problems import yaml_of
from scheduler_core.objects.documents import load_document
from scheduler_core.scenario.mock_extender import VERBS
from scheduler_core.schema.tables import table_beside

if TYPE_CHECKING:
    from scheduler_core.config.construction import ProfilePlan

# A scheduler without one of these does not start.
REQUIRED = ("queueSort", "bind")
SCORE = "score"
DEFAULT = "default-scheduler"
_TABLES = table_beside(__package__, "tables.yaml")
EMPTY: Mapping[str, Any] = _TABLES["empty"]


def view_profile(profile: ProfilePlan, release: Mapping[str, Any] | None = None) -> View:
    """Compare a profile with the default one of its release (None is the oldest), point by point.

    Returns
    -------
    dict
        `columns` of extension points: `cells` are plugins (`note` says how one differs, empty where it does not),
        `others` those that could be added; `differences` in words.
    """
    usual = loaded(None, release).plans[0]
    points_of = plugin_points(release)
    columns = [_column(point, profile, usual, points_of) for point in POINTS]
    differences = [
        f"{cell['name']} {cell['note']} at {column['title']}"
        for column in columns
        for cell in column["cells"]
        if cell["note"]
    ]
    if profile.percentage_of_nodes_to_score:
        differences.append(f"percentageOfNodesToScore {profile.percentage_of_nodes_to_score}")
    return {"name": profile.scheduler_name, "columns": columns, "differences": differences}


def installed_plugins(profile: ProfilePlan) -> list[View]:
    """Plugins of installed packages, by name, and their use in a profile; `args` are those that apply."""
    return [
        {
            "plugin": plugin,
            "points_on": [point for point in POINTS if plugin.name in profile.plugins[point]],
            "weight": profile.weights.get(plugin.name),
            "args": {**plugin.args, **args_shown(plugin.name, profile.args.get(plugin.name))},
        }
        for plugin in installed()
    ]


def _column(
    point: str, profile: ProfilePlan, usual: ProfilePlan, points_of: Mapping[str, tuple[str, ...]]
) -> View:
    by_default, now = usual.plugins[point], profile.plugins[point]
    changed_args = _changed_args(profile, usual) if point in ("filter", "score", "postFilter") else {}
    shown = [*now, *(name for name in by_default if name not in now)]
    others = [name for name, points in sorted(points_of.items()) if point in points]
    cells = []
    for name in (*shown, *(other for other in others if other not in shown)):
        is_on, default_weight = name in now, usual.weights.get(name, 1)
        weight = profile.weights.get(name, default_weight) if point == SCORE else None
        notes = []
        if is_on and name not in by_default:
            notes.append("added")
        elif not is_on and name in by_default:
            notes.append("off, default on")
        elif weight not in (None, default_weight):
            notes.append(f"default × {default_weight}")
        notes += [changed_args[name]] if is_on and name in changed_args else []
        cells.append(
            {
                "name": name,
                "on": is_on,
                "weight": weight,
                "note": ", ".join(notes),
                "field": f"on:{point}:{name}",
                "weight_field": f"w:{name}",
                "required": point in REQUIRED,
            }
        )
    return {
        "title": f"{point[0].upper()}{point[1:]}",
        "cells": cells[: len(shown)],
        "others": cells[len(shown) :],
        "n_on": len(now),
        "n_different": sum(bool(cell["note"]) for cell in cells),
    }


def _changed_args(profile: ProfilePlan, usual: ProfilePlan) -> dict[str, str]:
    """Plugin -> which arguments differ, in a few words."""
    changed = {}
    for name in profile.args:
        args, before = (args_shown(name, plan.args.get(name)) for plan in (profile, usual))
        fields = [field for field in {**args, **before} if args.get(field) != before.get(field)]
        kinds = [(of.get("scoringStrategy") or {}).get("type") for of in (args, before)]
        if fields:
            is_strategy = kinds[0] and kinds[0] != kinds[1]
            changed[name] = str(kinds[0]) if is_strategy else f"args: {', '.join(fields)}"
    return changed


def edited(
    document: Mapping[str, Any] | None,
    profile: ProfilePlan,
    posted: Mapping[str, str],
    release: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the configuration with the posted switches and weights, everything else unchanged.

    Parameters
    ----------
    document
        The configuration in use; None is the default one.
    profile
        The one that is edited, as it runs now.
    posted
        Fields of the page: ``on:point:plugin`` for what is on, ``w:plugin`` weights.
    release
        The cluster's release of Kubernetes; None is the oldest.
    """
    base: dict[str, Any] = {**EMPTY, "profiles": [], **deepcopy(dict(document or {}))}
    profiles = base["profiles"]
    written = next((p for p in profiles if p.get("schedulerName", DEFAULT) == profile.scheduler_name), None)
    if written is None:
        written = {"schedulerName": profile.scheduler_name}
        profiles.append(written)
    plugins = written.setdefault("plugins", {})
    usual = loaded(None, release).plans[0]
    in_use = [name for point in POINTS for name in profile.plugins[point]]
    known = plugin_points(release, in_use)
    for point in POINTS:
        for name in (name for name, points in known.items() if point in points):
            was_on, is_on = name in profile.plugins[point], f"on:{point}:{name}" in posted
            weight = _weight(posted.get(f"w:{name}")) if point == SCORE else None
            if was_on and not is_on:
                _switch(plugins, point, name, on=False)
            elif is_on and not was_on:
                explicit = name not in usual.plugins[point]
                _switch(plugins, point, name, on=True, weight=weight, explicit=explicit)
            if is_on and weight is not None and weight != profile.weights.get(name, 1):
                enabled = plugins.setdefault(SCORE, {}).setdefault("enabled", [])
                entry = next((entry for entry in enabled if entry.get("name") == name), None)
                if entry is None:
                    enabled.append(entry := {"name": name})
                entry["weight"] = weight
    if not plugins:
        del written["plugins"]
    return base


def _switch(
    plugins: dict[str, Any],
    point: str,
    name: str,
    *,
    on: bool,
    weight: int | None = None,
    explicit: bool = False,
) -> None:
    lists = plugins.setdefault(point, {})
    gone, other = ("disabled", "enabled") if on else ("enabled", "disabled")
    left = [entry for entry in lists.get(gone, []) if entry.get("name") != name]
    if left:
        lists[gone] = left
    else:
        lists.pop(gone, None)
    if not on or explicit:
        entry: dict[str, Any] = {"name": name}
        if on and weight is not None and weight != 1:
            entry["weight"] = weight
        lists.setdefault(other, []).append(entry)
    if not lists:
        plugins.pop(point)


def _weight(text: str | None) -> int | None:
    """A weight as posted; one that is no number stays, so that validation names it at its line."""
    if text is None or not text.strip():
        return None
    return int(text) if text.strip().lstrip("-").isdigit() else None


EXAMPLE: str = _TABLES["example"]
_VERB_KEYS = {verb: f"{verb}Verb" for verb in VERBS}
# What a rule does -> the verb that has to be called for it.
_ASKS = {"deny": "filter", "score": "prioritize", "drop": "preempt", "bind": "bind"}


def rules_text(rules: Sequence[Any]) -> str:
    """The rules as the YAML people edit."""
    return yaml_of([{"rules": list(rules)}])


def read_rules(text: str) -> list[Any]:
    """The rules of an edited text.

    Raises
    ------
    InvalidManifest, InvalidInput
        Bad YAML, with its line; or something else than ``rules:`` with a list.
    """
    document = load_document(text.encode()) or {}
    rules = document.get("rules")
    if set(document) != {"rules"} or not isinstance(rules, list):
        raise InvalidInput("the text begins with rules: and lists them below", field="rules")
    return rules


def wiring_of(extender: MockExtender, config: Mapping[str, Any] | None) -> View:
    """The configuration's entry for a mock extender, or the best one by its rules."""
    for entry in _extenders(config):
        if _names(entry, extender):
            verbs = tuple(verb for verb, key in _VERB_KEYS.items() if entry.get(key))
            weight = int(entry.get("weight") or 1)
            return {"wired": True, "verbs": verbs, "weight": weight, "ignorable": entry.get("ignorable")}
    asked = {
        verb
        for rule in extender.rules
        for verb in (*rule.get("verbs", ()), *(_ASKS[key] for key in rule if key in _ASKS))
    }
    best = [verb for verb in VERBS if verb in asked] or ["filter"]
    return {"wired": False, "verbs": best, "weight": 1, "ignorable": False}


def wired(
    config: Mapping[str, Any] | None,
    extender: MockExtender,
    *,
    verbs: Sequence[str],
    weight: int,
    ignorable: bool,
) -> dict[str, Any]:
    """The configuration with the extender asked for these verbs, in its old place or as the last one.

    Raises
    ------
    InvalidInput
        No verb; or the configuration is a Policy, which is changed as text.
    """
    if is_policy(config):
        raise InvalidInput("the configuration is a Policy: name the extender in its text")
    if not verbs:
        raise InvalidInput("an extender is asked for one verb at least", field="verbs")
    entry: dict[str, Any] = {"urlPrefix": mock_extender_url(extender), "nodeCacheCapable": True}
    entry |= {_VERB_KEYS[verb]: verb for verb in VERBS if verb in verbs}
    if "prioritize" in verbs:
        entry["weight"] = weight
    if ignorable:
        entry["ignorable"] = True
    others = [dict(one) for one in _extenders(config)]
    place = next((i for i, one in enumerate(others) if _names(one, extender)), len(others))
    return {**(config or EMPTY), "extenders": [*others[:place], entry, *others[place + 1 :]]}


def unwired(config: Mapping[str, Any] | None, extender: MockExtender) -> dict[str, Any] | None:
    """The configuration without the extender; None stays None."""
    if config is None:
        return None
    left = [dict(one) for one in _extenders(config) if not _names(one, extender)]
    rest = {key: value for key, value in config.items() if key != "extenders"}
    return rest | {"extenders": left} if left else rest


def _extenders(config: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    return (config or {}).get("extenders") or ()


def _names(entry: Mapping[str, Any], extender: MockExtender) -> bool:
    return str(entry.get("urlPrefix", "")).rstrip("/").endswith(f"/mock-extenders/{extender.public_id}")
