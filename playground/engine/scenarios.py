"""Scenarios at the door: read, named by their digest, and (in a fresh process) run.

Whatever runs a scenario goes through `run_fresh`: a process of its own that has never seen an earlier run, with a
bound on time. What it found comes back as plain data.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from playground.engine.entries import CycleRecord
from playground.engine.limits import why_ended
from playground.engine.plugins import allowed
from playground.engine.seeds import SeedRun
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.defaults import PriorityClasses, prepare, priority_class_from
from scheduler_core.objects.merge import merge_patch
from scheduler_core.scenario.bounds import RunBounds
from scheduler_core.scenario.canonical import effective_steps, in_run_order, scenario_digest
from scheduler_core.scenario.carried import MAX_LINK_CHARS as MAX_LINK_CHARS
from scheduler_core.scenario.carried import CarriedError, carried_in, carry, check_words
from scheduler_core.scenario.errors import Problem
from scheduler_core.scenario.errors import ScenarioError as ScenarioError
from scheduler_core.scenario.gallery import ORDER, four_ways, gallery_text
from scheduler_core.scenario.load import (
    FieldNote,
    dump_scenario,
    field_notes,
    load_scenario,
    problems_of,
    scenario_document,
    with_lines,
)
from scheduler_core.scenario.types import Decisions, Scenario, object_key
from scheduler_core.scenario.types import Step as ScenarioStep
from scheduler_core.validation.admission import check_only_default
from scheduler_core.validation.updates import check_priority_class_update

RUN_TIMEOUT_S: Final = 240.0
MOST_TOLD: Final = 20
AskProcess = Callable[[Mapping[str, Any], float], dict[str, Any]]
"""Takes a request to `scenario_process` and the seconds it may take; raises as `ask_process` does."""
ROOT: Final = Path(__file__).resolve().parents[2]
"""Where both packages are found, installed or not."""


def problems_data(error: ScenarioError) -> list[dict[str, Any]]:
    """The problems as JSON-able data, values but of scalars left out; `problem_from` reads them."""
    plain = (str, int, float, bool)
    return [
        asdict(replace(item, value=item.value if isinstance(item.value, plain) else None))
        for item in error.problems
    ]


def problem_from(items: Iterable[Mapping[str, Any]]) -> ScenarioError:
    """The problems another process found."""
    return ScenarioError(Problem(**item) for item in items)


class RunStopped(RuntimeError):
    """The process that ran a scenario was stopped: too long, or it broke."""


@dataclass(frozen=True, slots=True)
class Stop:
    """One stop of a guided path."""

    cycle: int
    focus: str
    text: str


@dataclass(frozen=True, slots=True)
class ScenarioFacts:
    """What is said about a scenario without running it.

    Attributes
    ----------
    digest
        Hex SHA-256 of the canonical form.
    words_digest
        Of what the canonical form leaves out and the document says: title, lesson, path, expectations, ...
    plugins
        From outside the tree, each with the package and version that brings it (`engine.plugins.lacking` reads it).
    recorded_digest, recorded_lines
        What the document itself claims was decided; empty if it claims nothing.
    field_notes
        Misspelt fields of its objects, and objects that are left out by their type.
    """

    name: str
    title: str
    lesson: str
    group: str
    digest: str
    words_digest: str
    emulates: str
    seed: int
    start_ns: int
    n_nodes: int
    n_pods: int
    n_objects: int
    n_steps: int
    n_expectations: int
    n_extenders: int
    has_cassette: bool
    plugins: tuple[str, ...]
    path: tuple[Stop, ...]
    recorded_digest: str = ""
    recorded_engine: str = ""
    recorded_lines: tuple[str, ...] = ()
    field_notes: tuple[FieldNote, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One step as data, for a cluster that is led through a scenario."""

    verb: str
    words: str
    argument: Any


@dataclass(frozen=True, slots=True)
class Opening:
    """How a scenario's cluster begins.

    Attributes
    ----------
    kept
        Objects that shape no placement.
    mock_rules
        Place of an extender in the configuration -> the rules it is made of.
    recorded
        Addresses of extenders that answer from a recording here, and would be called in a cluster.
    assumed_expiry_ns
        After how long assumed pods expire; 0 never.
    """

    name: str
    seed: int
    start_ns: int
    config: Mapping[str, Any] | None
    release: Mapping[str, Any]
    objects: tuple[Mapping[str, Any], ...]
    kept: tuple[Mapping[str, Any], ...]
    steps: tuple[Step, ...]
    mock_rules: Mapping[int, tuple[Mapping[str, Any], ...]]
    recorded: tuple[str, ...]
    assumed_expiry_ns: int = 0


@dataclass(frozen=True, slots=True)
class FreshRun:
    """What a run in a fresh process found.

    Attributes
    ----------
    decisions_digest
        SHA-256 over the cycles' digests.
    findings
        Of every expectation: ``{path, holds, sentence, cycle}``.
    figures
        Name -> number.
    objects
        ``config``, ``release``, ``clock_ns`` and ``manifests`` after the cycle asked for.
    final
        State at the end.
    """

    engine: str
    emulates: str
    digest: str
    decisions_digest: str
    cycles: tuple[CycleRecord, ...]
    findings: tuple[Mapping[str, Any], ...]
    figures: Mapping[str, float]
    notes: tuple[str, ...]
    stop: str
    final: Mapping[str, Any]
    objects: Mapping[str, Any] | None = None


def read_scenario(text: str | bytes, *, max_objects: int | None = None) -> ScenarioFacts:
    """Check a document and say what it is.

    Parameters
    ----------
    max_objects
        Objects its run may have at once, pods of controllers included.

    Raises
    ------
    ScenarioError
    """
    return facts_of(load(text, max_objects=max_objects))


def read_submitted(text: str | bytes, *, max_objects: int | None = None) -> ScenarioFacts:
    """The same of a document that is new here: its objects are named, and have priorities, as an API server takes them.

    Raises
    ------
    ScenarioError
    """
    scenario = load(text, max_objects=max_objects)
    found = list(islice(submission_problems(scenario), MOST_TOLD))
    if found:
        raise ScenarioError(with_lines(found, _decoded(text)))
    return facts_of(scenario)


def load(text: str | bytes, *, max_objects: int | None = None) -> Scenario:
    """The scenario of a document.

    Raises
    ------
    ScenarioError
    """
    return load_scenario(text, bounds=RunBounds() if max_objects is None else RunBounds(max_objects))


def facts_of(scenario: Scenario) -> ScenarioFacts:
    """What is said about it without running it."""
    kinds = [manifest.get("kind") for manifest in scenario.objects]
    for step in scenario.steps:
        kinds += [manifest.get("kind") for manifest in step.apply or ()]
    n_expectations = len(scenario.expect) + sum(len(step.expect or ()) for step in scenario.steps)
    decisions = scenario.decisions
    return ScenarioFacts(
        name=scenario.name,
        title=scenario.title,
        lesson=scenario.lesson,
        group=scenario.group,
        digest=scenario_digest(scenario),
        words_digest=_digest_of_words(scenario),
        emulates=f"v{scenario.kubernetes_release}",
        seed=scenario.seed,
        start_ns=scenario.start_ns,
        n_nodes=kinds.count("Node"),
        n_pods=kinds.count("Pod"),
        n_objects=len(kinds),
        n_steps=len(scenario.steps),
        n_expectations=n_expectations,
        n_extenders=len((scenario.scheduler or {}).get("extenders") or ()),
        has_cassette=bool(scenario.extenders and scenario.extenders.cassette),
        plugins=tuple(
            f"{plugin.name} ({plugin.requirement})" if plugin.requirement else plugin.name
            for plugin in scenario.plugins
        ),
        path=tuple(Stop(stop.cycle, stop.focus, stop.text) for stop in scenario.path),
        recorded_digest=decisions.digest if decisions else "",
        recorded_engine=decisions.engine if decisions else "",
        recorded_lines=decisions.cycles if decisions else (),
        field_notes=tuple(field_notes(scenario)),
    )


def _digest_of_words(scenario: Scenario) -> str:
    document = scenario_document(scenario)
    said = [document.get(key) for key in ("name", "title", "lesson", "group", "path", "expect")]
    said += [
        [place, step["expect"]] for place, step in enumerate(document.get("steps") or ()) if "expect" in step
    ]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def opening_of(text: str | bytes) -> Opening:
    """How the scenario's cluster begins, and what then happens.

    Raises
    ------
    ScenarioError
    """
    scenario = load(text)
    whole = scenario_document(scenario)
    documents = whole.get("steps") or [{"run": "idle"}]
    steps = []
    for step, document in zip(effective_steps(scenario), documents, strict=True):
        if step.expect is None:
            steps.append(Step(step.verb, _words(step.verb, document[step.verb]), document[step.verb]))
    mocks = {
        mock.get("extender", 0): tuple(mock.get("rules") or ())
        for mock in (whole.get("extenders") or {}).get("mock") or ()
    }
    urls = [str(one.get("urlPrefix", "")) for one in (scenario.scheduler or {}).get("extenders") or ()]
    return Opening(
        name=scenario.title or scenario.name or "Scenario",
        seed=scenario.seed,
        start_ns=scenario.start_ns,
        config=scenario.scheduler,
        release=scenario.release.document(),
        objects=scenario.objects,
        kept=scenario.kept,
        steps=tuple(steps),
        mock_rules=mocks,
        assumed_expiry_ns=scenario.assumed_expiry_ns or 0,
        recorded=tuple(url for place, url in enumerate(urls) if place not in mocks),
    )


def _words(verb: str, argument: Any) -> str:
    """A step in a few words."""
    if verb == "apply":
        names = [f"{item['kind']} {item['metadata']['name']}" for item in argument]
        return f"apply {', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"
    if verb in ("patch", "delete"):
        return f"{verb} {argument['kind']} {argument['name']}"
    if verb in ("allow", "reject"):
        return f"{verb} {argument if isinstance(argument, str) else argument['pod']} at Permit"
    if verb == "bind":
        return f"bind {argument['pod']} to {argument['node']}"
    if verb == "durationToExpireAssumedPod":
        return f"let assumed pods expire after {argument}"
    if verb == "advance":
        return f"advance by {argument if isinstance(argument, str) else argument['by']}"
    if verb == "run":
        until = argument if isinstance(argument, str) else argument.get("until", "idle")
        return "run one cycle" if until == "cycle" else "run until idle"
    if verb == "upgrade":
        return (
            f"go on as Kubernetes {argument if isinstance(argument, str) else argument['kubernetesRelease']}"
        )
    return "use another configuration" if verb == "configure" else f"{verb} {argument}"


def with_decisions(text: str | bytes, digest: str, engine: str, lines: tuple[str, ...]) -> str:
    """The document with what was decided written into it."""
    scenario = load(text)
    return dump_scenario(replace(scenario, decisions=Decisions(digest, len(lines), engine, lines)))


def run_fresh(
    text: str | bytes,
    *,
    objects_at: int | None = None,
    traces_up_to: int = 2000,
    timeout_s: float = RUN_TIMEOUT_S,
    ask: AskProcess | None = None,
) -> FreshRun:
    """Run a scenario in a process that has never seen it.

    Parameters
    ----------
    text
        The document.
    objects_at
        Cycle after which the objects themselves are wanted.
    traces_up_to
        Cycles beyond this number keep their trace only if they did not simply bind their pod.
    timeout_s
        Wall seconds after which the process is ended.
    ask
        Has the process started elsewhere; None starts it here (`ask_process`).

    Raises
    ------
    ScenarioError
        It cannot be read, or a step cannot be done.
    RunStopped
    """
    request = {"document": _decoded(text), "objectsAt": objects_at, "tracesUpTo": traces_up_to}
    answer = (ask or ask_process)(request, timeout_s)
    return FreshRun(
        engine=answer["engine"],
        emulates=answer["emulates"],
        digest=answer["digest"],
        decisions_digest=answer["decisionsDigest"],
        cycles=tuple(_record(item) for item in answer["cycles"]),
        findings=tuple(answer["findings"]),
        figures=answer["figures"],
        notes=tuple(answer["notes"]),
        stop=answer["stop"],
        final=answer["final"],
        objects=answer["objects"],
    )


def run_seeds(
    text: str | bytes, seeds: Sequence[int], *, timeout_s: float = RUN_TIMEOUT_S
) -> tuple[SeedRun, ...]:
    """End states of a scenario for some seeds, computed in a child process.

    Raises
    ------
    ScenarioError, RunStopped
    """
    answer = ask_process({"document": _decoded(text), "seeds": list(seeds)}, timeout_s)
    return tuple(SeedRun(**item) for item in answer["ends"])


def states_of(
    text: str | bytes, first: int, last: int, *, timeout_s: float = RUN_TIMEOUT_S
) -> dict[int, Mapping[str, Any]]:
    """Cycle -> state after it (`moments.StateReader.read`), of a stretch of cycles; what comes later is not run.

    Raises
    ------
    ScenarioError, RunStopped
    """
    answer = ask_process({"document": _decoded(text), "states": [first, last]}, timeout_s)
    return {int(number): state for number, state in answer["states"].items()}


def trace_of(text: str | bytes, number: int, *, timeout_s: float = RUN_TIMEOUT_S) -> tuple[str, bytes]:
    """Digest and full trace of one cycle, however large the cluster.

    Raises
    ------
    ScenarioError, RunStopped
    """
    answer = ask_process({"document": _decoded(text), "traceOf": number}, timeout_s)
    return answer["digest"], base64.b64decode(answer["trace"])


def ask_process(request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
    """Ask a fresh process (`scenario_process`) and wait for its answer.

    Raises
    ------
    ScenarioError, RunStopped
    """
    try:
        done = run_process(json.dumps({**request, "plugins": allowed()}).encode(), timeout_s)
    except subprocess.TimeoutExpired:
        raise RunStopped(f"the run was ended after {timeout_s:.0f} s") from None
    return answer_of_process(done.returncode, done.stdout, done.stderr)


def run_process(request: bytes, timeout_s: float) -> subprocess.CompletedProcess[bytes]:
    """A `scenario_process` from its start to its end.

    Raises
    ------
    subprocess.TimeoutExpired
    """
    return subprocess.run(
        [sys.executable, "-m", "playground.engine.scenario_process"],
        input=request,
        capture_output=True,
        timeout=timeout_s,
        check=False,
        cwd=ROOT,
    )


def answer_of_process(returncode: int, stdout: bytes, stderr: bytes) -> dict[str, Any]:
    """What a `scenario_process` that has ended answered.

    Raises
    ------
    ScenarioError, RunStopped
    """
    if returncode != 0:
        last = stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"exit {returncode}"]
        limit = why_ended(returncode, last[0])
        if limit is not None:
            raise RunStopped(f"the run was ended: {limit}")
        raise RunStopped(f"the run broke off: {last[0][:300]}")
    answer: dict[str, Any] = json.loads(stdout)
    if "problems" in answer:
        raise problem_from(answer["problems"])
    return answer


def _decoded(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("utf-8-sig")


def _record(item: dict[str, Any]) -> CycleRecord:
    trace = item.pop("trace")
    return CycleRecord(**item, trace=None if trace is None else base64.b64decode(trace))


def gallery_documents() -> dict[str, bytes]:
    """Our own teaching scenarios: name -> document, in the order they are shown."""
    return {name: gallery_text(name).encode() for name in ORDER}


@dataclass(frozen=True, slots=True)
class Way:
    """One way to keep GPU nodes for the pods that use them; the document of the whole use case in that way."""

    key: str
    title: str
    taint: bool
    affinity: bool
    document: bytes


def way_documents() -> tuple[Way, ...]:
    """The GPU use case in four ways, the gallery's own last."""
    return tuple(
        Way(way.key, way.title, way.taint, way.affinity, dump_scenario(scenario).encode())
        for way, scenario in four_ways()
    )


def lookalike_document(ask: AskProcess | None = None) -> bytes:
    """Generate a scenario like a production trace in a child process: three megabytes."""
    text: str = (ask or ask_process)({"lookalike": True}, RUN_TIMEOUT_S)["text"]
    return text.encode()


Manifest = Mapping[str, Any]


def submission_problems(scenario: Scenario) -> Iterator[Problem]:
    """One problem at most of each object, in the order in which a run takes them in."""
    following = _Following()
    places = {id(manifest): index for index, manifest in enumerate(scenario.objects)}
    for manifest in in_run_order(scenario.objects):
        yield from following.written(manifest, f"objects[{places[id(manifest)]}]")
    for number, step in enumerate(scenario.steps):
        for index, manifest in enumerate(step.apply or ()):
            yield from following.written(manifest, f"steps[{number}].apply[{index}]")
        following.did(step)


class _Following:
    """PriorityClasses of the moment, and who is there already: the priority of those is settled."""

    def __init__(self) -> None:
        self._manifests: dict[str, Manifest] = {}
        self._seen: set[tuple[str, str, str]] = set()
        self._classes = PriorityClasses()

    def written(self, manifest: Manifest, path: str) -> Iterator[Problem]:
        key = object_key(manifest)
        try:
            if key[0] == "PriorityClass":
                others = [item for name, item in self._manifests.items() if name != key[2]]
                check_only_default(manifest, others)
                if (old := self._manifests.get(key[2])) is not None:
                    check_priority_class_update(prepare(manifest), old)
                self._manifests[key[2]] = manifest
                self._read()
            elif key[0] in ("Pod", "PodGroup") and key not in self._seen:
                self._classes.resolve(manifest.get("spec") or {}, is_group=key[0] == "PodGroup")
        except InvalidObject as error:
            yield from problems_of(error, path)
        self._seen.add(key)

    def did(self, step: ScenarioStep) -> None:
        """A step may take a class away, or change whether it is the default one."""
        if step.delete is not None and step.delete.kind == "PriorityClass":
            self._manifests.pop(step.delete.name, None)
        elif step.patch is not None and step.patch.kind == "PriorityClass":
            before = self._manifests.get(step.patch.name)
            if before is None:
                return
            self._manifests[step.patch.name] = merge_patch(before, step.patch.patch)
        else:
            return
        self._read()

    def _read(self) -> None:
        self._classes = PriorityClasses([priority_class_from(item) for item in self._manifests.values()])


MOST_UNPACKED: Final = 4
"""How many times the bytes of a document a line may unfold to: it holds the document twice, and words."""


@dataclass(frozen=True, slots=True)
class Unfolded:
    """What a user handed in as a link, a line or a standalone file.

    Attributes
    ----------
    document
        The scenario as it was written, as JSON; its digest is the proved one.
    """

    document: bytes
    note: str
    opens_at: int | None


def unfolded(data: bytes, *, max_bytes: int) -> Unfolded | None:
    """What a link or a standalone file carries; None of any other document.

    Raises
    ------
    ScenarioError
        It was cut or changed, or is not a scenario.
    """
    try:
        carried = carried_in(data, max_bytes=MOST_UNPACKED * max_bytes)
        if carried is None:
            return None
        document = carried.text.encode()
        check_words(carried, scenario_digest(load(document)))
    except CarriedError as error:
        raise ScenarioError([Problem("", str(error))]) from None
    return Unfolded(document, carried.note, carried.opens_at)


def line_of(text: bytes, *, note: str = "", opens_at: int | None = None) -> str:
    """The line of a document that is known to be a scenario."""
    return carry(load(text), note=note, opens_at=opens_at)


def saved_replay(
    text: bytes,
    *,
    note: str = "",
    opens_at: int | None = None,
    address: str = "",
    timeout_s: float = RUN_TIMEOUT_S,
    ask: AskProcess | None = None,
) -> tuple[str, str, str]:
    """Run a scenario in a child process and write its replay as one file (`scenario.standalone`).

    Returns
    -------
    html : str
        Empty where it is too large.
    decisions_digest : str
        Of this run.
    too_large : str
        Why there is no file.

    Raises
    ------
    ScenarioError, RunStopped
    """
    asked: dict[str, Any] = {"note": note, "opens_at": opens_at, "address": address}
    answer = (ask or ask_process)({"document": text.decode("utf-8-sig"), "standalone": asked}, timeout_s)
    return answer["html"], answer["decisionsDigest"], answer["tooLarge"]
