"""Policy files as upstream keeps them for the releases 1.0 to 1.19: each is read, and nothing of it is dropped.

Facts of pkg/scheduler/api/compatibility and, since 1.17, pkg/scheduler/apis/config/testing: what each tagged file added
to the one before, or left out. Releases that are not named tagged no file of their own.
"""

import json
from typing import Any

import pytest

from scheduler_core.plugins import load_configuration
from tests.tables import table

RATIO = "RequestedToCapacityRatioPriority"
SHAPE = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 50, "score": 7}]}
ARGUMENTS: dict[str, dict[str, Any]] = table(__file__, "ARGUMENTS")
RESOURCES = [{"name": "intel.com/foo", "weight": 3}, {"name": "intel.com/bar", "weight": 5}]
WEIGHTS = {"TestServiceAntiAffinity": 3, "TestLabelPreference": 4}
BY_TAINTS = ["CheckNodeMemoryPressure", "CheckNodeDiskPressure", "CheckNodePIDPressure", "CheckNodeCondition"]

CHANGES: dict[str, tuple[list[str], list[str], list[str]]] = table(__file__, "CHANGES")
"""Release -> predicates and priorities that came in, and what went."""
EXTENDERS: dict[str, dict[str, Any]] = table(__file__, "EXTENDERS")
"""Spellings of the time: keys were read whatever their case."""

FILTERS = table(__file__, "FILTERS")
"""Predicate -> the plugin upstream expects of it; those of `BY_TAINTS` are TaintToleration's since 1.18."""
SCORES = table(__file__, "SCORES")
"""Priority -> the plugin that scores it; upstream's three of resources are strategies of one today."""


def policy_of(release: str) -> dict[str, Any]:
    """The whole file of a release."""
    predicates: list[str] = []
    priorities: list[str] = []
    extender: dict[str, Any] = {}
    arguments = dict(ARGUMENTS)
    for name, (more_predicates, more_priorities, gone) in CHANGES.items():
        predicates = [item for item in predicates if item not in gone] + more_predicates
        priorities = [item for item in priorities if item not in gone] + more_priorities
        added = EXTENDERS.get(name, {})
        extender = {
            k: v for k, v in extender.items() if k.lower() not in {key.lower() for key in added}
        } | added
        if name == "1.16":
            arguments[RATIO] = {"requestedToCapacityRatioArguments": {**SHAPE, "resources": RESOURCES}}
        if name == release:
            break

    def written(names: list[str], **more: Any) -> list[dict[str, Any]]:
        return [
            {"name": name, **{key: value(name) for key, value in more.items()}}
            | ({"argument": arguments[name]} if name in arguments else {})
            for name in names
        ]

    def weight(name: str) -> int:
        return 1 if (release, name) == ("1.0", "LeastRequestedPriority") else WEIGHTS.get(name, 2)

    body: dict[str, Any] = {
        "kind": "Policy",
        "apiVersion": "v1",
        "predicates": written(predicates),
        "priorities": written(priorities, weight=weight),
    }
    return body | ({"extenders": [extender]} if extender else {})


@pytest.mark.parametrize("release", CHANGES)
def test_a_policy_of_each_release_is_read_whole(release: str) -> None:
    document = policy_of(release)
    loaded = load_configuration(json.dumps(document))
    plan = loaded.plans[0]
    named = {item.name for item in loaded.untranslated}
    assert all(item.reason and item.field for item in loaded.untranslated)
    names = [item["name"] for item in document["predicates"]]
    wanted = {FILTERS[name] for name in names if name in FILTERS}
    if "GeneralPredicates" in names:
        wanted |= {"NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"}
    limits = {"EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits"}
    # Claims of devices came later than Policies did, and are looked at whatever the file says.
    filters = set(plan.plugins["filter"]) - {"DynamicResources"}
    # These two are asked whatever the file says, as upstream expects of the oldest files.
    assert wanted | {"NodeUnschedulable", "TaintToleration"} == filters | (wanted & limits)
    # Of these limits what is left is said where they have no plugin of their own any more.
    assert (wanted & limits) - set(plan.plugins["filter"]) <= {FILTERS.get(name, name) for name in named}
    weights: dict[str, int] = {}
    for item in document["priorities"]:
        if item["name"] != "EqualPriority":  # equal scores for all change no decision
            plugin = SCORES[item["name"]]
            weights[plugin] = weights.get(plugin, 0) + item["weight"]
    told = {SCORES.get(name) for name in named}
    assert set(weights) - told <= set(plan.plugins["score"]), (set(weights), plan.plugins["score"], named)
    extenders = loaded.configuration.extenders
    assert len(extenders) == (
        release in ("1.7", "1.8", "1.9", "1.10", "1.11", "1.12", "1.14", "1.16", "1.19")
    )
    for extender in extenders:
        verbs = extender.url_prefix, extender.filter_verb, extender.bind_verb
        assert verbs == ("/prefix", "filter", "bind")
        assert extender.tls_config is not None and extender.tls_config.insecure
        assert extender.enable_https and extender.node_cache_capable and extender.http_timeout_ns == 1
        is_late = release not in ("1.7", "1.8", "1.9")
        managed = [(item.name, item.ignored_by_scheduler) for item in extender.managed_resources]
        assert (managed, extender.ignorable) == ([("example.com/foo", True)] * is_late, is_late)
