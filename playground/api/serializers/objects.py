"""Objects as Kubernetes writes them: what is said of their types, of requests and of answers alike.

Fields not listed are taken and kept as they are; null means absent, as in Kubernetes. What values mean is for
admission to judge.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from playground.api.serializers.requests import StrictBoolean, StrictInteger, StrictString


class Part(serializers.Serializer[Any]):
    """A part of an object; keys that are not listed are left alone."""


class Text(StrictString):
    """A string, or null for none."""

    def __init__(self, help_text: str | None = None) -> None:
        super().__init__(
            required=False, allow_null=True, allow_blank=True, trim_whitespace=False, help_text=help_text
        )


class Flag(StrictBoolean):
    """A boolean, or null for false."""

    def __init__(self, help_text: str | None = None) -> None:
        super().__init__(required=False, allow_null=True, help_text=help_text)


class Count(StrictInteger):
    """An integer of 32 bits, or null for none."""

    def __init__(self, help_text: str | None = None) -> None:
        super().__init__(
            required=False, allow_null=True, help_text=help_text, min_value=-(2**31), max_value=2**31 - 1
        )


class Long(StrictInteger):
    """An integer of 64 bits, or null for none."""

    def __init__(self, help_text: str | None = None) -> None:
        super().__init__(required=False, allow_null=True, help_text=help_text)


class TextList(serializers.ListField):
    """Strings, or null for none."""

    def __init__(self, help_text: str | None = None) -> None:
        child = StrictString(allow_blank=True, trim_whitespace=False)
        super().__init__(child=child, required=False, allow_null=True, help_text=help_text)


@extend_schema_field({"type": ["string", "number"]})
class Quantity(serializers.Field[Any, Any, Any, Any]):
    """An amount as Kubernetes writes it: ``500m``, ``2Gi``, ``4``."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, bool) or not isinstance(data, str | int | float):
            raise serializers.ValidationError("must be a quantity: text or a number")
        return data

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field({"type": ["string", "integer"]})
class IntOrPercent(serializers.Field[Any, Any, Any, Any]):
    """A whole number, or a percentage as text."""

    def __init__(self, help_text: str | None = None) -> None:
        super().__init__(required=False, allow_null=True, help_text=help_text)

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, bool) or not isinstance(data, str | int):
            raise serializers.ValidationError("must be a whole number or a percentage")
        return data

    def to_representation(self, value: Any) -> Any:
        return value


class Texts(serializers.DictField):
    """Strings by name, or null for none."""

    def __init__(self, help_text: str | None = None) -> None:
        child = StrictString(allow_blank=True, trim_whitespace=False)
        super().__init__(child=child, required=False, allow_null=True, help_text=help_text)


class Amounts(serializers.DictField):
    """Quantities by resource, or null for none."""

    def __init__(self, help_text: str | None = None) -> None:
        super().__init__(child=Quantity(), required=False, allow_null=True, help_text=help_text)


class Anything(serializers.DictField):
    """An object whose fields Kubernetes' own reference lists, or null for none."""

    def __init__(self, help_text: str | None = None) -> None:
        child = serializers.JSONField(allow_null=True)
        super().__init__(child=child, required=False, allow_null=True, help_text=help_text)


_MAYBE: dict[str, Any] = {"required": False, "allow_null": True}


class OwnerReference(Part):
    apiVersion = Text()
    kind = Text()
    name = Text()
    uid = Text()
    controller = Flag()
    blockOwnerDeletion = Flag()


class Condition(Part):
    type = Text()
    status = Text("True, False or Unknown.")
    reason = Text()
    message = Text()
    lastTransitionTime = Text()
    lastProbeTime = Text()
    lastHeartbeatTime = Text()
    observedGeneration = Long()


class ObjectMeta(Part):
    name = Text("Of a new object: this or `generateName`.")
    generateName = Text()
    namespace = Text("Of namespaced kinds; absent = default.")
    labels = Texts()
    annotations = Texts()
    uid = Text()
    resourceVersion = Text("In a patch: only if the object still has it, else 409.")
    creationTimestamp = Text()
    deletionTimestamp = Text()
    ownerReferences = OwnerReference(many=True, **_MAYBE)


class Requirement(Part):
    """Of a selector: a key, an operator and its values."""

    key = Text()
    operator = Text("In, NotIn, Exists or DoesNotExist; of nodes also Gt and Lt.")
    values = TextList()


class LabelSelector(Part):
    matchLabels = Texts()
    matchExpressions = Requirement(many=True, **_MAYBE)


class NodeSelectorTerm(Part):
    matchExpressions = Requirement(many=True, **_MAYBE)
    matchFields = Requirement(many=True, **_MAYBE)


class NodeSelector(Part):
    nodeSelectorTerms = NodeSelectorTerm(many=True, **_MAYBE)


class PreferredNodes(Part):
    weight = Count("1 to 100.")
    preference = NodeSelectorTerm(**_MAYBE)


class NodeAffinity(Part):
    requiredDuringSchedulingIgnoredDuringExecution = NodeSelector(**_MAYBE)
    preferredDuringSchedulingIgnoredDuringExecution = PreferredNodes(many=True, **_MAYBE)


class PodAffinityTerm(Part):
    labelSelector = LabelSelector(**_MAYBE)
    namespaceSelector = LabelSelector(**_MAYBE)
    namespaces = TextList()
    topologyKey = Text()
    matchLabelKeys = TextList()
    mismatchLabelKeys = TextList()


class WeightedPodAffinityTerm(Part):
    weight = Count("1 to 100.")
    podAffinityTerm = PodAffinityTerm(**_MAYBE)


class PodAffinity(Part):
    requiredDuringSchedulingIgnoredDuringExecution = PodAffinityTerm(many=True, **_MAYBE)
    preferredDuringSchedulingIgnoredDuringExecution = WeightedPodAffinityTerm(many=True, **_MAYBE)


class Affinity(Part):
    nodeAffinity = NodeAffinity(**_MAYBE)
    podAffinity = PodAffinity(**_MAYBE)
    podAntiAffinity = PodAffinity(**_MAYBE)


class Toleration(Part):
    key = Text()
    operator = Text("Equal or Exists.")
    value = Text()
    effect = Text("Absent = every effect.")
    tolerationSeconds = Long()


class TopologySpreadConstraint(Part):
    maxSkew = Count()
    topologyKey = Text()
    whenUnsatisfiable = Text("DoNotSchedule or ScheduleAnyway.")
    labelSelector = LabelSelector(**_MAYBE)
    minDomains = Count()
    nodeAffinityPolicy = Text()
    nodeTaintsPolicy = Text()
    matchLabelKeys = TextList()


class SchedulingGate(Part):
    name = Text()


class ContainerPort(Part):
    name = Text()
    containerPort = Count()
    hostPort = Count()
    hostIP = Text()
    protocol = Text("TCP, UDP or SCTP.")


class Taint(Part):
    key = Text()
    value = Text()
    effect = Text("NoSchedule, PreferNoSchedule or NoExecute.")


class NodeSpec(Part):
    unschedulable = Flag("Cordoned.")
    taints = Taint(many=True, **_MAYBE)


class NodeStatus(Part):
    capacity = Amounts()
    allocatable = Amounts("What the scheduler goes by.")
    conditions = Condition(many=True, **_MAYBE)


class Resources(Part):
    requests = Amounts()
    limits = Amounts()


class Container(Part):
    name = Text()
    image = Text()
    resources = Resources(**_MAYBE)
    ports = ContainerPort(many=True, **_MAYBE)


class PodSpec(Part):
    containers = Container(many=True, **_MAYBE)
    initContainers = Container(many=True, **_MAYBE)
    nodeName = Text("Where it runs; the scheduler sets it.")
    nodeSelector = Texts()
    affinity = Affinity(**_MAYBE)
    tolerations = Toleration(many=True, **_MAYBE)
    topologySpreadConstraints = TopologySpreadConstraint(many=True, **_MAYBE)
    priorityClassName = Text()
    priority = Count("Of its PriorityClass.")
    preemptionPolicy = Text()
    schedulerName = Text("Absent = default-scheduler.")
    schedulingGates = SchedulingGate(many=True, **_MAYBE)
    overhead = Amounts()
    terminationGracePeriodSeconds = Long()


class PodStatus(Part):
    phase = Text("Pending, Running, Succeeded, Failed or Unknown.")
    nominatedNodeName = Text("Where room is being made for it.")
    conditions = Condition(many=True, **_MAYBE)


class BudgetSpec(Part):
    selector = LabelSelector(**_MAYBE)
    minAvailable = IntOrPercent("How many must stay; not together with maxUnavailable.")
    maxUnavailable = IntOrPercent("How many may be missing.")
    unhealthyPodEvictionPolicy = Text("AlwaysAllow or IfHealthyBudget.")


class BudgetStatus(Part):
    """Counted from the cluster's pods, unless it came with the manifest of another cluster."""

    disruptionsAllowed = Count("How many pods may be evicted now.")
    currentHealthy = Count()
    desiredHealthy = Count()
    expectedPods = Count()
    conditions = Condition(many=True, **_MAYBE)


class KubernetesObject(Part):
    apiVersion = Text("Absent = the one of this path.")
    kind = Text("Absent = the one of this path.")
    metadata = ObjectMeta(**_MAYBE)


class NodeObject(KubernetesObject):
    spec = NodeSpec(**_MAYBE)
    status = NodeStatus(**_MAYBE)


class PodObject(KubernetesObject):
    spec = PodSpec(**_MAYBE)
    status = PodStatus(**_MAYBE)


class PriorityClassObject(KubernetesObject):
    value = Count("The higher, the more important; may not be changed later.")
    globalDefault = Flag("Whether pods that name no class get it.")
    preemptionPolicy = Text("PreemptLowerPriority or Never.")
    description = Text()


class PodDisruptionBudgetObject(KubernetesObject):
    spec = BudgetSpec(**_MAYBE)
    status = BudgetStatus(**_MAYBE)


class MergePatch(Part):
    """RFC 7386: null removes, objects merge, everything else (lists too) replaces."""

    metadata = Anything()
    spec = Anything()
    status = Anything()


class _Page(Part):
    next = serializers.CharField(help_text="Path of the next page.", allow_null=True)


class NodePage(_Page):
    items = NodeObject(many=True)


class PodPage(_Page):
    items = PodObject(many=True)


class PriorityClassPage(_Page):
    items = PriorityClassObject(many=True)


class PodDisruptionBudgetPage(_Page):
    items = PodDisruptionBudgetObject(many=True)
