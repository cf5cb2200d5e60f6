"""Taking the names out of a scenario, so that it can be shown to strangers: the same decisions under other names.

Names of nodes, namespaces, pods and other objects, labels, taints, images and extenders' addresses are replaced,
the same name by the same name everywhere, recorded extender answers included. New names sort as the old ones did,
so that nothing decided by order is decided otherwise. What a scheduler does not read (environment, arguments, probes,
annotations, secrets, ...) is dropped; free text it prints (an extender's reasons, a person's) becomes `reason-1`, the
same text the same one. `redact_check.verify_redaction` runs both and compares.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler_core.objects.kinds import SHAPING
from scheduler_core.scenario.canonical import owner_uids, without_server_fields
from scheduler_core.scenario.load import load_scenario, scenario_document
from scheduler_core.scenario.redact_answers import redacted_call
from scheduler_core.scenario.redact_fields import (
    CONFIGURATION,
    CONTAINER,
    DISKS,
    DROPPED_SPEC,
    DROPPED_STATUS,
    KEPT_ANNOTATIONS,
    KEPT_NAMES,
    KEPT_VALUES,
    KNOWN_DOMAINS,
    LABEL_MAPS,
    NAME_FIELDS,
    NODE_CONDITIONS,
    NOT_OF_A_DISK,
    OF_A_NODE,
    POD_FIELDS,
    POD_SPEC,
    PREFIXES,
    VERBS,
    VOLUMES,
    WORKLOAD_FIELDS,
)
from scheduler_core.scenario.redact_specs import autoscaler_spec, quota_spec
from scheduler_core.scenario.types import Manifest, Scenario


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
    kept: Callable[[str], bool]
    old: dict[str, None] = field(default_factory=dict)
    new: dict[str, str] = field(default_factory=dict)

    def collect(self, name: str) -> str:
        if not self.kept(name):
            self.old[name] = None
        return name

    def settle(self) -> None:
        width = len(str(len(self.old)))
        self.new = {
            name: f"{self.prefix}-{place:0{width}}" for place, name in enumerate(sorted(self.old), start=1)
        }

    def rename(self, name: str) -> str:
        return self.new.get(name, name)


class _Redactor:
    """Walks a document twice: once to collect names, once to replace them."""

    def __init__(self, owners: frozenset[str]) -> None:
        self.owners = owners
        self.names: dict[str, _Names] = {}
        self.numeric: dict[str, None] = {}
        self.resources: dict[str, None] = {}
        self.drivers: dict[str, None] = {}
        self.has_expressions = False
        self.collecting = True

    def name(self, what: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if what in ("ResourceSlice", "ResourcePool"):
            found = OF_A_NODE.search(value)
            if found is not None and found.end() == len(value):
                return self.name("Node", value[: found.start()]) + found[0]
        names = self.names.get(what)
        if names is None:
            names = self.names[what] = _Names(
                PREFIXES.get(what, what.lower().replace(" ", "-")), _kept_of(what)
            )
        return names.collect(value) if self.collecting else names.rename(value)

    def object_name(self, kind: str, value: Any) -> Any:
        if kind != "CSIDriver":
            return self.name(kind, value)
        # Claims and nodes name it as a driver does itself.
        self.drivers[str(value)] = None
        return value

    def label_key(self, key: Any) -> Any:
        return self.name("label", key)

    def label_value(self, key: str, value: Any) -> Any:
        if not isinstance(value, str) or key in self.numeric or KEPT_VALUES.match(key):
            return value
        nodes = self.names.get("Node")
        if nodes is not None and (value in nodes.old):
            # A hostname label, or an affinity to one.
            return nodes.collect(value) if self.collecting else nodes.rename(value)
        return self.name("value", value)

    def labels(self, labels: Any) -> Any:
        if not isinstance(labels, Mapping):
            return labels
        return {self.label_key(key): self.label_value(key, value) for key, value in labels.items()}

    # ---- documents

    def manifest(self, manifest: Manifest) -> dict[str, Any]:
        cleaned = without_server_fields(manifest, self.owners)
        kind = str(cleaned["kind"])
        result: dict[str, Any] = {"apiVersion": cleaned["apiVersion"], "kind": kind}
        result["metadata"] = self.metadata(cleaned["metadata"], kind)
        for key, value in cleaned.items():
            if key not in result and key not in (
                "data",
                "stringData",
                "binaryData",
                "parameters",
                "description",
            ):
                if key == "spec" and kind == "Pod":
                    result[key] = self.pod_spec(value)
                elif key == "status":
                    result[key] = self.status(value, kind)
                elif key == "spec" and kind == "ResourceQuota":
                    result[key] = quota_spec(value, self)
                elif key == "spec" and kind == "HorizontalPodAutoscaler":
                    result[key] = autoscaler_spec(value, self)
                elif key == "spec" and kind in ("Service", "ReplicationController"):
                    result[key] = {"selector": self.labels(value.get("selector"))}
                    if kind == "ReplicationController":
                        result[key] = {
                            **self.walk({k: v for k, v in value.items() if k != "selector"}),
                            **result[key],
                        }
                else:
                    result[key] = self.walk(value, key)
        return result

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
        annotations = {
            key: value
            for key, value in (meta.get("annotations") or {}).items()
            if KEPT_ANNOTATIONS.match(key)
        }
        if annotations:
            result["annotations"] = annotations
        if meta.get("ownerReferences"):
            result["ownerReferences"] = [
                {
                    **owner,
                    "name": self.name(owner["kind"], owner["name"]),
                    "uid": self.name("uid", owner.get("uid", "")),
                }
                for owner in meta["ownerReferences"]
            ]
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds"):
            if key in meta:
                result[key] = meta[key]
        return result

    def pod_spec(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in spec.items():
            if key not in POD_SPEC:
                continue
            if key in ("containers", "initContainers"):
                result[key] = [
                    self.container(item, f"{key[0]}{index}") for index, item in enumerate(value or ())
                ]
            elif key == "volumes":
                kept = [
                    {name: self.volume_source(item[name], name) for name in item if name in VOLUMES}
                    for item in value or ()
                    if len(VOLUMES & set(item)) > 1
                ]
                if kept:
                    result[key] = [{**item, "name": f"v{index}"} for index, item in enumerate(kept)]
            elif key == "schedulingGates":
                result[key] = [{"name": self.name("gate", gate["name"])} for gate in value or ()]
            else:
                result[key] = self.walk(value, key)
        return result

    def container(self, container: Mapping[str, Any], name: str) -> dict[str, Any]:
        result = {key: self.walk(value, key) for key, value in container.items() if key in CONTAINER}
        result["name"] = name
        if "image" in result:
            result["image"] = self.image(container["image"])
        if "ports" in result:
            kept = ("hostPort", "hostIP", "protocol", "containerPort")
            result["ports"] = [
                {key: port[key] for key in kept if key in port} for port in container["ports"] or ()
            ]
        return result

    def image(self, image: Any) -> Any:
        if not isinstance(image, str) or not image:
            return image
        # As ImageLocality reads it: no tag means `latest`.
        whole = image if ":" in image.rpartition("/")[2] else f"{image}:latest"
        named = self.name("image", whole)
        return named if self.collecting else f"{named}:1"

    def volume_source(self, value: Any, key: str) -> Any:
        """One source of a volume, in a pod or a PersistentVolume."""
        if key == "csi" and isinstance(value, Mapping):
            self.drivers[str(value.get("driver"))] = None
            handle = value.get("volumeHandle")
            named = {"volumeHandle": self.name("volume", handle)} if handle else {}
            return {"driver": value.get("driver"), **named}
        return self.disk(value) if key in DISKS else self.walk(value, key)

    def disk(self, value: Any) -> Any:
        """Whatever names a disk, renamed; equal stays equal."""
        if isinstance(value, Mapping):
            return {name: self.disk(item) for name, item in value.items() if name not in NOT_OF_A_DISK}
        if isinstance(value, list | tuple):
            return [self.disk(item) for item in value]
        return self.name("volume", value)

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

    def condition(self, value: Any, kind: str) -> dict[str, Any] | None:
        """A condition without why; None for those only people read."""
        if not isinstance(value, Mapping) or (kind == "Node" and value.get("type") not in NODE_CONDITIONS):
            return None
        return {name: item for name, item in value.items() if name in ("type", "status")}

    def status(self, value: Any, kind: str) -> Any:
        """A status: what a scheduler reads of it."""
        if not isinstance(value, Mapping):
            return value
        kept = {key: item for key, item in value.items() if key not in DROPPED_STATUS}
        conditions = kept.pop("conditions", None)
        result = self.walk(kept, "status")
        found = [named for item in conditions or () if (named := self.condition(item, kind)) is not None]
        return {**result, "conditions": found} if found else result

    def walk(self, value: Any, key: str = "") -> Any:
        if isinstance(value, list | tuple):
            if key in NAME_FIELDS:
                return [self.name(NAME_FIELDS[key], item) for item in value]
            if key in POD_FIELDS:
                return [self.pod_name(item) for item in value]
            if key in ("matchLabelKeys", "mismatchLabelKeys", "topologyKeys", "labels"):
                return [self.label_key(item) for item in value]
            if key in ("matchExpressions", "matchLabelExpressions", "matchFields"):
                return [self.expression(item, key == "matchFields") for item in value]
            if key in ("taints", "tolerations"):
                return [self.taint(item) for item in value]
            if key == "images":
                return [
                    {**item, "names": [self.image(name) for name in item.get("names") or ()]}
                    for item in value
                ]
            if key == "reservedFor":
                return [
                    {
                        **item,
                        "name": self.name("Pod", item.get("name")),
                        "uid": self.name("uid", item.get("uid")),
                    }
                    for item in value
                ]
            if key == "objects" or key == "apply":
                return [self.manifest(item) for item in value]
            if key == "extenders":
                return [self.extender_config(item, index) for index, item in enumerate(value)]
            return [self.walk(item, "") for item in value]
        if isinstance(value, Mapping):
            return self._walk_object(value, key)
        if key in NAME_FIELDS:
            return self.name(NAME_FIELDS[key], value)
        if key in POD_FIELDS:
            return self.pod_name(value)
        if key == "by":
            return self.name("scheduler", value)
        if key in WORKLOAD_FIELDS:
            return self.pod_name(value, WORKLOAD_FIELDS[key])
        if key in ("topologyKey", "label", "anyOf"):
            return self.label_key(value)
        if key in ("driver", "attacher"):
            self.drivers[str(value)] = None
        elif key == "expression":
            self.has_expressions = True
        return "id" if key == "nodeID" else value

    def _walk_object(self, value: Mapping[str, Any], key: str) -> Any:
        if key in LABEL_MAPS:
            return self.labels(value)
        if key in ("requests", "limits", "allocatable", "capacity"):
            self.resources.update(dict.fromkeys(name for name in value if "/" in name))
            return dict(value)
        if key == "template":
            return {
                "metadata": self.metadata(value.get("metadata") or {}, "Pod"),
                "spec": self.pod_spec(value.get("spec") or {}),
            }
        if key == "pool" and "name" in value:
            return {**value, "name": self.name("ResourcePool", value["name"])}
        if key == "claimRef":
            return {
                "kind": "PersistentVolumeClaim",
                "namespace": self.name("Namespace", value.get("namespace", "")),
                "name": self.name("PersistentVolumeClaim", value.get("name", "")),
            }
        if key == "csi" or key in DISKS:
            return self.volume_source(value, key)
        if key in ("local", "hostPath"):
            return {"path": "/"}
        if key == "nfs":
            return {"server": "nfs.example", "path": "/"}
        if key == "metadata":
            return self.metadata(value, "")
        if key in ("patch", "delete") and "kind" in value and "name" in value:
            return self.reference(value)
        return {name: self.walk(item, name) for name, item in value.items() if name not in DROPPED_SPEC}

    def reference(self, value: Mapping[str, Any]) -> dict[str, Any]:
        result = {**value, "name": self.object_name(value["kind"], value["name"])}
        if value.get("namespace"):
            result["namespace"] = self.name("Namespace", value["namespace"])
        if value.get("by"):
            result["by"] = self.name("scheduler", value["by"])
        if "patch" in value:
            patch = dict(value["patch"])
            meta = patch.pop("metadata", None)
            result["patch"] = self.walk(patch)
            if isinstance(meta, Mapping) and "labels" in meta:
                result["patch"]["metadata"] = {"labels": self.labels(meta["labels"])}
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
        if is_field:
            return {**value, "values": [self.name("Node", item) for item in value.get("values") or ()]}
        key = value.get("key", "")
        if value.get("operator") in ("Gt", "Lt"):
            self.numeric[key] = None
        result = {**value, "key": self.label_key(key)}
        if value.get("values"):
            result["values"] = [self.label_value(key, item) for item in value["values"]]
        return result

    def taint(self, value: Mapping[str, Any]) -> dict[str, Any]:
        key = value.get("key") or ""
        result = {name: item for name, item in value.items() if name != "timeAdded"}
        if key:
            result["key"] = self.label_key(key)
        if value.get("value"):
            result["value"] = self.label_value(key, value["value"])
        return result

    def extender_config(self, value: Mapping[str, Any], index: int) -> dict[str, Any]:
        kept = {name: item for name, item in value.items() if name not in ("tlsConfig", "enableHTTPS")}
        self.resources.update(
            (str(item.get("name")), None)
            for item in kept.get("managedResources") or ()
            if isinstance(item, Mapping)
        )
        verbs = {field: verb for field, verb in VERBS.items() if kept.get(field)}
        return {**kept, **verbs, "urlPrefix": f"http://extender-{index}.example"}

    # ---- texts

    def text(self, text: str) -> str:
        """Known names replaced wherever they stand as words."""
        table: dict[str, str] = {}
        for what in ("value", "label", "Namespace", "Node", "Pod", "reason"):
            names = self.names.get(what)
            if names is not None:
                table.update({old: new for old, new in names.new.items() if len(old) > 1})
        if not table:
            return text
        words = "|".join(re.escape(name) for name in sorted(table, key=lambda name: (-len(name), name)))
        return re.sub(rf"(?<![\w./-])(?:{words})(?![\w/-]|\.\w)", lambda match: table[match[0]], text)


def _kept_of(what: str) -> Callable[[str], bool]:
    if what == "label":
        return lambda name: not name or KNOWN_DOMAINS.match(name) is not None
    if what == "value":
        return lambda name: name == ""
    if what == "volume":
        # What two kinds of disk have where nothing is written.
        return lambda name: name in ("", "rbd", "default")
    if what == "DeviceClass":
        # The simulated driver's own.
        return lambda name: name in ("gpu.playground.dev", "mig.playground.dev", "nic.playground.dev")
    if what in ("image", "uid", "gate", "reason", "predicate"):
        return lambda name: name == ""
    return lambda name: name in KEPT_NAMES


def redact(scenario: Scenario) -> Redacted:
    """Take the names out of a scenario.

    The result carries no words for people and no recorded decisions: run it and record its own.
    """
    document = scenario_document(
        dataclasses.replace(scenario, name="redacted", title="", lesson="", group="", path=(), decisions=None)
    )
    manifests = [*scenario.objects, *(item for step in scenario.steps for item in step.apply or ())]
    redactor = _Redactor(owner_uids(manifests))
    # Names of nodes first: label values that are one must follow it. Twice: Gt and Lt are met on the way.
    for manifest in manifests:
        redactor.object_name(str(manifest["kind"]), manifest["metadata"]["name"])
    _redacted(document, redactor)
    values = redactor.names.get("value")
    if values is not None:
        values.old.clear()
    _redacted(document, redactor)
    for what, names in redactor.names.items():
        if what == "label":
            # A taint named as a resource is: the name is known already, and messages must not confuse the two.
            for name in redactor.resources:
                names.old.pop(name, None)
        names.settle()
    redactor.collecting = False
    result = load_scenario(_redacted(document, redactor))
    notes = [
        f"numeric values of the label {redactor.label_key(key)} are kept: they are compared"
        for key in redactor.numeric
    ]
    if redactor.resources:
        notes.append(f"names of resources are kept: {', '.join(sorted(redactor.resources))}")
    provisioners = sorted({str(item["provisioner"]) for item in manifests if item.get("provisioner")})
    if provisioners:
        notes.append(f"names of storage provisioners are kept: {', '.join(provisioners)}")
    drivers = sorted(redactor.drivers)
    if drivers:
        notes.append(f"names of drivers are kept: {', '.join(drivers)}")
    if redactor.has_expressions:
        notes.append("expressions that select devices are kept as they were written")
    left_out = [*(item for item in manifests if not _is_needed(item)), *scenario.kept]
    foreign = sorted({str(item["kind"]) for item in left_out})
    if foreign:
        notes.append(f"objects of kinds no scheduler reads are left out: {', '.join(foreign)}")
    renamed = {what: dict(names.new) for what, names in redactor.names.items() if names.new}
    return Redacted(result, renamed, tuple(notes))


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
    calls = [redacted_call(call, redactor) for call in value.get("cassette") or ()]
    if calls:
        result["cassette"] = calls
    return result
