"""Taking the names out of a scenario, so that it can be shown to strangers: the same decisions under other names.

Names of nodes, namespaces, pods and other objects, labels, taints, images and extenders' addresses are replaced,
the same name by the same name everywhere, recorded extender answers included. New names sort as the old ones did,
so that nothing decided by order is decided otherwise. Of an object only the fields of an allow-list stay
(`redact.yaml`), and of their texts only numbers, quantities, times and the words of Kubernetes' enumerations; any
other text is renamed by what it names, or left out. Free text that is printed (an extender's reasons, a person's)
becomes `reason-1`, the same text the same one. `verify_redaction` runs both and compares.
"""

from __future__ import annotations

import base64
import dataclasses
import hmac
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any, Final

from scheduler_core.expressions.expression import OF_THE_LIBRARY
from scheduler_core.expressions.functions import FUNCTIONS
from scheduler_core.extender import wire
from scheduler_core.extender.go_json import DecodeProblem
from scheduler_core.fork import POOL_LABELS, EqualNodes, group_of
from scheduler_core.karpenter.node_pools import values_of_machines
from scheduler_core.objects.kinds import SHAPING
from scheduler_core.releases import NEWEST
from scheduler_core.scenario.canonical import owner_uids, without_server_fields
from scheduler_core.scenario.controllers import NotRenamed, programs_of, renamed_settings
from scheduler_core.scenario.expectations import run_scenario
from scheduler_core.scenario.load import load_scenario, scenario_document
from scheduler_core.scenario.mock_extender import HTTP_OK
from scheduler_core.scenario.ran import ScenarioRun
from scheduler_core.scenario.types import Manifest, Patch, Scenario
from scheduler_core.schema.tables import kinds, table_beside, types
from scheduler_core.sim.controllers.cluster_autoscaler import NEW_NODE
from scheduler_core.sim.controllers.device_driver import MODELS, devices_of, slices_of
from scheduler_core.sim.controllers.programs import CLUSTER_AUTOSCALER, KARPENTER

# ---- what is kept: the tables of `redact.yaml`

_TABLE: dict[str, Any] = table_beside(__package__, "redact.yaml")


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile("|".join(_TABLE["patterns"][name]), re.ASCII)


KNOWN_LABELS, KNOWN_DRIVERS, KNOWN_RESOURCES = map(_pattern, ("labels", "drivers", "resources"))
PLAIN, KEPT_NAMES = map(_pattern, ("plain", "names"))
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
    r"playground\.dev/|scheduling\.x-k8s\.io/|karpenter\.sh/do-not-disrupt$|pv\.kubernetes\.io/(bind-completed|bound-by-controller)$"
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


# ---- names

_LEFT_OUT: Final = object()
_WORD: Final = re.compile(r"[\w./-]*[\w/-]")
_OF_A_LOAD: Final = frozenset(("from", "every", "each", "cpu", "memory", "for"))
_VERSION: Final = re.compile(r"v?\d+(\.\d+){1,3}")
_CEL_WORD: Final = re.compile(r"//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[A-Za-z_]\w*", re.ASCII)
_IN_MESSAGES: Final = ("value", "label", "Namespace", "Node", "Pod", "reason", "resource")
_OF_A_STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
_OF_A_DEVICE_CLASS: Final = "deviceclass.resource.kubernetes.io/"
_SCOPES: Final = {"PriorityClass": "PriorityClass", "VolumeAttributesClass": "VolumeAttributesClass"}
"""Scopes of a quota whose values are names, and of what."""


@dataclass(frozen=True, slots=True)
class Redacted:
    """A scenario without its names.

    Attributes
    ----------
    renamed : dict of str to dict
        What was renamed (`Node`, `Pod`, `label key`, ...) -> old -> new. For its owner; never share it.
    notes : tuple of str
        What was kept, and why.
    """

    scenario: Scenario
    renamed: dict[str, dict[str, str]]
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Names:
    """One kind of name: collected first, then given in sorted order."""

    prefix: str
    kept: re.Pattern[str]
    old: dict[str, None] = field(default_factory=dict)
    new: dict[str, str] = field(default_factory=dict)

    def collect(self, name: str) -> str:
        if not self.kept.fullmatch(name):
            self.old[name] = None
        return name

    def settle(self) -> None:
        width = len(str(len(self.old)))
        self.new = {
            name: f"10.{place >> 16}.{place >> 8 & 255}.{place & 255}"
            if self.prefix == "address"
            else f"attribute{place:0{width}}"
            if self.prefix == "attribute"
            else f"{self.prefix}-{place:0{width}}"
            for place, name in enumerate(sorted(self.old), start=1)
        }

    def rename(self, name: str) -> str:
        return self.new.get(name, name)


class _Redactor:
    """Walks a document twice: once to collect names, once to replace them."""

    def __init__(self, owners: frozenset[str]) -> None:
        self.owners = owners
        self.names: dict[str, _Names] = {}
        self.numeric: dict[str, None] = {}
        self.left_out: dict[str, None] = {}
        self.kind = ""  # of the object that is walked; empty beside objects
        self.has_expressions = False
        self.collecting = True
        self.new_names: Callable[[str, re.Pattern[str]], _Names] = _Names
        self.keeps_pools = False
        self.keeps_machines = False
        self.pools: set[EqualNodes] = set()
        self.groups: dict[str, str] = {}
        self.not_renamed: dict[str, None] = {}

    def name(self, what: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if what in ("ResourceSlice", "ResourcePool"):
            found = OF_A_NODE.search(value)
            if found is not None and found.end() == len(value):
                return self.name("Node", value[: found.start()]) + found[0]
        if what == "Node" and self.groups:
            group, added, number = value.rpartition(NEW_NODE)
            if added and group in self.groups:
                return f"{self.groups[group]}{NEW_NODE}{number}".lower()
        names = self.names.get(what)
        if names is None:
            prefix = PREFIXES.get(what, what.lower().replace(" ", "-"))
            names = self.names[what] = self.new_names(prefix, KEPT.get(what, KEPT_NAMES))
        return names.collect(value) if self.collecting else names.rename(value)

    def object_name(self, kind: str, value: Any) -> Any:
        # Claims and nodes name a CSIDriver as a driver does itself.
        return self.name("driver" if kind == "CSIDriver" else kind, value)

    def resource(self, name: str) -> str | None:
        """The name of a resource; None for one that no API server takes."""
        if KNOWN_RESOURCES.fullmatch(name):
            return name
        if name.startswith(_OF_A_DEVICE_CLASS):
            return f"{_OF_A_DEVICE_CLASS}{self.name('DeviceClass', name.removeprefix(_OF_A_DEVICE_CLASS))}"
        if "/" not in name:
            return None
        domain = name.partition("/")[0]
        of_kubernetes = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
        return str(self.name("resource of Kubernetes" if of_kubernetes else "resource", name))

    def resources(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Amounts of resources by name."""
        named = {self.resource(name): self.plain(amount) for name, amount in value.items()}
        return {
            name: amount for name, amount in named.items() if name is not None and amount is not _LEFT_OUT
        }

    def plain(self, value: Any) -> Any:
        """A value that names nothing; `_LEFT_OUT` for any other text."""
        if not isinstance(value, str):
            return value if value is None or isinstance(value, bool | int | float) else _LEFT_OUT
        if value in WORDS or PLAIN.fullmatch(value):
            return value
        return value if value in ("UTC", "Etc/UTC") else _LEFT_OUT

    def label_key(self, key: Any) -> Any:
        return key if self.keeps_pools and key in POOL_LABELS else self.name("label", key)

    def label_value(self, key: str, value: Any) -> Any:
        if not isinstance(value, str) or (
            self.plain(value) is not _LEFT_OUT and (key in self.numeric or KEPT_VALUES.match(key))
        ):
            return value if self.plain(value) is not _LEFT_OUT else None
        if self.keeps_machines and value in values_of_machines().get(key, ()):
            return value
        nodes = self.names.get("Node")
        if nodes is not None and (value in nodes.old):
            # A hostname label, or an affinity to one.
            return nodes.collect(value) if self.collecting else nodes.rename(value)
        return self.name("value", value)

    def labels(self, labels: Any) -> Any:
        if not isinstance(labels, Mapping):
            return labels
        named = ((self.label_key(key), self.label_value(key, value)) for key, value in labels.items())
        return {key: value for key, value in named if value is not None}

    # ---- documents

    def manifest(self, manifest: Manifest) -> dict[str, Any]:
        cleaned = without_server_fields(manifest, self.owners)
        self.kind = kind = str(cleaned["kind"])
        result: dict[str, Any] = {"apiVersion": cleaned["apiVersion"], "kind": kind}
        result["metadata"] = self.metadata(cleaned["metadata"], kind)
        rest = {key: value for key, value in cleaned.items() if key not in result}
        result |= self._fields(rest, kind)
        self.kind = ""
        if kind == "Node":
            self.pools.add(group_of(cleaned["metadata"].get("labels") or {}))
        programs = self.programs(cleaned)
        if programs:
            result["metadata"]["annotations"] = {**result["metadata"].get("annotations", {}), **programs}
        return result

    def programs(self, namespace: Manifest) -> dict[str, str | None]:
        """The settings of programs that are annotations of kube-system; None where a patch takes them away."""
        found: dict[str, str | None] = {}
        for name, text in programs_of(namespace).items():
            try:
                found[name] = renamed_settings(name, text, self) if isinstance(text, str) else None
            except NotRenamed as error:
                self.not_renamed[f"{name} is left out: {error}"] = None
        return found

    def metadata(self, meta: Mapping[str, Any], kind: str) -> dict[str, Any]:
        result: dict[str, Any] = {}
        if "name" in meta:
            result["name"] = self.object_name(kind, meta["name"])
        if meta.get("namespace"):
            result["namespace"] = self.name("Namespace", meta["namespace"])
        if meta.get("uid"):
            result["uid"] = self.name("uid", meta["uid"])
        if meta.get("labels"):
            result["labels"] = self.labels(meta["labels"])
        said = meta.get("annotations") or {}
        annotations = {
            key: value
            for key, value in (said.items() if isinstance(said, Mapping) else ())
            if KEPT_ANNOTATIONS.match(key)
            and KNOWN_LABELS.fullmatch(key.replace("pv.kubernetes.io", "playground.dev"))
            and self.names_nothing(value)
        }
        if annotations:
            result["annotations"] = annotations
        if meta.get("ownerReferences"):
            result["ownerReferences"] = [self.owner(owner) for owner in meta["ownerReferences"]]
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds"):
            if key in meta and self.plain(meta[key]) is not _LEFT_OUT:
                result[key] = meta[key]
        self._note_unknown(meta, "metadata")
        return result

    def names_nothing(self, value: Any) -> bool:
        """Whether an annotation is plain, or a load such as ``0s cpu=200m; every 10m``."""
        if not isinstance(value, str) or self.plain(value) is not _LEFT_OUT:
            return isinstance(value, str)
        words = filter(None, re.split(r"[\s=;]+", value))
        return all(word in _OF_A_LOAD or self.plain(word) is not _LEFT_OUT for word in words)

    def owner(self, owner: Mapping[str, Any]) -> dict[str, Any]:
        """An ownerReference; a kind that is not Kubernetes' own is renamed with its group."""
        flags = {
            key: owner[key]
            for key in ("controller", "blockOwnerDeletion")
            if isinstance(owner.get(key), bool)
        }
        return self.target(owner) | {"uid": self.name("uid", owner.get("uid", ""))} | flags

    def container(self, container: Mapping[str, Any], name: str) -> dict[str, Any]:
        result = self._fields(container, "container", CONTAINER)
        result["name"] = name
        if "image" in container:
            result["image"] = self.image(container["image"])
        if "ports" in container:
            result["ports"] = [
                self.port(port) for port in container["ports"] or () if isinstance(port, Mapping)
            ]
        return result

    def port(self, port: Mapping[str, Any]) -> dict[str, Any]:
        result = self._fields(port, "", frozenset(("hostPort", "protocol", "containerPort")))
        address = port.get("hostIP")
        if isinstance(address, str):
            result["hostIP"] = self.name("address", address)
        return result

    def image(self, image: Any) -> Any:
        if not isinstance(image, str) or not image:
            return image
        # As ImageLocality reads it: no tag means `latest`.
        whole = image if ":" in image.rpartition("/")[2] else f"{image}:latest"
        named = self.name("image", whole)
        return named if self.collecting else f"{named}:1"

    def volumes(self, value: Any) -> list[dict[str, Any]]:
        """A pod's volumes that decide anything."""
        found: list[dict[str, Any]] = []
        for item in value or ():
            sources = {name: item[name] for name in item if name in VOLUMES and name != "name"}
            if sources:
                named = {name: self.volume_source(source, name) for name, source in sources.items()}
                found.append({"name": f"v{len(found)}", **named})
        return found

    def volume_source(self, value: Any, key: str) -> Any:
        """One source of a volume, in a pod or a PersistentVolume."""
        if key == "csi" and isinstance(value, Mapping):
            handle = value.get("volumeHandle")
            named = {"volumeHandle": self.name("volume", handle)} if handle else {}
            return {"driver": self.name("driver", value.get("driver")), **named}
        return self.disk(value) if key in DISKS else self.walk(value, key)

    def disk(self, value: Any) -> Any:
        """Whatever names a disk, renamed; equal stays equal."""
        if isinstance(value, Mapping):
            return {name: self.disk(item) for name, item in value.items() if name in OF_A_DISK}
        if isinstance(value, list | tuple):
            return [self.disk(item) for item in value]
        return value if self.plain(value) is not _LEFT_OUT and value else self.name("volume", value)

    def configuration(self, value: Any) -> Any:
        """A configuration or Policy; addresses, certificates and names of what it is not scheduled by are dropped."""
        if not isinstance(value, Mapping):
            return value
        result = self.walk({key: item for key, item in value.items() if key in CONFIGURATION})
        for key in ("predicates", "priorities"):
            for entry in result.get(key) or ():
                if isinstance(entry, dict) and entry.get("argument"):
                    # Its own name for a predicate of a Policy that has arguments.
                    entry["name"] = self.name("predicate", entry.get("name"))
        return result

    def conditions(self, value: Any, kind: str) -> list[dict[str, Any]]:
        """Conditions without why, but for those only people read."""
        types_of = NODE_CONDITIONS if kind == "Node" else WORDS
        return [
            {key: item[key] for key in ("type", "status", "reason") if item.get(key) in WORDS}
            | {"type": item["type"]}
            for item in value or ()
            if isinstance(item, Mapping) and item.get("type") in types_of
        ]

    def _fields(
        self, value: Mapping[str, Any], key: str, allowed: frozenset[str] | None = None
    ) -> dict[str, Any]:
        """An object's fields of the allow-list, each as it is read; of what is left out a note where it is unknown."""
        if allowed is None:
            allowed = DEVICE_FIELDS if self.kind in DEVICE_KINDS else FIELDS
        result = {}
        for name, item in value.items():
            if name == "name" and key in NAME_OF:
                what = NAME_OF[key]
                found = self.resource(str(item)) if what == "resource" else self.name(what, item)
            elif name in allowed:
                found = self.walk(item, name)
            else:
                continue
            if found is _LEFT_OUT:
                self.left_out[f"{self.kind} {name}"] = None
            elif found is not None or item is None:
                result[name] = found
        self._note_unknown(value, key)
        return result

    def _note_unknown(self, value: Mapping[str, Any], key: str) -> None:
        """Fields that no kind of Kubernetes has are counted by where they stand: their names are as unknown."""
        if self.kind and any(name not in _every_field() for name in value):
            self.left_out[f"unknown fields of {self.kind} {key.removesuffix('[]')}".rstrip()] = None

    def walk(self, value: Any, key: str = "") -> Any:
        if isinstance(value, list | tuple):
            return self._walk_list(value, key)
        if isinstance(value, Mapping):
            return self._walk_object(value, key)
        if key in NAME_FIELDS:
            return self.name(NAME_FIELDS[key], value)
        if key in POD_FIELDS and not self.kind:
            return self.pod_name(value)
        if key in WORKLOAD_FIELDS and not self.kind:
            return self.pod_name(value, WORKLOAD_FIELDS[key])
        if key in LABEL_FIELDS or (key == "key" and self.kind):
            return self.label_key(value)
        if key == "extendedResourceName" and isinstance(value, str):
            return self.resource(value) or _LEFT_OUT
        if key == "nodeID":
            return "id"
        if key in ("request", "requests[]") and isinstance(value, str):
            return "/".join(self.name("request of a claim", part) for part in value.split("/"))
        if not self.kind:
            return value
        if self.kind in DEVICE_KINDS and isinstance(value, str):
            if key == "expression":
                return self.expression_text(value)
            if key in ("string", "strings[]", "version", "versions[]", "matchAttribute", "distinctAttribute"):
                return self.attribute(value)
        return self.plain(value)

    def attribute(self, value: str) -> str:
        """A word of a device: the name of an attribute, a capacity or a counter, or a text that an attribute has."""
        domain, slash, rest = value.rpartition("/")
        if self.plain(value) is not _LEFT_OUT or value in _simulated_words() or _VERSION.fullmatch(value):
            return value
        if slash:
            return f"{self.name('driver', domain)}/{self.attribute(rest)}"
        drivers = self.names.get("driver")
        is_driver = KNOWN_DRIVERS.fullmatch(value) or (drivers is not None and value in drivers.old)
        return str(self.name("driver" if is_driver else "attribute", value))

    def expression_text(self, value: str) -> str:
        """An expression over devices with its own words renamed as the devices' are; comments go."""
        self.has_expressions = True

        def renamed(found: re.Match[str]) -> str:
            text = found[0]
            if text.startswith("//"):
                return ""
            if text[0] in "\"'":
                return text[0] + self.attribute(text[1:-1]) + text[-1]
            return text if text in CEL else self.attribute(text)

        return _CEL_WORD.sub(renamed, value)

    def _walk_list(self, value: Sequence[Any], key: str) -> Any:
        if key in NAME_FIELDS or key in LABEL_FIELDS or (key in POD_FIELDS and not self.kind):
            return [self.walk(item, key) for item in value]
        if key in SHAPES:
            return [self.shaped(item, SHAPES[key]) for item in value]
        if key in ("matchExpressions", "matchLabelExpressions", "matchFields"):
            return [self.expression(item, key == "matchFields") for item in value]
        if key in ("taints", "tolerations"):
            return [self.taint(item) for item in value]
        if key in ("containers", "initContainers"):
            return [self.container(item, f"{key[0]}{index}") for index, item in enumerate(value)]
        if key == "volumes":
            return self.volumes(value) or None
        if key == "conditions":
            return self.conditions(value, self.kind) or None
        if key == "images":
            return [
                {"names": [self.image(name) for name in item.get("names") or ()]}
                | self._fields(item, "", frozenset(("sizeBytes",)))
                for item in value
            ]
        if key == "objects" or key == "apply":
            return [self.manifest(item) for item in value]
        if key == "extenders":
            return [self.extender_config(item, index) for index, item in enumerate(value)]
        if key in ("resources", "managedResources") and not self.kind:
            return [self._weighted(item) for item in value]
        if key == "ignoredResources":
            return [self.resource(item) or item for item in value]
        found = [self.walk(item, f"{key}[]" if self.kind else "") for item in value]
        return [item for item in found if item is not _LEFT_OUT]

    def shaped(self, value: Any, shape: Mapping[str, str]) -> dict[str, Any]:
        """An object of known fields: each is a name of something, or what the shape has behind `=`."""
        return {
            key: what.removeprefix("=") if what.startswith("=") else self.name(what, value.get(key, ""))
            for key, what in shape.items()
        }

    def _weighted(self, value: Any) -> Any:
        """A resource by its name in a configuration, with its weight."""
        if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
            return value
        return {**value, "name": self.resource(value["name"]) or value["name"]}

    def _walk_object(self, value: Mapping[str, Any], key: str) -> Any:
        if key == "taint":
            return self.taint(value)
        if key in LABEL_MAPS or (key == "selector" and self.kind in ("Service", "ReplicationController")):
            return self.labels(value)
        if key in RESOURCE_MAPS and self.kind not in DEVICE_KINDS:
            return self.resources(value)
        if key == "hard":
            named = {self._counted(name): self.plain(amount) for name, amount in value.items()}
            return {name: amount for name, amount in named.items() if name and amount is not _LEFT_OUT}
        if key == "disruptedPods":
            return {
                self.name("Pod", name): at for name, at in value.items() if self.plain(at) is not _LEFT_OUT
            }
        if key == "scopeSelector":
            return {"matchExpressions": [self._scope(item) for item in value.get("matchExpressions") or ()]}
        if key in ("scaleTargetRef", "describedObject"):
            return self.target(value)
        if key == "pool" and "name" in value:
            numbers = self._fields(value, "pool", frozenset(("generation", "resourceSliceCount")))
            return {"name": self.name("ResourcePool", value["name"]), **numbers}
        if key in SHAPES:
            return self.shaped(value, SHAPES[key])
        if key == "csi" or key in DISKS:
            return self.volume_source(value, key)
        if key == "metadata":
            return self.metadata(value, "Pod" if self.kind else "")
        if key in ("patch", "delete") and "kind" in value and "name" in value:
            return self.reference(value)
        if not self.kind:
            return {name: self.walk(item, name) for name, item in value.items()}
        of_devices = ("attributes", "counters", "capacity", "consumedCapacity", "requests")
        if key in of_devices and not (key == "capacity" and "requests" in value):
            named = {self.attribute(str(name)): self.walk(item, f"{key}[]") for name, item in value.items()}
            return {name: item for name, item in named.items() if item is not _LEFT_OUT}
        if self.kind == "Service" and key == "spec":
            return self._fields(value, key, frozenset(("selector",)))
        found = self._fields(value, key)
        if key == "containerResource":
            found["container"] = "c0"
        return found

    def _counted(self, name: str) -> str:
        """What a quota counts; empty for what there is not."""
        what, of_a_class, rest = name.partition(_OF_A_STORAGE_CLASS)
        if of_a_class:
            counted = self._counted(rest)
            return f"{self.name('StorageClass', what)}{of_a_class}{counted}" if counted else ""
        if name.startswith("count/"):
            return name if name.removeprefix("count/") in _counted_kinds() else ""
        prefix = next((part for part in ("requests.", "limits.") if name.startswith(part)), "")
        rest = name.removeprefix(prefix)
        return (
            f"{prefix}{self.resource(rest)}"
            if self.resource(rest)
            else name
            if name in _counted_kinds()
            else ""
        )

    def _scope(self, value: Mapping[str, Any]) -> dict[str, Any]:
        result = self._fields(value, "", frozenset(("scopeName", "operator")))
        what = _SCOPES.get(str(value.get("scopeName")))
        if what is not None and "values" in value:
            result["values"] = [self.name(what, item) for item in value["values"] or ()]
        return result

    def target(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """What an autoscaler scales or looks at, or who owns an object."""
        version, kind = str(value.get("apiVersion", "")), str(value.get("kind", ""))
        is_known = (version, kind) in _built_in()
        return {
            "apiVersion": version if is_known else "owner.example/v1",
            "kind": kind if is_known else self.name("kind of an owner", kind),
            "name": self.name(kind if is_known else "owner", value.get("name", "")),
        }

    def reference(self, value: Mapping[str, Any]) -> dict[str, Any]:
        result = {**value, "name": self.object_name(value["kind"], value["name"])}
        result |= {key: self.walk(value[key], key) for key in ("namespace", "by") if value.get(key)}
        if "patch" in value:
            self.kind = str(value["kind"])
            patch = dict(value["patch"])
            meta = patch.pop("metadata", None)
            result["patch"] = self._fields(patch, self.kind)
            if isinstance(meta, Mapping) and "labels" in meta:
                result["patch"]["metadata"] = {"labels": self.labels(meta["labels"])}
            self.kind = ""
            programs = self.programs(
                {"kind": value["kind"], "metadata": {**(meta or {}), "name": value["name"]}}
            )
            if programs:
                result["patch"].setdefault("metadata", {})["annotations"] = programs
        return result

    def pod_name(self, value: Any, kind: str = "Pod") -> Any:
        if isinstance(value, Mapping):
            return self.walk(value)
        if not isinstance(value, str):
            return value
        namespace, slash, name = value.rpartition("/")
        named = self.name(kind, name)
        return f"{self.name('Namespace', namespace)}{slash}{named}"

    def expression(self, value: Mapping[str, Any], is_field: bool) -> dict[str, Any]:
        operator = (
            {} if self.plain(value.get("operator")) in (None, _LEFT_OUT) else {"operator": value["operator"]}
        )
        if is_field:
            return {
                "key": "metadata.name",
                **operator,
                "values": [self.name("Node", item) for item in value.get("values") or ()],
            }
        key = value.get("key", "")
        if value.get("operator") in ("Gt", "Lt"):
            self.numeric[key] = None
        result = {"key": self.label_key(key), **operator}
        if value.get("values"):
            named = [self.label_value(key, item) for item in value["values"]]
            result["values"] = [item for item in named if item is not None]
        return result

    def taint(self, value: Mapping[str, Any]) -> dict[str, Any]:
        key = value.get("key") or ""
        result = self._fields(value, "", frozenset(("effect", "operator", "tolerationSeconds")))
        if key:
            result["key"] = self.label_key(key)
        if value.get("value"):
            result["value"] = self.label_value(key, value["value"])
        return {name: item for name, item in result.items() if item is not None}

    def extender_config(self, value: Mapping[str, Any], index: int) -> dict[str, Any]:
        kept = {name: item for name, item in value.items() if name not in ("tlsConfig", "enableHTTPS")}
        if kept.get("managedResources"):
            kept["managedResources"] = [self._weighted(item) for item in kept["managedResources"]]
        verbs = {field: verb for field, verb in VERBS.items() if kept.get(field)}
        return {**kept, **verbs, "urlPrefix": f"http://extender-{index}.example"}

    # ---- texts

    def text(self, text: str) -> str:
        """Known names replaced wherever they stand as words."""
        table, whole = self._words
        text = whole.sub(lambda match: table[match[0]], text)
        return _WORD.sub(lambda match: table.get(match[0], match[0]), text)

    @cached_property
    def _words(self) -> tuple[dict[str, str], re.Pattern[str]]:
        """New names of old ones in messages, and what finds those of several words."""
        found = (self.names[what].new for what in _IN_MESSAGES if what in self.names)
        table = {old: new for names in found for old, new in names.items() if len(old) > 1}
        sentences = sorted(
            (old for old in table if not _WORD.fullmatch(old)), key=lambda old: (-len(old), old)
        )
        return table, re.compile("|".join(map(re.escape, sentences)) or r"(?!)")


@cache
def _built_in() -> frozenset[tuple[str, str]]:
    """apiVersion and kind of what is Kubernetes' own."""
    return frozenset((item["apiVersion"], item["kind"]) for item in kinds())


@cache
def _simulated_words() -> frozenset[str]:
    """Names and texts of what the simulated drivers publish."""
    slices = (
        part["spec"]
        for model in MODELS
        for part in slices_of("", devices_of(f"gpu=8:{model},mig=8:{model},nic=8"), NEWEST)
    )
    return frozenset(re.findall(r'"([^"]*)"', json.dumps(list(slices))))


@cache
def _counted_kinds() -> frozenset[str]:
    """How a quota names what it counts: ``pods``, ``deployments.apps``."""
    found = {"services.nodeports", "services.loadbalancers"}
    for item in kinds():
        group = item["apiVersion"].rpartition("/")[0]
        found.add(f"{item['plural']}.{group}" if group else item["plural"])
    return frozenset(found)


@cache
def _every_field() -> frozenset[str]:
    """Names of fields of Kubernetes' own kinds."""
    return frozenset(name for fields in types().values() for name in fields) | DEVICE_FIELDS


def redact(scenario: Scenario) -> Redacted:
    """Take the names out of a scenario.

    The result carries no words for people and no recorded decisions: run it and record its own.
    """
    document = scenario_document(
        dataclasses.replace(scenario, name="redacted", title="", lesson="", group="", path=(), decisions=None)
    )
    manifests = [*scenario.objects, *(item for step in scenario.steps for item in step.apply or ())]
    redactor = _Redactor(owner_uids(manifests))
    patches = [_patched(step.patch) for step in scenario.steps if step.patch is not None]
    redactor.keeps_pools = any(CLUSTER_AUTOSCALER in programs_of(item) for item in (*manifests, *patches))
    redactor.keeps_machines = any(KARPENTER in programs_of(item) for item in (*manifests, *patches))
    # Names of nodes first: label values that are one must follow it.
    for manifest in manifests:
        redactor.object_name(str(manifest["kind"]), manifest["metadata"]["name"])
    _redacted(document, redactor)
    if redactor.numeric and "value" in redactor.names:
        # Gt and Lt were met on the way: values of their labels are kept.
        redactor.names["value"].old.clear()
        _redacted(document, redactor)
    for names in redactor.names.values():
        names.settle()
    # A taint named as a resource is: messages must not confuse the two.
    labels, resources = (
        redactor.names[what].new if what in redactor.names else {} for what in ("label", "resource")
    )
    labels.update((name, resources[name]) for name in labels.keys() & resources.keys())
    redactor.collecting = False
    result = load_scenario(_redacted(document, redactor))
    notes = [
        f"numeric values of the label {redactor.label_key(key)} are kept: they are compared"
        for key in redactor.numeric
    ]
    if redactor.has_expressions:
        notes.append(
            "expressions that select devices are kept with other words: one that looks into a text may choose otherwise"
        )
    if redactor.keeps_pools:
        notes.append("labels that name the pools of nodes are kept: node groups are found by them")
    if redactor.keeps_machines:
        notes.append("what labels say of machines of the price list is kept: NodePools choose by it")
    notes += redactor.not_renamed
    if redactor.left_out:
        notes.append(f"left out, as no rule reads such a value: {', '.join(sorted(redactor.left_out))}")
    left_out = [*(item for item in manifests if not _is_needed(item)), *scenario.kept]
    foreign = sorted({str(item["kind"]) for item in left_out})
    if foreign:
        notes.append(f"objects of kinds no scheduler reads are left out: {', '.join(foreign)}")
    renamed = {what: dict(names.new) for what, names in redactor.names.items() if names.new}
    return Redacted(result, renamed, tuple(notes))


def _patched(patch: Patch) -> Manifest:
    """What a patch says of an object's metadata."""
    return {"kind": patch.kind, "metadata": {**(patch.patch.get("metadata") or {}), "name": patch.name}}


def _is_needed(manifest: Manifest) -> bool:
    # Controllers write revisions anew, of the templates without names.
    return manifest["kind"] in SHAPING and manifest["kind"] != "ControllerRevision"


def _redacted(document: Mapping[str, Any], redactor: _Redactor) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in document.items():
        if key == "objects":
            result[key] = [redactor.manifest(item) for item in value if _is_needed(item)]
        elif key == "steps":
            result[key] = [_step(step, redactor) for step in value if _has_its_object(step)]
        elif key == "kept":
            continue
        elif key == "extenders":
            result[key] = _extenders(value, redactor)
        elif key == "expect":
            result[key] = [_expectation(item, redactor) for item in value]
        elif key == "scheduler":
            result[key] = redactor.configuration(value)
        else:
            result[key] = value
    return {key: value for key, value in result.items() if value not in ([], {})}


def _has_its_object(step: Mapping[str, Any]) -> bool:
    return all(_is_needed(step[verb]) for verb in ("patch", "delete") if verb in step)


def _step(step: Mapping[str, Any], redactor: _Redactor) -> dict[str, Any]:
    if "apply" in step:
        return {"apply": [redactor.manifest(item) for item in step["apply"] if _is_needed(item)]}
    if "expect" in step:
        return {"expect": [_expectation(item, redactor) for item in step["expect"]]}
    for verb in ("allow", "reject"):
        if verb in step:
            answer = step[verb] if isinstance(step[verb], Mapping) else {"pod": step[verb]}
            result = redactor.walk(answer)
            if answer.get("reason"):
                # Free text of a person.
                result["reason"] = redactor.name("reason", answer["reason"])
            return {verb: result}
    if "configure" in step:
        return {"configure": redactor.configuration(step["configure"])}
    return {key: redactor.walk(value, key) for key, value in step.items()}


def _expectation(item: Mapping[str, Any], redactor: _Redactor) -> dict[str, Any]:
    result: dict[str, Any] = redactor.walk(item)
    if "reason" in item:
        said = item["reason"]
        result["reason"] = said if redactor.collecting else redactor.text(said)
    return result


def _extenders(value: Mapping[str, Any], redactor: _Redactor) -> dict[str, Any]:
    result: dict[str, Any] = {}
    if "mock" in value:
        result["mock"] = [redactor.walk(item) for item in value["mock"]]
        for rule in (rule for extender in result["mock"] for rule in extender.get("rules") or ()):
            for action in ("deny", "bind", "fail", "nonsense"):
                for key in ("reason", "error", "text"):
                    if (rule.get(action) or {}).get(key):
                        rule[action] = {**rule[action], key: redactor.name("reason", rule[action][key])}
    calls = [_call(call, redactor) for call in value.get("cassette") or ()]
    if calls:
        result["cassette"] = calls
    return result


# ---- objects one by one, as they come

_BARE_ANNOTATIONS: Final = re.compile("|".join(_TABLE["bareAnnotations"]))
_BARE_METADATA: Final = _words("bareMetadata")
_BARE_MESSAGES: Final = _words("bareMessages")
_BARE: Final = FIELDS | DEVICE_FIELDS | CONTAINER | DISKS | OF_A_DISK | _words("bareFields")
_BARE_OF_A_POD: Final = _BARE | _words("podSpec")
_FREE: Final = LABEL_MAPS | RESOURCE_MAPS | {"attributes", "counters", "disruptedPods", "selector"}
"""Maps whose keys are names."""
_MAKERS: Final = ("ReplicaSet", "StatefulSet", "ReplicationController")


def bare(manifest: Manifest) -> dict[str, Any]:
    """An object with the fields that decide anything, and its names: no environment, command, or other annotations."""
    kind = manifest["kind"]
    meta = {key: value for key, value in manifest["metadata"].items() if key in _BARE_METADATA}
    annotations = manifest["metadata"].get("annotations") or {}
    kept = {key: annotations[key] for key in annotations if _BARE_ANNOTATIONS.fullmatch(key)}
    if kept:
        meta["annotations"] = kept
    allowed = _BARE_OF_A_POD if kind == "Pod" else _BARE
    found: dict[str, Any] = {"apiVersion": manifest.get("apiVersion"), "kind": kind, "metadata": meta}
    for key, value in manifest.items():
        if key in allowed and key not in found:
            found[key] = _bare(value, allowed)
    if kind in _MAKERS or kind == "Service":
        spec = manifest.get("spec") or {}
        found["spec"] = {key: spec[key] for key in ("selector",) if spec.get(key)}
    return found


def _bare(value: Any, allowed: frozenset[str]) -> Any:
    if isinstance(value, list):
        return [_bare(item, allowed) for item in value]
    if not isinstance(value, dict):
        return value
    found = {
        key: item if key in _FREE and _is_flat(item) else _bare(item, allowed)
        for key, item in value.items()
        if key in allowed or key in _FREE
    }
    if value.get("type") in _BARE_MESSAGES and "message" in value:
        found["message"] = value["message"]
    return found


def _is_flat(value: Any) -> bool:
    return isinstance(value, dict) and not any(isinstance(item, list) for item in value.values())


@dataclass(slots=True)
class _KeyedNames(_Names):
    """Names by a hash of the old ones. Names are easily guessed, so without the key no guess can be tried."""

    key: bytes = b""

    def rename(self, name: str) -> str:
        if self.kept.fullmatch(name):
            return name
        if name not in self.new:
            hashed = hmac.digest(self.key, f"{self.prefix}\0{name}".encode(), "sha256")
            if self.prefix == "address":
                self.new[name] = f"10.{hashed[0]}.{hashed[1]}.{hashed[2]}"
            else:
                said = base64.b32encode(hashed[:10]).decode().lower()
                self.new[name] = f"attribute{said}" if self.prefix == "attribute" else f"{self.prefix}-{said}"
        return self.new[name]


class Renaming:
    """Objects without their names, one by one: with one key the same name by the same name in each run.

    Parameters
    ----------
    key
        Secret: with it a guess of a name can be tried.
    """

    def __init__(self, key: bytes) -> None:
        self._redactor = _Redactor(frozenset())
        self._redactor.collecting = False
        self._redactor.new_names = partial(_KeyedNames, key=key)

    def of(self, manifest: Manifest) -> dict[str, Any]:
        """An object under other names; what its writer does not set keeps its place: uid, version, times."""
        meta, redactor = manifest["metadata"], self._redactor
        if manifest["kind"] == "Node":
            redactor.name("Node", meta["name"])
        renamed = redactor.manifest(manifest)
        for key in ("resourceVersion", "creationTimestamp", "deletionTimestamp"):
            if key in meta:
                renamed["metadata"][key] = meta[key]
        if meta.get("uid"):
            renamed["metadata"]["uid"] = redactor.name("uid", meta["uid"])
        if manifest["kind"] == "Pod" and manifest.get("status", {}).get("conditions"):
            # Why it has no node, and for whom it is evicted, is said by type and reason alone.
            names = ("type", "status", "reason")
            renamed.setdefault("status", {})["conditions"] = [
                {key: item[key] for key in names if item.get(key) in WORDS}
                for item in manifest["status"]["conditions"]
                if item.get("type") in WORDS
            ]
        return renamed

    def name(self, kind: str, name: str) -> str:
        """The name of an object of a kind."""
        return str(self._redactor.object_name(kind, name))


# ---- recorded answers of extenders: what the scheduler understands of them, and nothing else

NONSENSE = "not what an extender answers"
_FAILURES = (
    "context deadline exceeded", "connection refused", "connection reset by peer", "no such host", "i/o timeout", "EOF",
)  # fmt: skip
"""Ways to fail that give no name away."""


def _call(call: Mapping[str, Any], redactor: _Redactor) -> dict[str, Any]:
    """One entry of a cassette, as a document holds it. Its request is not kept: it changes with the names."""
    entry = {key: call[key] for key in ("extender", "verb", "status", "duration") if key in call}
    if "pod" in call:
        entry["pod"] = redactor.pod_name(call["pod"])
    if call.get("error"):
        return {**entry, "error": _failure(call["error"], redactor)}
    if call.get("status", HTTP_OK) != HTTP_OK:
        return entry
    text = call.get("text") or ("" if call.get("answer") is None else json.dumps(call["answer"]))
    try:
        return {**entry, "answer": _REDACTED_ANSWERS[call["verb"]](text, redactor)}
    except DecodeProblem:
        return {**entry, "text": NONSENSE}


def _failure(said: str, redactor: _Redactor) -> Any:
    known = next((words for words in _FAILURES if words in said), None)
    return redactor.name("reason", said) if known is None else known


def _filter(text: str, redactor: _Redactor) -> dict[str, Any]:
    said = wire.filter_answer(text)
    result: dict[str, Any] = {}
    if said.node_names is not None:
        result["NodeNames"] = [redactor.name("Node", name) for name in said.node_names]
    if said.nodes is not None:
        result["Nodes"] = {"items": [_node(node, redactor) for node in said.nodes]}
    for key, reasons in (
        ("FailedNodes", said.failed),
        ("FailedAndUnresolvableNodes", said.failed_and_unresolvable),
    ):
        if reasons:
            result[key] = {
                redactor.name("Node", node): redactor.name("reason", why) for node, why in reasons.items()
            }
    if said.error:
        result["Error"] = redactor.name("reason", said.error)
    return result


def _node(node: Mapping[str, Any], redactor: _Redactor) -> dict[str, Any]:
    named = redactor.manifest({"apiVersion": "v1", "kind": "Node", **node})
    return {key: item for key, item in named.items() if key in node}


def _prioritize(text: str, redactor: _Redactor) -> list[dict[str, Any]]:
    return [
        {"Host": redactor.name("Node", node), "Score": points}
        for node, points in wire.prioritize_answer(text)
    ]


def _preempt(text: str, redactor: _Redactor) -> dict[str, Any]:
    victims = {
        redactor.name("Node", node): {
            "Pods": [{"UID": _uid(uid, redactor)} for uid in uids],
            "NumPDBViolations": n_violations,
        }
        for node, (uids, n_violations) in wire.preemption_answer(text).items()
    }
    return {"NodeNameToMetaVictims": victims}


def _uid(uid: str, redactor: _Redactor) -> Any:
    """A run's own uids are the pod's key, `#2` and so on behind it for a later pod of that key."""
    if "/" not in uid:
        return redactor.name("uid", uid)
    key, mark, generation = uid.partition("#")
    return f"{redactor.pod_name(key)}{mark}{generation}"


def _bind(text: str, redactor: _Redactor) -> dict[str, Any]:
    return {"Error": redactor.name("reason", wire.binding_answer(text))}


_REDACTED_ANSWERS = {"filter": _filter, "prioritize": _prioritize, "preempt": _preempt, "bind": _bind}


@dataclass(frozen=True, slots=True)
class RedactionCheck:
    """Whether a redacted scenario decides as the original does.

    Attributes
    ----------
    cycle : int or None
        The first cycle that differs.
    """

    same: bool
    sentence: str
    cycle: int | None = None


def verify_redaction(original: Scenario, redacted: Scenario) -> RedactionCheck:
    """Run both and compare cycle by cycle, up to the renaming (which is inferred, and must be one to one)."""
    a = run_scenario(dataclasses.replace(original, expect=()), full_traces=False)
    b = run_scenario(dataclasses.replace(redacted, expect=()), full_traces=False)
    return same_up_to_names(a, b)


def same_up_to_names(a: ScenarioRun, b: ScenarioRun) -> RedactionCheck:
    """Compare two runs up to a one-to-one renaming of pods and nodes."""
    there: dict[tuple[str, str], str] = {}
    back: dict[tuple[str, str], str] = {}

    def matches(what: str, old: Any, new: Any) -> bool:
        if not old or not new:
            return not old and not new
        return bool(there.setdefault((what, old), new) == new and back.setdefault((what, new), old) == old)

    for first, second in zip(a.cycles, b.cycles, strict=False):
        victims_a, victims_b = first.victims, second.victims
        same = (
            first.outcome == second.outcome
            and first.n_feasible == second.n_feasible
            and first.n_nodes == second.n_nodes
            and first.best_total == second.best_total
            and first.at_ns == second.at_ns
            and matches("pod", first.pod, second.pod)
            and matches("node", first.node, second.node)
            and matches("node", first.nominated_node, second.nominated_node)
            and len(victims_a) == len(victims_b)
            and all(matches("pod", old, new) for old, new in zip(victims_a, victims_b, strict=True))
        )
        if not same:
            said = f"cycle {first.number} differs: {first.pod} {first.outcome} against {second.pod} {second.outcome}"
            return RedactionCheck(False, said, first.number)
    if len(a.cycles) != len(b.cycles):
        said = f"the original has {len(a.cycles)} cycles, the redacted scenario {len(b.cycles)}"
        return RedactionCheck(False, said, min(len(a.cycles), len(b.cycles)) + 1)
    return RedactionCheck(True, f"all {len(a.cycles)} decisions are the same under other names")


def without_failing(result: ScenarioRun) -> tuple[Scenario, int]:
    """The run's scenario without expectations that do not hold, and how many there were.

    What holds is said in words the run itself uses, and those of a redacted scenario give no name away.
    """
    failing = {finding.path for finding in result.findings if not finding.holds}
    scenario = result.scenario
    steps = []
    for place, step in enumerate(scenario.steps):
        if step.expect is None:
            steps.append(step)
            continue
        kept = tuple(
            item for index, item in enumerate(step.expect) if f"steps[{place}].expect[{index}]" not in failing
        )
        if kept:
            steps.append(dataclasses.replace(step, expect=kept))
    expect = tuple(item for index, item in enumerate(scenario.expect) if f"expect[{index}]" not in failing)
    return dataclasses.replace(scenario, steps=tuple(steps), expect=expect), len(failing)
