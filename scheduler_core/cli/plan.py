"""`plan`: questions about a cluster: may nodes be drained or lost, and how many more of a pod fit.

The file is a dump (`kubectl get nodes,pods,... -A -o yaml`), or a scenario, which is run to its end first. The exit
status is 0 when nothing is hurt (or something fits), 1 when it is, 2 when a file or a name cannot be used.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.cli.manifests import MAX_BYTES, manifests_of
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.defaults import prepare
from scheduler_core.objects.documents import DocumentError, load_documents
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.plan.headroom import Headroom, headroom
from scheduler_core.plan.take_away import (
    PENDING,
    TakenAway,
    UnknownNodes,
    drain,
    lose,
    lose_any,
    nodes_with,
)
from scheduler_core.plan.trial import homeless
from scheduler_core.plan.words import any_node_verdict, causes, headroom_verdict, taken_away_verdict
from scheduler_core.scenario import ScenarioError, load_scenario, run_scenario
from scheduler_core.scenario.types import API_VERSION, KIND
from scheduler_core.sim.simulation import Simulation

HARMLESS, HURT, UNUSABLE = 0, 1, 2
_SHOWN = 40


class _Unusable(ValueError):
    """What the command line names cannot be used."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="dump or scenario (YAML or JSON); - for standard input")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.add_argument("--release", help="the Kubernetes release that decides about a dump (1.34)")
    questions = parser.add_subparsers(dest="question", required=True, metavar="QUESTION")
    for name, words in (
        ("drain", "cordon these nodes and evict their pods, as the budgets allow"),
        ("lose", "these nodes are gone at once"),
    ):
        question = questions.add_parser(name, help=words)
        question.add_argument("nodes", metavar="NODE", nargs="*")
        question.add_argument(
            "-l", "--label", metavar="KEY=VALUE", help="all nodes with this label: a zone, a rack, a pool"
        )
    questions.add_parser("any-node", help="the loss of each node alone")
    question = questions.add_parser(
        "headroom", help="how many more of a pod fit, and what stops the next one"
    )
    template = question.add_mutually_exclusive_group(required=True)
    template.add_argument("--pod", metavar="FILE", help="manifest of the pod")
    template.add_argument("--like", metavar="NAMESPACE/NAME", help="a pod of the cluster")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    try:
        simulation = _cluster(options.file, options.release)
        return _answer(Sandbox(simulation.scheduler), simulation, options)
    except OSError as error:
        said = f"{error.filename}: {error.strerror}"
    except DocumentError as error:
        said = f"{options.file}: {error}"
    except InvalidObject as error:
        said = f"{options.pod}: {error.path}: {error.reason}"
    except ScenarioError as error:
        said = "\n".join(f"{options.file}: {problem}" for problem in error.problems[:20])
    except (UnknownNodes, _Unusable) as error:
        said = str(error)
    if options.json:
        print(json.dumps({"status": "unusable", "error": said}, ensure_ascii=False))
    print(said, file=sys.stderr)
    return UNUSABLE


def _cluster(name: str, release: str | None) -> Simulation:
    """The cluster of a dump as it stands, or that of a scenario at its end."""
    text = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    documents = [loaded.value for loaded in load_documents(text, max_bytes=MAX_BYTES)]
    if not documents:
        raise _Unusable(f"{name}: there is no document")
    if documents[0].get("kind") == KIND:
        if release is not None:
            raise _Unusable("--release: a scenario says its own (kubernetesRelease)")
        return run_scenario(load_scenario(documents[0]), full_traces=False).simulation
    objects = manifests_of(documents)
    body: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND, "objects": objects}
    if release is not None:
        body["kubernetesRelease"] = release
    return run_scenario(load_scenario(body), full_traces=False).simulation


def _answer(sandbox: Sandbox, simulation: Simulation, options: argparse.Namespace) -> int:
    if options.question == "headroom":
        room = headroom(sandbox, _template(simulation, options))
        _print_headroom(room, as_json=options.json)
        return HARMLESS if room.replicas else HURT
    if options.question == "any-node":
        answers = list(lose_any(sandbox))
        _print_any(answers, as_json=options.json)
        return HURT if any(answer.count(PENDING) for answer in answers) else HARMLESS
    nodes = list(options.nodes)
    if options.label:
        key, equals, value = options.label.partition("=")
        found = nodes_with(sandbox, key, value)
        if not equals or not found:
            raise _Unusable(f"--label {options.label}: no node carries it")
        nodes += [name for name in found if name not in nodes]
    if not nodes:
        raise _Unusable(f"{options.question}: name a node, or give --label")
    answer = (drain if options.question == "drain" else lose)(sandbox, nodes)
    _print_taken_away(answer, as_json=options.json)
    return HARMLESS if answer.is_harmless else HURT


def _template(simulation: Simulation, options: argparse.Namespace) -> Pod:
    if options.like:
        namespace, _, name = options.like.rpartition("/")
        pod = simulation.world.pod(namespace or "default", name)
        if pod is None:
            raise _Unusable(f"--like {options.like}: there is no such pod")
        return homeless(pod)
    documents = load_documents(Path(options.pod).read_bytes())
    if len(documents) != 1 or documents[0].value.get("kind") != "Pod":
        raise _Unusable(f"{options.pod}: one manifest of kind Pod is needed")
    return pod_from(prepare(documents[0].value, simulation.world.priority_classes))


# ---- printing


def _print_headroom(answer: Headroom, *, as_json: bool) -> None:
    verdict = headroom_verdict(answer)
    if as_json:
        print(json.dumps({"verdict": verdict, **answer.document()}, ensure_ascii=False))
        return
    print(verdict)
    if answer.stop:
        print(f"The next one: {answer.stop}")
    for name, count in list(answer.by_node.items())[:_SHOWN]:
        print(f"  {name}: {count}")
    if len(answer.by_node) > _SHOWN:
        print(f"  and {len(answer.by_node) - _SHOWN} nodes more")


def _print_any(answers: list[TakenAway], *, as_json: bool) -> None:
    verdict = any_node_verdict(answers)
    if as_json:
        found = [answer.document() for answer in answers]
        print(json.dumps({"verdict": verdict, "nodes": found}, ensure_ascii=False))
        return
    print(verdict)
    for answer in answers:
        if not answer.is_harmless:
            print(f"  {answer.nodes[0]}: {taken_away_verdict(answer)}")


def _print_taken_away(answer: TakenAway, *, as_json: bool) -> None:
    verdict = taken_away_verdict(answer)
    if as_json:
        print(json.dumps({"verdict": verdict, **answer.document()}, ensure_ascii=False))
        return
    print(verdict)
    for reason, pods in causes([item for item in answer.pods if item.reason]):
        print(f"  {', '.join(item.pod for item in pods)}: {reason}")
    for item in answer.pods[:_SHOWN]:
        preempted = f", preempted by {item.because}" if item.because else ""
        print(f"  {item.pod}: {item.origin} -> {item.node or item.outcome}{preempted}")
    if len(answer.pods) > _SHOWN:
        print(f"  and {len(answer.pods) - _SHOWN} pods more")
