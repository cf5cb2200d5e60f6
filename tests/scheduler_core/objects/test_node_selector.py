"""What the recorded node selectors leave open (`test_labels.py` runs those)."""

from typing import Any

import pytest

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.node_selector import required_node_affinity_from
from tests.tables import table


@pytest.mark.parametrize(("terms", "names"), table(__file__, "node_names_before_filtering"))
def test_node_names_before_filtering(terms: list[Any], names: list[str] | None) -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    found = required_node_affinity_from({"affinity": {"nodeAffinity": required}}).pre_filter_node_names()
    assert found == (None if names is None else set(names))


@pytest.mark.parametrize(("spec", "path"), table(__file__, "a_document_of_the_wrong_shape_names_the_field"))
def test_a_document_of_the_wrong_shape_names_the_field(spec: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        required_node_affinity_from(spec)
    assert caught.value.path == path
