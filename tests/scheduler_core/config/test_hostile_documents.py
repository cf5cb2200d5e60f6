"""Whatever a document holds, it loads or it is refused with the fields to blame; nothing else is raised."""

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.config.conversion import REMOVED_IN, convert
from scheduler_core.config.types import API_VERSION
from scheduler_core.errors import ConfigurationError
from scheduler_core.plugins import REGISTRY, load_configuration
from scheduler_core.schema.tables import table_of
from tests.tables import table

CONFIGURATION = table_of((Path(__file__).parent / "data" / "configuration.yaml").read_text())
POLICY: dict[str, Any] = table(__file__, "POLICY")

OLD: dict[str, Any] = table(__file__, "OLD")

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, -1, 1.5, 2**31, 2**63, 10**30])
    | st.sampled_from(
        ["", "*", "PrioritySort", "NodeResourcesFit", "LeastAllocated", "1s", "a b", "EBSLimits"]
    ),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "kind", "z"]), inner)
    ),
    max_leaves=3,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a document."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found.append((value, key))
        found += places(item)
    return found


@st.composite
def mutants(draw: st.DrawFn, *originals: dict[str, Any]) -> dict[str, Any]:
    document = copy.deepcopy(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(1, 3))):
        container, key = draw(st.sampled_from(places(document)))
        kind = draw(st.sampled_from(["replace", "remove", "add"]))
        if kind == "replace":
            container[key] = draw(anything)
        elif kind == "remove":
            del container[key]
        elif isinstance(container, dict):
            container[draw(st.sampled_from(["name", "extra", "plugins", "args", "weight"]))] = draw(anything)
        else:
            container.append(copy.deepcopy(container[key]))
        if not places(document):
            break
    return document


@settings(max_examples=120, deadline=None)
@given(mutants(CONFIGURATION, OLD), st.sampled_from([*REMOVED_IN, API_VERSION]))
def test_a_mutated_document_of_any_version_is_converted_once(document: dict[str, Any], version: str) -> None:
    catalog = REGISTRY.catalog
    written = copy.deepcopy(document) | {"apiVersion": version}
    converted = convert(written, catalog)
    assert written == copy.deepcopy(document) | {"apiVersion": version}
    again = convert(converted.document, catalog)
    assert again.document == converted.document
    assert again.changes == ()


@settings(max_examples=160, deadline=None)
@given(mutants(CONFIGURATION, POLICY, OLD))
def test_a_mutated_document_loads_or_names_its_fields(document: dict[str, Any]) -> None:
    outcomes = []
    for source in (document, json.dumps(document)):
        try:
            loaded = load_configuration(source)
        except ConfigurationError as error:
            assert error.errors
            assert all(one.field and str(one).startswith(one.field) for one in error.errors)
            outcomes.append(str(error))
        else:
            outcomes.append(repr(loaded.plans))
    assert outcomes[0] == outcomes[1]
