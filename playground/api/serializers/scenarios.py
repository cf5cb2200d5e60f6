"""What is answered about scenarios and comparisons."""

from __future__ import annotations

from rest_framework import serializers

from playground.api.serializers import results
from playground.api.serializers.answers import Answer, Choice, _text
from playground.api.serializers.requests import Strict, StrictBoolean, StrictInteger, StrictString

VISIBILITIES = ["public", "unlisted", "team", "private"]


class Proof(Answer):
    state = Choice(["queued", "done", "failed"])
    reproduced = serializers.IntegerField(help_text="Decisions from the first on that are as recorded.")
    recorded = serializers.IntegerField()
    differsAt = serializers.IntegerField(allow_null=True, help_text="The first cycle that differs.")
    expectationsHeld = serializers.IntegerField()
    expectations = serializers.IntegerField()
    sentence = _text()
    engine = _text()


class Scenario(Answer):
    id = _text()
    page = _text("Address of the page.")
    raw = _text("Address of the document.")
    title = _text()
    visibility = Choice(VISIBILITIES)
    digest = _text("SHA-256 of the canonical form.")
    decisionsDigest = _text("SHA-256 over the digests of all cycles.", allow_null=True)
    state = Choice(["queued", "recorded", "failed"])
    problem = _text(allow_null=True)
    cycles = serializers.IntegerField()
    nodes = serializers.IntegerField()
    pods = serializers.IntegerField()
    seed = serializers.IntegerField()
    note = _text("What its author says of it; nothing of that is checked.")
    opensAt = serializers.IntegerField(
        allow_null=True, help_text="The cycle it is opened at; null: the last."
    )
    emulates = _text()
    plugins = serializers.ListField(
        child=serializers.CharField(),
        help_text="From outside the tree, with the package and version of each.",
    )
    lacking = serializers.ListField(
        child=serializers.CharField(), help_text="What to install before it can be run here; a sentence each."
    )
    engine = _text()
    createdAt = serializers.DateTimeField()
    expiresAt = serializers.DateTimeField(allow_null=True)
    forkedFrom = _text(allow_null=True)
    proof = Proof(allow_null=True)


class Scenarios(Answer):
    items = Scenario(many=True)


class SharedScenario(Scenario):
    created = serializers.BooleanField(help_text="False: you had shared the same already.")
    deleteCode = _text("Told once.", allow_null=True)
    notes = serializers.ListField(
        child=serializers.CharField(),
        help_text="What to know of it; misspelt fields of its objects above all.",
    )


class CarriedLink(Answer):
    link = _text("It carries the whole scenario behind its #.")
    characters = serializers.IntegerField(help_text="Of the link; some chat programs cut long ones.")


class Side(Strict):
    kind = Choice(["scenario", "cluster"])
    id = StrictString(max_length=24)
    cycle = StrictInteger(min_value=1, required=False, allow_null=True, default=None)


class ComparisonRequest(Strict):
    a = Side()
    b = Side()
    more = Side(many=True, required=False, max_length=4)  # type: ignore[call-arg]  # of the list
    visibility = Choice(
        VISIBILITIES,
        required=False,
        help_text="Who may read it. Not said: as visible as the less visible side.",
    )
    team = StrictString(required=False, help_text="Name of the team, for who is in several.")
    expiresInDays = StrictInteger(required=False, min_value=1, max_value=3660)


class OptimumRequest(Strict):
    cycle = StrictInteger(
        min_value=1, required=False, allow_null=True, default=None, help_text="Not said: the last one."
    )
    timeLimitS = StrictInteger(required=False, default=30, help_text="Seconds the solver may take.")


class Optimum(Answer):
    page = _text()
    url = _text()
    state = Choice(["queued", "running", "done", "failed", "cancelled"])
    problem = _text(allow_null=True)
    cycle = serializers.IntegerField()
    timeLimitS = serializers.IntegerField()
    step = _text("What is being solved.", allow_null=True)
    progress = serializers.FloatField()
    createdAt = serializers.DateTimeField()
    result = results.OptimumResult(allow_null=True)


class LuckRequest(Strict):
    seeds = StrictInteger(
        required=False, default=50, help_text="How many, the scenario's own among them: 2 to 50."
    )


class LuckProgress(Answer):
    done = serializers.IntegerField()
    total = serializers.IntegerField()


class Luck(Answer):
    page = _text()
    url = _text()
    state = Choice(["queued", "done", "failed", "cancelled"])
    problem = _text(allow_null=True)
    createdAt = serializers.DateTimeField()
    seeds = serializers.IntegerField()
    progress = LuckProgress()
    result = results.EndStates(allow_null=True)


class ModelCheck(Answer):
    page = _text()
    url = _text()
    state = Choice(["queued", "running", "done", "failed", "cancelled"])
    problem = _text(allow_null=True)
    cycle = serializers.IntegerField(help_text="The last cycle that is checked.")
    engine = _text()
    createdAt = serializers.DateTimeField()
    tookMs = serializers.IntegerField(allow_null=True)
    result = results.ModelResult(allow_null=True)


class Upgrade(Answer):
    page = _text()
    url = _text()
    state = Choice(["queued", "running", "done", "failed", "cancelled"])
    problem = _text(allow_null=True)
    before = results.ReleaseSetting(help_text="The release that is followed.")
    after = results.ReleaseSetting(help_text="The release that is previewed.")
    step = _text("What is being run.", allow_null=True)
    progress = serializers.FloatField()
    engine = _text()
    createdAt = serializers.DateTimeField()
    tookMs = serializers.IntegerField(allow_null=True)
    result = results.UpgradeResult(allow_null=True)


class SideAnswer(Answer):
    kind = Choice(["scenario", "cluster"])
    id = _text()
    cycle = serializers.IntegerField(allow_null=True)


class Comparison(Answer):
    id = _text()
    page = _text()
    url = _text()
    state = Choice(["queued", "done", "failed"])
    problem = _text(allow_null=True)
    a = SideAnswer()
    b = SideAnswer()
    more = SideAnswer(many=True, help_text="Sides after the second: c, d, e and f.")
    visibility = Choice(VISIBILITIES)
    team = _text(allow_null=True)
    createdAt = serializers.DateTimeField()
    expiresAt = serializers.DateTimeField(allow_null=True)
    result = results.ComparisonResult(allow_null=True)


class Comparisons(Answer):
    items = Comparison(many=True)


class ShareOfCluster(Strict):
    """What the query may say too; the body goes before it."""

    cycle = StrictInteger(
        required=False, allow_null=True, min_value=1, max_value=2**63 - 1, help_text="Only up to it."
    )
    redact = StrictBoolean(required=False, help_text="Without names, deciding the same.")
    title = StrictString(required=False, allow_blank=True, max_length=300, help_text="One line for people.")
    ours_decide = StrictBoolean(required=False, help_text="Our scheduler decides what another one decided.")
    visibility = Choice(VISIBILITIES, required=False)
    team = StrictString(required=False, allow_blank=True, max_length=100, help_text="For who is in several.")
    days = StrictInteger(
        required=False, allow_null=True, min_value=1, max_value=3660, help_text="It expires after so many."
    )
    note = StrictString(required=False, allow_blank=True, max_length=2000, help_text="To the reader.")
    opens_at = StrictInteger(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=2**31 - 1,
        help_text="The cycle it is opened at; not said: the last one.",
    )
