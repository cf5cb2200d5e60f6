"""Mock extenders on pages: rules as YAML, and their place in a cluster's configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playground.clusters.errors import InvalidInput
from playground.clusters.services.mock_extenders import mock_extender_url
from playground.clusters.services.posted import as_error
from playground.engine.admission import ManifestProblem
from playground.engine.configuration import is_policy
from playground.engine.documents import load_one
from playground.engine.mock_extender import VERBS
from playground.web.posted_yaml import yaml_of

if TYPE_CHECKING:
    from playground.clusters.row_types import MockExtender

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
    try:
        document = load_one(text.encode()) or {}
    except ManifestProblem as problem:
        raise as_error(problem) from None
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
