"""Redaction: other names, the same decisions."""

import json
import re
import time
from typing import Any, Final

import pytest

from scheduler_core.objects.kinds import SHAPING
from scheduler_core.scenario import Scenario, dump_scenario, load_scenario, run_scenario
from scheduler_core.scenario.gallery import ORDER, gallery_scenario
from scheduler_core.scenario.redact import _Redactor, redact, verify_redaction, without_failing
from scheduler_core.schema.tables import SCALARS, types, types_by_kind
from tests import manifests
from tests.manifests import make_object, scheduler_config
from tests.scheduler_core.scenario.builders import leaked_names, make_node, make_pod, make_scenario
from tests.tables import table


@pytest.mark.parametrize("name", ORDER)
def test_a_redacted_gallery_scenario_decides_the_same_and_gives_no_name_away(name: str) -> None:
    scenario = gallery_scenario(name)
    redacted = redact(scenario)
    check = verify_redaction(scenario, redacted.scenario)
    assert check.same, check.sentence
    assert leaked_names(redacted) == []
    assert [
        finding.sentence for finding in run_scenario(redacted.scenario).findings if not finding.holds
    ] == []


def test_objects_of_kinds_that_the_scheduler_does_not_read_are_dropped_with_a_note() -> None:
    secret = make_object("v1", "Secret", "hunter2", data={"k": "hunter2"})
    redacted = redact(make_scenario(make_node("n"), secret, make_pod("p")))
    assert "hunter2" not in dump_scenario(redacted.scenario)
    assert redacted.notes == ("objects of kinds no scheduler reads are left out: Secret",)


def test_what_shapes_placement_without_being_scheduled_stays() -> None:
    scenario = _scenario("what_shapes_placement_without_being_scheduled_stays")
    redacted = redact(scenario)
    assert redacted.notes == ()
    assert leaked_names(redacted) == [] and "secret" not in dump_scenario(redacted.scenario)
    check = verify_redaction(scenario, redacted.scenario)
    assert check.same, check.sentence
    kinds = {manifest["kind"] for manifest in redacted.scenario.objects}
    assert kinds > {"LimitRange", "ResourceQuota", "CronJob", "HorizontalPodAutoscaler"}


def test_a_step_about_what_is_left_out_is_left_out() -> None:
    secret = {"apiVersion": "v1", "kind": "ControllerRevision", "metadata": {"name": "vault"}, "revision": 1}
    steps = [{"delete": {"kind": "ControllerRevision", "name": "vault"}}, {"run": "idle"}]
    secret["apiVersion"] = "apps/v1"
    redacted = redact(make_scenario(make_node("n1"), make_pod("p"), secret, steps=steps))
    assert [step.verb for step in redacted.scenario.steps] == ["run"]


def test_a_driver_is_named_as_it_stays() -> None:
    driver = table(__file__, "a_driver_is_named_as_it_stays")
    said = {"kind": "CSIDriver", "name": "x.csi", "patch": {"metadata": {"labels": {"tier": "vault"}}}}
    scenario = make_scenario(make_node("n1"), make_pod("p"), driver, steps=[{"patch": said}, {"run": "idle"}])
    redacted = redact(scenario)
    assert verify_redaction(scenario, redacted.scenario).same and "vault" not in dump_scenario(
        redacted.scenario
    )


def _scenario(name: str) -> Scenario:
    """The scenario of that name in the tables."""
    return load_scenario(manifests.scenario(**table(__file__, name)))


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
    label = {"kubernetes.io/hostname": "secret"}
    redacted = redact(make_scenario(make_node("secret", **label), make_pod("p", nodeSelector=label)))
    node, pod = redacted.scenario.objects
    assert node["metadata"]["labels"] == pod["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "node-1"}
    assert node["metadata"]["name"] == "node-1"


def test_a_redaction_that_changes_a_decision_is_found_out() -> None:
    scenario = make_scenario(make_node("a"), make_node("b", "8"), make_pod("p", "6"))
    changed = make_scenario(make_node("a"), make_node("b", "4"), make_pod("p", "6"))
    check = verify_redaction(scenario, changed)
    assert (check.same, check.cycle) == (False, 1)


SECRETS = re.compile(r"(?i)zeppelin")
"""Stands in every name and free text below."""


def _cassette(*calls: dict[str, Any], **extender: Any) -> dict[str, Any]:
    config = scheduler_config(
        clientConnection={"kubeconfig": "/etc/zeppelin.conf"},
        extenders=[
            {
                "urlPrefix": "http://zeppelin.example",
                "filterVerb": "zeppelin-filter",
                "prioritizeVerb": "zeppelin-rank",
                "preemptVerb": "zeppelin-preempt",
                "bindVerb": "zeppelin-bind",
                "weight": 3,
                "nodeCacheCapable": True,
                "httpTimeout": "2s",
                "ignorable": True,
                **extender,
            }
        ],
    )
    return {"scheduler": config, "extenders": {"cassette": [{"extender": 0, **call} for call in calls]}}


def _said(scenario: Scenario) -> list[str]:
    return [trace.message or "" for trace in run_scenario(scenario).cycles]


def _checked(scenario: Scenario) -> Scenario:
    """The scenario without names, which decides the same, replays from its recording, and gives no name away."""
    redacted = redact(scenario)
    check = verify_redaction(scenario, redacted.scenario)
    assert check.same, check.sentence
    text = dump_scenario(redacted.scenario)
    assert SECRETS.findall(text) == [], text
    assert leaked_names(redacted) == []
    assert run_scenario(redacted.scenario).notes == run_scenario(scenario).notes == []
    assert not any(SECRETS.search(message) for message in _said(redacted.scenario))
    return redacted.scenario


def test_free_text_of_an_extender_becomes_the_same_reason_everywhere() -> None:
    scenario = make_scenario(
        *(make_node(f"zeppelin-{letter}") for letter in "abcd"),
        make_pod("zeppelin"),
        **_cassette(table(__file__, "free_text_of_an_extender_becomes_the_same_reason_everywhere")),
        steps=[{"run": "cycle"}],
        expect=[{"pod": "zeppelin", "reason": "2 rack zeppelin-9 of the Zeppelin team is full"}],
    )
    redacted = _checked(scenario)
    assert _said(redacted)[0].startswith("0/4 nodes are available: 1 reason-1, 1 reason-2, 2 reason-3."), (
        _said(redacted)
    )
    assert run_scenario(redacted).findings[0].holds


@pytest.mark.parametrize(
    "answer", table(__file__, "answers_that_fail_still_fail_and_give_no_name_away_answer")
)
@pytest.mark.parametrize("ignorable", [True, False])
def test_answers_that_fail_still_fail_and_give_no_name_away(answer: dict[str, Any], ignorable: bool) -> None:
    bound = {"verb": "bind", "pod": "zeppelin", "answer": {"Error": "zeppelin keeps its door shut"}}
    ranked = {"verb": "prioritize", "pod": "zeppelin", "answer": [{"Host": "zeppelin-b", "Score": 9}]}
    filtered = {"verb": "filter", "pod": "zeppelin", **answer}
    scenario = make_scenario(
        make_node("zeppelin-a"), make_node("zeppelin-b"), make_pod("zeppelin"),
        **_cassette(filtered, ranked, bound, ignorable=ignorable),
        steps=[{"run": "cycle"}],
    )  # fmt: skip
    _checked(scenario)


def test_victims_an_extender_chose_are_renamed_by_their_uid() -> None:
    low = table(__file__, "victims_an_extender_chose_are_renamed_by_their_uid")
    victims = {
        "zeppelin-b": {"Pods": [{"UID": "default/zeppelin-on-b"}], "NumPDBViolations": 0},
    }
    scenario = make_scenario(
        low, make_node("zeppelin-a"), make_node("zeppelin-b"),
        make_pod("zeppelin-on-a", "4", nodeName="zeppelin-a"),
        make_pod("zeppelin-on-b", "4", nodeName="zeppelin-b"),
        make_pod("zeppelin-urgent", "4", priorityClassName="zeppelin"),
        **_cassette(
            {"verb": "preempt", "pod": "zeppelin-urgent", "answer": {"NodeNameToMetaVictims": victims}},
            {"verb": "filter", "answer": {"NodeNames": ["zeppelin-b"]}},
            {"verb": "prioritize", "answer": None},
            {"verb": "bind", "answer": {"Error": ""}},
        ),
    )  # fmt: skip
    redacted = _checked(scenario)
    preempting = run_scenario(redacted).cycles[0]
    assert preempting.victims == ["default/pod-2"] and preempting.nominated_node == "node-2"


def _with_programs(expander: str) -> Scenario:
    """A group that waiting pods do not fit, one that priorities prefer, and evictions of one namespace's pods."""
    programs = table(__file__, "programs_decide_the_same_under_other_names")
    programs["controllers"]["cluster-autoscaler"]["options"]["expander"] = expander
    return load_scenario(manifests.scenario(**programs))


def test_programs_decide_the_same_under_other_names() -> None:
    scenario = _with_programs(expander="priority")
    acts = [str(act) for run in run_scenario(scenario).runs for act in run.did]
    assert {line.split()[0] for line in acts} >= {"zeppelin-new", "RemoveDuplicates", "removes", "resizes"}, (
        acts
    )
    again = run_scenario(_checked(scenario))
    assert len([line for run in again.runs for line in run.did]) == len(acts)
    assert all(finding.holds for finding in again.findings)


def test_karpenter_decides_the_same_under_other_names() -> None:
    scenario = _scenario("karpenter_decides_the_same_under_other_names")
    acts = [str(act) for run in run_scenario(scenario).runs for act in run.did]
    assert {"zeppelin-First", "zeppelin-second"} <= {
        word.rstrip(":") for line in acts for word in line.split()
    }
    assert any(line.startswith("removes") for line in acts), acts
    again = run_scenario(_checked(scenario))
    assert len([line for run in again.runs for line in run.did]) == len(acts)


def test_programs_that_decide_by_names_are_left_out_with_a_note() -> None:
    redacted = redact(_with_programs(expander="price"))
    assert any("cluster-autoscaler is left out: --expander=price" in note for note in redacted.notes)
    assert "cluster-autoscaler" not in dump_scenario(redacted.scenario)


def test_volumes_conditions_and_drivers_give_no_name_away() -> None:
    scenario = _scenario("volumes_conditions_and_drivers_give_no_name_away")
    placed = run_scenario(scenario).placement()
    assert placed["default/zeppelin-1"] != placed["default/zeppelin-2"], "the disk conflicts"
    assert "default/zeppelin-3" not in placed
    _checked(scenario)
    assert redact(scenario).renamed["driver"] == {"csi.example": "driver-1"}


def test_a_policy_is_redacted_with_its_labels() -> None:
    policy = table(__file__, "a_policy_is_redacted_with_its_labels")
    nodes = [make_node(f"zeppelin-{letter}") for letter in "abc"]
    nodes[1]["metadata"]["labels"] = {"zeppelin": "x"}
    nodes[2]["metadata"]["labels"] = {"zeppelin": "x", "zeppelin2": "y"}
    scenario = make_scenario(*nodes, make_pod("zeppelin"), scheduler=policy)
    assert run_scenario(scenario).placement() == {"default/zeppelin": "zeppelin-c"}
    _checked(scenario)


def test_expectations_that_do_not_hold_without_the_names_are_left_out() -> None:
    scenario = make_scenario(
        make_node("n"), make_pod("p"),
        steps=[{"run": "idle"}, {"expect": [{"pod": "p", "node": "elsewhere"}]}],
        expect=[{"pod": "p", "reason": "zeppelin"}, {"pod": "p", "state": "bound"}],
    )  # fmt: skip
    kept, n_failing = without_failing(run_scenario(redact(scenario).scenario))
    assert n_failing == 2 and len(kept.steps) == 1
    assert [item.state for item in kept.expect] == ["bound"]


WORD: Final = "zeppelin"


def planted(type_name: str, depth: int = 0) -> Any:
    """A value of a type in which every text, every key of a map and one unknown field has the word."""
    if type_name.startswith("[]"):
        return [planted(type_name[2:], depth)]
    if type_name.startswith("{}"):
        return {f"{WORD}.example/{depth}": planted(type_name[2:], depth)}
    if type_name in SCALARS:
        return {"bool": True, "int32": 1, "int64": 1, "double": 1.5}.get(type_name, f"{WORD}-{depth}")
    if type_name not in types() or depth > 14:
        return None
    fields = {
        name: value
        for name, field in types()[type_name].items()
        if (value := planted(field.type, depth + 1)) is not None
    }
    return fields | {f"{WORD}Field": f"{WORD}-unknown", f"{WORD}Map": {WORD: [WORD]}}


def redacted_texts(manifest: dict[str, Any]) -> str:
    redactor = _Redactor(frozenset())
    redactor.manifest(manifest)
    for names in redactor.names.values():
        names.settle()
    redactor.collecting = False
    return json.dumps(redactor.manifest(manifest))


@pytest.mark.parametrize(("api_version", "kind"), sorted(key for key in types_by_kind() if key[1] in SHAPING))
def test_no_word_in_any_field_of_any_kind_survives(api_version: str, kind: str) -> None:
    """The schema says what fields there are, so that a new one is asked for as soon as it is known."""
    manifest = planted(types_by_kind()[api_version, kind])
    manifest |= {"apiVersion": api_version, "kind": kind}
    text = redacted_texts(manifest)
    assert WORD not in text, text


def test_what_was_found_left_in_dumps_is_gone_and_the_unknown_is_noted() -> None:
    pod = make_pod("p", resourceClaims=[{"name": "zeppelin-claim", "resourceClaimName": "zeppelin"}])
    pod["spec"]["containers"][0] |= {
        "ports": [{"containerPort": 80, "hostPort": 80, "hostIP": "10.99.1.2", "name": WORD}],
        "resources": {
            "requests": {"zeppelin.example/chip": "1", "cpu": "1"},
            "limits": {"zeppelin.example/chip": "1"},
            "claims": [{"name": "zeppelin-claim"}],
        },
        "zeppelinField": WORD,
    }
    pod["metadata"] |= {
        "ownerReferences": table(__file__, "what_was_found_left_in_dumps_is_gone_and_the_unknown_is_noted"),
        "labels": {"zeppelin.kubernetes.io/zeppelin": WORD},
        "annotations": {"playground.dev/zeppelin": WORD, "owner": WORD},
    }
    pod["status"] = {"conditions": [{"type": "zeppelin.example/Checked", "status": "True"}]}
    redacted = redact(make_scenario(make_node("n1"), pod))
    text = dump_scenario(redacted.scenario).lower()
    assert WORD not in text and "10.99.1.2" not in text
    assert any("unknown fields of Pod" in note for note in redacted.notes)
    assert not any(WORD in note.lower() for note in redacted.notes)


def test_host_addresses_that_are_equal_stay_equal() -> None:
    def port(name: str, address: str) -> dict[str, Any]:
        pod = make_pod(name)
        pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80, "hostIP": address}]
        return pod

    pods = [port("a", "10.1.1.1"), port("b", "10.1.1.2"), port("c", "10.1.1.1"), port("d", "0.0.0.0")]
    scenario = make_scenario(make_node("n1"), *pods)
    redacted = redact(scenario)
    assert verify_redaction(scenario, redacted.scenario).same
    assert set(run_scenario(redacted.scenario).placement()) == {"default/pod-1", "default/pod-2"}


def test_redaction_takes_time_in_proportion() -> None:
    def seconds(n: int) -> float:
        pods = [make_pod(f"p{number}", nodeSelector={f"k{number}": f"v{number}"}) for number in range(n)]
        expect = [{"pod": f"p{number}", "reason": f"{number} node(s) of p{number}"} for number in range(n)]
        scenario = make_scenario(make_node("n1"), *pods, expect=expect)
        took = []
        for _ in range(3):
            began = time.process_time()
            redact(scenario)
            took.append(time.process_time() - began)
        return min(took)

    seconds(50)
    assert seconds(1000) < 30 * max(seconds(100), 0.01)
