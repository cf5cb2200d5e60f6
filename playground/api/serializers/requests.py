"""What may be asked. Types are checked here; what values mean is for the services to judge."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from playground.api.serializers import answers
from playground.api.serializers.answers import Choice


class Strict(serializers.Serializer[Any]):
    """Unknown keys are refused: a misspelt one would otherwise do nothing, silently."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            known = ", ".join(self.fields)
            raise serializers.ValidationError({unknown[0]: [f"is not a key here; there are {known}"]})
        return super().to_internal_value(data)


class StrictString(serializers.CharField):
    """A JSON string; DRF would also take numbers."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("must be a string")
        return super().to_internal_value(data)


class StrictInteger(serializers.IntegerField):
    """A JSON integer; DRF would also take strings and booleans."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            raise serializers.ValidationError("must be a whole number")
        return super().to_internal_value(data)


class StrictBoolean(serializers.BooleanField):
    """True or false; DRF would also take "yes" and 1."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise serializers.ValidationError("must be true or false")
        return data


class StrictNumber(serializers.FloatField):
    """A JSON number; DRF would also take strings."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            raise serializers.ValidationError("must be a number")
        return super().to_internal_value(data)


@extend_schema_field(answers.MANIFEST)
class Configuration(serializers.DictField):
    """A KubeSchedulerConfiguration, judged by the service."""


class ClusterCreate(Strict):
    name = StrictString(max_length=100, help_text="What people call it; need not be unique.")
    seed = StrictInteger(
        required=False, min_value=0, max_value=2**63 - 1, help_text="Of the random streams; drawn if absent."
    )
    config = Configuration(
        required=False,
        allow_null=True,
        help_text="A KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1); absent = the default one.",
    )
    kubernetesRelease = StrictString(
        required=False,
        max_length=20,
        source="kubernetes_release",
        help_text="The release of Kubernetes it follows, such as 1.36; absent = the newest that is proved.",
    )
    featureGates = serializers.DictField(
        required=False,
        child=StrictBoolean(),
        source="feature_gates",
        help_text="Feature gates of the release that are switched, by name.",
    )
    team = StrictString(
        required=False, allow_null=True, max_length=100, help_text="A team of yours that is to own it."
    )
    demo = StrictBoolean(required=False, default=False, help_text="Begin with the demo's nodes and pods.")


class ClusterRelease(Strict):
    kubernetesRelease = StrictString(max_length=20, help_text="Such as 1.36.")
    featureGates = serializers.DictField(
        required=False, child=StrictBoolean(), help_text="Those that are switched, by name; absent = none."
    )


class TeamCreate(Strict):
    name = serializers.RegexField(
        r"^[A-Za-z0-9][-A-Za-z0-9_.]*$",
        max_length=100,
        help_text="Letters, digits, '-', '_' and '.': it is part of paths.",
    )


class Member(Strict):
    role = Choice(["owner", "editor", "viewer"])


class ClusterRename(Strict):
    name = StrictString(max_length=100)


class ClusterClone(Strict):
    name = StrictString(max_length=100, required=False, help_text='Absent = "<name> copy".')


class Named(Strict):
    name = StrictString(max_length=100, required=False, help_text="Absent = as its origin is called.")


class BranchAfter(Strict):
    cycle = StrictInteger(min_value=1, max_value=2**63 - 1, help_text="It begins as things were after it.")
    name = StrictString(max_length=100, required=False, help_text="Absent = after its origin and the cycle.")
    edit = StrictString(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        help_text="Manifests as YAML, applied before anything else happens.",
    )


class Rank(Strict):
    rank = StrictInteger(
        required=False, min_value=1, max_value=1000, help_text="Of an edit, from 1; absent = the first."
    )


class RunRequest(Strict):
    until = StrictString(
        required=False,
        default="idle",
        max_length=40,
        help_text='`"cycle"` (one cycle), `"idle"`, or a duration of virtual time like `"30s"` or `"1h30m"`.',
    )
    maxCycles = StrictInteger(required=False, default=100_000, min_value=1, max_value=1_000_000)


class Permit(Strict):
    decision = Choice(["allow", "reject"])
    plugin = StrictString(
        required=False, allow_null=True, max_length=253, help_text="One plugin's wait; absent = all."
    )
    reason = StrictString(required=False, allow_blank=True, default="", max_length=1000)


class TriedRule(Strict):
    filter = StrictString(
        required=False, allow_blank=True, help_text="A CEL expression, true where the pod may run."
    )
    reason = StrictString(required=False, allow_blank=True, help_text="Told where it may not.")
    score = StrictString(required=False, allow_blank=True, help_text="A CEL expression that gives a number.")
    normalize = Choice(["None", "Highest", "Lowest"], required=False)
    pod = StrictString(required=False, allow_blank=True, help_text="`namespace/name`; any pod when left out.")


class WrittenRule(Strict):
    filter = StrictString(
        required=False, allow_blank=True, help_text="A CEL expression, true where the pod may run."
    )
    reason = StrictString(required=False, allow_blank=True, help_text="Told where it may not.")
    score = StrictString(required=False, allow_blank=True, help_text="A CEL expression that gives a number.")
    normalize = Choice(["None", "Highest", "Lowest"], required=False)
    weight = StrictInteger(required=False, min_value=1, max_value=100, help_text="Absent = 1.")


class JobLasts(Strict):
    duration = StrictString(max_length=40, allow_blank=True, help_text="`90s`, `5m`, `never`.")


class Active(Strict):
    active = StrictBoolean(help_text="False: nothing of the account works any more; nothing is deleted.")


class SiteInvitation(Strict):
    expiresInDays = StrictInteger(required=False, default=7, min_value=1, max_value=30)


class Clock(Strict):
    mode = Choice(
        ["paused", "realtime", "1x"], help_text="`1x` is `realtime` at rate 1. To jump, run for a duration."
    )
    rate = StrictNumber(required=False, default=1.0, min_value=0.1, max_value=100)


class AssumedPods(Strict):
    durationToExpireAssumedPodSeconds = StrictNumber(
        min_value=0,
        max_value=366 * 24 * 3600,
        help_text="After so many virtual seconds without news of its Binding; 0 is never, as in kube-scheduler.",
    )


class NodePool(Strict):
    name = StrictString(max_length=200, help_text="`{n}` is the number, `{n:02}` padded, `{zone}` the zone.")
    count = StrictInteger(min_value=1, max_value=10_000)
    cpu = StrictString(required=False, default="8", max_length=40)
    memory = StrictString(required=False, default="32Gi", max_length=40)
    pods = StrictInteger(required=False, default=110, min_value=0, max_value=100_000)
    extended = serializers.DictField(child=StrictString(max_length=40), required=False, default=dict)
    labels = serializers.DictField(
        child=StrictString(allow_blank=True, max_length=253), required=False, default=dict
    )
    taints = serializers.ListField(
        child=StrictString(max_length=400), required=False, default=list, help_text="`key=value:Effect`"
    )
    zones = serializers.ListField(
        child=StrictString(max_length=253), required=False, default=list, max_length=1000
    )
    region = StrictString(required=False, allow_blank=True, default="", max_length=253)
    first = StrictInteger(required=False, default=1, min_value=0, max_value=10**6)


@extend_schema_field(answers.MockRule(many=True))
class MockRules(serializers.ListField):
    """What is wrong with a rule is told by the service, with its path."""


class MockExtenderRules(Strict):
    name = StrictString(required=False, allow_blank=True, default="", max_length=100)
    rules = MockRules(
        child=serializers.DictField(),
        max_length=1000,
        help_text="Each has one of `deny`, `score`, `drop`, `bind`, `fail`, `slow`, `nonsense`;"
        " without rules everything passes.",
    )


class TokenCreate(Strict):
    name = StrictString(max_length=100, help_text="What it is for.")
    scope = Choice(
        ["read", "write"],
        required=False,
        default="write",
        help_text="`read` only looks; `write` does all you may.",
    )
    cluster = StrictString(
        required=False, max_length=24, help_text="Id of the only cluster it is for. Not said: all of yours."
    )
    expiresInDays = StrictInteger(
        required=False,
        allow_null=True,
        default=90,
        min_value=1,
        max_value=3660,
        help_text="Null: it never expires.",
    )


class InvitationCreate(Strict):
    role = Choice(["owner", "editor", "viewer"], required=False, default="editor")
    expiresInDays = StrictInteger(required=False, default=7, min_value=1, max_value=30)


class Undo(Strict):
    change = StrictInteger(
        required=False,
        min_value=1,
        max_value=2**63 - 1,
        help_text="The change that is meant, as it is listed; not said: whichever is the last one.",
    )


class Action(Strict):
    action = Choice(
        ["delete", "cordon", "uncordon", "drain", "taint", "label"], help_text="Pods can be deleted."
    )
    pods = serializers.ListField(
        child=StrictString(max_length=510),
        required=False,
        min_length=1,
        max_length=1000,
        help_text="`namespace/name` of each; or `nodes`.",
    )
    nodes = serializers.ListField(
        child=StrictString(max_length=253), required=False, min_length=1, max_length=1000
    )
    value = StrictString(
        required=False,
        allow_blank=True,
        default="",
        max_length=700,
        help_text="Of a taint `key=value:Effect`, of a label `key=value`; `key:Effect-` and `key-` take it off.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("pods" in attrs) == ("nodes" in attrs):
            raise serializers.ValidationError({"nodes": ["name pods or nodes, and not both"]})
        return attrs
