"""Legacy Policy files become profiles; what has no counterpart is named, nonsense is refused."""

from pathlib import Path
from typing import Any

import pytest

from scheduler_core.config.load import LoadedConfiguration
from scheduler_core.config.policy import legacy
from scheduler_core.errors import ConfigurationError, DecodeError
from scheduler_core.plugins import load_configuration
from scheduler_core.plugins.node_resources_fit import NodeResourcesFitArgs
from scheduler_core.plugins.retired import NodeLabelArgs, ServiceAffinityArgs
from scheduler_core.schema.tables import table_of
from tests.tables import table

ROWS = table_of((Path(__file__).parent / "data" / "policy.yaml").read_text())


def load(**fields: Any) -> LoadedConfiguration:
    return load_configuration({"kind": "Policy", "apiVersion": "v1", **fields})


def refused_fields(**fields: Any) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(**fields)
    return [error.field for error in caught.value.errors]


def filters(loaded: LoadedConfiguration) -> list[str]:
    return [name for name in loaded.plans[0].plugins["filter"] if name != "DynamicResources"]


@pytest.mark.parametrize("name", legacy("predicates"))
def test_every_predicate_turns_its_plugins_on(name: str) -> None:
    loaded = load(predicates=[{"name": name}])
    assert set(legacy("predicates")[name]) <= set(filters(loaded))
    assert loaded.untranslated == ()


@pytest.mark.parametrize(
    "name", [name for name in legacy("priorities") if name.endswith(("Priority", "Allocation"))]
)
def test_every_priority_turns_its_plugin_on_with_its_weight(name: str) -> None:
    loaded = load(priorities=[{"name": name, "weight": 7}])
    assert dict(loaded.plans[0].weights) == {legacy("priorities")[name]: 7}
    assert loaded.untranslated == ()


def test_arguments_become_args_and_custom_names_do_not_matter() -> None:
    loaded = load(
        predicates=[
            {"name": "racks", "argument": {"labelsPresence": {"labels": ["rack"], "presence": True}}},
            {"name": "retiring", "argument": {"labelsPresence": {"labels": ["old"], "presence": False}}},
            {"name": "zoned", "argument": {"serviceAffinity": {"labels": ["zone", "region"]}}},
        ],
        priorities=table(__file__, "arguments_become_args_and_custom_names_do_not_matter"),
    )
    plan = loaded.plans[0]
    assert plan.args["NodeLabel"] == NodeLabelArgs(("rack",), ("old",), ("ssd",), ("hot",))
    assert plan.args["ServiceAffinity"] == ServiceAffinityArgs(("zone", "region"), ("zone",))
    fit = plan.args["NodeResourcesFit"]
    assert isinstance(fit, NodeResourcesFitArgs)
    assert fit.scoring_strategy is not None
    assert fit.scoring_strategy.type == "RequestedToCapacityRatio"
    assert fit.scoring_strategy.resources[0].weight == 3
    # A weight counts once a label.
    assert dict(plan.weights) == {"NodeLabel": 6, "NodeResourcesFit": 5, "ServiceAffinity": 2}


def test_what_has_no_counterpart_is_named_with_its_place_and_a_reason() -> None:
    loaded = load(
        predicates=[
            {"name": "CheckNodeMemoryPressure"},
            {"name": "HostName", "argument": {"serviceAffinity": {"labels": ["a"]}}},
        ],
        priorities=[
            {"name": "MostRequestedPriority", "weight": 1},
            {"name": "LeastRequestedPriority", "weight": 1},
            {"name": "ResourceLimitsPriority", "weight": 1},
        ],
    )
    assert [(one.field, one.name) for one in loaded.untranslated] == [
        ("predicates[0]", "CheckNodeMemoryPressure"),
        ("predicates[1].argument", "HostName"),
        ("priorities[1]", "LeastRequestedPriority"),
        ("priorities[2]", "ResourceLimitsPriority"),
    ]
    assert all(one.reason for one in loaded.untranslated)


@pytest.mark.parametrize(("fields", "wanted"), ROWS["test_nonsense_is_refused_with_its_field"])
def test_nonsense_is_refused_with_its_field(fields: dict[str, Any], wanted: list[str]) -> None:
    assert refused_fields(**fields) == wanted


def test_unknown_fields_are_a_decode_error() -> None:
    with pytest.raises(DecodeError) as caught:
        load(priorities=[{"name": "ImageLocalityPriority", "weigth": 1}])
    assert caught.value.kind == "strict"
