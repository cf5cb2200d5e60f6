"""Tasks: a cluster to change until its pods land as asked. What a person hands in is graded by running it.

Each is an entry of `tasks.yaml`: the objects of a scenario, checks that are expectations of its end, and what may be
changed. An answer is the nodes, pods and other objects as changed, and the scheduler's configuration where
the task has one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Final

import yaml

from scheduler_core.scenario.bounds import RunBounds
from scheduler_core.scenario.canonical import canonical_bytes, scenario_digest
from scheduler_core.scenario.errors import Problem, ScenarioError
from scheduler_core.scenario.expectations import run_scenario
from scheduler_core.scenario.load import load_scenario
from scheduler_core.scenario.types import API_VERSION, KIND, Scenario
from scheduler_core.schema.tables import table_beside

MAX_ANSWER_BYTES: Final = 16_000
MAX_OBJECTS: Final = 60
MAX_CYCLES: Final = 500
BOUNDS: Final = RunBounds(objects=200, virtual_ns=3_600_000_000_000)
SCHEDULER: Final = "KubeSchedulerConfiguration"


@dataclass(frozen=True, slots=True)
class Check:
    """What must hold in the end, in a person's words, and as expectations."""

    title: str
    expect: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class GradedTask:
    """One task.

    Attributes
    ----------
    text : str
        The objects as YAML, to be changed.
    may : mapping of str to sequence of str
        ``Kind/name``, with ``*`` -> the paths of it that may be changed.
    adds : sequence of str
        Kinds of which objects may be added.
    most : int
        So many objects may be changed or added.
    """

    name: str
    title: str
    goal: str
    text: str
    checks: Sequence[Check]
    may: Mapping[str, Sequence[str]] = field(default_factory=dict)
    adds: Sequence[str] = ()
    most: int = 20

    def scenario(self, text: str | bytes) -> Scenario:
        """The task with other objects.

        Raises
        ------
        ScenarioError
        """
        head = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": self.name,
            "kubernetesRelease": "1.37",
            "seed": 0,
            "steps": [{"run": "idle"}],
            "expect": [item for check in self.checks for item in check.expect],
        }
        # Behind what a person wrote: a mistake is told by its line.
        changed = load_scenario(f"{_decoded(text).rstrip()}\n{yaml.safe_dump(head)}", bounds=BOUNDS)
        if len(changed.objects) > MAX_OBJECTS:
            said = f"{len(changed.objects)} objects; an answer has {MAX_OBJECTS} at most"
            raise ScenarioError([Problem("", said)])
        if changed.extenders is not None:
            raise ScenarioError([Problem("extenders", "a task has none")])
        return changed


@dataclass(frozen=True, slots=True)
class Grade:
    """What an answer is worth.

    Attributes
    ----------
    checks : tuple of (str, bool, str)
        Title, whether it holds, and what was found.
    digest : str
        Of the answer and the decisions it leads to: the same everywhere.
    """

    checks: tuple[tuple[str, bool, str], ...]
    digest: str

    @property
    def points(self) -> int:
        return sum(holds for _, holds, _ in self.checks)

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        checks = [{"title": title, "holds": holds, "found": found} for title, holds, found in self.checks]
        return {"points": self.points, "of": len(self.checks), "checks": checks, "digest": self.digest}


@cache
def tasks() -> Mapping[str, GradedTask]:
    """All of them by name, in order."""
    found = {}
    for name, entry in table_beside(__name__, "tasks.yaml").items():
        checks = tuple(Check(item["title"], item["expect"]) for item in entry["checks"])
        found[name] = GradedTask(name, **{**entry, "checks": checks})
    return found


def grade(task: GradedTask, answer: str | bytes) -> Grade:
    """Run an answer and say which checks hold.

    Raises
    ------
    ScenarioError
        It cannot be read or run: a person is told the place.
    """
    size = len(_decoded(answer).encode())
    if size > MAX_ANSWER_BYTES:
        raise ScenarioError([Problem("", f"{size:,} bytes; an answer has {MAX_ANSWER_BYTES:,} at most")])
    given, changed = task.scenario(task.text), task.scenario(answer)
    wrong = tuple(_not_allowed(task, given, changed))
    result = run_scenario(changed, max_cycles=MAX_CYCLES, bounds=BOUNDS)
    findings, checks = iter(result.findings), []
    for check in task.checks:
        own = [next(findings) for _ in check.expect]
        failing = [one.sentence for one in own if not one.holds]
        checks.append((check.title, not failing, "; ".join(failing or [one.sentence for one in own])))
    checks.append(("Nothing else is changed", not wrong, "; ".join(wrong)))
    digest = hashlib.sha256(f"{task.name} {scenario_digest(changed)} {result.digest}".encode()).hexdigest()
    return Grade(tuple(checks), digest[:12])


def _decoded(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("utf-8", "replace")


def _not_allowed(task: GradedTask, given: Scenario, changed: Scenario) -> Iterator[str]:
    before, after = _by_name(given), _by_name(changed)
    touched = [name for name in after if before.get(name) != after[name]]
    for name in before:
        if name not in after:
            yield f"{name} is gone"
    for name in touched:
        if name not in before:
            if name.partition("/")[0] not in task.adds:
                yield f"{name} is new"
            continue
        allowed = [path for one, paths in task.may.items() if fnmatchcase(name, one) for path in paths]
        for path in _differing(before[name], after[name], ""):
            if not any(f"{path}.".startswith(f"{one}.") for one in allowed):
                yield f"{name} differs in {path}"
    if len(touched) > task.most:
        yield f"{len(touched)} objects are changed, {task.most} may be"


def _by_name(scenario: Scenario) -> dict[str, Any]:
    document = json.loads(canonical_bytes(scenario))
    found = {f"{item['kind']}/{item['metadata']['name']}": item for item in document["objects"]}
    return found | {SCHEDULER: document.get("scheduler")}


def _differing(one: Any, other: Any, path: str) -> Iterator[str]:
    """Paths at which two documents differ; a list is one value."""
    if one == other:
        return
    if not all(isinstance(each, Mapping | None) for each in (one, other)):
        yield path
        return
    for key in sorted({**(one or {}), **(other or {})}):
        yield from _differing((one or {}).get(key), (other or {}).get(key), f"{path}.{key}" if path else key)


def packed(text: str) -> str:
    """An answer as it is in an address."""
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


def unpacked(line: str) -> str:
    """The answer of an address.

    Raises
    ------
    ValueError
        It is none, or larger than an answer may be.
    """
    try:
        data = base64.b64decode(line + "=" * (-len(line) % 4), altchars=b"-_", validate=True)
        reader = zlib.decompressobj()
        text = reader.decompress(data, MAX_ANSWER_BYTES + 1)
        if len(text) > MAX_ANSWER_BYTES or not reader.eof:
            raise ValueError("The address is cut short, or its answer is too large.")
        return text.decode()
    except (binascii.Error, zlib.error, UnicodeDecodeError):
        raise ValueError("The address holds no answer.") from None
