"""Small scenarios drawn at random, tight enough for preemption, with a little of everything the model evaluates."""

from random import Random
from typing import Any

from scheduler_core.scenario import Scenario, load_scenario
from tests.manifests import scheduler_config
from tests.tables import table

Manifest = dict[str, Any]
CLASSES = {"low": -10, "plain": 0, "middle": 100, "high": 1000}


def draw_scenario(seed: int, release: str = "1.34") -> Scenario:
    """The scenario of a seed, decided by a release."""
    random = Random(seed)
    n_nodes = 104 if random.random() < 0.02 else random.randint(1, 6)
    objects: list[Manifest] = [
        {
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
            **({"preemptionPolicy": "Never"} if name == "middle" and random.random() < 0.3 else {}),
        }
        for name, value in CLASSES.items()
    ]  # fmt: skip
    objects += [_node(random, index) for index in range(n_nodes)]
    nodes = [item["metadata"]["name"] for item in objects if item["kind"] == "Node"]
    objects += [
        _pod(random, f"old-{index}", random.choice(nodes))
        for index in range(random.randint(0, 3 * min(n_nodes, 6)))
    ]
    if random.random() < 0.4:
        objects.append(
            {
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "budget"},
                "spec": {
                    "minAvailable": random.randint(1, 3),
                    "selector": {"matchLabels": {"app": random.choice("xy")}},
                },
            }
        )  # fmt: skip
    objects += [_pod(random, f"new-{index}") for index in range(random.randint(1, 6))]
    steps: list[Manifest] = [{"run": "idle"}]
    if random.random() < 0.7:
        steps.append({"apply": [_pod(random, f"late-{index}") for index in range(random.randint(1, 4))]})
        steps.append({"advance": f"{random.randint(1, 40)}s"})
        steps.append({"run": "idle"})
    document: Manifest = {
        "apiVersion": "scheduling.playground/v1", "kind": "Scenario", "seed": seed % 7, "objects": objects,
        "kubernetesRelease": release,
        "steps": steps,
    }  # fmt: skip
    if random.random() < 0.4:
        document["scheduler"] = _configuration(random)
    return load_scenario(document)


def _configuration(random: Random) -> Manifest:
    strategy = {
        "type": random.choice(["LeastAllocated", "MostAllocated"]),
        "resources": [{"name": "cpu", "weight": 2}],
    }
    return scheduler_config(
        percentageOfNodesToScore=random.choice([0, 10]),
        profiles=[
            {
                "schedulerName": "default-scheduler",
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}},
                    {
                        "name": "DefaultPreemption",
                        "args": {"minCandidateNodesAbsolute": random.choice([1, 100])},
                    },
                    table(__file__, "_configuration"),
                ],
            }
        ],
    )


def _node(random: Random, index: int) -> Manifest:
    spec: Manifest = {}
    if random.random() < 0.25:
        effect = random.choice(["NoSchedule", "PreferNoSchedule", "NoExecute"])
        spec["taints"] = [{"key": "k", "value": random.choice("xy"), "effect": effect}]
    if random.random() < 0.1:
        spec["unschedulable"] = True
    labels = {"kubernetes.io/hostname": f"n{index}"}
    if random.random() < 0.9:
        labels["zone"] = random.choice("ab")
    allocatable = {
        "cpu": random.choice(["1", "2", "3"]), "memory": random.choice(["2Gi", "4Gi"]),
        "pods": random.choice(["3", "5", "110"]),
    }  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{index}", "labels": labels}, "spec": spec,
        "status": {"allocatable": allocatable},
    }  # fmt: skip


def _pod(random: Random, name: str, node: str = "") -> Manifest:
    requests = {"cpu": random.choice(["200m", "700m", "1", "2"]), "memory": random.choice(["128Mi", "1Gi"])}
    container: Manifest = {"name": "c", "resources": {"requests": requests}}
    if random.random() < 0.15:
        container["ports"] = [{"containerPort": 80, "hostPort": random.choice([80, 81])}]
    spec: Manifest = {"containers": [container], "priorityClassName": random.choice(list(CLASSES))}
    if random.random() < 0.4:
        spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
    if random.random() < 0.1:
        spec["nodeSelector"] = {"zone": random.choice("ab")}
    affinity: Manifest = {}
    term = {"topologyKey": random.choice(["zone", "kubernetes.io/hostname"]),
            "labelSelector": {"matchLabels": {"app": random.choice("xy")}}}  # fmt: skip
    if random.random() < 0.15:
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    elif random.random() < 0.12:
        affinity["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    if random.random() < 0.15:
        preference = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
        affinity["nodeAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 50, "preference": preference}]
        }
    if affinity:
        spec["affinity"] = affinity
    if random.random() < 0.15:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1, "topologyKey": random.choice(["zone", "kubernetes.io/hostname"]),
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "x"}},
            }
        ]  # fmt: skip
    if random.random() < 0.05 and not node:
        spec["schedulingGates"] = [{"name": "example.com/wait"}]
    status: Manifest = {}
    if node:
        spec["nodeName"] = node
        status = {"phase": "Running", "startTime": f"2024-12-{random.randint(10, 30)}T00:00:00Z"}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": random.choice("xy")}},
        "spec": spec, "status": status,
    }  # fmt: skip
