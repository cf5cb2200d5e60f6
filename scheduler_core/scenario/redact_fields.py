"""The allow-list of redaction: fields that stay, what their texts name, and the few words that stay as they are."""

from __future__ import annotations

import re

from scheduler_core.expressions.expression import OF_THE_LIBRARY
from scheduler_core.expressions.functions import FUNCTIONS
from scheduler_core.objects.defaults import SYSTEM_PRIORITY_CLASSES

KNOWN_LABELS = re.compile(
    r"playground\.dev/(approval|approval-timeout|devices|duration|ends-as|gpus?|load|published-for|start-delay)"
    r"|scheduling\.x-k8s\.io/(pod-group|min-available|permit-timeout)|pod-group\.scheduling\.sigs\.k8s\.io/name"
    r"|((beta\.)?kubernetes\.io/(hostname|os|arch|instance-type|metadata\.name|service-name))"
    r"|(topology|failure-domain\.beta)\.kubernetes\.io/(zone|region)"
    r"|node\.kubernetes\.io/(instance-type|windows-build|exclude-from-external-load-balancers|not-ready|unreachable"
    r"|unschedulable|memory-pressure|disk-pressure|pid-pressure|network-unavailable|out-of-service)"
    r"|node\.cloudprovider\.kubernetes\.io/(uninitialized|shutdown)"
    r"|node-role\.kubernetes\.io/(control-plane|master|worker|infra)"
    r"|app\.kubernetes\.io/(name|instance|version|component|part-of|managed-by|created-by)"
    r"|apps\.kubernetes\.io/pod-index|statefulset\.kubernetes\.io/pod-name"
    r"|batch\.kubernetes\.io/(job-name|controller-uid|job-completion-index)"
)
"""Labels, taints and annotations of Kubernetes and this playground by their whole keys; only values are renamed."""
KNOWN_DRIVERS = re.compile(
    r"kubernetes\.io/(no-provisioner|aws-ebs|gce-pd|azure-disk|azure-file|cinder|portworx-volume|vsphere-volume|host-path)"
    r"|ebs\.csi\.aws\.com|pd\.csi\.storage\.gke\.io|(disk|file)\.csi\.azure\.com|cinder\.csi\.openstack\.org"
    r"|pxd\.portworx\.com|csi\.vsphere\.vmware\.com|(gpu|mig|nic)\.playground\.dev|gpu\.nvidia\.com|"
)
"""Drivers and provisioners that rules of the scheduler name, and the simulated ones."""
KNOWN_RESOURCES = re.compile(
    r"cpu|memory|ephemeral-storage|storage|pods|count|hugepages-\d+[KMGT]i"
    r"|attachable-volumes-(aws-ebs|gce-pd|azure-disk|cinder)"
    r"|nvidia\.com/(gpu|mig-\dg\.\d+gb)(\.shared)?|amd\.com/gpu|gpu\.intel\.com/(i915|xe)|google\.com/tpu"
)
PLAIN = re.compile(
    r"|[-+]?\d*\.?\d+([eE][-+]?\d+|[numkKMGTPE]i?|%|ns|us|ms|s|m|h)?|(\d+(\.\d+)?(ns|us|ms|s|m|h))+"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:\d\d)|\d+([-,]\d+)*"
    r"|((gpu|mig|nic)=\d{1,3}(:(A100-40GB|A100-80GB|H100-80GB|L4))?,? ?)+"
    r"|@(yearly|annually|monthly|weekly|daily|midnight|hourly)"
    r"|(([\d*/,?-]|SUN|MON|TUE|WED|THU|FRI|SAT|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)+ ?){5}",
    re.ASCII,
)
"""Numbers, quantities, durations, times, schedules and the numbers of devices: texts that name nothing."""
WORDS = frozenset(
    (
        "True", "False", "Unknown", "true", "false", "Never", "Always", "OnFailure", "PreemptLowerPriority",
        "NoSchedule", "PreferNoSchedule", "NoExecute", "Equal", "Exists", "DoesNotExist", "In", "NotIn", "Gt", "Lt",
        "DoNotSchedule", "ScheduleAnyway", "Honor", "Ignore", "TCP", "UDP", "SCTP", "Filesystem", "Block",
        "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod", "Retain", "Recycle", "Delete",
        "Immediate", "WaitForFirstConsumer", "Available", "Bound", "Released", "Pending", "Lost", "Running",
        "Succeeded", "Unschedulable", "SchedulingGated", "SchedulerError", "PreemptionByScheduler", "Failed",
        "Active", "Terminating", "IfHealthyBudget", "AlwaysAllow", "Persistent", "Ephemeral", "RollingUpdate",
        "Recreate", "OnDelete", "OrderedReady", "Parallel", "NonIndexed", "Indexed", "TerminatingOrFailed", "Allow",
        "Forbid", "Replace", "Pod", "Container", "PersistentVolumeClaim", "NotTerminating", "BestEffort",
        "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity", "VolumeAttributesClass", "Resource", "Pods",
        "Object", "External", "ContainerResource", "Utilization", "AverageValue", "Value", "Max", "Min", "Disabled",
        "Percent", "Guaranteed", "Burstable", "Managed", "Shared", "Dedicated", "None", "ReadOnly", "ReadWrite",
        "PodGroup", "All", "ExactCount", "kubernetes.io/job-controller", "required", "DisruptionTarget", "Ready",
        "PodScheduled", "Initialized", "ContainersReady", "PodReadyToStartContainers", "Progressing",
        "ReplicaFailure", "Complete", "Suspended", "SuccessCriteriaMet", "FailureTarget", "ScalingActive",
        "AbleToScale", "ScalingLimited", "DisruptionAllowed", "Resizing", "FileSystemResizePending",
    )
)  # fmt: skip
"""Values of Kubernetes' enumerations: any other text is a name, or left out."""
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
KEPT_VALUES = re.compile(r"playground\.dev/(?!published-for$)|scheduling\.x-k8s\.io/min-available$")
"""Labels whose values say something to a plugin."""
KEPT_ANNOTATIONS = re.compile(
    r"playground\.dev/|scheduling\.x-k8s\.io/|pv\.kubernetes\.io/(bind-completed|bound-by-controller)$"
)
CONTAINER = frozenset(("resources", "restartPolicy"))
"""What of a container decides anything, beside its image and ports."""
POD_SPEC = frozenset(
    (
        "affinity", "containers", "hostNetwork", "initContainers", "nodeName", "nodeSelector", "overhead",
        "preemptionPolicy", "priority", "priorityClassName", "resourceClaims", "resources", "restartPolicy",
        "schedulerName", "schedulingGates", "schedulingGroup", "terminationGracePeriodSeconds", "tolerations",
        "topologySpreadConstraints", "volumes",
    )
)  # fmt: skip
FIELDS = POD_SPEC | frozenset(
    (
        # of every object
        "metadata", "spec", "status", "phase", "conditions", "selector", "template",
        # affinity, spread, tolerations
        "nodeAffinity", "podAffinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", "matchExpressions", "matchFields",
        "preference", "weight", "podAffinityTerm", "labelSelector", "matchLabels", "namespaceSelector", "namespaces",
        "topologyKey", "matchLabelKeys", "mismatchLabelKeys", "maxSkew", "whenUnsatisfiable", "minDomains",
        "nodeAffinityPolicy", "nodeTaintsPolicy", "requests", "limits", "claims", "request", "required", "effect",
        "operator",
        "tolerationSeconds", "key", "value",
        # pods and nodes
        "startTime", "nominatedNodeName", "resourceClaimStatuses", "resourceClaimName", "resourceClaimTemplateName",
        "podGroupName", "taints", "unschedulable", "allocatable", "capacity", "images",
        # volumes
        "claimName", "readOnly", "volumeClaimTemplate", "accessModes", "claimRef", "persistentVolumeReclaimPolicy",
        "volumeMode", "storageClassName", "volumeName", "volumeAttributesClassName", "provisioner", "reclaimPolicy",
        "volumeBindingMode", "allowVolumeExpansion", "allowedTopologies", "matchLabelExpressions", "attachRequired",
        "podInfoOnMount", "storageCapacity", "volumeLifecycleModes", "requiresRepublish", "seLinuxMount",
        "preventPodSchedulingIfMissing", "fsGroupPolicy", "drivers", "nodeID", "topologyKeys", "maximumVolumeSize",
        "nodeTopology", "attacher", "nodeName", "source", "persistentVolumeName", "attached", "local", "hostPath",
        "nfs", "csi",
        # budgets, classes, groups
        "minAvailable", "maxUnavailable", "unhealthyPodEvictionPolicy", "disruptionsAllowed", "disruptedPods",
        "globalDefault", "minMember", "minResources", "scheduleTimeoutSeconds", "podGroupTemplates", "podGroups",
        "podGroupTemplateRef", "podGroupTemplateName", "workload", "workloadName", "schedulingPolicy", "policy",
        "basic", "gang", "minCount", "schedulingConstraints", "topology", "disruptionMode",
        # workloads
        "replicas", "minReadySeconds", "strategy", "updateStrategy", "type", "rollingUpdate", "maxSurge", "partition",
        "paused", "progressDeadlineSeconds", "revisionHistoryLimit", "podManagementPolicy", "ordinals", "start",
        "persistentVolumeClaimRetentionPolicy", "whenDeleted", "whenScaled", "serviceName", "volumeClaimTemplates",
        "parallelism", "completions", "completionMode", "backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes",
        "activeDeadlineSeconds", "suspend", "ttlSecondsAfterFinished", "manualSelector", "podReplacementPolicy",
        "managedBy", "schedule", "timeZone", "concurrencyPolicy", "startingDeadlineSeconds", "jobTemplate",
        "successfulJobsHistoryLimit", "failedJobsHistoryLimit", "availableReplicas", "readyReplicas",
        "updatedReplicas", "currentReplicas", "desiredReplicas", "observedGeneration", "active", "succeeded", "failed",
        "ready", "terminating", "completionTime", "completedIndexes", "failedIndexes", "lastScheduleTime",
        "lastSuccessfulTime", "lastScaleTime",
        # limits, quotas, autoscalers
        "default", "defaultRequest", "max", "min", "maxLimitRequestRatio", "hard", "scopes", "scopeSelector",
        "scopeName", "scaleTargetRef", "minReplicas", "maxReplicas", "targetCPUUtilizationPercentage", "metrics",
        "behavior", "scaleUp", "scaleDown", "policies", "selectPolicy", "stabilizationWindowSeconds", "tolerance",
        "periodSeconds", "resource", "containerResource", "object", "external", "pods", "metric", "describedObject",
        "target", "averageUtilization", "averageValue",
    )
)  # fmt: skip
"""What of an object decides anything, whatever the kind: a field that is not here is left out."""
DEVICE_FIELDS = FIELDS | frozenset(
    (
        "driver", "pool", "devices", "generation", "resourceSliceCount", "allNodes", "perDeviceNodeSelection",
        "sharedCounters", "counters", "attributes", "bool", "int", "string", "version", "bools", "ints", "strings",
        "versions", "basic", "consumesCounters", "counterSet", "bindsToNode", "bindingConditions",
        "bindingFailureConditions", "allowMultipleAllocations", "requestPolicy", "validRange", "validValues", "step",
        "nodeAllocatableResourceMappings", "extendedResourceName", "selectors", "cel", "expression", "constraints",
        "matchAttribute", "distinctAttribute", "exactly", "firstAvailable", "adminAccess", "allocationMode", "count",
        "deviceClassName", "tolerations", "allocation", "results", "request", "device", "consumedCapacity", "shareID",
        "reservedFor", "allocationTimestamp", "conditions", "deviceSelector", "taint",
    )
)  # fmt: skip
DEVICE_KINDS = frozenset(
    ("DeviceClass", "DeviceTaintRule", "ResourceSlice", "ResourceClaim", "ResourceClaimTemplate")
)
"""Kinds with attributes, capacities and counters, which expressions refer to."""
CEL = {
    word
    for name in (
        *FUNCTIONS,
        *OF_THE_LIBRARY,
        "all.exists.exists_one.map.filter",
        "device.attributes.capacity.driver.allowMultipleAllocations",
    )
    for word in name.split(".")
} | {"in", "true", "false", "null", "e", "E"}
"""Words of expressions that are the language's own."""
RESOURCE_MAPS = frozenset(
    (
        "requests", "limits", "allocatable", "capacity", "overhead", "default", "defaultRequest", "max", "min",
        "maxLimitRequestRatio", "minResources",
    )
)  # fmt: skip
NAME_OF = {
    "resourceClaims[]": "claim of a pod",
    "claims[]": "claim of a pod",
    "resourceClaimStatuses[]": "claim of a pod",
    "drivers[]": "driver",
    "podGroupTemplates[]": "PodGroupTemplate",
    "podGroups[]": "PodGroupTemplate",
    "requests[]": "request of a claim",
    "firstAvailable[]": "request of a claim",
    "devices[]": "device",
    "sharedCounters[]": "counter set",
    "metric": "metric",
    "resource": "resource",
    "containerResource": "resource",
}
"""What the `name` of an object names, by the field that holds it; others' names are left out."""
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
    "volumeAttributesClassName": "VolumeAttributesClass",
    "podGroupTemplateName": "PodGroupTemplate",
    "managedBy": "manager",
    "provisioner": "driver",
    "driver": "driver",
    "attacher": "driver",
    "device": "device",
    "counterSet": "counter set",
    "bindingConditions": "binding condition",
    "bindingFailureConditions": "binding condition",
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
OF_A_DISK = frozenset(
    (
        "volumeID", "diskName", "diskURI", "cachingMode", "kind", "shareName", "monitors", "path", "targetWWNs",
        "wwids", "lun", "driver", "pdName", "endpoints", "targetPortal", "portals", "iqn", "registry", "volume",
        "tenant", "group", "image", "pool", "gateway", "system", "protectionDomain", "storagePool", "volumeName",
        "storageMode",
        "volumeNamespace", "volumePath", "storagePolicyName", "partition", "readOnly",
    )
)  # fmt: skip
"""What of a volume's source says which disk it is."""
OF_A_NODE = re.compile(r"-((gpu|mig|nic)|(gpu|nic)\.playground\.dev-(gpu|mig|nic)-\d+)")
"""How the simulated driver ends the names of pools and slices, which begin with their node's."""
PREFIXES = {
    "Namespace": "ns",
    "PersistentVolume": "pv",
    "PersistentVolumeClaim": "pvc",
    "PodDisruptionBudget": "pdb",
    "claim of a pod": "claim",
    "request of a claim": "request",
    "kind of an owner": "Owner",
    "resource": "resource.example/r",
    "resource of Kubernetes": "kubernetes.io/r",
    "manager": "manager.example/m",
}
VERBS = {
    "filterVerb": "filter",
    "prioritizeVerb": "prioritize",
    "preemptVerb": "preempt",
    "bindVerb": "bind",
}
