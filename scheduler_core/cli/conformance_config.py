"""Compare a configuration's decoding, defaults, validation and construction with the recorded ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.cli.case_release import release_of
from scheduler_core.cli.difference import Difference
from scheduler_core.config.catalog import EXTENSION_POINTS, SCORE
from scheduler_core.config.construction import (
    ProfilePlan,
    construct,
    prepare_extenders,
    with_extender_timeouts,
)
from scheduler_core.config.decode import decode_configuration
from scheduler_core.config.defaults import with_defaults
from scheduler_core.config.load import configuration_from
from scheduler_core.config.types import KubeSchedulerConfiguration, KubeSchedulerProfile
from scheduler_core.config.validation import args_document, validation_errors
from scheduler_core.config.wire import encode
from scheduler_core.errors import ConstructionError, DecodeError
from scheduler_core.plugins import REGISTRY
from scheduler_core.releases import OLDEST, Release

_MISSING = "(absent)"


def run_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the family `config-validation`.

    Parameters
    ----------
    case : mapping
        `config` or `text`, and `expect`.

    Returns
    -------
    list of Difference
        Empty when every recorded key agrees. Of validation errors type, field and detail are compared; where
        the real program crashes, ours must refuse the document with an error that names a field.
    """
    got = outcome(case["text"] if "text" in case else case["config"], release_of(case))
    expect = dict(case["expect"])
    if "decodeError" in expect:
        expect["decodeError"] = {"kind": expect["decodeError"]["kind"]}
    if "errors" in expect:
        expect["errors"] = _comparable(expect["errors"])
        got["errors"] = _comparable(got.get("errors", []))
    if str(expect.get("constructionError")).startswith("panic: "):
        expect["constructionError"] = "panic"
    differences: list[Difference] = []
    _compare("", expect, got, differences)
    return differences


def outcome(source: str | Mapping[str, Any], release: Release = OLDEST) -> dict[str, Any]:
    """What becomes of a configuration, in the form of `expect`."""
    catalog = REGISTRY.in_release(release).catalog
    try:
        checked = decode_configuration(source, catalog)
    except DecodeError as error:
        return {"decodeError": {"kind": error.kind}}
    configuration = configuration_from(with_defaults(checked, catalog), catalog)
    errors = validation_errors(configuration, catalog)
    if errors:
        return {
            "errors": [
                {"type": error.type, "field": error.field, "detail": error.detail, "message": str(error)}
                for error in errors
            ]
        }
    plans: tuple[ProfilePlan, ...] = ()
    refusal = None
    # Upstream settles these in place, so they are recorded even where construction fails later.
    configuration = with_extender_timeouts(configuration)
    try:
        configuration = prepare_extenders(configuration, catalog)
        configuration, plans = construct(configuration, catalog)
    except ConstructionError as error:
        # An error that names no field does not count as a clear one.
        refusal = "panic" if error.panic and error.errors else str(error)
    return {"errors": [], "constructionError": refusal, "defaulted": _recorded(configuration, plans)}


def _comparable(errors: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(
        ({key: error[key] for key in ("field", "type", "detail")} for error in errors),
        key=lambda error: (error["field"], error["type"], error["detail"]),
    )


def _recorded(configuration: KubeSchedulerConfiguration, plans: tuple[ProfilePlan, ...]) -> dict[str, Any]:
    document = encode(configuration)
    document["profiles"] = [
        _profile(profile, plans[index] if plans else None)
        for index, profile in enumerate(configuration.profiles)
    ]
    return document


def _profile(profile: KubeSchedulerProfile, plan: ProfilePlan | None) -> dict[str, Any]:
    recorded: dict[str, Any] = {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "args": {
            one.name: args_document(one.name, one.args)
            for one in profile.plugin_config
            if one.args is not None
        },
        "configured": encode(profile.plugins),
    }
    if plan is not None:
        recorded["plugins"] = {point: list(plan.plugins[point]) for point in EXTENSION_POINTS}
        recorded["plugins"][SCORE] = [
            {"name": name, "weight": weight} for name, weight in plan.weights.items()
        ]
    return recorded


def _compare(path: str, expected: Any, got: Any, differences: list[Difference]) -> None:
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        for key in dict.fromkeys([*expected, *got]):
            here = f"{path}.{key}" if path else str(key)
            _compare(here, expected.get(key, _MISSING), got.get(key, _MISSING), differences)
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, (wanted, found) in enumerate(zip(expected, got, strict=True)):
            _compare(f"{path}[{index}]", wanted, found, differences)
    elif expected != got or isinstance(expected, bool) != isinstance(got, bool):
        differences.append(Difference(path, expected, got))
