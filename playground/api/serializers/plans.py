"""Answers about a whole cluster, as `scheduler_core.whatif.questions` makes them: one shape for every question."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from playground.api.serializers.advice import EditChange
from playground.api.serializers.answers import Answer, Choice
from playground.api.serializers.objects import Quantity
from playground.api.serializers.requests import Strict, StrictNumber, StrictString
from playground.api.serializers.shapes import (
    Figure,
    Manifest,
    by_name,
    flag,
    many,
    number,
    text,
    texts,
    whole,
    word,
)
from scheduler_core.whatif.questions import ASKS


class Price(Strict):
    """A type of node that may be bought."""

    name = StrictString()
    cpu = Quantity()
    memory = Quantity()
    price = StrictNumber(help_text="Of one node for an hour, in whatever money the list is in.")
    pods = Quantity(required=False, help_text="110 if not said.")
    devices = serializers.DictField(child=Quantity(), required=False)
    labels = serializers.DictField(child=StrictString(allow_blank=True), required=False)
    taints = serializers.ListField(child=StrictString(), required=False, help_text="`key=value:Effect`")


class PlanRequest(Strict):
    """What is asked; which fields go with it is the question's."""

    ask = Choice(list(ASKS))
    nodes = serializers.ListField(
        child=StrictString(), required=False, help_text="Of drain and lose: names of nodes."
    )
    label = StrictString(  # type: ignore[assignment]  # a field, which Django REST framework takes off the class
        required=False, help_text="Of drain and lose KEY=VALUE, of any-domain KEY: nodes that carry it."
    )
    workload = StrictString(required=False, help_text="Of headroom and backlog: KIND NAMESPACE/NAME.")
    pod = Manifest(required=False, help_text="Of headroom: a Pod.")
    prices = Price(
        many=True,
        required=False,
        help_text="Of backlog and consolidate: types of nodes, in place of those shipped.",
    )


class PlanFigure(Answer):
    words = text()
    value = Figure()


class PlanLine(Answer):
    """A sentence with what stands under it."""

    tone = text()
    note = text()
    node = text(required=False)
    nodes = whole(required=False)
    count = whole(required=False)
    budget = text(required=False)
    price = text(required=False)
    workload = text(required=False)
    value = text(required=False)
    of = whole(required=False)
    text = text()


class PlanMove(Answer):
    """A pod that moves, or should have."""

    pod = text()
    owner = text()
    locals()["from"] = text()  # a keyword of this language
    outcome = text("lands, pending, blocked, lost, preempted, ...")
    node = text(allow_null=True)
    reason = text()
    because = text("The pod that preempts it.")
    onceDeleted = text(
        "Where it lands once the drained nodes are deleted; it waits until then.", allow_null=True
    )
    to = text("Where it lands, or what comes of it, in words.")
    step = whole("Of consolidate: with which node it moves.", required=False)


@extend_schema_field({"type": ["string", "integer"]})
class MapCell(serializers.Field):  # type: ignore[type-arg]
    """Of a node of the map: name, state, cpu requested in percent, a number its state explains, zone."""


class PlanNodes(Answer):
    name = text()
    shape = text()
    nodes = many(many(MapCell()), "Of each: name, state, cpu in percent, a number its state explains, zone.")


class Deleted(Answer):
    kind = text()
    name = text()
    namespace = text(required=False)


class PlanStep(Answer):
    """A step of a scenario that shows the answer; one of these."""

    drain = text(required=False)
    cordon = text(required=False)
    delete = Deleted(required=False)
    apply = Manifest(required=False)


class Survives(Answer):
    anyOneNode = flag(required=False)
    anyZone = flag(required=False)
    anyOf = text(required=False)
    maxPending = whole(required=False)


class DrainTest(Answer):
    nodes = texts()


class FitsTest(Answer):
    deployment = text(required=False)
    statefulSet = text(required=False)
    pod = text(required=False)
    atLeast = whole()


class CountTest(Answer):
    max = whole()


class UpgradeTest(Answer):
    kubernetesRelease = text()
    featureGates = by_name(flag(), required=False)


class Expectation(Answer):
    """An entry of a scenario's `expect` that holds as long as the answer does."""

    survives = Survives(required=False)
    drain = DrainTest(required=False)
    fits = FitsTest(required=False)
    metric = text(required=False)
    count = CountTest(required=False)
    upgrade = UpgradeTest(required=False)


class PlanLuck(Answer):
    seeds = whole()
    holds = whole("In how many of them it holds.")


class PlanQuestion(Answer):
    """The question in its normal form."""

    ask = word(*ASKS)
    nodes = texts(required=False)
    label = text(required=False)  # type: ignore[assignment]  # a field, which Django REST framework takes off the class
    workload = text(required=False)
    pod = Manifest(required=False)
    prices = Price(many=True, required=False)


class FewestNodes(Answer):
    nodes = whole()
    bound = whole()
    cost = number()
    types = by_name(whole())
    steps = PlanStep(many=True)


class PlanEdit(Answer):
    kind = text()
    title = text()
    note = text()
    removed = texts()
    added = texts()
    cost = whole()
    price = text()
    change = EditChange()
    placed = whole()


class EditedWorkload(Answer):
    workload = text()
    pods = texts()
    nPods = whole()
    edits = PlanEdit(many=True)


class RestOfPlan(Answer):
    cost = number()
    types = by_name(whole())
    placed = whole()


class PlanEdits(Answer):
    workloads = EditedWorkload(many=True)
    without = texts("Workloads that no edit places.")
    unasked = whole("Workloads whose edits were not looked for: a limit was reached.")
    together = whole()
    rest = RestOfPlan(allow_null=True)


class PlanLimit(Answer):
    """Where the search for an answer ended before it was through."""

    decisions = whole("So many were its most.")
    untried = whole("Nodes that it did not come to.")


class PlanAnswer(Answer):
    """Of plan."""

    question = PlanQuestion()
    verdict = text("One sentence.")
    tone = word("good", "warning", "bad")
    figures = PlanFigure(many=True)
    lines = PlanLine(many=True)
    nLines = whole()
    moves = PlanMove(many=True)
    nMoves = whole()
    map = PlanNodes(many=True)
    steps = PlanStep(many=True)
    test = Expectation(allow_null=True)
    decisions = whole("How many it took.")
    luck = PlanLuck(allow_null=True)
    leavesOut = texts()
    heldUp = by_name(texts(), "Of any-node: by budget, nodes whose drain waits for it.", required=False)
    cost = number("Of backlog: an hour.", required=False)
    saved = number("Of consolidate: an hour.", required=False)
    bound = number("What no plan betters.", required=False)
    gap = number(required=False)
    limit = PlanLimit(required=False)
    fewest = FewestNodes(required=False, allow_null=True)
    edits = PlanEdits(required=False, allow_null=True)
