"""Twenty pending pods, each for another cause: what is said of them, and a change that places them.

Each cluster is nodes and pods in YAML; the pod asked about is always `shop/web`.
"""

from dataclasses import dataclass

from tests.tables import table

POD = "shop/web"


@dataclass(frozen=True)
class Case:
    """A pending pod with a known answer.

    Attributes
    ----------
    objects : str
        YAML of the cluster.
    state : str
        Where the pod waits.
    plugin, reason : str
        What rejects it, and on how many nodes (`nodes`); an empty plugin: it does not come to a decision.
    fix : str
        YAML of a change that places it.
    node : str
        Where it then lands.
    placed : str
        The pod that then lands: another one where the pod itself cannot be changed.
    """

    name: str
    objects: str
    plugin: str
    reason: str
    nodes: int
    fix: str
    node: str
    state: str = "unschedulable"
    placed: str = POD


def node(name: str, *, labels: str = "", allocatable: str = "", spec: str = "") -> str:
    room = {"cpu": "'4'", "memory": "8Gi", "pods": "'10'"}
    room |= dict(item.split(": ") for item in allocatable.split(", ") if item)
    words = ", ".join(f"{name}: {amount}" for name, amount in room.items())
    return (
        f"---\n{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: "
        f"{{kubernetes.io/hostname: {name}{', ' + labels if labels else ''}}}}}, spec: {{{spec}}}, "
        f"status: {{allocatable: {{{words}}}}}}}\n"
    )


def pod(
    name: str = "web",
    *,
    requests: str = 'cpu: "1"',
    limits: str = "",
    spec: str = "",
    labels: str = "",
    container: str = "",
) -> str:
    resources = f"requests: {{{requests}}}" + (f", limits: {{{limits}}}" if limits else "")
    return (
        f"---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: shop, labels: {{app: {name}"
        f"{', ' + labels if labels else ''}}}}}, spec: {{containers: [{{name: c, image: x, resources: {{{resources}}}"
        f"{', ' + container if container else ''}}}]{', ' + spec if spec else ''}}}}}\n"
    )


CLASSES = (
    "---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: low}, value: 1}\n"
    "---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: polite}, value: 1000, "
    "preemptionPolicy: Never}\n"
    "---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 2000}\n"
)
ZONE = "topology.kubernetes.io/zone"
FULL = pod("full", requests='cpu: "4"', spec="nodeName: a")


def matching(field: str, app: str, more: str = "") -> str:
    return (
        f"affinity: {{{field}: {{requiredDuringSchedulingIgnoredDuringExecution: [{{labelSelector: "
        f"{{matchLabels: {{app: {app}}}}}, topologyKey: kubernetes.io/hostname{more}}}]}}}}"
    )


SPREAD = (
    f"topologySpreadConstraints: [{{maxSkew: 1, topologyKey: {ZONE}, whenUnsatisfiable: DoNotSchedule, "
    "labelSelector: {matchLabels: {tier: front}}}]"
)
BIG_VOLUME = table(__file__, "BIG_VOLUME")

EDITS = table(__file__, "EDITS")
"""Case -> kind of a single change that places its pod; of the others none does, or it waits for more than a node."""

CASES = [
    Case("cpu", node("a") + pod(requests='cpu: "5"'), "NodeResourcesFit", "Insufficient cpu", 1,
         node("b", allocatable='cpu: "8"'), "b"),
    Case("memory", node("a") + node("b") + pod(requests="memory: 9Gi"), "NodeResourcesFit", "Insufficient memory",
         2, node("b", allocatable="memory: 16Gi"), "b"),
    Case("taint", node("a", spec="taints: [{key: gpu, value: 'yes', effect: NoSchedule}]") + pod(),
         "TaintToleration", "node(s) had untolerated taint(s)", 1, node("a"), "a"),
    Case("node selector", node("a") + pod(spec="nodeSelector: {disk: ssd}"), "NodeAffinity",
         "node(s) didn't match Pod's node affinity/selector", 1, node("a", labels="disk: ssd"), "a"),
    Case("node affinity",
         node("a", labels=f"{ZONE}: x") + pod(spec="affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuring"
         f"Execution: {{nodeSelectorTerms: [{{matchExpressions: [{{key: {ZONE}, operator: In, values: [y]}}]}}]}}}}}}"),
         "NodeAffinity", "node(s) didn't match Pod's node affinity/selector", 1, node("b", labels=f"{ZONE}: y"), "b"),
    Case("affinity to a pod that is not there", node("a") + pod(spec=matching("podAffinity", "db")),
         "InterPodAffinity", "node(s) didn't match pod affinity rules", 1,
         pod("db", spec="nodeName: a"), "a"),
    Case("anti-affinity", node("a") + pod("db", spec="nodeName: a") + pod(spec=matching("podAntiAffinity", "db")),
         "InterPodAffinity", "node(s) didn't match pod anti-affinity rules", 1, node("b"), "b"),
    Case("topology spread",
         node("a", labels=f"{ZONE}: x") + node("b", labels=f"{ZONE}: y", allocatable='cpu: "1"')
         + pod("one", labels="tier: front", spec="nodeName: a")
         + pod(labels="tier: front", requests='cpu: "2"', spec=SPREAD),
         "PodTopologySpread", "node(s) didn't match pod topology spread constraints", 1,
         node("c", labels=f"{ZONE}: y"), "c"),
    Case("host port",
         node("a") + pod("old", container="ports: [{containerPort: 80, hostPort: 80}]", spec="nodeName: a")
         + pod(container="ports: [{containerPort: 80, hostPort: 80}]"),
         "NodePorts", "node(s) didn't have free ports for the requested pod ports", 1, node("b"), "b"),
    Case("volume of another node",
         node("a") + BIG_VOLUME + pod(spec="volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]"),
         "VolumeBinding", "node(s) didn't match PersistentVolume's node affinity", 1,
         node("gone"), "gone"),
    Case("claim that is not there",
         node("a") + pod(spec="volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]"),
         "VolumeRestrictions", 'persistentvolumeclaim "data" not found', 0,
         BIG_VOLUME.replace("[gone]", "[a]"), "a"),
    Case("cordoned node", node("a", spec="unschedulable: true") + pod(), "NodeUnschedulable",
         "node(s) were unschedulable", 1, node("a"), "a"),
    Case("gate", node("a") + pod(spec="schedulingGates: [{name: example.com/quota}]"), "", "example.com/quota", 0,
         pod(), "a", state="gated"),
    Case("priority without preemption",
         node("a") + CLASSES + FULL + pod(spec="priorityClassName: polite"), "NodeResourcesFit", "Insufficient cpu",
         1, node("b"), "b"),
    Case("more important pods under a budget",
         node("a") + CLASSES + pod("small", requests='cpu: "4"', spec="nodeName: a, priorityClassName: high")
         + "---\n{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: small, namespace: shop}, spec: "
         "{minAvailable: 1, selector: {matchLabels: {app: small}}}}\n" + pod(spec="priorityClassName: low"),
         "NodeResourcesFit", "Insufficient cpu", 1, node("b"), "b"),
    Case("resources of the pod as a whole",
         node("a") + pod(spec='resources: {requests: {cpu: "6"}}'), "NodeResourcesFit", "Insufficient cpu", 1,
         node("b", allocatable='cpu: "8"'), "b"),
    Case("extended resource",
         node("a") + pod(requests='cpu: "1", nvidia.com/gpu: "1"', limits='nvidia.com/gpu: "1"'),
         "NodeResourcesFit", "Insufficient nvidia.com/gpu", 1, node("b", allocatable='nvidia.com/gpu: "2"'), "b"),
    Case("huge pages",
         node("a") + pod(requests='cpu: "1", memory: 64Mi, hugepages-2Mi: 4Mi', limits="hugepages-2Mi: 4Mi"),
         "NodeResourcesFit", "Insufficient hugepages-2Mi", 1, node("b", allocatable="hugepages-2Mi: 8Mi"), "b"),
    Case("another scheduler's", node("a") + pod(spec="schedulerName: volcano"), "", "volcano", 0,
         pod("again"), "a", state="foreign", placed="shop/again"),
    Case("as many pods as the node takes",
         node("a", allocatable='pods: "1"')
         + pod("one", spec="nodeName: a") + pod(), "NodeResourcesFit", "Too many pods", 1, node("b"), "b"),
]  # fmt: skip
