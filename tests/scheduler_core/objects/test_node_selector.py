"""Node selectors match lazily: what is broken in a term matters only when no other term matches."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import SelectorError
from scheduler_core.objects.node_selector import (
    NodeSelector,
    node_selector_from,
    preferred_terms_from,
    required_node_affinity_from,
)

BROKEN = {"matchExpressions": [{"key": "cpu", "operator": "Gt", "values": ["many"]}]}
BROKEN_MESSAGE = (
    'nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "many": '
    "for 'Gt', 'Lt' operators, the value must be an integer"
)


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def names_term(*name_lists: tuple[str, ...]) -> dict[str, Any]:
    return {"matchFields": [expression("metadata.name", "In", *names) for names in name_lists]}


def selector_of(*terms: Any) -> NodeSelector:
    return node_selector_from({"nodeSelectorTerms": list(terms)})


def pod_spec(required: Any = None, **spec: Any) -> dict[str, Any]:
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {**spec, "affinity": affinity}


def test_any_term_and_all_of_its_expressions() -> None:
    selector = selector_of(
        {"matchExpressions": [expression("zone", "In", "a", "b"), expression("disk", "Exists")]},
        {"matchExpressions": [expression("cpu", "Gt", "4"), expression("cpu", "Lt", "9")]},
    )
    assert selector.match({"zone": "a", "disk": ""}, "n1")
    assert not selector.match({"zone": "a"}, "n1")
    assert selector.match({"cpu": "8"}, "n1")
    assert not selector.match({"cpu": "9"}, "n1")
    assert not selector.match({"cpu": "lots"}, "n1")


@pytest.mark.parametrize("terms", [None, [], [{}], [None], [{"matchExpressions": [], "matchFields": None}]])
def test_empty_terms_match_nothing(terms: Any) -> None:
    selector = node_selector_from({"nodeSelectorTerms": terms})
    assert not selector.match({"a": "b"}, "n1")
    assert selector.strict_error() is None


def test_fields_are_not_asked_of_a_node_without_a_name() -> None:
    selector = selector_of(names_term(("n1",)))
    assert selector.match({}, "n1")
    assert not selector.match({}, "n2")
    assert selector.match({}, "")


def test_a_field_can_be_denied_and_an_unknown_one_reads_as_empty() -> None:
    assert selector_of({"matchFields": [expression("metadata.name", "NotIn", "n1")]}).match({}, "n2")
    assert not selector_of({"matchFields": [expression("metadata.name", "NotIn", "n1")]}).match({}, "n1")
    assert selector_of({"matchFields": [expression("spec.x", "In", "")]}).match({}, "n1")


def test_a_broken_term_is_an_error_only_when_no_other_term_matches() -> None:
    selector = selector_of(BROKEN, {"matchExpressions": [expression("zone", "In", "a")]})
    assert selector.match({"zone": "a"}, "n1")
    with pytest.raises(SelectorError) as caught:
        selector.match({"zone": "b"}, "n1")
    assert str(caught.value) == BROKEN_MESSAGE
    assert selector.strict_error() == BROKEN_MESSAGE


def test_equal_errors_are_told_once_and_several_in_brackets() -> None:
    term = {"matchFields": [expression("a", "In"), expression("b", "Exists", "x")]}
    assert node_selector_from({"nodeSelectorTerms": [term]}).strict_error() == (
        "[nodeSelectorTerms[0].matchFields[0].values: Invalid value: []: must have one element, "
        'nodeSelectorTerms[0].matchFields[1].operator: Unsupported value: "Exists": '
        'supported values: "In", "NotIn"]'
    )


def test_a_broken_term_is_not_reported_when_the_node_selector_already_fails() -> None:
    required = required_node_affinity_from(
        pod_spec({"nodeSelectorTerms": [BROKEN]}, nodeSelector={"zone": "a"})
    )
    assert not required.match({"zone": "b"}, "n1")
    with pytest.raises(SelectorError):
        required.match({"zone": "a"}, "n1")


def test_a_pod_that_demands_nothing_matches_every_node() -> None:
    for spec in ({}, {"nodeSelector": {}}, {"affinity": None}, {"affinity": {"nodeAffinity": {}}}):
        required = required_node_affinity_from(spec)
        assert required.is_everything
        assert required.match({}, "n1")
        assert required.pre_filter_node_names() is None


def test_required_affinity_without_terms_matches_no_node() -> None:
    required = required_node_affinity_from(pod_spec({"nodeSelectorTerms": []}))
    assert not required.is_everything
    assert not required.match({}, "n1")


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        ([], None),
        ([names_term(("n1",))], {"n1"}),
        ([names_term(("n1",)), names_term(("n2",))], {"n1", "n2"}),
        ([names_term(("n1",), ("n2",))], set()),
        ([names_term(("n1",), ("n2",)), names_term(("n3",))], {"n3"}),
        ([names_term(("n1", "n2"), ("n2", "n3"))], {"n2"}),
        ([names_term(())], set()),
        ([names_term(("n1",)), {}], None),
        ([names_term(("n1",)), {"matchExpressions": [expression("a", "Exists")]}], None),
        ([{"matchFields": [expression("metadata.name", "NotIn", "n1")]}], None),
        ([{"matchFields": [expression("metadata.namespace", "In", "n1")]}], None),
    ],
)
def test_node_names_before_filtering(terms: list[Any], names: set[str] | None) -> None:
    required = required_node_affinity_from(pod_spec({"nodeSelectorTerms": terms}))
    assert required.pre_filter_node_names() == names


def test_preferred_terms_add_up_their_weights() -> None:
    preferred = preferred_terms_from(
        [
            {"weight": 10, "preference": {"matchExpressions": [expression("zone", "In", "a")]}},
            {"weight": 5, "preference": names_term(("n1",))},
            {"weight": 0, "preference": BROKEN},
            {"weight": 50, "preference": {}},
        ]
    )
    assert preferred.score({"zone": "a"}, "n1") == 15
    assert preferred.score({}, "n1") == 5
    assert preferred.score({}, "n2") == 0
    assert not preferred.is_empty
    assert preferred_terms_from(None).is_empty


def test_a_broken_preferred_term_is_an_error_at_once() -> None:
    with pytest.raises(SelectorError, match=r"^\[1\]\.matchExpressions\[0\]\.values\[0\]: Invalid value: "):
        preferred_terms_from([{"weight": 1, "preference": {}}, {"weight": 1, "preference": BROKEN}])


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"nodeSelector": ["a"]}, "nodeSelector"),
        ({"nodeSelector": {"a": 1}}, "nodeSelector[a]"),
        ({"affinity": "x"}, "affinity"),
        ({"affinity": {"nodeAffinity": []}}, "affinity.nodeAffinity"),
        (pod_spec([]), "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"),
        (
            pod_spec({"nodeSelectorTerms": {}}),
            "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
        ),
        (
            pod_spec({"nodeSelectorTerms": [{"matchFields": [{"key": 1}]}]}),
            "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
            ".nodeSelectorTerms[0].matchFields[0].key",
        ),
    ],
)
def test_a_document_of_the_wrong_shape_names_the_field(spec: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        required_node_affinity_from(spec)
    assert caught.value.path == path


def test_selectors_that_say_the_same_are_equal_and_hashable() -> None:
    first = pod_spec(
        {"nodeSelectorTerms": [{"matchExpressions": [expression("a", "In", "x", "y")]}]},
        nodeSelector={"b": "1"},
    )
    second = pod_spec(
        {"nodeSelectorTerms": [{"matchExpressions": [expression("a", "In", "y", "x")]}]},
        nodeSelector={"b": "1"},
    )
    assert len({required_node_affinity_from(first), required_node_affinity_from(second)}) == 1
    preferred = [{"weight": 1, "preference": names_term(("n1",))}]
    assert len({preferred_terms_from(preferred), preferred_terms_from(preferred)}) == 1


@given(
    st.lists(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=1), min_size=1), max_size=3),
    st.sampled_from("abcd"),
)
def test_only_nodes_named_before_filtering_can_match(terms: list[list[list[str]]], name: str) -> None:
    selector = selector_of(*(names_term(*map(tuple, names)) for names in terms))
    allowed = selector.pre_filter_node_names()
    if terms:
        assert allowed is not None
        assert selector.match({}, name) == (name in allowed)
