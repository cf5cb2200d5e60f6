"""A scenario as frozen objects; each field is declared once, for reading, printing and the JSON Schema."""

# ruff: noqa: RUF009 (`part` makes dataclass fields)

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_core.config.wire import BOOLEAN, STRING
from scheduler_core.objects.fields import duration_ns
from scheduler_core.releases import OLDEST, Release, release_named
from scheduler_core.scenario.cassette import RecordedCall
from scheduler_core.scenario.form import (
    BOOLEAN_MAP,
    DOCUMENT,
    DURATION,
    MANIFESTS,
    POD_NAME,
    RELEASE_NAME,
    STRING_MAP,
    TIME,
    ListOf,
    Number,
    OneOf,
    Shorthand,
    part,
    part_of,
)
from scheduler_core.scenario.mock_extender import MockExtender

API_VERSION = "scheduling.playground/v1"
KIND = "Scenario"
OLDEST_START_NS = 1_735_689_600_000_000_000
"""2025-01-01T00:00:00Z: where the clock of a scenario without `start` begins, for ever."""
OLDEST_SEED = 0

MAX_STEPS = 50_000
MAX_OBJECTS = 200_000
MAX_EXPECTATIONS = 20_000
MAX_CALLS = 100_000
MAX_DRAIN_NS = 24 * 3600 * 10**9
"""Virtual time that an expectation may give a drain."""
MAX_CYCLES = 1_000_000
"""Bound on the cycles of a whole run."""

Manifest = Mapping[str, Any]

OUTCOMES = ("bound", "unschedulable", "preempting", "waiting", "binding", "expired", "error")
STATES = ("bound", "pending", "waiting", "binding", "expired", "gated", "gone")
METRICS = (
    "cycles", "bound", "pending", "gated", "waiting", "preemptions", "victims", "budgetViolations", "ties",
    "cpuUtilisation", "memoryUtilisation", "gpuUtilisation",
    "cpuImbalance", "memoryImbalance", "gpuImbalance",
    "cpuFragmentation", "memoryFragmentation", "gpuFragmentation",
    "nodesUsed", "largestShare",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """Names one object."""

    kind: str = part("kind", STRING, "Kind of the object.", required=True)
    name: str = part("name", STRING, "Its name.", required=True)
    namespace: str = part("namespace", STRING, "Its namespace; `default` for kinds that live in one.")


@dataclass(frozen=True, slots=True)
class Deletion(ObjectRef):
    """Deletes one object."""

    grace_period_s: int | None = part(
        "gracePeriodSeconds", Number(0, 10**9), "Of a pod; its own when left out.", default=None
    )
    by: str = part("by", STRING, "The program of another scheduler that decided it.")


@dataclass(frozen=True, slots=True)
class Patch(ObjectRef):
    """Changes one object by a JSON merge patch (RFC 7396)."""

    patch: Manifest = part("patch", DOCUMENT, "What changes; null removes a field.", required=True)
    by: str = part("by", STRING, "The program of another scheduler that decided it.")


@dataclass(frozen=True, slots=True)
class PermitAnswer:
    """Answers for a pod that waits at Permit."""

    pod: str = part("pod", POD_NAME, "The pod.", required=True)
    plugin: str = part(
        "plugin", STRING, "In this plugin's name; all that still have to answer when left out."
    )
    reason: str = part("reason", STRING, "Why, for a rejection.")


@dataclass(frozen=True, slots=True)
class Advance:
    """Lets virtual time pass; all timers fire and cycles run."""

    by_ns: int = part("by", DURATION, "How long.", required=True)
    cycles: int | None = part("cycles", Number(0, MAX_CYCLES), "Stop after so many cycles.", default=None)


@dataclass(frozen=True, slots=True)
class Run:
    """Runs cycles."""

    until: str = part("until", OneOf("idle", "cycle"), "`idle`, or one `cycle`.", default="idle")
    cycles: int | None = part("cycles", Number(0, MAX_CYCLES), "Stop after so many cycles.", default=None)


@dataclass(frozen=True, slots=True)
class Binding:
    """Posts the Binding of a pod, as a bind extender does, or another scheduler (`by`)."""

    pod: str = part("pod", POD_NAME, "The pod.", required=True)
    node: str = part("node", STRING, "The node it is bound to.", required=True)
    by: str = part("by", STRING, "The program of another scheduler that decided it.")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a number must be."""

    exactly: float | None = part("is", Number(whole=False), "Exactly this.", default=None)
    at_least: float | None = part("min", Number(whole=False), "At least this.", default=None)
    at_most: float | None = part("max", Number(whole=False), "At most this.", default=None)

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


_BOUNDS = Shorthand(part_of(Bounds), "is")


@dataclass(frozen=True, slots=True)
class PodSelection:
    """Pods by namespace and labels."""

    namespace: str = part("namespace", STRING, "Only of this namespace.")
    labels: dict[str, str] = part("labels", STRING_MAP, "Labels they carry.")


_POD_FIELDS = (
    "state",
    "node",
    "nodeIn",
    "nodeLabels",
    "notNodeLabels",
    "reason",
    "victims",
    "attempts",
    "nominated",
)
_FIELDS_OF = {
    "pod": _POD_FIELDS,
    "pods": ("state", "nodeIn", "node", "nodeLabels", "notNodeLabels", "reason", "count"),
    "cycle": ("of", "outcome", "node", "reason", "victims", "tie", "feasible"),
    "cycles": ("count",),
    "order": (),
    "budgets": (),
    "metric": ("count",),
    "upgrade": ("count",),
    "survives": (),
    "fits": (),
    "drain": (),
    "agreement": (),
}
SUBJECTS = tuple(_FIELDS_OF)


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Another release of Kubernetes from now on, older ones too."""

    kubernetes_release: str = part(
        "kubernetesRelease", RELEASE_NAME, "The other release of Kubernetes.", required=True
    )
    feature_gates: Mapping[str, bool] = part(
        "featureGates", BOOLEAN_MAP, "Feature gates of it that are switched, by name."
    )

    @property
    def release(self) -> Release:
        """The release, its gates switched."""
        return release_named(self.kubernetes_release).with_gates(self.feature_gates)


@dataclass(frozen=True, slots=True)
class UpgradeSelection(Upgrade):
    """The same decided by another release, and whose pods are looked at."""

    namespace: str = part("namespace", STRING, "Only pods of this namespace.")


@dataclass(frozen=True, slots=True)
class Survival:
    """What may be lost at this moment, one at a time, without leaving more pods than allowed without a node."""

    any_one_node: bool = part("anyOneNode", BOOLEAN, "Each node alone.", default=False)
    any_zone: bool = part(
        "anyZone", BOOLEAN, "Each zone, by the label topology.kubernetes.io/zone.", default=False
    )
    any_of: str = part("anyOf", STRING, "All nodes of each value of this label: a rack, a pool.")
    max_pending: int = part(
        "maxPending",
        Number(0, MAX_OBJECTS),
        "So many of the pods that lost their node may find none.",
        default=0,
    )

    @staticmethod
    def problem(document: Mapping[str, Any]) -> str | None:
        lost = [name for name in ("anyOneNode", "anyZone", "anyOf") if document.get(name)]
        return None if lost else "says what may be lost: anyOneNode: true, anyZone: true or anyOf: LABEL"


FITTING = ("deployment", "statefulSet", "pod")


@dataclass(frozen=True, slots=True)
class Fitting:
    """How many more pods of a workload must find a node at this moment, beside those there are."""

    deployment: str = part("deployment", POD_NAME, "Pods of this Deployment's template.")
    stateful_set: str = part("statefulSet", POD_NAME, "Pods of this StatefulSet's template.")
    pod: str = part("pod", POD_NAME, "Pods like this one.")
    at_least: int = part("atLeast", Number(1, MAX_OBJECTS), "How many more.", required=True)

    @staticmethod
    def problem(document: Mapping[str, Any]) -> str | None:
        named = [name for name in FITTING if document.get(name)]
        return None if len(named) == 1 else f"names exactly one of {', '.join(FITTING)}, not {len(named)}"


@dataclass(frozen=True, slots=True)
class Draining:
    """A drain at this moment: budgets let every pod go, and every pod finds another node."""

    nodes: tuple[str, ...] = part("nodes", ListOf(STRING), "The nodes, all together.", required=True)
    within_ns: int | None = part(
        "within", DURATION, "Virtual time until they are empty and every pod has its new node.", default=None
    )
    max_pending: int = part(
        "maxPending", Number(0, MAX_OBJECTS), "So many of the pods may find no other node.", default=0
    )

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

    pod: str = part("pod", POD_NAME, "About this pod.")
    pods: PodSelection | None = part("pods", part_of(PodSelection), "About each of these pods.", default=None)
    cycle: int | None = part("cycle", Number(1, MAX_CYCLES), "About the cycle of this number.", default=None)
    cycles: Bounds | None = part("cycles", _BOUNDS, "How many cycles were run.", default=None)
    order: tuple[str, ...] = part("order", ListOf(POD_NAME), "These pods got their nodes in this order.")
    budgets: str = part("budgets", OneOf("respected"), "No eviction violated a PodDisruptionBudget.")
    metric: str = part("metric", OneOf(*METRICS), "About this figure; `count` bounds it.")
    upgrade: UpgradeSelection | None = part(
        "upgrade",
        Shorthand(part_of(UpgradeSelection), "kubernetesRelease"),
        "Pods that another release leaves elsewhere: none, or as many as `count` allows.",
        default=None,
    )
    survives: Survival | None = part(
        "survives", part_of(Survival), "Nodes or zones may be lost, one at a time.", default=None
    )
    fits: Fitting | None = part("fits", part_of(Fitting), "So many more pods find a node.", default=None)
    drain: Draining | None = part("drain", part_of(Draining), "These nodes can be drained.", default=None)
    agreement: Bounds | None = part(
        "agreement",
        _BOUNDS,
        "Per cent of other schedulers' decisions (steps with `by`) that agree or tie with ours on the same state.",
        default=None,
    )
    state: str = part("state", OneOf(*STATES), "Where the pod is in its life.")
    node: str = part("node", STRING, "The node it is on; of a cycle: the node chosen.")
    node_in: tuple[str, ...] = part("nodeIn", ListOf(STRING), "It is on one of these nodes.")
    node_labels: dict[str, str] = part("nodeLabels", STRING_MAP, "Its node carries these labels.")
    not_node_labels: dict[str, str] = part(
        "notNodeLabels", STRING_MAP, "Its node carries none of these labels."
    )
    reason: str = part("reason", STRING, "The last message about it contains this text.")
    victims: tuple[str, ...] | None = part(
        "victims", ListOf(POD_NAME), "Exactly these pods were evicted for it, in any order.", default=None
    )
    attempts: Bounds | None = part("attempts", _BOUNDS, "How often it was tried.", default=None)
    nominated: str = part("nominated", STRING, "The node it waits for after a preemption.")
    of: str = part("of", POD_NAME, "The pod the cycle was about.")
    outcome: str = part("outcome", OneOf(*OUTCOMES), "How the cycle ended.")
    tie: bool | None = part("tie", BOOLEAN, "Whether the cycle hung on a draw among equals.", default=None)
    feasible: Bounds | None = part("feasible", _BOUNDS, "How many nodes were feasible.", default=None)
    count: Bounds | None = part(
        "count",
        _BOUNDS,
        "Of pods: how many hold it (all, when left out); of an upgrade: how many end elsewhere.",
        default=None,
    )

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

    apply: tuple[Manifest, ...] | None = part(
        "apply", MANIFESTS, "Create objects, or replace them whole.", default=None
    )
    patch: Patch | None = part("patch", part_of(Patch), "Change an object.", default=None)
    delete: Deletion | None = part("delete", part_of(Deletion), "Delete an object.", default=None)
    cordon: str = part("cordon", STRING, "Make a node unschedulable.")
    uncordon: str = part("uncordon", STRING, "Make it schedulable again.")
    drain: str = part("drain", STRING, "Cordon a node and evict its pods, as far as budgets allow.")
    allow: PermitAnswer | None = part(
        "allow", Shorthand(part_of(PermitAnswer), "pod"), "Allow at Permit.", default=None
    )
    reject: PermitAnswer | None = part(
        "reject", Shorthand(part_of(PermitAnswer), "pod"), "Reject at Permit.", default=None
    )
    bind: Binding | None = part("bind", part_of(Binding), "Post a pod's Binding.", default=None)
    advance: Advance | None = part(
        "advance", Shorthand(part_of(Advance), "by"), "Let time pass.", default=None
    )
    run: Run | None = part(
        "run", Shorthand(part_of(Run), "until"), "Run until idle, or one cycle.", default=None
    )
    configure: Manifest | None = part(
        "configure", DOCUMENT, "Go on with another scheduler configuration or Policy.", default=None
    )
    upgrade: Upgrade | None = part(
        "upgrade",
        Shorthand(part_of(Upgrade), "kubernetesRelease"),
        "Go on as another release of Kubernetes.",
        default=None,
    )
    assumed_expiry_ns: int | None = part(
        "durationToExpireAssumedPod",
        DURATION,
        "Let assumed pods expire after so long; 0s: never.",
        default=None,
    )
    expect: tuple[Expectation, ...] | None = part(
        "expect", ListOf(part_of(Expectation)), "What must hold at this moment.", default=None
    )

    @staticmethod
    def problem(document: Mapping[str, Any]) -> str | None:
        n_verbs = sum(name in document for name in VERB_FIELDS)
        return None if n_verbs == 1 else f"a step does exactly one of {', '.join(VERB_FIELDS)}, not {n_verbs}"

    @property
    def verb(self) -> str:
        return next(name for name in VERB_FIELDS if getattr(self, _ATTRIBUTES[name]) not in (None, ""))


_ATTRIBUTES: dict[str, str] = {item.metadata["wire"].name: item.name for item in dataclasses.fields(Step)}
"""Verb -> attribute of a step."""
VERB_FIELDS: tuple[str, ...] = tuple(_ATTRIBUTES)


@dataclass(frozen=True, slots=True)
class PathStop:
    """One stop of the guided path."""

    cycle: int = part("cycle", Number(1, MAX_CYCLES), "Which cycle to look at.", required=True)
    focus: str = part("focus", STRING, "What to look at there: a plugin, a node, `queue`, `preemption`, ...")
    text: str = part("text", STRING, "What to notice.", required=True)


@dataclass(frozen=True, slots=True)
class Extenders:
    """Where extenders' answers come from, by the extender's place in the configuration."""

    mock: tuple[MockExtender, ...] = part("mock", ListOf(part_of(MockExtender)), "Extenders made of rules.")
    cassette: tuple[RecordedCall, ...] = part("cassette", ListOf(part_of(RecordedCall)), "Recorded answers.")
    post_bindings: bool = part(
        "postBindings",
        BOOLEAN,
        "A pod that a bind extender accepted stays assumed until a step binds it; left out, it is bound at once.",
        default=False,
    )


@dataclass(frozen=True, slots=True)
class Decisions:
    """What was decided when the scenario was recorded."""

    digest: str = part("digest", STRING, "SHA-256 over the cycles' digests.", required=True)
    count: int = part("count", Number(0, MAX_CYCLES), "How many cycles.")
    engine: str = part("engine", STRING, "The engine's version.")
    cycles: tuple[str, ...] = part(
        "cycles", ListOf(STRING), "One line a cycle: first 12 digits of its digest, then words."
    )


@dataclass(frozen=True, slots=True)
class PluginRef:
    """A plugin from outside the tree that the scenario runs."""

    name: str = part("name", STRING, "The plugin.", required=True)
    package: str = part("package", STRING, "The package that brings it.")
    version: str = part("version", STRING, "The package's version.")

    @property
    def requirement(self) -> str:
        """What pip is asked to install; empty where that is not said."""
        return f"{self.package}=={self.version}" if self.package and self.version else self.package


@dataclass(frozen=True, slots=True)
class Scenario:
    """A cluster, what happens to it, and what must come of it."""

    name: str = part("name", STRING, "Short name, for files and reports.")
    title: str = part("title", STRING, "One line for people.")
    lesson: str = part("lesson", STRING, "What it teaches, one paragraph.")
    group: str = part("group", STRING, "Where it stands in a gallery.")
    kubernetes_release: str = part(
        "kubernetesRelease", RELEASE_NAME, "The release of Kubernetes it follows.", default=OLDEST.name
    )
    feature_gates: Mapping[str, bool] = part(
        "featureGates", BOOLEAN_MAP, "Feature gates of the release that are switched, by name."
    )
    seed: int = part("seed", Number(0, 2**63 - 1), "Of every draw.", default=OLDEST_SEED)
    start_ns: int = part("start", TIME, "Where the virtual clock starts.", default=OLDEST_START_NS)
    scheduler: Manifest | None = part(
        "scheduler",
        DOCUMENT,
        "A KubeSchedulerConfiguration or Policy; the default one when left out.",
        default=None,
    )
    assumed_expiry_ns: int | None = part(
        "durationToExpireAssumedPod",
        DURATION,
        "How long a pod is assumed on its node without news of its Binding; for ever when left out, as in Kubernetes.",
        default=None,
    )
    plugins: tuple[PluginRef, ...] = part(
        "plugins",
        ListOf(part_of(PluginRef)),
        "Plugins from outside the tree that its configurations name; found out when left out.",
    )
    objects: tuple[Manifest, ...] = part(
        "objects", MANIFESTS, "The cluster at the start, as ordinary manifests."
    )
    kept: tuple[Manifest, ...] = part(
        "kept",
        MANIFESTS,
        "Objects that shape no placement: a run passes over them, a cluster made of the scenario has them.",
    )
    extenders: Extenders | None = part(
        "extenders", part_of(Extenders), "The extenders' answers.", default=None
    )
    steps: tuple[Step, ...] = part(
        "steps", ListOf(part_of(Step)), "What happens then; `run: idle` when left out."
    )
    path: tuple[PathStop, ...] = part("path", ListOf(part_of(PathStop)), "A guided path through the cycles.")
    expect: tuple[Expectation, ...] = part(
        "expect", ListOf(part_of(Expectation)), "What must hold in the end."
    )
    decisions: Decisions | None = part("decisions", part_of(Decisions), "What was decided.", default=None)

    @property
    def release(self) -> Release:
        """The release it follows, its gates switched."""
        return release_named(self.kubernetes_release).with_gates(self.feature_gates)
