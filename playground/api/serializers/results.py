"""What searches and comparisons find: luck, optimum, model, upgrade, runs side by side."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from playground.api.serializers.advice import Settling
from playground.api.serializers.answers import Answer
from playground.api.serializers.plans import Expectation
from playground.api.serializers.shapes import (
    by_name,
    flag,
    many,
    number,
    text,
    texts,
    whole,
    word,
)


class PodEnd(Answer):
    pod = text()
    node = text("Empty: pending, or gone.")
    gone = flag()


class EndState(Answer):
    letter = text()
    n = whole("Seeds that end so.")
    seeds = many(whole())
    bound = whole()
    pending = texts()
    nPending = whole()
    differs = PodEnd(many=True)


class RestOfEnds(Answer):
    nStates = whole()
    n = whole()


class RunningEnd(Answer):
    n = whole()
    nPending = whole()
    pending = texts()
    hidden = whole()


class SometimesPending(Answer):
    pod = text()
    runs = whole("In how many seeds it runs.")


class SometimesGone(Answer):
    pod = text()
    stays = whole("In how many seeds it stays.")


class NodeCount(Answer):
    node = text()
    n = whole()


class DrawnTie(Answer):
    cycle = whole()
    pod = text()
    nEqual = whole()
    nDrawn = whole()
    counts = NodeCount(many=True)
    decides = texts("Pods whose place follows from it.")
    nDecides = whole()
    recorded = whole("Cycle of the recorded run.", required=False, allow_null=True)
    tied = texts(required=False)
    settle = Settling(required=False, allow_null=True)


class LuckLevel(Answer):
    cycle = whole()
    pod = text()
    parts = NodeCount(many=True)


class ChanceMark(Answer):
    cycle = whole()
    pod = text()
    kind = text()
    n = whole()
    nodes = texts()


class EndStates(Answer):
    """Of seeds and luck: end states and how often each occurs."""

    nSeeds = whole()
    first = whole()
    nStates = whole()
    states = EndState(many=True)
    rest = RestOfEnds()
    nVarying = whole()
    byRunning = RunningEnd(many=True)
    nPods = whole()
    nCycles = whole()
    sometimesPending = SometimesPending(many=True)
    sometimesGone = SometimesGone(many=True)
    ties = DrawnTie(many=True)
    path = LuckLevel(many=True)
    marks = ChanceMark(many=True)
    nMarks = by_name(whole(), "By kind.")
    engine = text(required=False)


class PriorityLevel(Answer):
    priority = whole()
    pods = whole()
    now = whole()
    best = whole()
    atMost = whole()


class BestPlace(Answer):
    pod = text()
    priority = whole()
    now = text()
    best = text()


class OptimumResult(Answer):
    levels = PriorityLevel(many=True)
    placed = many(whole(), "Pods with a node: now, best.")
    score = many(whole(), "Sum of scores: now, best.")
    scoreAtMost = number(allow_null=True)
    gap = number(allow_null=True)
    proved = flag()
    pods = BestPlace(many=True)
    nMoved = whole()
    nRules = whole()
    coupled = texts("Plugins whose rules between pods are constraints of the search.")
    room = by_name(by_name(whole()), "By node and resource.")
    tookS = number()


class PropertyCounts(Answer):
    holds = whole()
    leaves = whole()
    fails = whole()
    notComputed = whole()


class FirstDeparture(Answer):
    cycle = whole()
    sentence = text()


class Departure(Answer):
    departure = text()
    property = text()
    why = text()
    count = whole()
    first = FirstDeparture()


class Loss(Answer):
    budgetViolations = whole()
    highestPriority = whole(allow_null=True)
    prioritySum = whole()
    pods = whole()
    earliestStart = text(allow_null=True)


@extend_schema_field({"type": ["string", "integer", "number", "boolean", "null"]})
class Fact(serializers.Field):  # type: ignore[type-arg]
    """A value of a counterexample."""


class Counterexample(Answer):
    """What would have been right."""

    node = text(required=False)
    victims = texts(required=False)
    loss = Loss(required=False)
    pod = text(required=False)
    priority = whole(required=False)
    model = Fact(required=False)
    points = Fact(required=False)
    total = Fact(required=False)


class ModelVerdict(Answer):
    property = text()
    status = word("holds", "leaves", "fails", "notComputed")
    sentence = text()
    departure = text(required=False)
    counterexample = Counterexample(required=False)


class ModelViolation(ModelVerdict):
    cycle = whole()
    pod = text()


class ModelCycle(Answer):
    cycle = whole()
    pod = text()
    outcome = text()
    possible = whole()
    feasible = whole()
    viable = whole()
    verdicts = ModelVerdict(many=True)


class ModelResult(Answer):
    status = word("holds", "fails")
    sentence = text()
    counts = by_name(PropertyCounts(), "By property.")
    departures = Departure(many=True)
    violations = ModelViolation(many=True)
    cycles = ModelCycle(many=True)
    nCycles = whole()


class ReleaseSetting(Answer):
    name = text()
    switched = by_name(flag(), required=False)
    simulation = whole(required=False)


class Toggle(Answer):
    name = text()
    is_gate = flag()
    sentence = text()


class UpgradeDifference(Answer):
    pod = text()
    kind = text()
    before = text()
    after = text()
    cycle = whole()
    follows = flag("It only follows from another.")


class UpgradeCause(Answer):
    name = text()
    toggles = Toggle(many=True)
    proved = text()
    n = whole()
    differences = UpgradeDifference(many=True)


class UpgradeScore(Answer):
    node = text()
    plugin = text()
    a = whole(allow_null=True)
    b = whole(allow_null=True)


class UpgradeDivergence(Answer):
    cycle = whole()
    pod = text()
    before = text()
    after = text()
    totals = by_name(many(whole(allow_null=True)), "By node: before, after.")
    scores = UpgradeScore(many=True)
    reasons = by_name(texts(), "By node: before, after.")


class UpgradeResult(Answer):
    before = ReleaseSetting()
    after = ReleaseSetting()
    sentence = text()
    same = flag()
    pods = whole()
    cycles = many(whole(), "Before, after.")
    unbound = many(whole(), "Before, after.")
    counts = by_name(whole(), "Differences by kind.")
    causes = UpgradeCause(many=True)
    unexplained = UpgradeDifference(many=True)
    firstDivergence = UpgradeDivergence(allow_null=True)
    runs = whole()
    test = Expectation()


class ComparedSide(Answer):
    name = text("Of the side: a, b, c, ...")
    words = text()
    detail = text()
    cycles = whole()
    elapsedNs = whole()


class ComparedCycle(Answer):
    number = whole()
    pod = text()
    outcome = text()
    node = text()
    sentence = text()
    message = text()


class DecisionOfSide(Answer):
    name = text("Of the side: a, b, c, ...")
    decision = ComparedCycle(allow_null=True)


class ScoringPlugin(Answer):
    name = text()
    weight = whole()


class ScoreRow(Answer):
    node = text()
    points = many(by_name(whole(), allow_null=True), "Of every side, by plugin.")
    totals = many(whole(allow_null=True))
    chosen = many(flag())


class ReasonRow(Answer):
    node = text()
    reasons = texts("Of every side.")


class Divergence(Answer):
    """The first decision about the first pod whose outcome differs; `sides` has what each did, in order.

    Decisions stand beside each other if they are about the same attempt of the same pod, whatever their cycles are.
    """

    cycle = whole()
    pod = text()
    samePod = flag("Whether all sides decided about the pod's attempt.")
    attempt = whole("Of the pod, counted from where the sides parted.")
    why = text(
        "Of two sides: which plugin, score or filter made the difference; empty where it is not known."
    )
    sides = DecisionOfSide(many=True)
    notes = texts("Of every side: what became of the pod where there is no decision, else empty.")
    plugins = many(ScoringPlugin(many=True))
    rows = ScoreRow(many=True)
    reasons = ReasonRow(many=True)
    ties = many(whole())


class PlaceOnSide(Answer):
    name = text("Of the side: a, b, c, ...")
    node = text()
    state = text()


class MovedPod(Answer):
    pod = text()
    cycle = whole(allow_null=True)
    cpuMilli = whole()
    priority = whole()
    priorityClass = text()
    sides = PlaceOnSide(many=True)


class PackedPod(Answer):
    namespace = text()
    name = text()
    priority = whole()
    priority_class = text()
    cpu_milli = whole()
    memory_bytes = whole()
    terminating = flag()


class PackedNode(Answer):
    """A node with its pods on every side."""

    node = text()
    cpuMilli = many(whole())
    memoryBytes = many(whole())
    there = many(flag())
    pods = many(PackedPod(many=True))


@extend_schema_field({"type": ["string", "integer", "boolean"]})
class ClassCell(serializers.Field):  # type: ignore[type-arg]
    """Of a PriorityClass: its name, value, and whether it is the global default."""


class ComparisonResult(Answer):
    sides = ComparedSide(many=True)
    figures = by_name(many(number()), "By name, a number a side.")
    nSame = whole("Decisions that are the same on all sides before the first that is not.")
    divergence = Divergence(allow_null=True)
    moved = MovedPod(many=True)
    nMoved = whole()
    packing = PackedNode(many=True)
    nNodes = whole()
    classes = many(many(ClassCell()), "Of each PriorityClass: name, value, whether it is the global default.")
