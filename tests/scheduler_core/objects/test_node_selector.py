"""What the recorded node selectors leave open (`test_labels.py` runs those)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.node_selector import NodeSelector, node_selector_from, required_node_affinity_from


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def names_term(*name_lists: tuple[str, ...]) -> dict[str, Any]:
    return {"matchFields": [expression("metadata.name", "In", *names) for names in name_lists]}


def selector_of(*terms: Any) -> NodeSelector:
    return node_selector_from({"nodeSelectorTerms": list(terms)})


def pod_spec(required: Any = None, **spec: Any) -> dict[str, Any]:
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {**spec, "affinity": affinity}


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
