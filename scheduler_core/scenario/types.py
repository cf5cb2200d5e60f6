"""A scenario as frozen objects; what their fields mean and may be is said in `scenario.schema.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler_core.config.wire import wire_fields
from scheduler_core.objects.defaults import NAMESPACED_KINDS
from scheduler_core.objects.duration import duration_ns
from scheduler_core.releases import OLDEST, Release, release_named
from scheduler_core.scenario.cassette import RecordedCall, ScenarioTransport
from scheduler_core.scenario.form import SCHEMA, declare
from scheduler_core.scenario.mock_extender import MockExtender

API_VERSION = "scheduling.playground/v1"
KIND = "Scenario"
OLDEST_START_NS = 1_735_689_600_000_000_000
"""2025-01-01T00:00:00Z: where the clock of a scenario without `start` begins, for ever."""
OLDEST_SEED = 0

MAX_STEPS, MAX_OBJECTS = (int(SCHEMA["properties"][name]["maxItems"]) for name in ("steps", "objects"))
MAX_EXPECTATIONS = 20_000
MAX_CALLS = 100_000
MAX_DRAIN_NS = 24 * 3600 * 10**9
"""Virtual time that an expectation may give a drain."""
MAX_CYCLES = int(SCHEMA["$defs"]["Run"]["properties"]["cycles"]["maximum"])
"""Bound on the cycles of a whole run."""
VERB_FIELDS: tuple[str, ...] = tuple(SCHEMA["$defs"]["Step"]["properties"])

Manifest = Mapping[str, Any]
Key = tuple[str, str, str]
"""(kind, namespace, name), the namespace as `objects.defaults.prepare` fills it in."""


def object_key(manifest: Manifest) -> Key:
    """The key of an object."""
    meta = manifest.get("metadata")
    meta = meta if isinstance(meta, Mapping) else {}
    return ObjectRef(
        str(manifest.get("kind", "")), str(meta.get("name") or ""), str(meta.get("namespace") or "")
    ).key


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """Names one object."""

    kind: str = ""
    name: str = ""
    namespace: str = ""

    @property
    def key(self) -> Key:
        """The object's key."""
        return self.kind, self.namespace or ("default" if self.kind in NAMESPACED_KINDS else ""), self.name


@dataclass(frozen=True, slots=True)
class Deletion(ObjectRef):
    """Deletes one object."""

    grace_period_s: int | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Patch(ObjectRef):
    """Changes one object by a JSON merge patch (RFC 7396)."""

    patch: Manifest = field(default_factory=dict)
    by: str = ""


@dataclass(frozen=True, slots=True)
class PermitAnswer:
    """Answers for a pod that waits at Permit."""

    pod: str = ""
    plugin: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Advance:
    """Lets virtual time pass; all timers fire and cycles run."""

    by_ns: int = 0
    cycles: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Runs cycles."""

    until: str = "idle"
    cycles: int | None = None


@dataclass(frozen=True, slots=True)
class Binding:
    """Posts the Binding of a pod, as a bind extender does, or another scheduler (`by`)."""

    pod: str = ""
    node: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a number must be."""

    exactly: float | None = None
    at_least: float | None = None
    at_most: float | None = None

    def problem_of(self, number: float) -> str | None:
        """What is wrong with a number, None when it is within bounds."""
        if self.exactly is not None and number != self.exactly:
            return f"is {_plain(number)}, not {_plain(self.exactly)}"
        if self.at_least is not None and number < self.at_least:
            return f"is {_plain(number)}, less than {_plain(self.at_least)}"
        if self.at_most is not None and number > self.at_most:
            return f"is {_plain(number)}, more than {_plain(self.at_most)}"
        return None


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else f"{number:.4g}"


@dataclass(frozen=True, slots=True)
class PodSelection:
    """Pods by namespace and labels."""

    namespace: str = ""
    labels: dict[str, str] = field(default_factory=dict)


_FIELDS_OF: Mapping[str, list[str]] = SCHEMA["$defs"]["Expectation"]["x-subjects"]
"""Subject -> the fields that say something about it."""
SUBJECTS = tuple(_FIELDS_OF)


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Another release of Kubernetes from now on, older ones too."""

    kubernetes_release: str = ""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)

    @property
    def release(self) -> Release:
        """The release, its gates switched."""
        return release_named(self.kubernetes_release).with_gates(self.feature_gates)


@dataclass(frozen=True, slots=True)
class UpgradeSelection(Upgrade):
    """The same decided by another release, and whose pods are looked at."""

    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Survival:
    """What may be lost at this moment, one at a time, without leaving more pods than allowed without a node."""

    any_one_node: bool = False
    any_zone: bool = False
    any_of: str = ""
    max_pending: int = 0

    @staticmethod
    def problem(document: Mapping[str, Any]) -> str | None:
        lost = [name for name in ("anyOneNode", "anyZone", "anyOf") if document.get(name)]
        return None if lost else "says what may be lost: anyOneNode: true, anyZone: true or anyOf: LABEL"


FITTING = ("deployment", "statefulSet", "pod")


@dataclass(frozen=True, slots=True)
class Fitting:
    """How many more pods of a workload must find a node at this moment, beside those there are."""

    deployment: str = ""
    stateful_set: str = ""
    pod: str = ""
    at_least: int = 0

    @staticmethod
    def problem(document: Mapping[str, Any]) -> str | None:
        named = [name for name in FITTING if document.get(name)]
        return None if len(named) == 1 else f"names exactly one of {', '.join(FITTING)}, not {len(named)}"


@dataclass(frozen=True, slots=True)
class Draining:
    """A drain at this moment: budgets let every pod go, and every pod finds another node."""

    nodes: tuple[str, ...] = ()
    within_ns: int | None = None
    max_pending: int = 0

    @staticmethod
    def problem(document: Mapping[str, Any]) -> str | None:
        if not document.get("nodes"):
            return "names the nodes to drain: nodes: [NAME, ...]"
        within = document.get("within")
        too_long = isinstance(within, str) and _is_longer(within, MAX_DRAIN_NS)
        return "within is 24h at most" if too_long else None


def _is_longer(text: str, limit_ns: int) -> bool:
    try:
        return duration_ns(text) > limit_ns
    except ValueError:
        return False  # told elsewhere


@dataclass(frozen=True, slots=True)
class Expectation:
    """One thing that must hold: a subject (pod, pods, cycle, metric, survives, ...) and what of it."""

    pod: str = ""
    pods: PodSelection | None = None
    cycle: int | None = None
    cycles: Bounds | None = None
    order: tuple[str, ...] = ()
    budgets: str = ""
    metric: str = ""
    upgrade: UpgradeSelection | None = None
    survives: Survival | None = None
    fits: Fitting | None = None
    drain: Draining | None = None
    agreement: Bounds | None = None
    state: str = ""
    node: str = ""
    node_in: tuple[str, ...] = ()
    node_labels: dict[str, str] = field(default_factory=dict)
    not_node_labels: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    victims: tuple[str, ...] | None = None
    attempts: Bounds | None = None
    nominated: str = ""
    of: str = ""
    outcome: str = ""
    tie: bool | None = None
    feasible: Bounds | None = None
    count: Bounds | None = None

    @staticmethod
    def problem(document: Mapping[str, Any]) -> str | None:
        subjects = [name for name in SUBJECTS if name in document]
        if len(subjects) != 1:
            return f"an expectation is about exactly one of {', '.join(SUBJECTS)}, not {len(subjects)}"
        subject = subjects[0]
        foreign = [name for name in document if name != subject and name not in _FIELDS_OF[subject]]
        if foreign:
            known = ", ".join(_FIELDS_OF[subject]) or "nothing else"
            return f"{foreign[0]} says nothing about {subject} (it takes {known})"
        if subject == "metric" and "count" not in document:
            return "a metric needs `count`, such as {max: 0}"
        if subject in ("pod", "pods", "cycle") and len(document) == 1:
            return f"says nothing about the {subject}; add one of {', '.join(_FIELDS_OF[subject])}"
        return None


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens, at the virtual time reached so far."""

    apply: tuple[Manifest, ...] | None = None
    patch: Patch | None = None
    delete: Deletion | None = None
    cordon: str = ""
    uncordon: str = ""
    drain: str = ""
    allow: PermitAnswer | None = None
    reject: PermitAnswer | None = None
    bind: Binding | None = None
    advance: Advance | None = None
    run: Run | None = None
    configure: Manifest | None = None
    upgrade: Upgrade | None = None
    assumed_expiry_ns: int | None = None
    expect: tuple[Expectation, ...] | None = None

    @staticmethod
    def problem(document: Mapping[str, Any]) -> str | None:
        n_verbs = sum(name in document for name in VERB_FIELDS)
        return None if n_verbs == 1 else f"a step does exactly one of {', '.join(VERB_FIELDS)}, not {n_verbs}"

    @property
    def verb(self) -> str:
        return next(known.name for name, known in wire_fields(Step) if getattr(self, name) not in (None, ""))


@dataclass(frozen=True, slots=True)
class PathStop:
    """One stop of the guided path."""

    cycle: int = 0
    focus: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Extenders:
    """Where extenders' answers come from, by the extender's place in the configuration."""

    mock: tuple[MockExtender, ...] = ()
    cassette: tuple[RecordedCall, ...] = ()
    post_bindings: bool = False


@dataclass(frozen=True, slots=True)
class Decisions:
    """What was decided when the scenario was recorded."""

    digest: str = ""
    count: int = 0
    engine: str = ""
    cycles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PluginRef:
    """A plugin from outside the tree that the scenario runs."""

    name: str = ""
    package: str = ""
    version: str = ""

    @property
    def requirement(self) -> str:
        """What pip is asked to install; empty where that is not said."""
        return f"{self.package}=={self.version}" if self.package and self.version else self.package


@dataclass(frozen=True, slots=True)
class Scenario:
    """A cluster, what happens to it, and what must come of it."""

    name: str = ""
    title: str = ""
    lesson: str = ""
    group: str = ""
    kubernetes_release: str = OLDEST.name
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    seed: int = OLDEST_SEED
    start_ns: int = OLDEST_START_NS
    scheduler: Manifest | None = None
    assumed_expiry_ns: int | None = None
    plugins: tuple[PluginRef, ...] = ()
    objects: tuple[Manifest, ...] = ()
    kept: tuple[Manifest, ...] = ()
    extenders: Extenders | None = None
    steps: tuple[Step, ...] = ()
    path: tuple[PathStop, ...] = ()
    expect: tuple[Expectation, ...] = ()
    decisions: Decisions | None = None

    @property
    def release(self) -> Release:
        """The release it follows, its gates switched."""
        return release_named(self.kubernetes_release).with_gates(self.feature_gates)

    def transport(self) -> ScenarioTransport:
        """Where its extenders' answers come from in one run."""
        extenders = self.extenders or Extenders()
        return ScenarioTransport(extenders.cassette, extenders.mock)


for _part in (
    Patch, PermitAnswer, Advance, Run, Binding, PodSelection, Upgrade, UpgradeSelection, Fitting, PathStop,
    Decisions, PluginRef,
):  # fmt: skip
    declare(_part)
declare(Deletion, grace_period_s="gracePeriodSeconds")
declare(Bounds, exactly="is", at_least="min", at_most="max")
declare(Survival, ("any_one_node", "any_zone", "max_pending"))
declare(Draining, ("max_pending",))
declare(Expectation)
declare(Step, assumed_expiry_ns="durationToExpireAssumedPod")
declare(Extenders, ("post_bindings",))
declare(Scenario, ("seed",), assumed_expiry_ns="durationToExpireAssumedPod")
