"""What an API server refuses is refused at every door, in its words: `invalid-pods.yaml`, `pod-level-too-small.yaml`.

The sentences are those of pkg/apis/*/validation of Kubernetes 1.36.3.
"""

from __future__ import annotations

import copy
import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playground.clusters import kinds
from playground.clusters.models import Cluster, LogEntry
from scheduler_core import load_scenario, prepare
from scheduler_core.cli.main import main
from scheduler_core.errors import InvalidObject
from scheduler_core.scenario import ScenarioError
from tests.kube_api.conftest import Kube
from tests.kube_api.conftest import cluster as cluster
from tests.kube_api.conftest import kube as kube
from tests.kube_api.conftest import wakes as wakes

Manifest = dict[str, Any]
DATA = Path(__file__).parent / "data"
PODS = {
    item["metadata"]["name"]: item for item in yaml.safe_load_all((DATA / "invalid-pods.yaml").read_text())
}
TOO_SMALL = yaml.safe_load((DATA / "pod-level-too-small.yaml").read_text())
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
DOMAIN = "must be a standard resource type or fully qualified"
FOR_CONTAINERS = "must be a standard resource for containers"
OF_CASES = {
    "gpu-no-limit": [
        "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"
    ],
    "weight-0": [
        f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight: Invalid value: 0: must be in the range 1-100"
    ],
    "no-terms": [
        f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms: Required value: must have at least one node"
        " selector term"
    ],
    "gated-on-node": ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
    "restart-sometimes": [
        'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'
    ],
    "weight-101": [
        f"spec.affinity.podAntiAffinity.{PREFERRED}[0].weight: Invalid value: 101: must be in the range 1-100"
    ],
    # A number that is none is for the scheduler to find: an API server takes it.
    "gt-text": [],
    "in-empty": [
        f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values: Required value: "
        "must be specified when `operator` is 'In' or 'NotIn'"
    ],
    "toleration-seconds": [
        "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when"
        " `tolerationSeconds` is set"
    ],
    "spread-twice": [
        "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "
        '"{z, DoNotSchedule}"'
    ],
    "min-domains-soft": [
        "spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use minDomains if "
        "whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
    ],
    "bad-resource": [
        f'spec.containers[0].resources.{key}[gpu]: Invalid value: "gpu": {words}'
        for key in ("limits", "requests")
        for words in (DOMAIN, FOR_CONTAINERS)
    ],
}


def pod(**spec: Any) -> Manifest:
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }  # fmt: skip


def container(**fields: Any) -> Manifest:
    return pod(containers=[{"name": "c", "image": "i", **fields}])


def asks(requests: Any = None, limits: Any = None) -> Manifest:
    return container(resources={"requests": requests or {}, "limits": limits or {}})


def term(key: str, **fields: Any) -> Manifest:
    return pod(affinity={key: {REQUIRED: [{"topologyKey": "z", "labelSelector": {}, **fields}]}})


def spread(**fields: Any) -> Manifest:
    constraint = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}
    return pod(
        topologySpreadConstraints=[{**constraint, "labelSelector": {"matchLabels": {"a": "b"}}, **fields}]
    )


def thing(api_version: str, kind: str, **fields: Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}


def node(**spec: Any) -> Manifest:
    status = spec.pop("status", {"allocatable": {"cpu": "4"}})
    return thing("v1", "Node", spec=spec, status=status)


TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTOR = {"matchLabels": {"a": "b"}}


def workload(kind: str, template: Any = None, **spec: Any) -> Manifest:
    found = {"selector": SELECTOR, "template": {**TEMPLATE, **(template or {})}, **spec}
    return thing("apps/v1", kind, spec={key: value for key, value in found.items() if value is not None})


def template_of(**spec: Any) -> Manifest:
    return {"spec": {**TEMPLATE["spec"], **spec}}


def job(**spec: Any) -> Manifest:
    return thing(
        "batch/v1", "Job", spec={"template": {**TEMPLATE, **template_of(restartPolicy="Never")}, **spec}
    )


def claim(**spec: Any) -> Manifest:
    fields = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return thing("v1", "PersistentVolumeClaim", spec=fields)


def volume(**spec: Any) -> Manifest:
    fields = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/x"},
        **spec,
    }
    return thing("v1", "PersistentVolume", spec=fields)


def device_claim(*requests: Any, **devices: Any) -> Manifest:
    return thing(
        "resource.k8s.io/v1", "ResourceClaim", spec={"devices": {"requests": list(requests), **devices}}
    )


EXACT = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
OTHERS: list[tuple[Manifest, str]] = [
    (asks({"cpu": "2"}, {"cpu": "1"}), 'spec.containers[0].resources.requests: Invalid value: "2": must be less than'
     " or equal to cpu limit of 1"),
    (asks({"example.com/x": "1"}, {"example.com/x": "2"}),
     'spec.containers[0].resources.requests: Invalid value: "1": must be equal to example.com/x limit of 2'),
    (asks({"example.com/x": "500m"}, {"example.com/x": "500m"}),
     'spec.containers[0].resources.limits[example.com/x]: Invalid value: "500m": must be an integer'),
    (asks({"memory": "-5"}), 'spec.containers[0].resources.requests[memory]: Invalid value: "-5": must be greater than'
     " or equal to 0"),
    (asks(limits={"hugepages-2Mi": "2Mi"}), "spec.containers[0].resources: Forbidden: HugePages require cpu or memory"),
    (asks({"cpu": "1"}, {"hugepages-2Mi": "3Mi"}),
     'spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple'
     " of hugepages-2Mi"),
    (asks({"cpu": "1e999999999"}), 'spec.containers[0].resources.requests.cpu: Invalid value: "1e999999999": unable to'
     " parse numeric part of quantity"),
    (pod(containers=[]), "spec.containers: Required value"),
    (pod(containers=[{"name": "c", "image": "i"}] * 2), 'spec.containers[1].name: Duplicate value: "c"'),
    (pod(containers=[{"image": "i"}]), "spec.containers[0].name: Required value"),
    (pod(initContainers=[{"name": "c", "image": "i"}]), 'spec.initContainers[0].name: Duplicate value: "c"'),
    (container(ports=[{"containerPort": 0}]), "spec.containers[0].ports[0].containerPort: Required value"),
    (container(ports=[{"containerPort": 80, "hostPort": 70000}]),
     "spec.containers[0].ports[0].hostPort: Invalid value: 70000: must be between 1 and 65535, inclusive"),
    (container(ports=[{"containerPort": port, "hostPort": 80} for port in (1, 2)]),
     'spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//80"'),
    (container(ports=[{"containerPort": 80, "protocol": "tcp"}]),
     'spec.containers[0].ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"'),
    (container(imagePullPolicy="Often"), 'spec.containers[0].imagePullPolicy: Unsupported value: "Often": supported'
     ' values: "Always", "IfNotPresent", "Never"'),
    (pod(hostNetwork=True, containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 81}]}]),
     "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"),
    (container(resources={"claims": [{"name": "gpu"}]}), 'spec.containers[0].resources.claims[0]: Not found: "gpu": '
     "must be one of the names in pod.spec.resourceClaims which is empty"),
    (pod(resourceClaims=[{"name": "gpu"}]), 'spec.resourceClaims[0]: Invalid value: {"name":"gpu"}: must specify one'
     " of: `resourceClaimName`, `resourceClaimTemplateName`"),
    (pod(volumes=[{"name": "v"}, {"name": "v"}]), 'spec.volumes[1].name: Duplicate value: "v"'),
    (pod(resources={"limits": {"example.com/x": "1"}}), "spec.resources.limits[example.com/x]: Unsupported value: "
     '"example.com/x": supported values: "cpu", "hugepages-", "memory"'),
    (pod(overhead={"gpu": "1"}), f'spec.overhead.limits[gpu]: Invalid value: "gpu": {DOMAIN}'),
    (pod(dnsPolicy="Own"), 'spec.dnsPolicy: Unsupported value: "Own": supported values: "ClusterFirstWithHostNet",'
     ' "ClusterFirst", "Default", "None"'),
    (pod(activeDeadlineSeconds=0), "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647,"
     " inclusive"),
    (pod(schedulingGates=[{"name": "a"}, {"name": "a"}]), 'spec.schedulingGates[1]: Duplicate value: "a"'),
    (pod(tolerations=[{"operator": "Equal", "value": "x"}]), 'spec.tolerations[0].operator: Invalid value: "Equal": '
     'operator must be Exists when `key` is empty, which means "match all values and all keys"'),
    (pod(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
     "spec.tolerations[0].operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'"),
    (pod(tolerations=[{"key": "a", "operator": "Gt", "value": "1"}]), 'spec.tolerations[0].operator: Unsupported value:'
     ' "Gt": supported values: "Equal", "Exists", "Lt", "Gt"'),
    (pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "Never"}]), "spec.tolerations[0].effect: Unsupported"
     ' value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'),
    (term("podAffinity", topologyKey=""), f"spec.affinity.podAffinity.{REQUIRED}[0].topologyKey: Required value: can"
     " not be empty"),
    (term("podAffinity", labelSelector={"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
     f"spec.affinity.podAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].values: Forbidden: may not be "
     "specified when `operator` is 'Exists' or 'DoesNotExist'"),
    (term("podAntiAffinity", matchLabelKeys=["a"], mismatchLabelKeys=["a"]),
     f'spec.affinity.podAntiAffinity.{REQUIRED}[0].matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys'
     " and mismatchLabelKeys"),
    (pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["a"]}]}]}}}),
     f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchFields[0].key: Invalid value: "
     '"metadata.uid": not a valid field selector key'),
    (pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]}]}}}),
     f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values: Required value: "
     "must be specified single value when `operator` is 'Lt' or 'Gt'"),
    (spread(maxSkew=0), "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than 0"),
    (spread(whenUnsatisfiable="Never"), "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "
     '"Never": supported values: "DoNotSchedule", "ScheduleAnyway"'),
    (spread(nodeTaintsPolicy="Yes"), 'spec.topologySpreadConstraints[0].nodeTaintsPolicy: Unsupported value: "Yes": '
     'supported values: "Honor", "Ignore"'),
    (spread(minDomains=0), "spec.topologySpreadConstraints[0].minDomains: Invalid value: 0: must be greater than 0"),
    (spread(matchLabelKeys=["b"], labelSelector=None), "spec.topologySpreadConstraints[0].matchLabelKeys: Forbidden: "
     "must not be specified when labelSelector is not set"),
    (node(taints=[{"key": "a", "effect": "Never"}]), 'metadata.taints[0].effect: Unsupported value: "Never": supported'
     ' values: "NoSchedule", "PreferNoSchedule", "NoExecute"'),
    (node(taints=[{"key": "a", "effect": "NoSchedule"}] * 2), "metadata.taints[1]: Duplicate value: "
     '{"key":"a","effect":"NoSchedule"}: taints must be unique by key and effect pair'),
    (node(status={"allocatable": {"cpu": "-1"}}), 'status.allocatable.cpu: Invalid value: "-1": must be greater than or'
     " equal to 0"),
    (node(status={"capacity": {"pods": "1500m"}}), 'status.capacity.pods: Invalid value: "1500m": must be an integer'),
    (thing("policy/v1", "PodDisruptionBudget", spec={"minAvailable": 1, "maxUnavailable": 1}),
     'spec: Invalid value: {"minAvailable":1,"maxUnavailable":1}: minAvailable and maxUnavailable cannot be both set'),
    (thing("policy/v1", "PodDisruptionBudget", spec={"minAvailable": "120%"}),
     'spec.minAvailable: Invalid value: "120%": must not be greater than 100%'),
    (thing("scheduling.k8s.io/v1", "PriorityClass", value=2_000_000_000),
     "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"),
    (thing("scheduling.k8s.io/v1", "PriorityClass", value=1, preemptionPolicy="Often"), "preemptionPolicy: Unsupported"
     ' value: "Often": supported values: "PreemptLowerPriority", "Never"'),
    (claim(accessModes=[]), "spec.accessModes: Required value: at least 1 access mode is required"),
    (claim(accessModes=["ReadWriteOnce", "ReadWriteOncePod"]),
     "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"),
    (claim(resources={}), "spec.resources[storage]: Required value"),
    (claim(resources={"requests": {"storage": "0"}}), 'spec.resources[storage]: Invalid value: "0": must be greater'
     " than 0"),
    (volume(capacity={"cpu": "1"}), 'spec.capacity: Unsupported value: {"cpu":"1"}: supported values: "storage"'),
    (volume(persistentVolumeReclaimPolicy="Keep"), 'spec.persistentVolumeReclaimPolicy: Unsupported value: "Keep": '
     'supported values: "Delete", "Recycle", "Retain"'),
    (volume(local={"path": "/x"}, hostPath=None), "spec.nodeAffinity: Required value: Local volume requires node"
     " affinity"),
    (thing("storage.k8s.io/v1", "StorageClass"), "provisioner: Required value"),
    (thing("storage.k8s.io/v1", "StorageClass", provisioner="a.b/c", volumeBindingMode="Later"), "volumeBindingMode: "
     'Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"'),
    (device_claim({"name": "r"}), "spec.devices.requests[0]: Required value: exactly one of `exactly` or"
     " `firstAvailable` is required"),
    (device_claim({"name": "r", "exactly": {}}), "spec.devices.requests[0].exactly.deviceClassName: Required value"),
    (device_claim(EXACT, EXACT), 'spec.devices.requests[1].name: Duplicate value: "r"'),
    (device_claim({"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All", "count": 2}}),
     "spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'"),
    (device_claim(EXACT, constraints=[{"requests": ["q"], "matchAttribute": "a.b/c"}]),
     'spec.devices.constraints[0].requests[0]: Invalid value: "q": must be the name of a request in the claim or the'
     " name of a request and a subrequest separated by '/'"),
    (workload("Deployment", selector=None), "spec.selector: Required value"),
    (workload("Deployment", selector={}), "spec.selector: Invalid value: {}: empty selector is invalid for deployment"),
    (workload("ReplicaSet", selector={"matchLabels": {"a": "c"}}), "spec.template.metadata.labels: Invalid value: "
     '{"a":"b"}: `selector` does not match template `labels`'),
    (workload("DaemonSet", template_of(restartPolicy="Never")), "spec.template.spec.restartPolicy: Unsupported value: "
     '"Never": supported values: "Always"'),
    (workload("StatefulSet", replicas=-1), "spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
    (workload("StatefulSet", podManagementPolicy="Any"), 'spec.podManagementPolicy: Invalid value: "Any": must be'
     " 'OrderedReady' or 'Parallel'"),
    (workload("Deployment", strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
     "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"),
    (workload("Deployment", template_of(activeDeadlineSeconds=5)), "spec.template.spec.activeDeadlineSeconds: "
     "Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported"),
    (workload("DaemonSet", template_of(containers=[{"name": "c", "resources": {"requests": {"a.b/c": "1"}}}])),
     "spec.template.spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable"
     " resources"),
    (job(template=TEMPLATE), 'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'),
    (job(parallelism=-1), "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"),
    (thing("batch/v1", "CronJob", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}}),
     "spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""),
    (thing("v1", "ResourceQuota", spec={"hard": {"gpu": "1"}}), f'spec.hard[gpu]: Invalid value: "gpu": {DOMAIN}'),
    (thing("v1", "LimitRange", spec={"limits": [{"type": "Pod", "default": {"cpu": "1"}}]}),
     "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"),
    (thing("v1", "LimitRange", spec={"limits": [{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]}),
     'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1'),
]  # fmt: skip


def said_by_the_library(manifest: Manifest) -> list[str]:
    try:
        prepare(copy.deepcopy(manifest))
    except InvalidObject as error:
        return [str(each) for each in error.errors] or [str(error)]
    return []


def said_by_a_scenario(manifest: Manifest) -> list[str]:
    document = {"apiVersion": "scheduling.playground/v1", "kind": "Scenario", "kubernetesRelease": "1.36"}
    try:
        load_scenario({**document, "objects": [copy.deepcopy(manifest)]})
    except ScenarioError as error:
        return [str(problem).removeprefix("objects[0].") for problem in error.problems]
    return []


class CommandLine:
    """`simulate` of one file."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.file = folder / "objects.yaml"
        self.capsys = capsys

    def said(self, manifest: Manifest, expected: list[str]) -> list[str]:
        """Its lines, each without the place before it."""
        self.file.write_text(json.dumps(manifest))
        self.capsys.readouterr()
        status = main(["simulate", str(self.file)])
        lines = [line for line in self.capsys.readouterr().err.splitlines() if not line.startswith("note: ")]
        assert (status == 2) == bool(lines), lines
        return [next((said for said in expected if line.endswith(said)), line) for line in lines]


@pytest.fixture
def command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


class Site:
    """The doors of one cluster."""

    def __init__(self, kube: Kube, cluster: Cluster) -> None:
        self.kube, self.cluster = kube, cluster

    def said_by_k8s(self, manifest: Manifest) -> list[str]:
        kind = kinds.by_kind(manifest["kind"])
        assert kind is not None
        space = "/namespaces/default" if kind.namespaced else ""
        version = manifest["apiVersion"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        answer = self.kube.post(f"{root}{space}/{kind.plural}?dryRun=All", manifest)
        if answer.status_code == 201:
            return []
        status = answer.json()
        assert (status["code"], status["reason"]) == (422, "Invalid"), status
        found = [f"{cause['field']}: {cause['message']}" for cause in status["details"]["causes"]]
        shown = found[0] if len(found) == 1 else f"[{', '.join(dict.fromkeys(found))}]"
        assert status["message"].endswith(f" is invalid: {shown}")
        return found

    def said_by_rest(self, manifest: Manifest) -> list[str]:
        path = f"/api/v1/clusters/{self.cluster.public_id}/apply?dryRun=true"
        answer = self.kube.client.post(path, json.dumps(manifest), content_type="application/json")
        if answer.status_code == 200:
            return []
        body = answer.json()
        assert answer.status_code == 400 and body["reason"] == "Invalid", body
        return [body["detail"], *(cause["detail"] for cause in body.get("causes", ()))]

    def said_by_the_page(self, manifest: Manifest) -> list[str]:
        form = {"text": json.dumps(manifest), "action": "preview"}
        answer = self.kube.client.post(f"/c/{self.cluster.public_id}/import/", form)
        shown = html.unescape(answer.content.decode())
        problems = answer.context.get("problems") or []
        assert all(problem.message in shown for problem in problems)
        assert (answer.status_code == 200) == (not problems)
        return [problem.message for problem in problems]


@pytest.fixture
def site(kube: Kube, cluster: Cluster) -> Site:
    return Site(kube, cluster)


ROWS = [(PODS[name], said) for name, said in OF_CASES.items()]
ROWS += [(TOO_SMALL, ['spec.resources.requests[cpu]: Invalid value: "100m": must be greater than or equal to aggregate'
                      " container requests of 200m"])]  # fmt: skip
ROWS += [(manifest, [said]) for manifest, said in OTHERS]


def test_every_pod_of_the_file_has_its_row() -> None:
    assert list(OF_CASES) == list(PODS)


@pytest.mark.parametrize(("manifest", "said"), ROWS)
def test_every_door_says_it_in_kubernetes_words(
    site: Site, command_line: CommandLine, manifest: Manifest, said: list[str]
) -> None:
    before = LogEntry.objects.count()
    found = said_by_the_library(manifest)
    if len(said) == 1:
        # Beside what is asked here another rule may be broken.
        assert said[0] in found
        said = found
    assert found == said
    assert said_by_a_scenario(manifest) == said
    assert command_line.said(manifest, said) == said
    assert site.said_by_k8s(manifest) == said
    assert site.said_by_rest(manifest) == said
    assert site.said_by_the_page(manifest) == said
    assert LogEntry.objects.count() == before or not said


VALUES: list[Any] = [
    None, True, 0, -1, 3, 1.5, 10**12, "", "x", "-1", "1x", "é", "a/b/c", "Exists", "1e999999999", [], [None], ["x"],
    {}, {"x": "1"}, {"key": "a", "operator": "In"},
]  # fmt: skip
WHOLE = pod(
    nodeSelector={"disk": "ssd"},
    restartPolicy="Always",
    tolerations=[{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
    initContainers=[{"name": "i", "image": "i", "restartPolicy": "Always"}],
    containers=[{
        "name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}],
        "resources": {"requests": {"cpu": "1", "a.b/c": "1"}, "limits": {"cpu": "2", "a.b/c": "1"}},
    }],
    affinity={
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}},
        "podAntiAffinity": {PREFERRED: [
            {"weight": 5, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": SELECTOR}}]},
    },
    topologySpreadConstraints=[{
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR,
    }],
)  # fmt: skip
GOOD = [
    WHOLE, node(taints=[{"key": "a", "effect": "NoSchedule"}]), workload("Deployment", replicas=1),
    job(completions=2), claim(), volume(), device_claim(EXACT),
    thing("policy/v1", "PodDisruptionBudget", spec={"minAvailable": "50%", "selector": SELECTOR}),
    thing("scheduling.k8s.io/v1", "PriorityClass", value=5),
]  # fmt: skip


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    found = []
    for key in keys:
        if path or key not in ("apiVersion", "kind"):
            found += [(*path, key), *_paths(value[key], (*path, key))]
    return found


@st.composite
def broken(draw: Callable[..., Any]) -> Manifest:
    """A good object, one or two fields of which hold something else."""
    manifest = copy.deepcopy(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.integers(1, 2))):
        *path, last = draw(st.sampled_from(_paths(manifest)))
        at: Any = manifest
        for key in path:
            at = at[key]
        at[last] = copy.deepcopy(draw(st.sampled_from(VALUES)))
    return manifest


def _is_named(manifest: Manifest) -> bool:
    """Doors name what has no kind or name, or is no object, in words of their own."""
    meta = manifest.get("metadata")
    return isinstance(meta, dict) and isinstance(meta.get("name"), str) and meta["name"] != ""


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(manifest=broken().filter(_is_named))
def test_any_object_has_one_verdict_and_one_sentence_at_every_door(
    site: Site, command_line: CommandLine, manifest: Manifest
) -> None:
    said = said_by_the_library(manifest)
    assert said_by_a_scenario(manifest) == said
    assert command_line.said(manifest, said) == said
    assert site.said_by_rest(manifest) == said
    assert site.said_by_k8s(manifest) == said
    assert site.said_by_the_page(manifest) == said


@pytest.mark.parametrize("manifest", GOOD)
def test_what_is_right_is_taken_at_every_door(
    site: Site, command_line: CommandLine, manifest: Manifest
) -> None:
    assert said_by_the_library(manifest) == said_by_a_scenario(manifest) == []
    assert command_line.said(manifest, []) == site.said_by_k8s(manifest) == site.said_by_rest(manifest) == []
    assert site.said_by_the_page(manifest) == []
