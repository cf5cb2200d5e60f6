"""What redaction keeps: the tables of `redact.yaml`, and the labels, drivers, resources and plain texts by pattern."""

from __future__ import annotations

import re
from typing import Any

from scheduler_core.expressions.expression import OF_THE_LIBRARY
from scheduler_core.expressions.functions import FUNCTIONS
from scheduler_core.objects.defaults import SYSTEM_PRIORITY_CLASSES
from scheduler_core.schema.tables import table_beside

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
KEPT_NAMES = re.compile(
    "|".join(
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
)
"""Names that stay, of whatever `KEPT` does not have."""
KEPT = {
    # A taint named as a resource is that stays: messages must not confuse the two.
    "label": re.compile(f"|{KNOWN_LABELS.pattern}|{KNOWN_RESOURCES.pattern}"),
    "driver": KNOWN_DRIVERS,
    "address": re.compile(r"|0\.0\.0\.0|::|127\.0\.0\.1"),  # no address is bound here
    "volume": re.compile("|rbd|default"),  # what two kinds of disk have where nothing is written
    "DeviceClass": re.compile(r"(gpu|mig|nic)\.playground\.dev"),  # the simulated driver's own
    **dict.fromkeys(
        ("value", "image", "uid", "gate", "reason", "predicate", "claim of a pod", "metric"), re.compile("")
    ),
}
"""What a name names -> the names of it that stay."""
KEPT_VALUES = re.compile(r"playground\.dev/(?!published-for$)|scheduling\.x-k8s\.io/min-available$")
"""Labels whose values say something to a plugin."""
KEPT_ANNOTATIONS = re.compile(
    r"playground\.dev/|scheduling\.x-k8s\.io/|pv\.kubernetes\.io/(bind-completed|bound-by-controller)$"
)
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
OF_A_NODE = re.compile(r"-((gpu|mig|nic)|(gpu|nic)\.playground\.dev-(gpu|mig|nic)-\d+)")
"""How the simulated driver ends the names of pools and slices, which begin with their node's."""

_TABLE: dict[str, Any] = table_beside(__package__, "redact.yaml")


def _words(*names: str) -> frozenset[str]:
    return frozenset(word for name in names for group in _TABLE[name] for word in group)


WORDS = _words("words")
CONTAINER = _words("container")
FIELDS = _words("podSpec", "fields")
DEVICE_FIELDS = _words("podSpec", "fields", "deviceFields")
DEVICE_KINDS = _words("deviceKinds")
RESOURCE_MAPS = _words("resourceMaps")
LABEL_MAPS = _words("labelMaps")
POD_FIELDS = _words("podFields")
CONFIGURATION = _words("configuration")
NODE_CONDITIONS = _words("nodeConditions")
DISKS = _words("disks")
VOLUMES = _words("disks") | {"name", "persistentVolumeClaim", "ephemeral", "csi"}
OF_A_DISK = _words("ofADisk")
NAME_OF: dict[str, str] = _TABLE["nameOf"]
NAME_FIELDS: dict[str, str] = _TABLE["nameFields"]
LABEL_FIELDS = _words("labelFields")
SHAPES: dict[str, dict[str, str]] = _TABLE["shapes"]
WORKLOAD_FIELDS: dict[str, str] = _TABLE["workloadFields"]
PREFIXES: dict[str, str] = _TABLE["prefixes"]
VERBS: dict[str, str] = _TABLE["verbs"]
