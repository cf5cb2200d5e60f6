"""Configurations of removed versions: refused with the way, converted to what they meant."""

from typing import Any

import pytest

from scheduler_core.config.conversion import REMOVED_IN, convert
from scheduler_core.config.load import LoadedConfiguration
from scheduler_core.config.types import API_VERSION, KIND
from scheduler_core.errors import ConfigurationError, DecodeError
from scheduler_core.plugins import REGISTRY, load_configuration
from tests.tables import table

GROUP = "kubescheduler.config.k8s.io"


def old(version: str, **fields: Any) -> dict[str, Any]:
    api_version = version if "/" in version else f"{GROUP}/{version}"
    return {"apiVersion": api_version, "kind": KIND, **fields}


def converted(document: dict[str, Any]) -> tuple[LoadedConfiguration, dict[str, str], list[str]]:
    """What a conversion loads as; the words of every change, and the fields it could not keep."""
    found = convert(document, REGISTRY.catalog)
    words = {change.field: change.detail for change in found.changes}
    return load_configuration(found.document), words, [one.field for one in found.changes if not one.is_kept]


def one_profile(**plugins: Any) -> list[dict[str, Any]]:
    return [{"schedulerName": "s", "plugins": plugins}]


@pytest.mark.parametrize("version", REMOVED_IN)
def test_every_removed_version_is_refused_with_its_end_and_converted(version: str) -> None:
    document = old(version)
    with pytest.raises(DecodeError) as refused:
        load_configuration(document)
    assert refused.value.kind == "notRegistered"
    assert str(refused.value) == f'no kind "{KIND}" is registered for version "{version}"'
    first = refused.value.errors[0]
    assert (first.field, first.value) == ("apiVersion", version)
    assert f"was removed in Kubernetes {REMOVED_IN[version]}" in first.detail
    loaded, _, lost = converted(document)
    assert loaded.document["apiVersion"] == API_VERSION
    assert lost == []


def test_default_weights_of_then_are_kept() -> None:
    loaded, words, _ = converted(old("v1beta2"))
    weights = loaded.plans[0].weights
    assert [weights[name] for name in ("TaintToleration", "NodeAffinity", "InterPodAffinity")] == [1, 1, 1]
    assert weights["PodTopologySpread"] == 2
    assert "since v1beta3 3, 2, 2" in words["profiles[0].plugins.score"]
    named = one_profile(
        score={"enabled": [{"name": "NodeAffinity", "weight": 7}], "disabled": [{"name": "*"}]}
    )
    assert converted(old("v1beta2", profiles=named))[0].plans[0].weights == {"NodeAffinity": 7}


def test_a_plugin_that_was_off_wherever_it_ran_stays_off() -> None:
    off = {"disabled": [{"name": "VolumeBinding"}]}
    loaded, _, _ = converted(
        old("v1beta2", profiles=one_profile(preFilter=off, filter=off, reserve=off, preBind=off))
    )
    assert "VolumeBinding" not in loaded.plans[0].plugin_names
    # Off at one of them only: the rest goes on as it did.
    loaded, _, _ = converted(old("v1beta2", profiles=one_profile(reserve=off)))
    assert "VolumeBinding" in loaded.plans[0].plugins["preScore"]


@pytest.mark.parametrize(("name", "args", "strategy"), table(__file__, "resource_scores_become_a_strategy"))
def test_resource_scores_become_a_strategy(name: str, args: dict[str, Any], strategy: str) -> None:
    score = {"disabled": [{"name": "NodeResourcesLeastAllocated"}], "enabled": [{"name": name, "weight": 4}]}
    profile = {**one_profile(score=score)[0], "pluginConfig": [{"name": name, "args": args}]}
    loaded, words, lost = converted(old("v1beta1", profiles=[profile]))
    assert loaded.plans[0].weights["NodeResourcesFit"] == 4
    scoring: Any = loaded.plans[0].args["NodeResourcesFit"]
    assert scoring.scoring_strategy.type == strategy
    assert [(one.name, one.weight) for one in scoring.scoring_strategy.resources] == [("cpu", 3)]
    assert f"scoring strategy {strategy}" in words["profiles[0].plugins.score.enabled[0]"]
    assert lost == []


def test_v1alpha1_had_one_profile_and_other_points() -> None:
    document = old(
        "componentconfig/v1alpha1",
        schedulerName="mine",
        algorithmSource={"provider": "ClusterAutoscalerProvider"},
        hardPodAffinitySymmetricWeight=7,
        disablePreemption=True,
        bindTimeoutSeconds=33,
        failureDomains="zone",
        healthzBindAddress="0.0.0.0:10251",
        leaderElection={"lockObjectName": "lock", "resourceLock": "endpoints"},
        plugins={"postFilter": {"disabled": [{"name": "TaintToleration"}]}},
    )
    loaded, words, lost = converted(document)
    plan: Any = next(plan for plan in loaded.plans if plan.scheduler_name == "mine")
    assert plan.args["InterPodAffinity"].hard_pod_affinity_weight == 7
    assert plan.args["VolumeBinding"].bind_timeout_s == 33
    assert plan.args["NodeResourcesFit"].scoring_strategy.type == "MostAllocated"
    assert "DefaultPreemption" not in plan.plugins["postFilter"]
    assert "TaintToleration" not in plan.plugins["preScore"]
    assert loaded.configuration.leader_election.resource_name == "lock"
    assert loaded.configuration.leader_election.resource_lock == "leases"
    assert sorted(lost) == ["failureDomains", "healthzBindAddress"]
    assert "preScore" in words["profiles[0].plugins.postFilter"]


def test_a_policy_kept_elsewhere_is_asked_for() -> None:
    source = {"policy": {"configMap": {"namespace": "kube-system", "name": "policy"}}}
    _, words, lost = converted(old("v1alpha1", algorithmSource=source))
    assert lost == ["algorithmSource"]
    assert "give that" in words["algorithmSource"]


def test_unreserve_is_part_of_reserve_and_extenders_were_read_in_any_case() -> None:
    document = old(
        "v1alpha2",
        profiles=one_profile(unreserve={"disabled": [{"name": "VolumeBinding"}]}),
        extenders=table(__file__, "unreserve_is_part_of_reserve_and_extenders_were_read_in_any_case"),
    )
    loaded, words, _ = converted(document)
    assert loaded.plans[0].plugins["reserve"] == ("DynamicResources",)
    (extender,) = loaded.configuration.extenders
    assert (extender.filter_verb, extender.enable_https, extender.http_timeout_ns) == (
        "f",
        True,
        3_000_000_000,
    )
    assert "enableHTTPS" in words["extenders"]


def test_plugins_of_scheduler_plugins_are_said_to_be_another_programs() -> None:
    profiles = one_profile(score={"enabled": [{"name": "NodeResourcesAllocatable"}]})
    with pytest.raises(ConfigurationError) as refused:
        load_configuration({"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles})
    (error,) = refused.value.errors
    assert error.field == "profiles[0].plugins.score.enabled[0].name"
    assert "sigs.k8s.io/scheduler-plugins" in error.detail
