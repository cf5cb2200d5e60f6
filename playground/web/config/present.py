"""A profile as columns of extension points: what is on, what is off, what differs from the default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from playground.clusters.errors import InvalidInput
from playground.clusters.extenders.mock import mock_extender_url
from playground.engine.configuration import POINTS, ProfileOutline, is_policy, outline
from playground.engine.plugins import installed, plugin_points
from playground.web.looks import View
from playground.web.problems import yaml_of
from scheduler_core.objects.documents import load_document
from scheduler_core.scenario.mock_extender import VERBS

if TYPE_CHECKING:
    from playground.clusters.row_types import MockExtender

# A scheduler without one of these does not start.
REQUIRED = ("queueSort", "bind")
SCORE = "score"


def default_profile(release: Mapping[str, Any] | None = None) -> ProfileOutline:
    """What runs without a configuration in a release of Kubernetes (None: the oldest)."""
    document = release or {}
    switched = tuple(sorted((document.get("switched") or {}).items()))
    return replace(_default_profile(document.get("name"), switched), release=release)


@cache
def _default_profile(name: str | None, switched: tuple[tuple[str, bool], ...]) -> ProfileOutline:
    return outline(None, {"name": name, "switched": dict(switched)} if name else None).profiles[0]


def view_profile(profile: ProfileOutline) -> View:
    """Compare a profile with the default one, point by point.

    Returns
    -------
    dict
        `columns` of extension points: `cells` are plugins (`note` says how one differs, empty where it does not),
        `others` those that could be added; `differences` in words.
    """
    columns = [_column(point, profile) for point in POINTS]
    differences = _differences(profile, columns)
    return {"name": profile.scheduler_name, "columns": columns, "differences": differences}


def installed_plugins(profile: ProfileOutline) -> list[View]:
    """What installed packages offer, by name, and what a profile makes of it; `args` are those that apply."""
    cells = []
    for plugin in installed():
        given = {_camel(field): value for field, value in profile.args.get(plugin.name, {}).items()}
        cells.append(
            {
                "plugin": plugin,
                "points_on": [point for point in POINTS if plugin.name in profile.plugins[point]],
                "weight": profile.weights.get(plugin.name),
                "args": {**plugin.args, **given},
            }
        )
    return cells


def _column(point: str, profile: ProfileOutline) -> View:
    usual, now = default_profile(profile.release).plugins[point], profile.plugins[point]
    changed_args = _changed_args(profile) if point == _first_point_with_args(point) else {}
    cells = [_cell(point, name, profile, usual, on=True, args=changed_args.get(name, "")) for name in now]
    cells += [_cell(point, name, profile, usual, on=False) for name in usual if name not in now]
    shown = {cell["name"] for cell in cells}
    others = [
        _drawn(point, name, weight=1 if point == SCORE else None)
        for name, points in sorted(plugin_points(profile.release).items())
        if point in points and name not in shown
    ]
    return {
        "key": point,
        "title": f"{point[0].upper()}{point[1:]}",
        "cells": cells,
        "others": others,
        "n_on": sum(cell["on"] for cell in cells),
        "n_different": sum(bool(cell["note"]) for cell in cells),
    }


def _drawn(point: str, name: str, **said: Any) -> View:
    fields = {"field": f"on:{point}:{name}", "weight_field": f"w:{name}", "required": point in REQUIRED}
    return {"name": name, "on": False, "note": "", **fields, **said}


def _first_point_with_args(point: str) -> str:
    """The point at which changed arguments are shown: Filter, Score or PostFilter."""
    return point if point in ("filter", "score", "postFilter") else ""


def _cell(
    point: str, name: str, profile: ProfileOutline, usual: Sequence[str], *, on: bool, args: str = ""
) -> View:
    default_weights = default_profile(profile.release).weights
    weight = profile.weights.get(name, default_weights.get(name, 1)) if point == SCORE else None
    note = ""
    if on and name not in usual:
        note = "added"
    elif not on:
        note = "off, default on"
    elif weight is not None and weight != default_weights[name]:
        note = f"default × {default_weights[name]}"
    if on and args:
        note = f"{note}, {args}" if note else args
    return _drawn(point, name, on=on, weight=weight, note=note)


def _changed_args(profile: ProfileOutline) -> dict[str, str]:
    """Plugin -> which arguments differ, in a few words."""
    changed = {}
    usual = default_profile(profile.release).args
    for name, args in profile.args.items():
        before = usual.get(name, {})
        fields = [field for field, value in args.items() if value != before.get(field)]
        if not fields:
            continue
        strategy = args.get("scoring_strategy")
        kind = strategy.get("type") if isinstance(strategy, Mapping) else None
        usual_kind = (before.get("scoring_strategy") or {}).get("type") if before else None
        changed[name] = (
            str(kind) if kind and kind != usual_kind else f"args: {', '.join(map(_camel, fields))}"
        )
    return changed


def _camel(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _differences(profile: ProfileOutline, columns: Sequence[View]) -> list[str]:
    words = [
        f"{cell['name']} {cell['note']} at {column['title']}"
        for column in columns
        for cell in column["cells"]
        if cell["note"]
    ]
    if profile.percentage_of_nodes_to_score:
        words.append(f"percentageOfNodesToScore {profile.percentage_of_nodes_to_score}")
    return words


def edited(
    document: Mapping[str, Any] | None, profile: ProfileOutline, posted: Mapping[str, str]
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
    """
    base: dict[str, Any] = _copied(document) if document else {"profiles": []}
    base = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **base}
    profiles = base.setdefault("profiles", [])
    written = next(
        (p for p in profiles if p.get("schedulerName", "default-scheduler") == profile.scheduler_name), None
    )
    if written is None:
        written = {"schedulerName": profile.scheduler_name}
        profiles.append(written)
    plugins = written.setdefault("plugins", {})
    in_use = [name for point in POINTS for name in profile.plugins[point]]
    known = plugin_points(profile.release, in_use)
    for point in POINTS:
        for name, points in known.items():
            if point not in points:
                continue
            was_on, is_on = name in profile.plugins[point], f"on:{point}:{name}" in posted
            weight = _weight(posted.get(f"w:{name}")) if point == SCORE else None
            if was_on and not is_on:
                _switch(plugins, point, name, on=False)
            elif is_on and not was_on:
                usual = name in default_profile(profile.release).plugins[point]
                _switch(plugins, point, name, on=True, weight=weight, explicit=not usual)
            if is_on and weight is not None and weight != profile.weights.get(name, 1):
                _set_weight(plugins, name, weight)
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


def _set_weight(plugins: dict[str, Any], name: str, weight: int) -> None:
    enabled = plugins.setdefault(SCORE, {}).setdefault("enabled", [])
    for entry in enabled:
        if entry.get("name") == name:
            entry["weight"] = weight
            return
    enabled.append({"name": name, "weight": weight})


def _weight(text: str | None) -> int | None:
    """A weight as posted; one that is no number stays, so that validation names it at its line."""
    if text is None or not text.strip():
        return None
    return int(text) if text.strip().lstrip("-").isdigit() else None


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


EXAMPLE = """\
rules:
- deny:
    labels: {disk: hdd}
    reason: the quota asks for ssd
- score:
    nodes: [node-b3]
    points: 10
"""
_VERB_KEYS = {verb: f"{verb}Verb" for verb in VERBS}
# What a rule does -> the verb that has to be called for it.
_ASKS = {"deny": "filter", "score": "prioritize", "drop": "preempt", "bind": "bind"}
_EMPTY: dict[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "default-scheduler"}],
}


@dataclass(frozen=True)
class Wiring:
    """How a configuration asks a mock extender; `verbs` are proposed from its rules while it does not."""

    wired: bool
    verbs: tuple[str, ...]
    weight: int
    ignorable: bool


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


def wiring_of(extender: MockExtender, config: Mapping[str, Any] | None) -> Wiring:
    """How the configuration asks it now, or how it would best."""
    for entry in _extenders(config):
        if _names(entry, extender):
            verbs = tuple(verb for verb, key in _VERB_KEYS.items() if entry.get(key))
            return Wiring(True, verbs, int(entry.get("weight") or 1), bool(entry.get("ignorable")))
    asked = {
        verb
        for rule in extender.rules
        for verb in (*rule.get("verbs", ()), *(_ASKS[key] for key in rule if key in _ASKS))
    }
    return Wiring(False, tuple(verb for verb in VERBS if verb in asked) or ("filter",), 1, False)


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
    return {**(config or _EMPTY), "extenders": [*others[:place], entry, *others[place + 1 :]]}


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
