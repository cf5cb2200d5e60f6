"""PriorityClass rules, older versions and default tolerations.

Kubelets look at pods before they start them, in clusters made since they do.
"""

from typing import Any

import pytest

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.defaults import PriorityClasses, prepare
from scheduler_core.objects.reading import to_current_version
from scheduler_core.releases import OLDEST
from scheduler_core.sim.admission import system_priority_classes, with_default_tolerations
from scheduler_core.sim.changes import WriteObject
from scheduler_core.sim.simulation import Simulation
from scheduler_core.validation.admission import admitted
from tests.manifests import make_object
from tests.scheduler_core.sim.builders import make_priority_class
from tests.scheduler_core.whatif.random_clusters import pod
from tests.tables import table


def check_priority_class(manifest: dict[str, Any], others: list[dict[str, Any]], old: Any = None) -> None:
    admitted(manifest, PriorityClasses(), others=others, old=old)


@pytest.mark.parametrize(
    ("manifest", "path"), table(__file__, "a_priority_class_that_breaks_a_rule_is_refused")
)
def test_a_priority_class_that_breaks_a_rule_is_refused(manifest: dict[str, Any], path: str) -> None:
    others = [make_priority_class("usual", 1, globalDefault=True)]
    with pytest.raises(InvalidObject) as caught:
        check_priority_class(manifest, others)
    assert caught.value.path == path


def test_a_priority_class_without_a_value_has_0_as_a_number_that_is_not_written() -> None:
    manifest = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "plain"}}
    check_priority_class(manifest, [])
    assert prepare(manifest)["value"] == 0


def test_the_highest_user_priority_and_the_default_itself_may_be_written() -> None:
    check_priority_class(make_priority_class("gold", 1_000_000_000), [])
    usual = make_priority_class("usual", 1, globalDefault=True)
    check_priority_class(usual, [usual], usual)


def test_value_and_policy_of_a_priority_class_never_change() -> None:
    old = make_priority_class("gold", 5)
    with pytest.raises(InvalidObject, match="may not be changed"):
        check_priority_class(make_priority_class("gold", 6), [old], old)
    with pytest.raises(InvalidObject, match="field is immutable"):
        check_priority_class(make_priority_class("gold", 5, preemptionPolicy="Never"), [old], old)


def test_the_two_built_in_classes_are_objects_that_pass_their_own_rules() -> None:
    classes = system_priority_classes()
    assert {item["metadata"]["name"]: item["value"] for item in classes} == {
        "system-cluster-critical": 2_000_000_000,
        "system-node-critical": 2_000_001_000,
    }
    for item in classes:
        check_priority_class(item, classes)
        assert PriorityClasses().resolve({"priorityClassName": item["metadata"]["name"]})[0] == item["value"]


@pytest.mark.parametrize(
    ("version", "kind", "current"), table(__file__, "older_versions_are_read_as_the_present_one")
)
def test_older_versions_are_read_as_the_present_one(version: str, kind: str, current: str) -> None:
    assert to_current_version({"apiVersion": version, "kind": kind})[0]["apiVersion"] == current


def test_an_old_workload_without_a_selector_selects_its_template() -> None:
    labels = {"app": "web"}
    old = make_object(
        "extensions/v1beta1", "Deployment", "web", spec={"template": {"metadata": {"labels": labels}}}
    )
    spec = to_current_version(old)[0]["spec"]
    assert spec["selector"] == {"matchLabels": labels}
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 1}
    assert "selector" not in old["spec"]  # type: ignore[operator]


def test_pods_stay_300_seconds_on_a_failing_node_unless_they_say_otherwise() -> None:
    both = with_default_tolerations({})["tolerations"]
    assert [(item["key"], item["tolerationSeconds"]) for item in both] == [
        ("node.kubernetes.io/not-ready", 300),
        ("node.kubernetes.io/unreachable", 300),
    ]
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 5}
    assert len(with_default_tolerations({"tolerations": [own]})["tolerations"]) == 2
    assert with_default_tolerations({"tolerations": [{"operator": "Exists"}]})["tolerations"] == [
        {"operator": "Exists"}
    ]
    assert with_default_tolerations({"tolerations": both})["tolerations"] == both


NOW = OLDEST


def started(*manifests: dict[str, Any], release: Any = NOW) -> Simulation:
    simulation = Simulation(None, seed=1, release=release)
    for manifest in manifests:
        simulation.submit(WriteObject(prepare(manifest)))
    simulation.run_until_idle()
    return simulation


def status(simulation: Simulation, name: str) -> dict[str, Any]:
    stored = simulation.world.get("Pod", "default", name)
    assert stored is not None
    return dict(stored.manifest["status"])


TAINTED = {"taints": [{"key": "k", "value": "v", "effect": "NoExecute"}]}


@pytest.mark.parametrize(
    ("nodes", "late", "reason", "said"),
    table(__file__, "a_pod_that_does_not_fit_its_node_fails_in_upstreams_words"),
)
def test_a_pod_that_does_not_fit_its_node_fails_in_upstreams_words(
    nodes: dict[str, Any], late: dict[str, Any], reason: str, said: str
) -> None:
    early = pod("early", on="n1", requests={"cpu": "1", "memory": "512Mi"},
                ports=[{"containerPort": 1, "hostPort": 80}],
                tolerations=[{"operator": "Exists"}])  # fmt: skip
    late["status"] = {}
    early["status"] = {}
    now = started(nodes, early, late)
    assert status(now, "early")["phase"] == "Running"
    found = status(now, "late")
    assert (found["phase"], found["reason"], found["message"]) == (
        "Failed",
        reason,
        f"Pod was rejected: {said}",
    )
    [event] = [
        item.manifest for item in now.drain_outcomes() if getattr(item, "manifest", {}).get("kind") == "Event"
    ]
    assert (event["reason"], event["message"], event["type"]) == (reason, said, "Warning")
