"""Compare quantities and selectors with what the real Kubernetes packages answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scheduler_core.cli.case_release import release_of
from scheduler_core.cli.difference import Difference
from scheduler_core.objects.labels import (
    LabelSelector,
    SelectorError,
    label_selector_from,
    parse_label_selector_text,
)
from scheduler_core.objects.node_selector import (
    NodeSelector,
    RequiredNodeAffinity,
    node_selector_from,
    preferred_terms_from,
    required_node_affinity_from,
)
from scheduler_core.objects.quantity import Quantity, QuantityError, parse_quantity


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
        return _differences(expect, {"error": True, "message": str(error)})
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
    return _differences(_with_float(expect), got)


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
    kind, selector, expect = case["kind"], case["selector"], case["expect"]
    says = release_of(case).says
    try:
        if kind == "labelSelector":
            return _differences(expect, _label_answers(label_selector_from(selector), case["labelSets"]))
        if kind == "labelSelectorText":
            answers = _label_answers(parse_label_selector_text(selector), case["labelSets"])
            return _differences(expect, answers)
        nodes = [(node.get("labels") or {}, node["name"]) for node in case.get("nodes", ())]
        if kind == "nodeSelector":
            parsed = node_selector_from(selector or {})
            strict = parsed.strict_error()
            answer: dict[str, object] = {"error": None if strict is None else says(strict)}
            answer["nodes"] = [_node_answer(parsed, labels, name, says) for labels, name in nodes]
            return _differences(expect, answer)
        if kind == "podNodeAffinity":
            required = required_node_affinity_from(selector or {})
            return _differences(
                expect, {"nodes": [_node_answer(required, labels, name, says) for labels, name in nodes]}
            )
        if kind == "preferred":
            terms = preferred_terms_from(selector)
            return _differences(expect, {"scores": [terms.score(labels, name) for labels, name in nodes]})
    except SelectorError as error:
        return _differences(expect, {"error": says(str(error))})
    raise ValueError(f"selector case of unknown kind {kind!r}")


def _label_answers(selector: LabelSelector, label_sets: Sequence[Mapping[str, str]]) -> dict[str, object]:
    return {
        "matches": [selector.matches(labels) for labels in label_sets],
        "string": str(selector),
        "empty": selector.is_everything,
    }


def _node_answer(
    selector: NodeSelector | RequiredNodeAffinity,
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


def _differences(expect: Mapping[str, Any], got: Mapping[str, object]) -> list[Difference]:
    """Every key of either side whose values differ, in the order of names."""
    return [
        Difference(key, expect.get(key), got.get(key))
        for key in sorted({*expect, *got})
        if expect.get(key) != got.get(key)
    ]
