"""Defaults: what is written wins, what is absent is filled in, and filling in twice changes nothing."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.config.catalog import EXTENSION_POINTS
from scheduler_core.config.decode import decode_configuration
from scheduler_core.config.defaults import with_defaults
from scheduler_core.config.load import configuration_from
from scheduler_core.config.wire import encode
from scheduler_core.plugins import REGISTRY, load_configuration
from tests.manifests import scheduler_config
from tests.tables import table

CATALOG = REGISTRY.catalog


names = st.sampled_from([*CATALOG, "Mine", "Theirs"])
enabled = st.lists(
    st.builds(
        lambda name, weight: {"name": name, **({} if weight is None else {"weight": weight})},
        names,
        st.none() | st.integers(0, 100),
    ),
    max_size=4,
    unique_by=lambda plugin: plugin["name"],
)
disabled = st.lists(names.map(lambda name: {"name": name}) | st.just({"name": "*"}), max_size=3)
plugin_sets = st.fixed_dictionaries({}, optional={"enabled": enabled, "disabled": disabled})
args = st.sampled_from(table(__file__, "args"))
profiles = st.fixed_dictionaries(
    {},
    optional={
        "schedulerName": st.sampled_from(["", "default-scheduler", "b"]),
        "percentageOfNodesToScore": st.integers(0, 100),
        "plugins": st.dictionaries(
            st.sampled_from([*EXTENSION_POINTS, "multiPoint"]), plugin_sets, max_size=3
        ),
        "pluginConfig": st.lists(args, max_size=3),
    },
)
documents = st.fixed_dictionaries(
    {},
    optional={
        "parallelism": st.integers(-1, 64),
        "profiles": st.lists(profiles, max_size=3),
        "enableProfiling": st.booleans(),
        "percentageOfNodesToScore": st.integers(0, 100),
        "leaderElection": st.sampled_from([{}, {"leaseDuration": "0s"}, {"leaderElect": False}]),
        "clientConnection": st.sampled_from([{}, {"qps": 0.1, "burst": 0}, {"contentType": "x"}]),
        "extenders": st.just([{"urlPrefix": "http://e.test", "httpTimeout": "1m30s", "tlsConfig": {}}]),
        "podMaxBackoffSeconds": st.integers(1, 20),
    },
).map(lambda document: scheduler_config(**document))


@given(documents)
def test_defaulting_is_idempotent_and_its_result_decodes_to_itself(document: dict[str, Any]) -> None:
    before = copy.deepcopy(document)
    once = with_defaults(decode_configuration(document, CATALOG), CATALOG)
    assert with_defaults(once, CATALOG) == once
    assert with_defaults(decode_configuration(once, CATALOG), CATALOG) == once
    assert document == before


@given(documents)
def test_typed_objects_print_as_the_document_they_came_from(document: dict[str, Any]) -> None:
    configuration = configuration_from(
        with_defaults(decode_configuration(document, CATALOG), CATALOG), CATALOG
    )
    again = configuration_from(
        with_defaults(
            decode_configuration(scheduler_config(**_without_args(configuration)), CATALOG), CATALOG
        ),
        CATALOG,
    )
    assert _without_args(again) == _without_args(configuration)


def _without_args(configuration: Any) -> dict[str, Any]:
    document = encode(configuration)
    for profile in document.get("profiles", []):
        profile.pop("pluginConfig", None)
    return document


def test_a_whole_float_in_yaml_is_an_integer_and_in_json_an_error() -> None:
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    assert load_configuration(f"{head}parallelism: 4.0\n").configuration.parallelism == 4
