"""What is answered, for the document and its tests; the values are made in `representations`."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers


def _named(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


MANIFEST: Final = _named("Manifest")
OPEN: Final[dict[str, dict[str, Any]]] = {
    "Manifest": {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "additionalProperties": {}},
        },
        "additionalProperties": {},
        "description": "An object as Kubernetes writes it; its other fields are in Kubernetes' own reference.",
    },
    "Payload": {
        "type": "object",
        "additionalProperties": {},
        "description": "JSON of a protocol of Kubernetes, as it was sent.",
    },
}
"""The shapes that are open: what Kubernetes' reference defines is not defined here again."""


@extend_schema_field(MANIFEST)
class Manifest(serializers.Field[Any, Any, Any, Any]):
    """An object as Kubernetes writes it."""


@extend_schema_field(_named("Payload"))
class Payload(serializers.Field[Any, Any, Any, Any]):
    """JSON of a protocol of Kubernetes, such as an extender's arguments (ExtenderArgs)."""


class Choice(serializers.ChoiceField):
    """One of some words; the refusal of another lists them."""

    def fail(self, key: str, **kwargs: Any) -> NoReturn:
        if key == "invalid_choice":
            raise serializers.ValidationError(
                f'"{kwargs["input"]}" is none of {", ".join(map(str, self.choices))}', code=key
            )
        super().fail(key, **kwargs)


class Answer(serializers.Serializer[Any]):
    """Never validates anything; it only says what an answer looks like."""


def _text(words: str = "", **how: Any) -> serializers.CharField:
    return serializers.CharField(help_text=words or None, **how)


class Cause(Answer):
    detail = _text()
    document = serializers.IntegerField(required=False)
    line = serializers.IntegerField(required=False)
    column = serializers.IntegerField(required=False)
    field = _text(required=False)
    value = serializers.JSONField(required=False)
    kind = _text(required=False)
    name = _text(required=False)
    namespace = _text(required=False)


class Problem(Cause):
    """Problem details (RFC 9457)."""

    type = _text("Path of the reason's explanation.")
    title = _text()
    status = serializers.IntegerField()
    reason = _text("Kubernetes' word for it.")
    requestId = _text("Of the request, as X-Request-Id tells; logs have it.")
    causes = Cause(many=True, required=False)


class Deadline(Answer):
    at = serializers.DateTimeField()
    what = _text()


class ClockAnswer(Answer):
    mode = Choice(["paused", "realtime"])
    rate = serializers.FloatField(help_text="Virtual seconds a wall second, while it runs.")
    now = serializers.DateTimeField(help_text="The cluster's virtual time.")
    startedAt = serializers.DateTimeField()
    nextDeadline = Deadline(allow_null=True)
    note = _text(allow_null=True)
    offered = serializers.BooleanField(
        help_text="Whether kubectl wrote while it was paused, and no user has said yet that it shall run or stay."
    )


class AssumedPodsAnswer(Answer):
    durationToExpireAssumedPodSeconds = serializers.FloatField(help_text="0 is never.")
    assumed = serializers.ListField(
        child=serializers.CharField(), help_text="Pods whose Binding is not heard of yet, `namespace/name`."
    )


class Cluster(Answer):
    id = _text()
    name = _text()
    createdAt = serializers.DateTimeField()
    url = _text()
    page = _text()
    kubernetes = _text("Server address of the cluster's Kubernetes API, without the host.")
    resourceVersion = _text()
    seed = serializers.IntegerField()
    kubernetesRelease = _text("The release of Kubernetes it follows.")
    featureGates = serializers.DictField(
        child=serializers.BooleanField(), help_text="Feature gates that are switched, by name."
    )
    nodes = serializers.IntegerField()
    pods = serializers.IntegerField()
    bound = serializers.IntegerField()
    pending = serializers.IntegerField()
    cycles = serializers.IntegerField()
    running = serializers.BooleanField(help_text="Whether a run is open.")
    parked = _text("Why the engine was set aside, if it was.", allow_null=True)
    clock = ClockAnswer()


class NewCluster(Cluster):
    withoutEffect = serializers.ListField(
        child=serializers.DictField(child=_text()),
        help_text="Entries of a Policy in `config` with no counterpart today: field, name and reason of each.",
    )


class ClusterPage(Answer):
    items = Cluster(many=True)
    next = _text("Path of the next page.", allow_null=True)


class Parent(Answer):
    id = _text("Of the cluster.")
    cycle = serializers.IntegerField(allow_null=True, help_text="It begins after; null: as it was.")


class Branch(Cluster):
    parent = Parent()


class Branches(Answer):
    items = Branch(many=True)


class AppliedObject(Answer):
    apiVersion = _text()
    kind = _text()
    namespace = _text(required=False)
    name = _text()
    note = _text(required=False)


class IgnoredObject(Answer):
    apiVersion = _text()
    kind = _text()
    name = _text()
    reason = _text()


class Applied(Answer):
    created = AppliedObject(many=True)
    configured = AppliedObject(many=True)
    unchanged = AppliedObject(many=True)
    ignored = IgnoredObject(many=True)
    warnings = serializers.ListField(child=serializers.CharField(), help_text="Fields no kind has, dropped.")


class Run(Answer):
    id = _text()
    url = _text("Where to poll.")
    until = _text()
    maxCycles = serializers.IntegerField()
    state = Choice(["queued", "running", "done", "cancelled", "failed"])
    cancelRequested = serializers.BooleanField()
    progress = serializers.FloatField(allow_null=True, help_text="0 to 1; null while nothing can be said.")
    cyclesDone = serializers.IntegerField()
    podsBound = serializers.IntegerField()
    pendingAtStart = serializers.IntegerField(allow_null=True)
    pendingNow = serializers.IntegerField(allow_null=True)
    clock = serializers.DateTimeField(allow_null=True)
    stop = _text("idle, cycle, budget, time or cancelled.", allow_null=True)
    message = _text(allow_null=True)
    createdAt = serializers.DateTimeField()
    startedAt = serializers.DateTimeField(allow_null=True)
    finishedAt = serializers.DateTimeField(allow_null=True)


class RunPage(Answer):
    items = Run(many=True)
    next = _text(allow_null=True)


class CycleSummary(Answer):
    cycle = serializers.IntegerField()
    url = _text()
    at = serializers.DateTimeField()
    pod = _text("namespace/name")
    uid = _text()
    profile = _text()
    attempt = serializers.IntegerField()
    outcome = Choice(["bound", "unschedulable", "preempting", "waiting", "binding", "expired", "error"])
    node = _text(allow_null=True)
    sentence = _text()
    message = _text(allow_null=True)
    nodes = serializers.IntegerField(help_text="Nodes that are possible at all.")
    nFeasible = serializers.IntegerField(help_text="Of these, nodes that pass every filter.")
    nViable = serializers.IntegerField(
        allow_null=True, help_text="Of these, nodes none of which scores higher; null in old records."
    )
    repeats = serializers.IntegerField()
    digest = _text()
    engine = _text()


class CyclePage(Answer):
    items = CycleSummary(many=True)
    next = _text(allow_null=True)


class QueueItem(Answer):
    pod = _text()
    position = serializers.IntegerField()
    priority = serializers.IntegerField()
    priorityClass = _text(allow_null=True)
    attempts = serializers.IntegerField()
    secondsLeft = serializers.FloatField(allow_null=True)
    reason = _text(allow_null=True)
    node = _text(allow_null=True)
    plugin = _text(allow_null=True)
    event = _text(allow_null=True)
    read = serializers.BooleanField(help_text="False = submitted, not read by the engine yet.")


class Queue(Answer):
    active = QueueItem(many=True)
    permit = QueueItem(many=True)
    binding = QueueItem(many=True, help_text="Assumed on their nodes until their Binding is heard of.")
    backoff = QueueItem(many=True)
    unschedulable = QueueItem(many=True)
    gated = QueueItem(many=True)
    foreign = QueueItem(many=True, help_text="Never scheduled here, and why.")


class Accepted(Answer):
    resourceVersion = _text("The log entry; the engine acts on it when it next looks.")


class MatchedPods(Answer):
    pods = serializers.ListField(child=serializers.CharField(), required=False, help_text="namespace/name")
    labels = serializers.DictField(child=serializers.CharField(), required=False)


class MatchedNodes(Answer):
    nodes = serializers.ListField(child=serializers.CharField(), required=False)
    labels = serializers.DictField(child=serializers.CharField(), required=False)


class MockDeny(MatchedNodes):
    reason = _text("What the scheduler prints.", required=False)
    unresolvable = serializers.BooleanField(required=False, help_text="Preemption could not help either.")


class MockScore(MatchedNodes):
    points = serializers.IntegerField(required=False)


class MockDrop(MatchedNodes):
    victims = MatchedPods(required=False)


class MockBind(Answer):
    error = _text("Why the binding fails; empty binds the pod.", required=False)


class MockFail(Answer):
    status = serializers.IntegerField(required=False)
    text = _text(required=False)
    error = _text(required=False)


class MockSlow(Answer):
    by = _text("A duration.")


class MockNonsense(Answer):
    text = _text(required=False)


class MockRule(Answer):
    """One of `deny`, `score`, `drop`, `bind`, `fail`, `slow`, `nonsense`, and when it counts."""

    verbs = serializers.ListField(child=Choice(["filter", "prioritize", "preempt", "bind"]), required=False)
    pod = MatchedPods(required=False)
    after = serializers.IntegerField(required=False, help_text="Not for the first so many calls of the verb.")
    times = serializers.IntegerField(required=False, help_text="Only for so many calls then.")
    deny = MockDeny(required=False)
    score = MockScore(required=False)
    drop = MockDrop(required=False)
    bind = MockBind(required=False)  # type: ignore[assignment]  # a field, which Django REST framework takes off the class
    fail = MockFail(required=False)  # type: ignore[assignment]  # a field, which Django REST framework takes off the class
    slow = MockSlow(required=False)
    nonsense = MockNonsense(required=False)


class MockExtender(Answer):
    id = _text()
    url = _text()
    name = _text()
    urlPrefix = _text("What a scheduler configuration's extender names to have this one asked.")
    rules = MockRule(many=True)
    calls = serializers.DictField(
        child=serializers.IntegerField(), help_text="Verb -> requests answered since the rules were written."
    )
    createdAt = serializers.DateTimeField()


class MockExtenders(Answer):
    items = MockExtender(many=True)


class Config(Answer):
    default = serializers.BooleanField(help_text="Whether the cluster uses the default configuration.")
    config = Manifest(allow_null=True, help_text="As it was written.")
    withoutEffect = serializers.ListField(
        child=serializers.DictField(child=_text()),
        help_text="Entries of a Policy with no counterpart today: field, name and reason of each.",
    )
    problem = _text("Why it cannot be used any more, such as a plugin that is gone.", allow_null=True)


class ConfigChange(Answer):
    field = _text("Its place in the given configuration.")
    value = serializers.JSONField(help_text="What was written there.", allow_null=True)
    detail = _text("What became of it.")
    kept = serializers.BooleanField(help_text="v1 says the same; false where it has no effect any more.")


class ConvertedConfig(Answer):
    config = Manifest(help_text="As v1.")
    changes = ConfigChange(many=True)
    problem = _text("The first thing that is wrong with the result.", allow_null=True)


class ExtenderHosts(Answer):
    allowed = serializers.ListField(child=serializers.CharField(), help_text="By its person, `host:port`.")
    refused = serializers.ListField(
        child=serializers.CharField(), help_text="Of its extenders: inside the network, and not allowed."
    )


class JobDuration(Answer):
    duration = _text()


class GateAnswer(Answer):
    name = _text()
    stage = Choice(["Alpha", "Beta", "GA"])
    default = serializers.BooleanField()
    locked = serializers.BooleanField(help_text="It cannot be switched.")


class ChangeAnswer(Answer):
    name = _text()
    sentence = _text()


class ReleaseAnswer(Answer):
    name = _text()
    emulates = _text("The version whose decisions were recorded.")
    default = serializers.BooleanField(help_text="Whether new clusters follow it.")
    agreedDecisions = serializers.IntegerField(help_text="Recorded decisions the engine agrees with.")
    gates = GateAnswer(many=True)
    changes = ChangeAnswer(many=True, help_text="What it changed without a feature gate.")


class Releases(Answer):
    items = ReleaseAnswer(many=True)


class FollowedRelease(Answer):
    kubernetesRelease = _text()
    featureGates = serializers.DictField(
        child=serializers.BooleanField(), help_text="Those that are switched, by name."
    )
    emulates = _text("The version whose decisions were recorded.")


class SamplingWords(Answer):
    default = _text()
    profiles = _text()


class Version(Answer):
    emulates = _text("The release new clusters follow.")
    releases = serializers.ListField(child=serializers.CharField())
    engine = _text()
    api = _text()
    sampling = SamplingWords()
    knownDifferences = serializers.ListField(child=serializers.CharField())


class Token(Answer):
    id = serializers.IntegerField()
    name = _text()
    hint = _text()
    scope = Choice(["read", "write"])
    cluster = _text("Id of the only cluster it is for.", allow_null=True)
    createdAt = serializers.DateTimeField()
    expiresAt = serializers.DateTimeField(allow_null=True, help_text="Null: it has no expiry.")
    lastUsedAt = serializers.DateTimeField(allow_null=True)


class NewToken(Token):
    token = _text("Shown now and never again.")


class Tokens(Answer):
    items = Token(many=True)


class TeamMember(Answer):
    user = _text()
    role = Choice(["owner", "editor", "viewer"])


class Team(Answer):
    name = _text()
    url = _text()
    members = TeamMember(many=True)


class Teams(Answer):
    items = Team(many=True)


class Invitation(Answer):
    id = serializers.IntegerField()
    role = Choice(["owner", "editor", "viewer"])
    email = _text("Where the link was sent, if it was.", allow_null=True)
    madeBy = _text()
    createdAt = serializers.DateTimeField()
    expiresAt = serializers.DateTimeField()


class NewInvitation(Invitation):
    link = _text("Shown now and never again.")


class Invitations(Answer):
    items = Invitation(many=True)


class AuditEntry(Answer):
    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = _text("Null: a stranger.", allow_null=True)
    action = _text()
    words = _text("What was done, after the actor's name.")
    about = _text("The person it was done to.", allow_null=True)
    team = _text(allow_null=True)
    target = _text("What else it was done to.", allow_null=True)
    detail = _text(allow_null=True)
    address = _text("Of your own entries, and for administrators.", allow_null=True)


class AuditEntries(Answer):
    items = AuditEntry(many=True)
    next = _text(allow_null=True)


class QuotaItem(Answer):
    used = serializers.IntegerField()
    limit = serializers.IntegerField()


class Quota(Answer):
    clusters = QuotaItem()
    shares = QuotaItem()
    storedBytes = QuotaItem()


class Index(Answer):
    version = _text()
    clusters = _text()
    tokens = _text()
    problems = _text()
    openapi = _text()
    docs = _text()


class Reason(Answer):
    reason = _text()
    status = serializers.IntegerField()
    title = _text()
    about = _text()


class Reasons(Answer):
    items = Reason(many=True)


class Change(Answer):
    change = serializers.IntegerField(help_text="Its number in the log.")
    words = _text("What was done, as a command.")
    program = _text("The User-Agent of a client of the API; empty for pages.")
    at = serializers.DateTimeField()


class ChangeList(Answer):
    items = Change(many=True)


class Undone(Answer):
    undone = _text("What was done, as a command.")
    cycles = serializers.IntegerField(help_text="Cycles that were decided since, and are gone with it.")


class HeldPod(Answer):
    pod = _text()
    reason = _text()


class Acted(Answer):
    done = _text("What was done, as a command.")
    changed = serializers.IntegerField(help_text="Objects that were changed, evicted or deleted.")
    held = HeldPod(many=True, help_text="Pods that a drain leaves, and why.")


class AppliedBranch(Answer):
    parent = _text("Its id.")  # type: ignore[assignment]  # a field, which Django REST framework takes off the class
    done = _text("What was done, as a command.")
    edits = serializers.IntegerField(help_text="Writes of the parent's log.")


class DifferentPod(Answer):
    kind = Choice(["newly pending", "moved", "newly placed", "gone", "new"])
    pod = _text()
    parent = _text("Its node there; empty for none.")  # type: ignore[assignment]  # a field, which Django REST framework takes off the class
    branch = _text("Its node there; empty for none.")
    cycle = serializers.IntegerField(allow_null=True, help_text="The branch's last decision about it.")


class DifferentDecision(Answer):
    pod = _text()
    attempt = serializers.IntegerField(help_text="Of the pod, counted from where the branch was made.")
    why = _text("Which plugin, score or filter made the difference; empty where it is not known.")
    parentCycle = serializers.IntegerField(allow_null=True)
    branchCycle = serializers.IntegerField(allow_null=True)


class BranchDifference(Answer):
    parent = _text("Its id.")  # type: ignore[assignment]  # a field, which Django REST framework takes off the class
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="Pods by kind.")
    same = serializers.IntegerField(help_text="Decisions that are alike on both sides.")
    decisions = serializers.IntegerField(help_text="All that were made on either side since the branch.")
    pods = DifferentPod(many=True)
    first = DifferentDecision(allow_null=True)
