"""`--release` and `--feature-gates`, for every command that decides something."""

from __future__ import annotations

import argparse
import dataclasses

from scheduler_core.errors import ConfigurationError, InvalidObject
from scheduler_core.releases import Release, release_named
from scheduler_core.scenario import Problem, Scenario, ScenarioError


def with_release(scenario: Scenario, options: argparse.Namespace) -> Scenario:
    """The scenario as the options have it decided.

    Raises
    ------
    ScenarioError
        There is no such release, or it has no such gate.
    """
    if not options.release and not options.feature_gates:
        return scenario
    release = named(options.release, options.feature_gates, scenario.release)
    return dataclasses.replace(
        scenario,
        kubernetes_release=release.name,
        feature_gates={name: on for name, on in release.switched.items() if name in release.gates},
        decisions=None,
    )


def named(name: str | None, gates: str | None, default: Release) -> Release:
    """A release by name (`default` without one), with gates as the flag writes them.

    Raises
    ------
    ScenarioError
    """
    try:
        release = release_named(name, "--release") if name else default
        return release.with_gates(_gates(gates or ""))
    except InvalidObject as error:
        raise ScenarioError([Problem(error.path, error.reason, error.value)]) from None
    except ConfigurationError as error:
        raise ScenarioError([Problem(one.field, one.detail, one.value) for one in error.errors]) from None


def _gates(text: str) -> dict[str, bool]:
    """Source: staging/src/k8s.io/component-base/featuregate/feature_gate.go Set, v1.34"""
    gates = {}
    for pair in filter(None, (one.strip() for one in text.split(","))):
        name, equals, value = pair.partition("=")
        words = value.strip().lower()
        if not equals or words not in ("true", "false", "t", "f", "1", "0"):
            raise ScenarioError([Problem("--feature-gates", "must be NAME=true or NAME=false", pair)])
        gates[name.strip()] = words in ("true", "t", "1")
    return gates
