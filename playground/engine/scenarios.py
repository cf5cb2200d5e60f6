"""Scenarios at the door: read, named by their digest, and (in a fresh process) run.

Whatever runs a scenario goes through `run_fresh`: a process of its own that has never seen an earlier run, with a
bound on time. What it found comes back as plain data.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from subprocess import PIPE
from typing import IO, Any, Final, NamedTuple, TypeVar

import msgspec

from playground.engine.entries import CycleRecord
from playground.engine.limits import why_ended
from playground.engine.moments import StateReader
from playground.engine.plugins import allowed
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.defaults import PriorityClasses, prepare, priority_class_from
from scheduler_core.objects.merge import merge_patch
from scheduler_core.scenario import run_scenario
from scheduler_core.scenario.bounds import RunBounds
from scheduler_core.scenario.canonical import effective_steps, in_run_order, scenario_digest
from scheduler_core.scenario.carried import MAX_LINK_CHARS as MAX_LINK_CHARS
from scheduler_core.scenario.carried import Carried, CarriedError, carried_in, carry, check_words
from scheduler_core.scenario.errors import Problem
from scheduler_core.scenario.errors import ScenarioError as ScenarioError
from scheduler_core.scenario.gallery import ORDER, Way, four_ways, gallery_scenario, gallery_text
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
from scheduler_core.sim.simulation import Simulation
from scheduler_core.sim.timeline import Timeline
from scheduler_core.validation.admission import check_only_default
from scheduler_core.validation.updates import check_priority_class_update

RUN_TIMEOUT_S: Final = 240.0
MOST_TOLD: Final = 20
AskProcess = Callable[[Mapping[str, Any], float], Any]
"""Takes a request to `scenario_process` and the seconds it may take; raises as `ask_process` does."""
Told = Callable[[str, float], bool]
"""Is told what is being run and the share that is done; False where it is not wanted any more."""
LOOK_EVERY_S: Final = 0.5
ROOT: Final = Path(__file__).resolve().parents[2]
"""Where both packages are found, installed or not."""


def problems_data(error: ScenarioError) -> list[dict[str, Any]]:
    """The problems as JSON-able data, values but of scalars left out; `answer_in` reads them."""
    plain = (str, int, float, bool)
    return [
        asdict(replace(item, value=item.value if isinstance(item.value, plain) else None))
        for item in error.problems
    ]


def answer_in(document: Mapping[str, Any]) -> Any:
    """The answer of another process, or the problems it found.

    Raises
    ------
    ScenarioError
    """
    if "problems" in document:
        raise ScenarioError(Problem(**item) for item in document["problems"])
    return document["answer"]


class RunStopped(RuntimeError):
    """The process that ran a scenario was stopped: too long, or it broke."""


@dataclass(frozen=True, slots=True)
class ScenarioFacts:
    """What is known of a scenario without running it.

    Attributes
    ----------
    digest
        Hex SHA-256 of the canonical form.
    words_digest
        Of what the canonical form leaves out and the document says: title, lesson, path, expectations, ...
    field_notes
        Misspelt fields of its objects, and objects that are left out by their type.
    """

    scenario: Scenario
    digest: str
    words_digest: str
    n_nodes: int
    n_pods: int
    n_expectations: int
    field_notes: tuple[FieldNote, ...]


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
    mock_rules
        Place of an extender in the configuration -> the rules it is made of.
    recorded
        Addresses of extenders that answer from a recording here, and would be called in a cluster.
    """

    scenario: Scenario
    steps: tuple[Step, ...]
    mock_rules: Mapping[int, tuple[Mapping[str, Any], ...]]
    recorded: tuple[str, ...]


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
    timeline
        Where every pod was and when.
    """

    engine: str
    decisions_digest: str
    cycles: tuple[CycleRecord, ...]
    findings: tuple[Mapping[str, Any], ...]
    figures: Mapping[str, Any]
    notes: tuple[str, ...]
    stop: str
    final: Mapping[str, Any]
    timeline: Timeline
    objects: Mapping[str, Any] | None = None


class Graded(NamedTuple):
    """What an answer to a task is worth (`scenario.tasks.Grade`)."""

    points: int
    of: int
    checks: list[dict[str, Any]]
    digest: str


class MadeText(NamedTuple):
    """A scenario as YAML, and what a person should know about how it was made."""

    text: str
    notes: tuple[str, ...]


class SavedReplay(NamedTuple):
    """A replay as one HTML file, the digest of its decisions, or why it is too large for a file."""

    html: str
    digest: str
    too_large: str


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
    return ScenarioFacts(
        scenario,
        digest=scenario_digest(scenario),
        words_digest=_digest_of_words(scenario),
        n_nodes=kinds.count("Node"),
        n_pods=kinds.count("Pod"),
        n_expectations=len(scenario.expect) + sum(len(step.expect or ()) for step in scenario.steps),
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
            said = document[step.verb]
            argument = {_SHORT[step.verb]: said} if step.verb in _SHORT and isinstance(said, str) else said
            steps.append(Step(step.verb, _words(step.verb, argument), argument))
    mocks = {
        mock.get("extender", 0): tuple(mock.get("rules") or ())
        for mock in (whole.get("extenders") or {}).get("mock") or ()
    }
    urls = [str(one.get("urlPrefix", "")) for one in (scenario.scheduler or {}).get("extenders") or ()]
    recorded = tuple(url for place, url in enumerate(urls) if place not in mocks)
    return Opening(scenario, tuple(steps), mocks, recorded)


_SHORT: Final = {
    "allow": "pod",
    "reject": "pod",
    "advance": "by",
    "run": "until",
    "upgrade": "kubernetesRelease",
}
"""Verbs whose argument may be written as one value of it, and which."""


def _words(verb: str, argument: Any) -> str:
    """A step in a few words."""
    if verb == "apply":
        names = [f"{item['kind']} {item['metadata']['name']}" for item in argument]
        return f"apply {', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"
    if verb in ("patch", "delete"):
        return f"{verb} {argument['kind']} {argument['name']}"
    if verb in ("allow", "reject"):
        return f"{verb} {argument['pod']} at Permit"
    if verb == "bind":
        return f"bind {argument['pod']} to {argument['node']}"
    if verb == "durationToExpireAssumedPod":
        return f"let assumed pods expire after {argument}"
    if verb == "advance":
        return f"advance by {argument['by']}"
    if verb == "run":
        return "run one cycle" if argument.get("until") == "cycle" else "run until idle"
    if verb == "upgrade":
        return f"go on as Kubernetes {argument['kubernetesRelease']}"
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
    how = {"objects_at": objects_at, "traces_up_to": traces_up_to}
    return asked("run", text, FreshRun, ask=ask, timeout_s=timeout_s, **how)


def states_of(text: str | bytes, first: int, last: int) -> dict[int, dict[str, Any]]:
    """Cycle -> state after it (`moments.StateReader.read`), of a stretch of cycles; what comes later is not run.

    Raises
    ------
    ScenarioError, RunStopped
    """
    return asked("states", text, dict[int, dict[str, Any]], first=first, last=last)


T = TypeVar("T")


def asked(
    do: str,
    text: str | bytes | None,
    of: type[T],
    *,
    ask: AskProcess | None = None,
    timeout_s: float = RUN_TIMEOUT_S,
    **given: Any,
) -> T:
    """Ask a child process to do something with a scenario.

    Parameters
    ----------
    do
        What: a name in `scenario_process`, which takes the document and `given`.
    text
        The document, if it is about one.
    of
        The type of the answer.
    ask
        Has the process started elsewhere; None starts it here (`ask_process`).

    Raises
    ------
    ScenarioError
        It cannot be read, or a step cannot be done.
    RunStopped
    """
    request = {"do": do, **given} if text is None else {"do": do, "document": _decoded(text), **given}
    return msgspec.convert((ask or ask_process)(request, timeout_s), of, str_keys=True)


def ask_process(request: Mapping[str, Any], timeout_s: float, told: Told | None = None) -> Any:
    """Ask a fresh process (`scenario_process`) and wait for its answer.

    Parameters
    ----------
    told
        Asked about twice a second; False ends the process.

    Raises
    ------
    ScenarioError, RunStopped
    """
    try:
        done = run_process(json.dumps({**request, "plugins": allowed()}).encode(), timeout_s, told)
    except subprocess.TimeoutExpired:
        raise RunStopped(f"the run was ended after {timeout_s:.0f} s") from None
    return answer_of_process(done.returncode, done.stdout, done.stderr)


def run_process(
    request: bytes, timeout_s: float, told: Told | None = None
) -> subprocess.CompletedProcess[bytes]:
    """A `scenario_process` from its start to its end.

    Raises
    ------
    RunStopped
        It is not wanted any more.
    subprocess.TimeoutExpired
    """
    command = [sys.executable, "-m", "playground.engine.scenario_process"]
    deadline_s = time.monotonic() + timeout_s
    # From a file: what `communicate` has not written before its first timeout, it does not write any more.
    with (
        tempfile.TemporaryFile() as given,
        subprocess.Popen(
            command, stdin=_holding(given, request), stdout=PIPE, stderr=PIPE, cwd=ROOT
        ) as process,
    ):
        try:
            while True:
                try:
                    out, said = process.communicate(timeout=min(timeout_s, LOOK_EVERY_S))
                    return subprocess.CompletedProcess(command, process.returncode, out, said)
                except subprocess.TimeoutExpired as under_way:
                    if time.monotonic() > deadline_s:
                        raise
                    if told is not None and not told(*_progress(under_way.stderr or b"")):
                        raise RunStopped("the run was cancelled") from None
        finally:
            process.kill()


def _holding(given: IO[bytes], request: bytes) -> IO[bytes]:
    """The file with the request in it, to be read from its start."""
    given.write(request)
    given.seek(0)
    return given


def _progress(said: bytes) -> tuple[str, float]:
    """The last whole line that tells what is being run, and the share that is done."""
    for line in reversed(said.decode(errors="replace").split("\n")[:-1]):
        if line.startswith("{"):
            found = json.loads(line)
            return found["step"], found["share"]
    return "making the run again", 0.0


def answer_of_process(returncode: int, stdout: bytes, stderr: bytes) -> Any:
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
    return answer_in(json.loads(stdout))


def _decoded(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("utf-8-sig")


def gallery_documents() -> dict[str, bytes]:
    """Our own teaching scenarios: name -> document, in the order they are shown."""
    return {name: gallery_text(name).encode() for name in ORDER}


def way_documents() -> list[tuple[Way, bytes]]:
    """The GPU use case in four ways with the document of each, the gallery's own last."""
    return [(way, dump_scenario(scenario).encode()) for way, scenario in four_ways()]


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


def unfolded(data: bytes, *, max_bytes: int) -> Carried | None:
    """What a link or a standalone file carries; None of any other document.

    Raises
    ------
    ScenarioError
        It was cut or changed, or is not a scenario.
    """
    try:
        carried = carried_in(data, max_bytes=MOST_UNPACKED * max_bytes)
        if carried is not None:
            check_words(carried, scenario_digest(load(carried.text)))
    except CarriedError as error:
        raise ScenarioError([Problem("", str(error))]) from None
    return carried


def line_of(text: bytes, *, note: str = "", opens_at: int | None = None) -> str:
    """The line of a document that is known to be a scenario."""
    return carry(load(text), note=note, opens_at=opens_at)


# ---- our own small scenarios


@dataclass(frozen=True, slots=True)
class Prediction:
    """One stop of a lesson's path, asked before it is shown.

    Attributes
    ----------
    number, of : int
        Which of the lesson's questions.
    state : mapping
        As `StateReader.read`, right before the cycle.
    cycle : mapping
        The cycle's explanation.
    spec : mapping
        The pod's.
    text : str
        What the stop teaches.
    """

    number: int
    of: int
    state: Mapping[str, Any]
    cycle: Mapping[str, Any]
    spec: Mapping[str, Any]
    text: str


@lru_cache(maxsize=128)
def questions(name: str) -> tuple[Prediction, ...]:
    """The questions of a teaching scenario, which is run for them.

    Raises
    ------
    KeyError
        There is no such scenario.
    """
    scenario = gallery_scenario(name)
    states: dict[int, tuple[dict[str, Any], dict[str, Mapping[str, Any]]]] = {}
    stops = sorted({stop.cycle for stop in scenario.path})
    reader = StateReader()

    def look(simulation: Simulation) -> None:
        # The cycles of a pod group are one turn of the scheduler: all but the first keep its state.
        for number in stops:
            if number > simulation.scheduler.cycle:
                pods = simulation.world.all("Pod")
                specs = {stored.typed.uid: stored.manifest["spec"] for stored in pods}
                states[number] = (reader.read(simulation, with_figures=False), specs)

    run = run_scenario(scenario, full_traces=True, before_cycle=look)
    found = []
    for number, stop in enumerate(scenario.path, 1):
        record = run.cycle(stop.cycle)
        assert record is not None
        state, specs = states[stop.cycle]
        spec = specs.get(record.uid, {})
        found.append(Prediction(number, len(scenario.path), state, record.explain(), spec, stop.text))
    return tuple(found)
