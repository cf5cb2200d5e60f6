"""What the newest runs of controllers say of each node and pending pod, in words."""

import json

import pytest

from scheduler_core.clock import SECOND_NS
from scheduler_core.sim.changes import Act, ControllerRun, Mention, WriteObject
from scheduler_core.sim.outlook import LOOKS, TAKES, brief_words, effect_of, outlook_of, run_lines

from .test_programs import LOOPS, cluster, deployment, kube_system, machine, policy

POD = Mention("Pod", "default/web-7f9c6d5b48-x2kqz")
GROUPS = '{"name": "web", "minSize": 0, "maxSize": 2}'


def test_each_node_has_a_sentence_of_each_controller_and_a_pod_its_groups() -> None:
    simulation = cluster(
        machine("a"),
        WriteObject(deployment("web", replicas=2, cpu="1500m")),
        kube_system(
            cluster_autoscaler=LOOPS % GROUPS,
            descheduler=json.dumps({"policy": policy("RemoveDuplicates"), "dry-run": True}),
        ),
    )
    simulation.submit(machine("b"))
    simulation.submit(WriteObject(deployment("large", replicas=1, cpu="90")))
    simulation.advance(15 * SECOND_NS)
    runs = simulation.drain_runs()
    found = outlook_of(runs, 0)
    texts = {(one.node, one.controller): one.text for one in found.nodes}
    assert texts["a", "cluster-autoscaler"] == "Stays: its pods ask for 75% of its cpu, above 50%."
    assert (
        texts["b", "cluster-autoscaler"].startswith("Goes at ")
        and "earliest" in texts["b", "cluster-autoscaler"]
    )
    assert texts["a", "sigs.k8s.io/descheduler"] == (
        "Stays: 1 of its pods would be evicted by RemoveDuplicates (dry run)."
    )
    assert {one.goes for one in found.nodes if one.node == "a"} == {False}
    [pod] = found.pods
    assert pod.helps == () and list(pod.refused.values()) == [["web"]]
    assert pod.text == "no group helps; web: max node group size reached."
    assert [effect_of(run) for run in runs if run.did] == [LOOKS]
    lines = list(run_lines(next(run for run in runs if "descheduler" in run.controller)))
    assert lines[0].startswith("RemoveDuplicates would evict Pod default/web-")
    assert list(found.lines())[-1].endswith(pod.text)
    simulation.advance(900 * SECOND_NS)
    later = simulation.drain_runs()
    assert TAKES in {effect_of(run) for run in later}
    assert {name for run in later for act in run.did for name in map(str, act.about)} == {"Node b"}


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (Act(("resizes ", POD), why="cpu=345m is recommended"), "resizes 1 pod"),
        (Act(("evicts ", POD), why="its node is to go, and others", effect="takes"), "evicts 1 pod"),
        (Act(("scales ", Mention("Deployment", "default/web"), " from 9 to 3"), effect="takes"), "shrinks"),
    ],
)
def test_a_mark_names_a_run_in_few_words(act: Act, words: str) -> None:
    assert brief_words(ControllerRun(0, "x", "", (act,), {})) == words
