"""A scheduling cycle opened up, and a pod's story; the words come from `scheduler_core.framework.words`."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from playground.api.serializers.answers import Answer, Payload, QueueItem
from playground.api.serializers.shapes import (
    by_name,
    flag,
    moment,
    number,
    text,
    texts,
    whole,
    word,
)
from playground.clusters.choices import CycleOutcome

CODES = ("Success", "Error", "Unschedulable", "UnschedulableAndUnresolvable", "Wait", "Skip", "Pending")


class Tie(Answer):
    """A draw among nodes with the same best total."""

    count = whole()
    chosen = text()
    stream = text("The stream of random numbers it was drawn from.")
    nodes = texts("In evaluation order.")


class PointState(Answer):
    """What became of an extension point."""

    point = text()
    state = word("done", "skipped", "failed", "acted", "waiting", "not reached")
    detail = text()


class ExtenderCall(Answer):
    url = text()
    verb = text()
    request = Payload(allow_null=True)
    answer = text("As it came.")
    status = whole("Of HTTP; null where none came.", allow_null=True)
    durationMs = number("By which the cluster's own time went on.", allow_null=True)
    error = text(allow_null=True)
    ignored = flag("The extender is ignorable, and failed.")
    tookMs = number("By the wall clock.", required=False, allow_null=True)


class PermitTold(Answer):
    plugin = text()
    decision = word("allow", "reject", "wait")
    timeoutS = number("Of a wait.", required=False)
    afterS = number("How long it had waited.", required=False)
    reason = text(required=False)


class AwaitedBinding(Answer):
    """How long the Binding was awaited that a bind extender said it made."""

    since = moment()
    until = moment(allow_null=True)
    node = text("The node it named; null where none came.", allow_null=True)


class GroupTurn(Answer):
    """Of a member of a pod group: what its group's cycle was."""

    group = text("namespace/name")
    members = whole()
    placed = whole()
    scheduledBefore = whole()
    status = text()
    message = text()
    first = whole("Number of the first member's cycle.")
    place = whole()


class Verdict(Answer):
    """Why a filter rejected a node."""

    plugin = text("Null: an extender.", allow_null=True)
    code = word(*CODES)
    reasons = texts()


class PreFilterVerdict(Answer):
    plugin = text(allow_null=True)
    code = word(*CODES)
    reasons = texts()
    nodeNames = texts("The only nodes PreFilter left; null: all.", allow_null=True)


class CodeAndReasons(Answer):
    code = word(*CODES)
    reasons = texts()


class FilterAlone(Answer):
    """What one filter plugin says by itself, whichever plugin stopped a node in the cycle."""

    fails = by_name(CodeAndReasons(), "By node.", required=False)
    preFilter = CodeAndReasons(required=False)
    nodeNames = texts("The only nodes its PreFilter left.", required=False)


class TwoPassesOfNode(Answer):
    node = text()
    pods = texts("Nominated there.")
    failsIn = word("with", "without", "both", allow_null=True)
    # The names are keywords of this language.
    locals()["with"] = Verdict(allow_null=True)
    without = Verdict(allow_null=True)


class TwoPasses(Answer):
    """Nodes filtered with and without the pods that are nominated there."""

    count = whole()
    nodes = TwoPassesOfNode(many=True)


class NodeSampling(Answer):
    """Which nodes preemption was tried on."""

    potential = whole()
    offset = whole()
    wanted = whole()
    tried = whole()


class Step(Answer):
    """A pod that was tried to be given back."""

    pod = text()
    priority = whole()
    startTime = moment(allow_null=True)
    violatesBudget = flag()
    budgets = texts("namespace/name")
    kept = flag("It may stay; else it is a victim.")


class Room(Answer):
    """Of one resource on a node, in whole units: millicores, bytes."""

    allocatable = whole()
    before = whole("In use now.")
    after = whole("With the pod in place of the victims.")
    needed = whole(required=False)


@extend_schema_field({"type": ["integer", "string", "null"]})
class CriterionValue(serializers.Field):  # type: ignore[type-arg]
    """A number, or a time; null where nothing has started."""


class Candidate(Answer):
    node = text()
    victims = texts()
    numPDBViolations = whole()
    violatedBudgets = texts()
    steps = Step(many=True)
    room = by_name(Room(), "By resource.")
    eliminatedAt = text("The criterion that left it out; null: none.", allow_null=True)
    criterionValues = by_name(CriterionValue(), "By criterion that was asked.")
    cutByExtender = flag()
    victimsBeforeExtenders = texts(required=False)


class Criterion(Answer):
    name = text()
    wins = word("smallest", "largest")
    best = CriterionValue()
    left = whole("How many candidates were left by it.")


class NotCandidates(Answer):
    code = word(*CODES, allow_null=True)
    plugin = text(allow_null=True)
    reasons = texts()
    count = whole()
    nodes = texts()


class Preemption(Answer):
    """What PostFilter did; without `eligible` no plugin that preempts was asked."""

    eligible = flag(required=False)
    ineligibleReason = text(required=False, allow_null=True)
    nPotential = whole(required=False)
    nTried = whole(required=False)
    nCandidates = whole(required=False)
    nominatedNode = text(allow_null=True)
    victims = texts()
    clearedNominations = texts(required=False)
    decidedBy = text(required=False, allow_null=True)
    ambiguous = flag(required=False)
    nTied = whole(required=False)
    tieStream = text(required=False, allow_null=True)
    sampling = NodeSampling(required=False, allow_null=True)
    candidates = Candidate(many=True, required=False)
    criteria = Criterion(many=True, required=False)
    tied = texts(required=False)
    notCandidates = NotCandidates(many=True, required=False)
    code = word(*CODES)
    message = text()
    event = text("The whole text of the FailedScheduling event.", allow_null=True)
    clearsNomination = flag()


def _by_plugin_and_node(words: str) -> serializers.DictField:
    return by_name(by_name(whole()), words, required=False, allow_null=True)


class CycleExplanation(Answer):
    """A cycle, opened up. What follows `full` is there where the whole record is kept (`full: true`)."""

    cycle = whole()
    pod = text("namespace/name")
    uid = text()
    profile = text()
    attempt = whole()
    at = moment("Virtual time.")
    outcome = word(*CycleOutcome.values)
    sentence = text()
    headline = text()
    node = text(allow_null=True)
    nNodes = whole()
    nFeasible = whole()
    nViable = whole()
    nodesEvaluated = whole()
    bestTotal = whole(allow_null=True)
    tie = Tie(allow_null=True)
    message = text("Kubernetes' own text of the FailedScheduling event.", allow_null=True)
    fitError = text(allow_null=True)
    error = text(allow_null=True)
    failedPlugin = text(allow_null=True)
    victims = texts()
    nominatedNode = text("Empty where a nomination is taken back.", allow_null=True)
    points = PointState(many=True)
    extenders = ExtenderCall(many=True)
    permit = PermitTold(many=True)
    awaited = AwaitedBinding(allow_null=True)
    group = GroupTurn(required=False)
    emulates = text()
    kubernetesRelease = text()
    featureGates = by_name(flag())
    engine = text()
    digest = text("SHA-256 of what was decided.")
    full = flag()
    dryRun = flag(required=False)
    repeats = whole("Attempts of the same outcome without news between.", required=False)
    traceNote = text("Why the whole record is not there.", required=False)
    nodes = texts("In evaluation order.", required=False)
    preFilter = PreFilterVerdict(required=False)
    filterPlugins = texts(required=False)
    scorePlugins = texts(required=False)
    skippedFilter = texts(required=False)
    skippedScore = texts(required=False)
    weights = by_name(whole(), required=False)
    filter = by_name(
        Verdict(allow_null=True),
        "By node that was looked at; null: it passes.",
        required=False,
        allow_null=True,
    )
    feasible = texts(required=False)
    rawScores = _by_plugin_and_node("By plugin and node, before they are normalised.")
    scores = _by_plugin_and_node("By plugin and node, 0 to 100.")
    total = by_name(whole(), "By node, each score times its weight.", required=False, allow_null=True)
    best = texts(required=False, allow_null=True)
    nominatedPasses = TwoPasses(required=False, allow_null=True)
    filterByPlugin = by_name(FilterAlone(), "With `full`.", required=False)
    amounts = by_name(by_name(texts()), "With `full`: by plugin and node, what was compared.", required=False)
    preemption = Preemption(required=False, allow_null=True)


class QueuePlace(QueueItem):
    lane = text()


class EventWithoutEffect(Answer):
    at = moment("Virtual time.")
    event = text()
    plugin = text(allow_null=True)
    hint = text("What the plugin answered: Skip.", allow_null=True)
    reason = text(allow_null=True)


class StoryItem(Answer):
    at = moment("Virtual time.")
    what = word("written", "deleted", "move", "cycle", "event", "decision")
    title = text()
    detail = text(allow_null=True)
    cycle = whole(allow_null=True)
    outcome = text(allow_null=True)
    plugin = text("Of a queue move: the plugin that was asked about the event.", allow_null=True)
    hint = text("What it answered: Queue, Skip or error.", allow_null=True)
    reason = text(allow_null=True)
    withoutEffect = EventWithoutEffect(
        many=True, help_text="Events that left the pod where this move had put it."
    )


class Story(Answer):
    """Everything that happened to one pod, oldest first."""

    pod = text("namespace/name")
    exists = flag()
    phase = text(allow_null=True)
    node = text(allow_null=True)
    waitsFor = text(allow_null=True)
    queue = QueuePlace(allow_null=True)
    story = StoryItem(many=True)
