"""What questions about decisions are answered; made in `scheduler_core.whatif`, questions of a plan in `plans`."""

from __future__ import annotations

from playground.api.serializers.answers import Answer, Payload
from playground.api.serializers.cycles import CycleExplanation
from playground.api.serializers.objects import Condition
from playground.api.serializers.shapes import (
    Manifests,
    by_name,
    flag,
    many,
    number,
    text,
    texts,
    whole,
    word,
)


class EditChange(Answer):
    """What an edit does; a branch does the same."""

    write = Manifests(required=False, help_text="Objects that are written, one or several.")
    delete = texts("Pods, namespace/name.", required=False)
    move = texts("A pod, and the node it is moved to.", required=False)


class Displaced(Answer):
    """A pod that makes room, and where it lands."""

    pod = text()
    owner = text()
    ownerIsThere = flag("Null: it has none, or one of a kind that is not read.", allow_null=True)
    node = text(allow_null=True)
    message = text()


class ProvenEdit(Answer):
    """An edit after which a cycle places the pod."""

    kind = text()
    about = text()
    title = text()
    note = text()
    removed = texts()
    added = texts()
    cost = whole("The smaller, the cheaper.")
    price = text("The cost in words.")
    size = number()
    change = EditChange()
    node = text(allow_null=True)
    outcome = text()
    nFeasible = whole()
    feasible = texts()
    victims = texts()
    disruption = whole()
    lastResort = flag(
        "It goes against what a taint says of the nodes: broken, cordoned, of the control plane."
    )
    displaced = Displaced(many=True)
    placed = whole("Of the pending pods of its workload, find a node once it is made of all; 0: not tried.")
    of = whole("Pending pods of its workload.")


class FailedEdit(Answer):
    kind = text()
    title = text()
    message = text("What the cycle says then.")


class Distance(Answer):
    """How far a node is from taking the pod."""

    node = text()
    plugins = texts()
    words = text()
    missing = number("The largest share of a request that is missing.")


class Edits(Answer):
    """Of what-would-it-take: every single edit that places the pod, the cheapest first."""

    pod = text()
    nNodes = whole()
    outcome = text("Without an edit.")
    node = text(allow_null=True)
    message = text(allow_null=True)
    edits = ProvenEdit(many=True)
    failed = FailedEdit(many=True)
    nTried = whole()
    nMore = by_name(whole(), "Edits left out, by kind.")
    causes = texts("What the message only implies.")
    editedIn = text("Whose template edits of the pod are made in; empty for a pod alone.")
    nDecisions = whole("Cycles that were run for it.")
    nUnlooked = whole("Edits that were not tried for the other pods of the workload: a limit was reached.")
    nAlike = whole("Pending pods that ask for the same, this one among them.")
    distances = Distance(many=True)
    requests = by_name(whole(), "In whole units: millicores, bytes.")
    priority = whole()
    seq = whole()
    nowNs = whole("Virtual time, nanoseconds since 1970.")


class ComparedValue(Answer):
    about = text()
    asks = text()
    has = text()
    ok = flag(allow_null=True)
    short = text()
    withNominated = text()


class FilterAnswer(Answer):
    plugin = text()
    state = text()
    stopped = flag("It is the one that stopped the node.")
    code = text()
    reasons = texts()
    values = ComparedValue(many=True)


class ScoreAnswer(Answer):
    plugin = text()
    weight = whole()
    raw = whole()
    score = whole()
    points = whole("Score times weight.")
    winnerRaw = whole()
    winnerScore = whole()
    winnerPoints = whole()
    lost = whole("Points.")


class WhyNot(Answer):
    """Of why-not: every filter with what it compared, and score by score why the node loses."""

    pod = text()
    node = text()
    verdict = word("rejected", "lost", "tied", "chosen")
    sentence = text()
    rejectedBy = text()
    filters = FilterAnswer(many=True)
    needs = texts()
    scores = ScoreAnswer(many=True)
    total = whole(allow_null=True)
    winner = text(allow_null=True)
    winnerTotal = whole(allow_null=True)
    margin = whole("Points between it and the winner.", allow_null=True)
    rank = whole(allow_null=True)
    nFeasible = whole()
    nominated = texts("Pods of equal or higher priority that are nominated to the node.")
    cycle = whole(required=False)


class ExactNumber(Answer):
    """A fraction, exactly and as a number."""

    text = text()
    value = number()


class WeightInterval(Answer):
    start = ExactNumber()
    end = ExactNumber(allow_null=True)
    winners = texts()
    nWinners = whole()


class WeightSwitch(Answer):
    """Where the winner switches."""

    at = ExactNumber()
    below = whole("The next whole weight below.")
    above = whole()
    before = texts("Winners below.")
    after = texts("Winners above.")


class PluginWeights(Answer):
    plugin = text()
    weight = whole()
    intervals = WeightInterval(many=True)
    switches = WeightSwitch(many=True)


class WeighedNode(Answer):
    node = text()
    total = whole()
    recorded = whole()
    rank = whole()
    tied = flag()
    recordedRank = whole()


class Settling(Answer):
    """The nearest whole weight that leaves one winner."""

    plugin = text()
    weight = whole()
    winner = text()


class WeightProof(Answer):
    plugin = text()
    weight = whole()
    winners = texts()
    agrees = flag("Whether deciding again gives the computed winners.")


class SeedDraw(Answer):
    seed = whole()
    node = text()


class Draw(Answer):
    stream = text()
    number = whole()
    tied = texts()
    nTied = whole()
    chosen = text(allow_null=True)
    place = whole(allow_null=True)
    seed = whole()
    seeds = SeedDraw(many=True)
    counts = by_name(whole(), "By node, of `nCounted` seeds.")
    nCounted = whole()


class Weights(Answer):
    """Of weights: from which weight on another node would have won."""

    weights = by_name(whole())
    winners = texts()
    skipped = texts()
    plugins = PluginWeights(many=True)
    set = by_name(whole())
    nodes = WeighedNode(many=True)
    nNodes = whole()
    settle = Settling(allow_null=True)
    proofs = WeightProof(many=True)
    same = flag("Whether deciding the cycle again gives what was recorded.")
    draw = Draw(allow_null=True)


class Tried(Answer):
    """Of try: the cycle the pod would have."""

    outcome = text()
    sentence = text()
    cycle = CycleExplanation()


class RuleOnNode(Answer):
    node = text()
    verdict = text()
    why = text()
    raw = number(allow_null=True)
    score = whole(allow_null=True)


class TriedRuleAnswer(Answer):
    """Of try-rule: what the rule says of every node."""

    nNodes = whole()
    holds = whole()
    rejects = whole()
    fails = whole()
    error = text(allow_null=True)
    best = whole(allow_null=True)
    maxScore = whole()
    nodes = RuleOnNode(many=True)


class DevicesOfNode(Answer):
    node = text()
    verdict = word("allocated", "rejected", "error")
    reason = text()
    refusals = by_name(whole(), "Devices by what first stood against them.")
    nDevices = whole()


class DeviceCheck(Answer):
    check = text()
    ok = flag(allow_null=True)
    words = text()


class DeviceRow(Answer):
    claim = text()
    request = text()
    driver = text()
    pool = text()
    device = text()
    about = text()
    outcome = text()
    check = text("What first stood against it.")
    words = text()
    checks = DeviceCheck(many=True)
    place = whole("In the order they were given; -1: it was not.")
    holder = text()
    taints = texts()


class DeviceRequest(Answer):
    request = text()
    locals()["class"] = text()
    count = text("A number, or all.")
    selectors = texts()
    capacity = by_name(text())
    adminAccess = flag()


class DeviceConstraint(Answer):
    kind = text()
    attribute = text(allow_null=True)
    requests = texts()


class DeviceClaim(Answer):
    claim = text()
    podClaim = text()
    requests = many(many(DeviceRequest()), "Each with its alternatives, the first choice first.")
    constraints = DeviceConstraint(many=True)


class UnusablePool(Answer):
    pool = text()
    why = text()


class AllocatedDevice(Answer):
    request = text()
    driver = text()
    pool = text()
    device = text()


class OpenNode(DevicesOfNode):
    """One node, device by device."""

    claims = DeviceClaim(many=True)
    devices = DeviceRow(many=True)
    nMore = whole()
    pools = UnusablePool(many=True)
    allocated = many(Payload(), "Results as a ResourceClaim's status has them.")


class DevicesAnswer(Answer):
    """Of devices: how a cycle looked for its pod's devices."""

    pod = text()
    plugin = text()
    refused = text("Why no node was looked at.")
    nodes = DevicesOfNode(many=True)
    nNodes = whole()
    nAllocated = whole()
    open = OpenNode(allow_null=True)
    cycle = whole()
    bound = text(allow_null=True)


class GroupMember(Answer):
    pod = text()
    uid = text()
    priority = whole()
    state = word("bound", "assumed", "waiting")
    node = text(allow_null=True)
    fits = text("The node it would get now.", allow_null=True)
    message = text(allow_null=True)
    nFeasible = whole(allow_null=True)
    attempts = whole()
    lane = text(allow_null=True)
    heldBy = text(allow_null=True)


class NodeOfMembers(Answer):
    node = text()
    members = texts()


class GroupRemedy(Answer):
    """A change with which the whole group was placed."""

    kind = word("minCount", "addNodes", "evict")
    sentence = text()
    to = whole("Of minCount.", required=False)
    like = text("Of addNodes: a node.", required=False)
    count = whole("Of addNodes.", required=False)
    pods = texts("Of evict.", required=False)
    gate = text(
        "Of evict: the feature gate without which the cluster does not do so by itself.", required=False
    )
    change = EditChange()


class GroupStory(Answer):
    """Of group: who of a pod group fits where, and what was proved to place it."""

    group = text()
    policy = word("basic", "gang")
    minCount = whole(allow_null=True)
    priority = whole()
    sentence = text()
    condition = Condition(allow_null=True)
    scheduled = whole()
    fit = whole()
    needed = whole()
    missing = whole()
    members = GroupMember(many=True)
    nodes = NodeOfMembers(many=True)
    firstWithoutNode = text(allow_null=True)
    remedies = GroupRemedy(many=True)


class JudgedCount(Answer):
    """Of judge: how many decisions got a verdict, and how many wait."""

    judged = whole()
    left = whole()
