"""Policy files as they were written for the releases 1.0 to 1.19: each is read, and nothing of it is dropped.

A file of a release names what the file of the release before named and what came in with it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler_core.config.policy import PREDICATES, PRIORITIES
from scheduler_core.errors import DecodeError
from scheduler_core.plugins import load_configuration

SERVICE = {"name": "TestServiceAffinity", "argument": {"serviceAffinity": {"labels": ["region"]}}}
PRESENCE = {"name": "TestLabelsPresence", "argument": {"labelsPresence": {"labels": ["foo"], "presence": True}}}
ANTI = {"name": "TestServiceAntiAffinity", "weight": 3, "argument": {"serviceAntiAffinity": {"label": "zone"}}}
LABEL = {
    "name": "TestLabelPreference",
    "weight": 4,
    "argument": {"labelPreference": {"label": "bar", "presence": True}},
}
RATIO = {
    "name": "RequestedToCapacityRatioPriority",
    "weight": 2,
    "argument": {
        "requestedToCapacityRatioArguments": {
            "shape": [{"utilization": 0, "score": 0}, {"utilization": 50, "score": 7}]
        }
    },
}

CAME_IN: dict[str, tuple[list[str], list[str]]] = {
    "1.0": (
        ["MatchNodeSelector", "PodFitsResources", "PodFitsPorts", "NoDiskConflict"],
        ["LeastRequestedPriority", "ServiceSpreadingPriority"],
    ),
    "1.1": (
        ["PodFitsHostPorts", "HostName"],
        ["EqualPriority", "BalancedResourceAllocation", "SelectorSpreadPriority"],
    ),
    "1.2": (["NoVolumeZoneConflict"], ["NodeAffinityPriority"]),
    "1.3": (["MaxEBSVolumeCount", "MaxGCEPDVolumeCount"], ["ImageLocalityPriority", "TaintTolerationPriority"]),
    "1.4": (
        ["PodToleratesNodeTaints", "CheckNodeMemoryPressure", "CheckNodeDiskPressure", "MatchInterPodAffinity",
         "GeneralPredicates"],
        ["InterPodAffinityPriority", "NodePreferAvoidPodsPriority"],
    ),
    "1.5": ([], []),
    "1.6": (["MaxAzureDiskVolumeCount"], []),
    "1.7": (["NoVolumeNodeConflict"], []),
    "1.8": (["CheckNodeCondition"], []),
    "1.9": (["CheckVolumeBinding"], []),
    "1.10": (["CheckNodePIDPressure"], []),
    "1.11": ([], ["RequestedToCapacityRatioPriority"]),
    "1.12": (["MaxCSIVolumeCountPred", "CheckNodeUnschedulable"], []),
    "1.13": ([], []),
    "1.14": (["MaxCinderVolumeCount"], []),
    "1.15": ([], []),
    "1.16": ([], []),
    "1.17": ([], []),
    "1.18": (["EvenPodsSpread"], ["EvenPodsSpreadPriority"]),
    "1.19": ([], []),
}  # fmt: skip
EXTENDER_FROM: dict[str, dict[str, Any]] = {
    "1.0": {},
    "1.2": {"urlPrefix": "/prefix", "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1,
            "enableHttps": True, "tlsConfig": {"Insecure": True}, "httpTimeout": 1},
    "1.6": {"nodeCacheCapable": True},
    "1.7": {"BindVerb": "bind"},
    "1.8": {"bindVerb": "bind"},
    "1.9": {"managedResources": [{"Name": "example.com/foo", "IgnoredByScheduler": True}], "ignorable": True},
    "1.11": {"preemptVerb": "preempt"},
}  # fmt: skip
"""Spellings of the time: keys were read whatever their case."""


def policy_of(release: str) -> dict[str, Any]:
    """The whole file of a release."""
    predicates: list[Any] = []
    priorities: list[Any] = []
    extender: dict[str, Any] = {}
    for number in range(int(release.partition(".")[2]) + 1):
        came_in = CAME_IN[f"1.{number}"]
        predicates += [{"name": name} for name in came_in[0]]
        priorities += [
            RATIO if name == RATIO["name"] else {"name": name, "weight": 2} for name in came_in[1]
        ]
        added = EXTENDER_FROM.get(f"1.{number}", {})
        extender = {k: v for k, v in extender.items() if k.lower() not in {key.lower() for key in added}} | added
    body: dict[str, Any] = {
        "kind": "Policy",
        "apiVersion": "v1",
        "predicates": [*predicates, SERVICE, PRESENCE],
        "priorities": [*priorities, ANTI, LABEL],
    }
    return body | ({"extenders": [extender]} if extender else {})


@pytest.mark.parametrize("release", CAME_IN)
def test_a_policy_of_each_release_is_read_whole(release: str) -> None:
    document = policy_of(release)
    loaded = load_configuration(json.dumps(document))
    plan = loaded.plans[0]
    dropped = {item.name for item in loaded.untranslated}
    assert all(item.reason and item.field for item in loaded.untranslated)
    aliases = {"PodFitsPorts": "PodFitsHostPorts", "ServiceSpreadingPriority": "SelectorSpreadPriority"}
    for item in document["predicates"]:
        name = aliases.get(item["name"], item["name"])
        names = PREDICATES.get(name, ())
        assert item["name"] in dropped or "argument" in item or set(names) <= set(plan.plugins["filter"]), name
    for item in document["priorities"]:
        name = aliases.get(item["name"], item["name"])
        # Equal scores for all change no decision.
        known = name == "EqualPriority" or "argument" in item or PRIORITIES.get(name) in plan.plugins["score"]
        assert item["name"] in dropped or known, name
    assert {"ServiceAffinity", "NodeLabel"} <= set(plan.plugins["filter"])
    for extender in loaded.configuration.extenders:
        assert (extender.url_prefix, extender.filter_verb, extender.enable_https) == ("/prefix", "filter", True)
        assert extender.tls_config is not None and extender.tls_config.insecure
        assert extender.http_timeout_ns == 1
        number = int(release.partition(".")[2])
        assert extender.bind_verb == ("bind" if number >= 7 else "")
        assert extender.node_cache_capable == (number >= 6)
        managed = [(item.name, item.ignored_by_scheduler) for item in extender.managed_resources]
        assert managed == ([("example.com/foo", True)] if number >= 9 else [])


def test_a_key_no_release_knew_is_still_refused() -> None:
    extender = {"urlPrefix": "http://e.test", "tlsConfig": {"Insecurity": True}, "FILTERVERBS": "f"}
    with pytest.raises(DecodeError) as caught:
        load_configuration({"kind": "Policy", "apiVersion": "v1", "extenders": [extender]})
    fields = {error.field for error in caught.value.errors}
    assert fields == {"extenders[0].tlsConfig.Insecurity", "extenders[0].FILTERVERBS"}


def test_a_file_without_a_kind_is_told_that_there_are_policies() -> None:
    with pytest.raises(DecodeError) as caught:
        load_configuration({"predicates": [{"name": "HostName"}]})
    assert 'kind: Policy' in caught.value.errors[0].detail
