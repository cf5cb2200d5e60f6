"""Which fields of a scenario hold names, which are kept as they are, and which decide nothing and are dropped."""

from __future__ import annotations

import re

from scheduler_core.objects.defaults import SYSTEM_PRIORITY_CLASSES

KNOWN_DOMAINS = re.compile(
    r"^([a-z0-9-]+\.)*(kubernetes\.io|k8s\.io)/|^playground\.dev/|^scheduling\.x-k8s\.io/"
)
"""Label and taint keys of Kubernetes itself and of this playground keep their names; only their values change."""
KEPT_NAMES = frozenset(
    (
        "",
        "default",
        "kube-system",
        "kube-public",
        "kube-node-lease",
        "default-scheduler",
        *SYSTEM_PRIORITY_CLASSES,
    )
)
KEPT_ANNOTATIONS = re.compile(
    r"^(playground\.dev/|scheduling\.x-k8s\.io/|pv\.kubernetes\.io/bind|pv\.kubernetes\.io/bound)"
)
KEPT_VALUES = re.compile(r"^(playground\.dev/(?!published-for$)|scheduling\.x-k8s\.io/min-available$)")
"""Labels whose values say something to a plugin."""
CONTAINER = frozenset(("name", "image", "resources", "ports", "restartPolicy"))
POD_SPEC = frozenset(
    (
        "affinity", "containers", "hostNetwork", "initContainers", "nodeName", "nodeSelector", "overhead",
        "preemptionPolicy", "priority", "priorityClassName", "resourceClaims", "resources", "restartPolicy",
        "schedulerName", "schedulingGates", "schedulingGroup", "terminationGracePeriodSeconds", "tolerations",
        "topologySpreadConstraints", "volumes",
    )
)  # fmt: skip
DROPPED_SPEC = frozenset(
    ("podCIDR", "podCIDRs", "providerID", "configSource", "externalID", "mountOptions", "parameters", "clusterIP",
     "clusterIPs", "externalName", "loadBalancerIP", "dataSource", "dataSourceRef", "timeAdded", "nodeInfo",
     "addresses", "daemonEndpoints")
)  # fmt: skip
DROPPED_STATUS = frozenset(("volumesInUse", "volumesAttached", "currentMetrics", "used", "hard"))
LABEL_MAPS = frozenset(("matchLabels", "nodeSelector", "labels", "nodeLabels", "notNodeLabels"))
NAME_FIELDS = {
    "nodeName": "Node",
    "nominatedNodeName": "Node",
    "cordon": "Node",
    "uncordon": "Node",
    "drain": "Node",
    "node": "Node",
    "nominated": "Node",
    "nodeIn": "Node",
    "nodes": "Node",
    "namespace": "Namespace",
    "namespaces": "Namespace",
    "claimName": "PersistentVolumeClaim",
    "volumeName": "PersistentVolume",
    "persistentVolumeName": "PersistentVolume",
    "storageClassName": "StorageClass",
    "priorityClassName": "PriorityClass",
    "schedulerName": "Scheduler",
    "serviceName": "Service",
    "deviceClassName": "DeviceClass",
    "resourceClaimName": "ResourceClaim",
    "resourceClaimTemplateName": "ResourceClaimTemplate",
    "podGroupName": "PodGroup",
    "workloadName": "Workload",
    "pool": "ResourcePool",
}
WORKLOAD_FIELDS = {"deployment": "Deployment", "statefulSet": "StatefulSet"}
POD_FIELDS = frozenset(("pod", "of", "order", "victims", "pods"))
CONFIGURATION = frozenset(
    (
        "apiVersion", "kind", "profiles", "extenders", "percentageOfNodesToScore", "parallelism",
        "podInitialBackoffSeconds", "podMaxBackoffSeconds", "predicates", "priorities",
        "hardPodAffinitySymmetricWeight", "alwaysCheckAllPredicates",
    )
)  # fmt: skip
"""What of a configuration or Policy decides anything."""
NODE_CONDITIONS = frozenset(("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"))
DISKS = frozenset(
    (
        "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "fc", "flexVolume", "gcePersistentDisk",
        "glusterfs", "iscsi", "portworxVolume", "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume",
    )
)  # fmt: skip
"""Sources of volumes whose values are compared: conflicts, limits."""
VOLUMES = frozenset(("name", "persistentVolumeClaim", "ephemeral", "csi")) | DISKS
NOT_OF_A_DISK = frozenset(
    (
        "fsType",
        "secretRef",
        "user",
        "keyring",
        "options",
        "chapAuthDiscovery",
        "chapAuthSession",
        "initiatorName",
    )
)
OF_A_NODE = re.compile(r"-((gpu|mig|nic)|(gpu|nic)\.playground\.dev-(gpu|mig|nic)-\d+)")
"""How the simulated driver ends the names of pools and slices, which begin with their node's."""
PREFIXES = {
    "Namespace": "ns",
    "PersistentVolume": "pv",
    "PersistentVolumeClaim": "pvc",
    "PodDisruptionBudget": "pdb",
}
VERBS = {
    "filterVerb": "filter",
    "prioritizeVerb": "prioritize",
    "preemptVerb": "preempt",
    "bindVerb": "bind",
}
