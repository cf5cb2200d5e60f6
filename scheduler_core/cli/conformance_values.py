"""Compare quantities and selectors with what the real Kubernetes packages answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scheduler_core.cli.conformance import Difference, differences, release_of
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
from scheduler_core.fork import Fork
from scheduler_core.objects import node_selector
from scheduler_core.objects.defaults import prepare
from scheduler_core.objects.fields import SelectorError
from scheduler_core.objects.labels import LabelSelector, label_selector_from, parse_label_selector_text
from scheduler_core.objects.pod import pod_from
from scheduler_core.objects.quantity import Quantity, QuantityError, parse_quantity
from scheduler_core.plugins import REGISTRY
from scheduler_core.releases import OLDEST, Release
from scheduler_core.sim.changes import WriteObject
from scheduler_core.sim.options import SimulationOptions
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.headroom import headroom


def run_quantity_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the family `quantities`.

    Parameters
    ----------
    case : mapping
        `text`, perhaps `other`, and `expect`.

    Returns
    -------
    list of Difference
        Empty when every key agrees. `value` and `milliValue` of numbers beyond 64 bits and of negative
        fractions are compared too: the computed answer is meant to be the recorded one even there.
    """
    expect = case["expect"]
    try:
        quantity = parse_quantity(case["text"])
    except QuantityError as error:
        return list(differences(expect, {"error": True, "message": str(error)}))
    got: dict[str, object] = {
        "error": False,
        "value": quantity.value(),
        "milliValue": quantity.milli_value(),
        "string": str(quantity),
        "canonical": quantity.canonical(),
        "format": quantity.format,
        "sign": quantity.sign(),
        "isZero": quantity.is_zero(),
        "float": quantity.as_approximate_float(),
    }
    other = _parsed(case.get("other"))
    if other is not None:
        got["cmp"] = quantity.cmp(other)
        got["sum"] = str(quantity.add(other))
        got["difference"] = str(quantity.sub(other))
    return list(differences(_with_float(expect), got))


def run_selector_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the family `selectors`.

    Parameters
    ----------
    case : mapping
        `kind`, `selector`, `labelSets` or `nodes`, and `expect`.

    Returns
    -------
    list of Difference
        Empty when every key agrees, the messages of errors included.

    Raises
    ------
    ValueError
        The kind is not known.
    """
    try:
        got = _selector_answers(case)
    except SelectorError as error:
        got = {"error": release_of(case).says(str(error))}
    return list(differences(case["expect"], got))


def _selector_answers(case: Mapping[str, Any]) -> dict[str, Any]:
    kind, selector = case["kind"], case["selector"]
    if kind == "labelSelector":
        return _label_answers(label_selector_from(selector), case["labelSets"])
    if kind == "labelSelectorText":
        return _label_answers(parse_label_selector_text(selector), case["labelSets"])
    says = release_of(case).says
    nodes = [(node.get("labels") or {}, node["name"]) for node in case.get("nodes", ())]
    if kind == "nodeSelector":
        parsed = node_selector.node_selector_from(selector or {})
        strict = parsed.strict_error()
        answers = [_node_answer(parsed, labels, name, says) for labels, name in nodes]
        return {"error": None if strict is None else says(strict), "nodes": answers}
    if kind == "podNodeAffinity":
        required = node_selector.required_node_affinity_from(selector or {})
        return {"nodes": [_node_answer(required, labels, name, says) for labels, name in nodes]}
    if kind == "preferred":
        terms = node_selector.preferred_terms_from(selector)
        return {"scores": [terms.score(labels, name) for labels, name in nodes]}
    raise ValueError(f"selector case of unknown kind {kind!r}")


def _label_answers(selector: LabelSelector, label_sets: Sequence[Mapping[str, str]]) -> dict[str, object]:
    return {
        "matches": [selector.matches(labels) for labels in label_sets],
        "string": str(selector),
        "empty": selector.is_everything,
    }


def _node_answer(
    selector: node_selector.NodeSelector | node_selector.RequiredNodeAffinity,
    labels: Mapping[str, str],
    name: str,
    says: Callable[[str], str],
) -> dict[str, object]:
    try:
        return {"match": selector.match(labels, name)}
    except SelectorError as error:
        return {"match": False, "error": says(str(error))}


def _parsed(text: str | None) -> Quantity | None:
    if text is None:
        return None
    try:
        return parse_quantity(text)
    except QuantityError:
        return None


def _with_float(expect: Mapping[str, Any]) -> dict[str, Any]:
    """The expectations with the float as a number; absent means it is not finite."""
    if expect.get("error"):
        return dict(expect)
    text = expect.get("float")
    sign = -1 if expect.get("sign", 1) < 0 else 1
    return {**expect, "float": sign * float("inf") if text is None else float(text)}


def run_config_case(case: Mapping[str, Any]) -> list[Difference]:
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
    return list(differences(expect, got, absent="(absent)"))


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


def run_capacity_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case."""
    simulation = Simulation(options=SimulationOptions(controllers=False), release=release_of(case))
    for manifest in case["objects"]:
        simulation.submit(WriteObject(prepare(manifest)))
    simulation.advance(0, max_cycles=0)
    pod = pod_from(prepare(case["pod"], simulation.world.priority_classes))
    found = headroom(Fork(simulation.scheduler), pod)
    expected = case["expect"]
    got = {"replicas": found.replicas, "stop": found.stop}
    return list(differences({key: expected[key] for key in got}, got))
