"""Legacy Policy files become profiles; what has no counterpart is named, nonsense is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.config.load import LoadedConfiguration
from scheduler_core.config.policy import legacy
from scheduler_core.errors import ConfigurationError, DecodeError
from scheduler_core.plugins import load_configuration
from scheduler_core.plugins.inter_pod_affinity import InterPodAffinityArgs
from scheduler_core.plugins.node_resources_fit import NodeResourcesFitArgs
from scheduler_core.plugins.pod_topology_spread import PodTopologySpreadArgs
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


def test_the_classic_example_is_the_same_in_json_and_yaml() -> None:
    document = table(__file__, "the_classic_example_is_the_same_in_json_and_yaml_document")
    yaml = table(__file__, "the_classic_example_is_the_same_in_json_and_yaml")
    loaded = load_configuration(json.dumps(document))
    assert load_configuration(yaml) == loaded
    assert filters(loaded) == [
        "NodeUnschedulable",
        "NodeName",
        "NodePorts",
        "NodeResourcesFit",
        "TaintToleration",
    ]
    assert dict(loaded.plans[0].weights) == {"NodeResourcesFit": 1, "SelectorSpread": 2}
    assert loaded.run_all_filters
    assert not loaded.lower_case_wire
    assert loaded.untranslated == ()
    assert loaded.source_kind == "Policy"


def test_general_predicates_are_four_plugins() -> None:
    assert filters(load(predicates=[{"name": "GeneralPredicates"}])) == table(
        __file__, "general_predicates_are_four_plugins"
    )


def test_empty_lists_leave_only_what_is_mandatory() -> None:
    loaded = load(predicates=[], priorities=[])
    assert filters(loaded) == ["NodeUnschedulable", "TaintToleration"]
    assert dict(loaded.plans[0].weights) == {}
    assert loaded.plans[0].plugins["bind"] == ("DefaultBinder",)
    assert loaded.plans[0].plugins["postFilter"][-1] == "DefaultPreemption"


def test_absent_lists_mean_the_defaults_of_their_time() -> None:
    loaded = load()
    assert "EBSLimits" in filters(loaded)
    assert loaded.plans[0].weights["NodePreferAvoidPods"] == 10000
    assert loaded.plans[0].weights["PodTopologySpread"] == 2
    assert loaded.plans[0].args["PodTopologySpread"] == PodTopologySpreadArgs(defaulting_type="List")


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


def test_extenders_keep_their_old_field_names_and_units() -> None:
    extender = table(__file__, "extenders_keep_their_old_field_names_and_units")
    loaded = load(predicates=[], extenders=[extender, {"urlPrefix": "http://f.test", "filterVerb": "f"}])
    first, second = loaded.configuration.extenders
    assert (first.bind_verb, first.enable_https, first.http_timeout_ns) == ("bind", True, 100_000_000)
    assert second.http_timeout_ns == 5_000_000_000


def test_the_symmetric_weight_goes_to_inter_pod_affinity() -> None:
    loaded = load(hardPodAffinitySymmetricWeight=40)
    assert loaded.plans[0].args["InterPodAffinity"] == InterPodAffinityArgs(hard_pod_affinity_weight=40)


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


RATIO = {"requestedToCapacityRatioArguments": {"shape": [{"utilization": 0, "score": 1}]}}


@pytest.mark.parametrize(("fields", "wanted"), ROWS["test_nonsense_is_refused_with_its_field"])
def test_nonsense_is_refused_with_its_field(fields: dict[str, Any], wanted: list[str]) -> None:
    assert refused_fields(**fields) == wanted


def test_unknown_fields_are_a_decode_error() -> None:
    with pytest.raises(DecodeError) as caught:
        load(priorities=[{"name": "ImageLocalityPriority", "weigth": 1}])
    assert caught.value.kind == "strict"
