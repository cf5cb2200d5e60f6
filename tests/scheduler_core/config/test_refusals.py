"""What cannot run is refused before anything runs, with the paths of the fields to blame."""

from pathlib import Path
from typing import Any

import pytest

from scheduler_core.config.catalog import PluginSpec
from scheduler_core.errors import ConfigurationError
from scheduler_core.plugins import REGISTRY, load_configuration
from scheduler_core.releases import RELEASES
from scheduler_core.schema.tables import table_of
from tests.manifests import scheduler_config
from tests.tables import table

CATALOG = REGISTRY.catalog


def profile(**fields: Any) -> dict[str, Any]:
    return scheduler_config(profiles=[fields])


def plugins(**sets: Any) -> dict[str, Any]:
    return profile(plugins=sets)


def refused(source: Any, **options: Any) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(source, **options)
    return caught.value


def fields_of(error: ConfigurationError) -> list[str]:
    return [one.field for one in error.errors]


@pytest.mark.parametrize("row", table_of((Path(__file__).parent / "data" / "refusals.yaml").read_text()))
def test_a_refusal_names_the_field_and_says_why(row: dict[str, Any]) -> None:
    error = refused(row["document"])
    assert row["field"] in fields_of(error)
    assert row["words"] in str(error)


def test_profiles_that_sort_the_queue_differently_are_refused() -> None:
    registry = CATALOG.plus(PluginSpec("Mine", ("queueSort",)))
    other = {"disabled": [{"name": "PrioritySort"}], "enabled": [{"name": "Mine"}]}
    profiles = [{"schedulerName": "a"}, {"schedulerName": "b", "plugins": {"multiPoint": other}}]
    error = refused(scheduler_config(profiles=profiles), registry=registry)
    assert 'different queue sort plugins for profile "b": "Mine", first: "PrioritySort"' in str(error)
    same = [
        {"schedulerName": "a"},
        {"schedulerName": "b", "pluginConfig": [{"name": "PrioritySort", "args": {"a": 1}}]},
    ]
    assert 'different queue sort plugin args for profile "b"' in str(refused(scheduler_config(profiles=same)))


def test_files_of_a_tls_config_are_read_only_by_a_given_reader() -> None:
    tls = {"caFile": "/ca.pem"}
    extender = {"urlPrefix": "https://e.test", "enableHTTPS": True, "tlsConfig": tls}
    document = scheduler_config(extenders=[extender])
    error = refused(document)
    assert str(error) == "couldn't build extenders: open /ca.pem: no such file or directory"
    assert fields_of(error) == ["extenders[0].tlsConfig.caFile"]
    pem = b"-----BEGIN CERTIFICATE-----\n"
    assert load_configuration(document, read_file={"/ca.pem": pem}.__getitem__).plans
    assert "unable to load root certificates" in str(refused(document, read_file=lambda path: b"junk"))


@pytest.mark.parametrize(("release", "words"), [("1.34", "a qualified name"), ("1.35", "a valid label key")])
@pytest.mark.parametrize(
    "document",
    [
        scheduler_config(extenders=[{"urlPrefix": "http://e", "managedResources": [{"name": "a/b/c"}]}]),
        profile(pluginConfig=table(__file__, "a_name_of_two_slashes_is_refused_in_the_words_of_the_release")),
        profile(pluginConfig=[{"name": "NodeResourcesFit", "args": {"ignoredResources": ["a/b/c"]}}]),
        profile(
            pluginConfig=table(__file__, "a_name_of_two_slashes_is_refused_in_the_words_of_the_release_2")
        ),
    ],
    ids=["extender", "spread", "fit", "affinity"],
)
def test_a_name_of_two_slashes_is_refused_in_the_words_of_the_release(
    document: dict[str, Any], release: str, words: str
) -> None:
    error = refused(document, release=RELEASES[release])
    assert f"{words} must consist of alphanumeric characters" in str(error)
    assert error.errors[0].detail.startswith(words)


@pytest.mark.parametrize(("release", "unit"), [("1.34", "characters"), ("1.36", "bytes")])
def test_the_length_of_a_name_is_counted_in_the_words_of_the_release(release: str, unit: str) -> None:
    name = "a" * 64
    document = profile(pluginConfig=[{"name": "NodeResourcesFit", "args": {"ignoredResources": [name]}}])
    assert f"name part must be no more than 63 {unit}" in str(refused(document, release=RELEASES[release]))
