"""Redaction: other names, the same decisions."""

from __future__ import annotations

import pytest

from scheduler_core.scenario import dump_scenario, run_scenario
from scheduler_core.scenario.gallery import ORDER, gallery_scenario
from scheduler_core.scenario.redact import leaked_names, redact, verify_redaction
from tests.scheduler_core.scenario.builders import make_node, make_pod, make_scenario


@pytest.mark.parametrize("name", ORDER)
def test_a_redacted_gallery_scenario_decides_the_same_and_names_nobody(name: str) -> None:
    scenario = gallery_scenario(name)
    redacted = redact(scenario)
    check = verify_redaction(scenario, redacted.scenario)
    assert check.same, check.sentence
    assert leaked_names(redacted) == []
    assert [
        finding.sentence for finding in run_scenario(redacted.scenario).findings if not finding.holds
    ] == []


def test_what_the_scheduler_does_not_read_is_dropped() -> None:
    pod = make_pod("payroll", volumes=[{"name": "s", "secret": {"secretName": "hunter2"}}])
    pod["spec"]["containers"][0] |= {
        "env": [{"name": "TOKEN", "value": "hunter2"}],
        "args": ["--password=hunter2"],
        "image": "registry.acme.corp/payroll:7",
        "livenessProbe": {"exec": {"command": ["hunter2"]}},
    }
    pod["metadata"]["annotations"] = {"owner": "hunter2"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hunter2"}, "data": {"k": "hunter2"}}
    redacted = redact(make_scenario(make_node("rack-7.acme.corp"), secret, pod))
    text = dump_scenario(redacted.scenario)
    for word in ("hunter2", "acme", "payroll", "rack-7", "TOKEN"):
        assert word not in text
    assert redacted.notes == ("objects of kinds no scheduler reads are left out: Secret",)


def test_compared_numbers_are_kept_and_said_so() -> None:
    term = {"matchExpressions": [{"key": "acme/age", "operator": "Gt", "values": ["3"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    young, old = make_node("young"), make_node("old")
    young["metadata"]["labels"] = {"acme/age": "2"}
    old["metadata"]["labels"] = {"acme/age": "5"}
    scenario = make_scenario(young, old, make_pod("p", affinity={"nodeAffinity": required}))
    redacted = redact(scenario)
    assert redacted.notes == ("numeric values of the label label-1 are kept: they are compared",)
    assert verify_redaction(scenario, redacted.scenario).same
    assert redacted.renamed["Node"] == {"old": "node-1", "young": "node-2"}


def test_a_hostname_label_follows_the_name_of_its_node() -> None:
    node = make_node("secret")
    node["metadata"]["labels"] = {"kubernetes.io/hostname": "secret"}
    redacted = redact(make_scenario(node, make_pod("p", nodeSelector={"kubernetes.io/hostname": "secret"})))
    (renamed, pod) = redacted.scenario.objects
    assert renamed["metadata"] == {"name": "node-1", "labels": {"kubernetes.io/hostname": "node-1"}}
    assert pod["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "node-1"}


def test_recorded_answers_are_renamed_too() -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [
            {"urlPrefix": "http://secret.acme.corp", "filterVerb": "filter", "nodeCacheCapable": True}
        ],
    }
    answer = {"NodeNames": ["vault"], "FailedNodes": {"cellar": "cellar is wet"}, "Error": ""}
    call = {"extender": 0, "verb": "filter", "pod": "finance/ledger", "answer": answer}
    pod = make_pod("ledger")
    pod["metadata"]["namespace"] = "finance"
    scenario = make_scenario(
        make_node("vault"), make_node("cellar"), pod, scheduler=config, extenders={"cassette": [call]}
    )
    redacted = redact(scenario)
    check = verify_redaction(scenario, redacted.scenario)
    assert check.same, check.sentence
    text = dump_scenario(redacted.scenario)
    assert not any(word in text for word in ("vault", "cellar", "ledger", "finance", "acme"))
    assert run_scenario(redacted.scenario).notes == []


def test_a_redaction_that_changes_a_decision_is_found_out() -> None:
    scenario = make_scenario(make_node("a"), make_node("b", "8"), make_pod("p", "6"))
    changed = make_scenario(make_node("a"), make_node("b", "4"), make_pod("p", "6"))
    check = verify_redaction(scenario, changed)
    assert (check.same, check.cycle) == (False, 1)
