"""The one reader: from a text of any shape to objects, each with its place, and what becomes of each by its type.

The site, the Kubernetes API, the command line, scenarios and the library read through here, so that one text has one
answer at every door. Group, version and kind decide, never the kind alone: `batch.volcano.sh/v1alpha1 Job` is no Job.

Lists are opened, also those of an API server whose items say no kind, and exports of kube-scheduler-simulator.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import marshal
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

import yaml

from scheduler_core.errors import ForbiddenObject, InvalidManifest, InvalidObject
from scheduler_core.objects import short
from scheduler_core.objects.defaults import from_first_beta
from scheduler_core.objects.documents import MAX_BYTES, TAG_PREFIX, LineMap, decoded, load_documents
from scheduler_core.objects.fields import Document, mapping, mappings, string
from scheduler_core.objects.kinds import SHAPING
from scheduler_core.objects.quantity import quantity_milli_value
from scheduler_core.schema.tables import kinds as upstream_kinds
from scheduler_core.schema.tables import table_beside

# ---- objects


@dataclass(frozen=True, slots=True)
class Posted:
    """One object of a text.

    Attributes
    ----------
    manifest
        As it was written, in the API version that is served now.
    document
        Its document in the text, from 0.
    prefix
        ``items[3]`` for a member of a list, else empty.
    lines
        Finds lines in the text; None for objects that did not come as text.
    note
        What was converted in it, in words; else empty.
    file
        The file of the text; empty where it came another way.
    """

    manifest: dict[str, Any]
    document: int = 0
    prefix: str = ""
    lines: LineMap | None = None
    note: str = ""
    file: str = ""

    @property
    def api_version(self) -> str:
        value = self.manifest.get("apiVersion")
        return value if isinstance(value, str) else ""

    @property
    def kind(self) -> str:
        value = self.manifest.get("kind")
        return value if isinstance(value, str) else ""

    @property
    def name(self) -> str:
        meta = self.manifest.get("metadata")
        value = meta.get("name") if isinstance(meta, dict) else None
        return value if isinstance(value, str) else ""

    @property
    def subject(self) -> str:
        """Kind and name, as far as it has them."""
        return f"{self.kind} {self.name}".strip()

    def line(self, path: str = "") -> int | None:
        """Line and column of a field path in the text, from 1."""
        whole = ".".join(part for part in (self.prefix, path) if part)
        place = self.lines.place(self.document, whole) if self.lines else None
        return place[0] if place else None

    def problem(
        self, words: str, *, path: str = "", value: object = None, reason: str = "Invalid"
    ) -> InvalidManifest:
        """A problem of this object at a field path; admission's words (``Forbidden``) are a sentence."""
        whole = ".".join(part for part in (self.prefix, path) if part)
        # Of a label an API server names the map, and the key or the value as the value: the line is that label's.
        entry = value if whole and isinstance(value, str) else ""
        place = self.lines.place(self.document, whole, entry) if self.lines else None
        return InvalidManifest(
            f"{whole}: {words}" if whole and reason != "Forbidden" else words,
            reason=reason,
            document=self.document,
            line=place[0] if place else None,
            column=place[1] if place else None,
            path=whole,
            value=value,
            kind=self.kind,
            name=self.name,
        )

    def invalid(self, error: InvalidObject) -> InvalidManifest:
        """The same problem, placed in the text."""
        reason = "Forbidden" if isinstance(error, ForbiddenObject) else "Invalid"
        problem = self.problem(error.words, path=error.path, value=error.value, reason=reason)
        if error.errors:
            problem.type = error.errors[0].type
            problem.causes = tuple(self.invalid(InvalidObject.of(other)) for other in error.errors[1:])
        return problem


# ---- texts


def read_posted(
    text: str | bytes, *, json_only: bool = False, max_bytes: int = MAX_BYTES, file: str = ""
) -> list[Posted]:
    """Every object of a text: YAML or JSON, any number of documents, lists opened.

    Parameters
    ----------
    text
        Bytes are UTF-8, or what their byte order mark says.
    file
        Its name, for errors.

    Raises
    ------
    InvalidManifest
        For the first thing that cannot be read.
    """
    documents = load_documents(text, json_only=json_only, max_bytes=max_bytes)
    lines = LineMap(decoded(text))
    result: list[Posted] = []
    for document in documents:
        _open(Posted(document.value, document.index, "", lines, file=file), result)
    return with_use(result)


def check_any_object(posted: Sequence[Posted]) -> None:
    """Refuse a text in which nothing is an object: one that has none must not pass for a cluster in order.

    Raises
    ------
    InvalidManifest
    """
    if posted and not any(item.kind for item in posted):
        raise posted[0].problem(type_of("", "").words)
    if not posted:
        raise InvalidManifest("there is no object in the text")


def from_objects(manifests: Iterable[Mapping[str, Any]]) -> list[Posted]:
    """Objects that come as data rather than text; lists are opened too."""
    result: list[Posted] = []
    for index, manifest in enumerate(manifests):
        _open(Posted(dict(manifest), index), result)
    return with_use(result)


USE_ANNOTATION: Final = "metrics.k8s.io/usage"
"""On a pod what it used when it was dumped, as JSON: resource -> quantity."""
_METRICS: Final = "metrics.k8s.io"


def with_use(posted: list[Posted]) -> list[Posted]:
    """The objects, each pod of which there is a PodMetrics among them with what it uses as an annotation."""
    used: dict[tuple[str, str], dict[str, str]] = {}
    for item in posted:
        if item.kind == "PodMetrics" and group_of(item.api_version) == _METRICS:
            try:
                amounts = _amounts_used(item.manifest)
            except InvalidObject as error:
                raise item.invalid(error) from None
            used[_place_of(item)] = {resource: f"{amount}m" for resource, amount in amounts.items()}
    if not used:
        return posted
    found = []
    for item in posted:
        texts = used.get(_place_of(item)) if item.kind == "Pod" and item.name else None
        annotations = item.manifest["metadata"].get("annotations") or {} if texts else None
        if isinstance(annotations, dict):
            about = {
                **item.manifest["metadata"],
                "annotations": {**annotations, USE_ANNOTATION: json.dumps(texts)},
            }
            item = dataclasses.replace(item, manifest={**item.manifest, "metadata": about})
        found.append(item)
    return found


def _place_of(item: Posted) -> tuple[str, str]:
    meta = item.manifest.get("metadata")
    return str(meta.get("namespace") or "") if isinstance(meta, dict) else "", item.name


def _amounts_used(manifest: Mapping[str, Any]) -> dict[str, int]:
    amounts: dict[str, int] = {}
    for path, container in mappings(manifest, "containers", ""):
        for resource, text in mapping(container, "usage", path).items():
            try:
                amounts[resource] = amounts.get(resource, 0) + quantity_milli_value(text)
            except (TypeError, ValueError):
                continue  # what cannot be read is not known
    return amounts


def opened(manifest: Mapping[str, Any], prefix: str = "") -> list[Posted]:
    """An object, or the members of a list, each in the version that is served now.

    Parameters
    ----------
    prefix
        Where it is.

    Raises
    ------
    InvalidManifest
    """
    result: list[Posted] = []
    _open(Posted(dict(manifest), prefix=prefix), result)
    return result


_EXPORTED: Final = {
    "pods": ("v1", "Pod"),
    "nodes": ("v1", "Node"),
    "pvs": ("v1", "PersistentVolume"),
    "pvcs": ("v1", "PersistentVolumeClaim"),
    "storageClasses": ("storage.k8s.io/v1", "StorageClass"),
    "priorityClasses": ("scheduling.k8s.io/v1", "PriorityClass"),
    "namespaces": ("v1", "Namespace"),
    "schedulerConfig": ("kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration"),
}
"""Keys of kube-scheduler-simulator's exports (simulator/snapshot ResourcesForSnap) and what they hold.

Nodes and pods may be of the short form (`short`).
"""
_MOST_WRITTEN_OUT: Final = 200_000


def _open(posted: Posted, result: list[Posted]) -> None:
    manifest = posted.manifest
    if manifest and manifest.keys() <= _EXPORTED.keys():
        classes: set[str] = set()
        for key, found in manifest.items():
            for path, item in [(key, found)] if isinstance(found, dict) else _members(posted, key):
                member = _member(posted, path, item, *_EXPORTED[key])
                if key in short.FIELDS and short.is_short(item):
                    _write_out(key, item, member, result, classes)
                else:
                    _open(member, result)
        return
    if not manifest.keys() & {"kind", "metadata"} and not posted.prefix:
        result.append(posted)
        return
    for key in ("apiVersion", "kind"):
        if not isinstance(manifest.get(key), str) or not manifest[key]:
            value = manifest.get(key)
            raise posted.problem("is required and must be a string", path=key, value=value)
    if not (posted.kind.endswith("List") and "items" in manifest):
        try:
            current, note = to_current_version(manifest)
        except InvalidObject as error:
            raise posted.invalid(error) from None
        result.append(dataclasses.replace(posted, manifest=dict(current), note=note))
        return
    kind = posted.kind.removesuffix("List")
    for path, item in _members(posted, "items"):
        # Members of a PodList need not say what they are.
        _open(_member(posted, path, item, posted.api_version if kind else "", kind), result)


def _write_out(
    key: str, item: Mapping[str, Any], member: Posted, result: list[Posted], classes: set[str]
) -> None:
    """Add the objects that a short entry means, all at its place; a class of `classes` is there already."""
    try:
        made = short.written_out(key, item)
    except InvalidObject as error:
        raise member.problem(error.words, path=error.path, value=error.value) from None
    if len(result) + len(made) > _MOST_WRITTEN_OUT:
        raise member.problem(f"with it the text expands to more than {_MOST_WRITTEN_OUT:,} objects")
    for manifest in made:
        if manifest["kind"] == "PriorityClass":
            if manifest["metadata"]["name"] in classes:
                continue
            classes.add(manifest["metadata"]["name"])
        result.append(dataclasses.replace(member, manifest=manifest))


def _members(posted: Posted, key: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    items = posted.manifest[key]
    if items is None:
        return
    if not isinstance(items, list):
        raise posted.problem("must be a list", path=key, value=items)
    for index, item in enumerate(items):
        path = f"{key}[{index}]"
        if not isinstance(item, dict):
            raise posted.problem("must be an object", path=path)
        yield path, item


def _member(posted: Posted, path: str, item: Mapping[str, Any], api_version: str, kind: str) -> Posted:
    implied = {"apiVersion": api_version, "kind": kind} if kind else {}
    said = {key: value for key, value in item.items() if key not in implied or value}
    prefix = f"{posted.prefix}.{path}" if posted.prefix else path
    return dataclasses.replace(posted, manifest=implied | said, prefix=prefix)


# ---- versions that are no longer served


class Removed(NamedTuple):
    """A version of a kind that is no longer served.

    Attributes
    ----------
    since
        The first release without it; empty where it is a beta that some clusters still serve.
    now
        What it is today; empty = nothing.
    is_read
        Whether its objects are converted.
    """

    since: str
    now: str
    is_read: bool = True


REMOVED: Final[Mapping[tuple[str, str], Removed]] = {
    (version, kind): Removed(since, now, is_read=key == "read")
    for key, rows in table_beside(__package__, "removed.yaml").items()
    for since, now, versions, kinds in rows
    for version in versions
    for kind in kinds
}
"""(apiVersion, kind) -> what became of it."""

_SELECTING: Final = ("Deployment", "DaemonSet", "ReplicaSet", "StatefulSet")


def to_current_version(manifest: Document) -> tuple[Document, str]:
    """The object in the version that is served now, and what to say of it; others stay as they are, without a word.

    Before apps/v1 a workload without a selector had its template's labels for one; extensions/v1beta1 Deployments
    rolled with maxSurge and maxUnavailable 1. Source: pkg/apis/*/v1beta1/{defaults,conversion}.go, v1.15 and v1.24
    """
    old, kind = str(manifest.get("apiVersion", "")), str(manifest.get("kind", ""))
    removed = REMOVED.get((old, kind))
    if removed is None or not removed.is_read:
        return manifest, ""
    note = f"{old} is not served since {removed.since}: read as {removed.now}" if removed.since else ""
    result = {**manifest, "apiVersion": removed.now}
    if old == "resource.k8s.io/v1beta1":
        return from_first_beta(result), note
    if old == "autoscaling/v2beta1":
        return _autoscaler_from_first_beta(result), note
    if kind not in _SELECTING:
        return result, note
    spec = dict(mapping(manifest, "spec", ""))
    if not spec.get("selector"):
        template = mapping(mapping(spec, "template", "spec"), "metadata", "spec.template")
        labels = mapping(template, "labels", "spec.template.metadata")
        if labels:
            spec["selector"] = {"matchLabels": dict(labels)}
    if kind == "Deployment" and old == "extensions/v1beta1":
        strategy = dict(mapping(spec, "strategy", "spec"))
        if string(strategy, "type", "spec.strategy") in ("", "RollingUpdate"):
            rolling = mapping(strategy, "rollingUpdate", "spec.strategy")
            strategy["rollingUpdate"] = {"maxSurge": 1, "maxUnavailable": 1, **rolling}
            spec["strategy"] = strategy
    return {**result, "spec": spec}, note


_OLD_TARGETS: Final = {
    "targetAverageUtilization": ("Utilization", "averageUtilization"),
    "targetAverageValue": ("AverageValue", "averageValue"),
    "targetValue": ("Value", "value"),
}


def _autoscaler_from_first_beta(manifest: Document) -> Document:
    """autoscaling/v2beta1 names each target beside its source. Source: pkg/apis/autoscaling/v2beta1/conversion.go."""
    spec = dict(mapping(manifest, "spec", ""))
    metrics = []
    for path, metric in mappings(spec, "metrics", "spec"):
        made = dict(metric)
        for source in ("resource", "pods", "object", "external", "containerResource"):
            old = mapping(metric, source, path)
            if not old:
                continue
            new = {key: old[key] for key in ("name", "container") if key in old}
            name = {"name": old.get("metricName", "")}
            if selector := old.get("metricSelector", old.get("selector")):
                name["selector"] = selector
            if source in ("pods", "object", "external"):
                new["metric"] = name
            if source == "object":
                new["describedObject"] = old.get("target")
            for key, (type_, value) in _OLD_TARGETS.items():
                if key in old:
                    new["target"] = {"type": type_, value: old[key]}
            made[source] = new
        metrics.append(made)
    return {**manifest, "spec": {**spec, "metrics": metrics} if metrics else spec}


# ---- types

KEPT: Final = "kept"
FOREIGN: Final = "foreign"
WRONG: Final = "wrong"
"""What becomes of an object beside `READ` and `MAKES` (`kinds.SHAPING`): kept without a part in scheduling, left out
with a note, refused."""

SERVED_EARLY: Final[Mapping[str, str]] = {
    "scheduling.k8s.io/v1alpha2": "1.34",
    "resource.k8s.io/v1alpha3/devicetaintrules": "1.34",
    "resource.k8s.io/v1beta2/devicetaintrules": "1.36",
    "resource.k8s.io/v1/devicetaintrules": "1.37",
}
"""What is not stable and served all the same, as an API server's --runtime-config names it (with all its kinds, or one
resource of it), or stable later than in the oldest release; and the first release here that serves it."""
_STABLE: Final = re.compile(r"(.*/)?v[0-9]+")
_VERSION: Final = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
_CLOSE: Final = 0.75
_IN_REQUESTS: Final = {
    "authentication.k8s.io": ("TokenRequest",),
    "autoscaling": ("Scale",),
    "policy": ("Eviction",),
}
"""Kinds that are only a part of requests."""
_CONFIGURATIONS: Final = (
    ("", "Policy"),
    ("componentconfig", "KubeSchedulerConfiguration"),
    ("kubescheduler.config.k8s.io", "KubeSchedulerConfiguration"),
)


class TypeOf(NamedTuple):
    """What an object's type makes of it.

    Attributes
    ----------
    role
        `READ`, `MAKES`, `KEPT`, `FOREIGN` or `WRONG`.
    path
        Of a wrong one: the field, ``apiVersion``, ``kind`` or ``items``.
    words
        Of a foreign or wrong one: why, as a whole sentence.
    """

    role: str
    path: str = ""
    words: str = ""


def early_in(release: str) -> tuple[str, ...]:
    """What of `SERVED_EARLY` a release (``1.36.3``) serves; empty = any of them does."""
    return tuple(
        name for name, since in SERVED_EARLY.items() if not release or _number(since) <= _number(release)
    )


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def served_kinds(early: Iterable[str] = SERVED_EARLY) -> list[dict[str, Any]]:
    """Kubernetes' own kinds (`schema.tables.kinds`): all stable versions, and those of `early` (`SERVED_EARLY`)."""
    named = frozenset(early)
    return [
        said
        for said in upstream_kinds()
        if named & {said["apiVersion"], f"{said['apiVersion']}/{said['plural']}"}
        or (
            _STABLE.fullmatch(said["apiVersion"])
            and f"{said['apiVersion']}/{said['plural']}" not in SERVED_EARLY
        )
    ]


def group_of(api_version: str) -> str:
    """The API group; empty for the core one."""
    return api_version.rpartition("/")[0]


@cache
def type_of(api_version: str, kind: str, release: str = "") -> TypeOf:
    """What becomes of an object of this type in a release, apart from what CustomResourceDefinitions make.

    A name that is merely like one of Kubernetes' refuses nothing: its object is left out, with a note.

    Examples
    --------
    >>> type_of("batch/v1", "Job").role, type_of("batch.volcano.sh/v1alpha1", "Job").role
    ('makes', 'foreign')
    >>> type_of("apps/v3", "Deployment").words
    'apps/v3 is not served here: Deployment is apps/v1'
    """
    group, _, version = api_version.rpartition("/")
    if not kind:
        return TypeOf(FOREIGN, "", "a document without kind and metadata is no object")
    if (group, kind) in _CONFIGURATIONS:
        words = "the configuration of a scheduler is no object of a cluster: give it as the configuration"
        return TypeOf(FOREIGN, "", words)
    removed = REMOVED.get((api_version, kind))
    if removed is not None:
        if removed.is_read and removed.now:
            return type_of(removed.now, kind, release)
        became = f": {kind} is {removed.now}" if removed.now else ""
        return TypeOf(FOREIGN, "", f"{api_version} is not served since {removed.since}{became}")
    if group == _METRICS:
        return TypeOf(FOREIGN, "", "what pods use is kept with them; no metrics are served")
    if group not in _groups():
        # The groups of SIGs are like Kubernetes' own, and are meant.
        close = "" if group.endswith(".x-k8s.io") else _closest(group, [name for name in _groups() if name])
        near = f"; did you mean {close}?" if close else ""
        words = (
            f"Kubernetes has no API group {group}, and no CustomResourceDefinition here makes this kind{near}"
        )
        return TypeOf(FOREIGN, "", words)
    of_release = _served(early_in(release))
    if (api_version, kind) in of_release:
        return of_release[api_version, kind]
    here = _groups()[group]
    if kind in here:
        served = [other for other, name in of_release if (group_of(other), name) == (group, kind)]
        if served:
            words = f"{api_version} is not served here: {kind} is {' or '.join(served)}"
            return TypeOf(WRONG, "apiVersion", words)
        if _VERSION.fullmatch(version):
            return TypeOf(FOREIGN, "", f"{api_version} {kind} is not served here")
        words = f'"{api_version}" has no version of Kubernetes\' form, like v1 or v1beta1'
        return TypeOf(WRONG, "apiVersion", words)
    if kind.endswith("List") and kind.removesuffix("List") in ("", *here):
        return TypeOf(WRONG, "items", "is required and must be a list")
    return TypeOf(WRONG, "kind", f'"{kind}" is no kind of {api_version}{_instead(group, kind)}')


def _instead(group: str, kind: str) -> str:
    """Where a kind is, or which one was meant."""
    held = [version for version, name in _served(tuple(SERVED_EARLY)) if name == kind]
    if held:
        return f": {kind} is served as {held[0]}"
    elsewhere = [name for name, here in _groups().items() if kind in here]
    if elsewhere:
        return f", but of the group {elsewhere[0] or 'v1'}"
    every = [name for each in (group, *_groups()) for name in _groups()[each]]
    close = _closest(kind, _groups()[group]) or _closest(kind, every)
    return f"; did you mean {close}?" if close else ""


@cache
def _groups() -> Mapping[str, tuple[str, ...]]:
    """Group -> every kind Kubernetes has or had in it, in whatever version."""
    found: dict[str, dict[str, None]] = {"": {}}
    for said in upstream_kinds():
        found.setdefault(group_of(said["apiVersion"]), {})[said["kind"]] = None
    for group, names in _IN_REQUESTS.items():
        found.setdefault(group, {}).update(dict.fromkeys(names))
    for version, kind in REMOVED:
        found.setdefault(group_of(version), {})[kind] = None
    return {group: tuple(names) for group, names in found.items()}


@cache
def _served(early: tuple[str, ...]) -> Mapping[tuple[str, str], TypeOf]:
    found = {}
    for said in served_kinds(early):
        api_version, kind = said["apiVersion"], said["kind"]
        shaping = SHAPING.get(kind)
        if shaping is not None and shaping.group == group_of(api_version):
            found[api_version, kind] = TypeOf(shaping.role)
        elif kind == "Event":
            found[api_version, kind] = TypeOf(FOREIGN, "", "Events are written by the scheduler")
        elif "update" in said["verbs"]:
            found[api_version, kind] = TypeOf(KEPT)
        else:
            found[api_version, kind] = TypeOf(FOREIGN, "", f"there are no objects of {kind}")
    return found


def _closest(name: str, among: Iterable[str]) -> str:
    by_lower = {each.lower(): each for each in among}
    lower = name.lower()
    if lower.removesuffix("s") in by_lower:
        return by_lower[lower.removesuffix("s")]
    found = difflib.get_close_matches(lower, by_lower, n=1, cutoff=0.9 if "." in lower else _CLOSE)
    return by_lower[found[0]] if found else ""


def is_foreign(manifest: Document) -> bool:
    """Whether an object is left out, by its type."""
    return type_of(str(manifest.get("apiVersion", "")), str(manifest.get("kind", ""))).role == FOREIGN


def problem_of_type(item: Posted, found: TypeOf) -> InvalidManifest:
    """The problem of an object whose type is wrong."""
    return item.problem(found.words, path=found.path, value=item.manifest.get(found.path))


def notes_of(posted: Iterable[Posted]) -> list[str]:
    """Notes on objects left out or converted: one per type, with the place of the first."""
    found: dict[tuple[str, str, str], list[Posted]] = {}
    for item in posted:
        what = type_of(item.api_version, item.kind)
        words = f"left out: {what.words}" if what.role == FOREIGN else item.note
        if words:
            found.setdefault((item.api_version, item.kind, words), []).append(item)
    notes = []
    for (_, _, words), items in found.items():
        first = items[0]
        line = first.line()
        where = [first.file, f"line {line}" if line else first.prefix, first.subject]
        more = f" (and {len(items) - 1:,} more of the kind)" if len(items) > 1 else ""
        notes.append(": ".join([*filter(None, where), words + more]))
    return notes


# --- Writing documents as YAML that `documents` reads back equal.


def dump_yaml(documents: Iterable[Mapping[str, Any]]) -> str:
    """Write documents as one YAML text that `load_documents` reads back equal."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, explicit_start=True, allow_unicode=True)


class DocumentWriter:
    """The same text one document after the other; what many objects have in common is worded once."""

    most_known = 2000
    """Distinct values remembered; then it begins anew."""

    def __init__(self) -> None:
        self._known: dict[bytes, str] = {}

    def write(self, document: Mapping[str, Any]) -> str:
        """One document, its first line ``---``. A mapping in block style is its entries one below the other."""
        parts = ["---\n"]
        for key, value in document.items():
            if key in ("spec", "status") and isinstance(value, dict) and value:
                parts.append(self._shared(key, value))
            else:
                parts.append(_dumped({key: value}))
        return "".join(parts) if len(parts) > 1 else dump_yaml([document])

    def _shared(self, key: str, value: Mapping[str, Any]) -> str:
        # The node is what tells the specs of bound replicas apart; it is written last.
        names = list(value)
        if len(names) < 2 or names[-1] != "nodeName":
            return self._once({key: value})
        common = {name: value[name] for name in names[:-1]}
        node = self._once({key: {"nodeName": value["nodeName"]}})
        return self._once({key: common}) + node.partition("\n")[2]

    def _once(self, value: dict[str, Any]) -> str:
        mark = marshal.dumps(value, 2)
        text = self._known.get(mark)
        if text is None:
            if len(self._known) >= self.most_known:
                self._known.clear()
            text = self._known[mark] = _dumped(value)
        return text


def _dumped(value: Mapping[str, Any]) -> str:
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True))


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes every string the loader would read as something else; no aliases."""

    yaml_implicit_resolvers = dict(yaml.SafeDumper.yaml_implicit_resolvers)

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_implicit_resolver(
    TAG_PREFIX + "float", re.compile(r"^[-+]?[0-9.]+[eE][-+]?[0-9]+$"), list("-+.0123456789")
)
_Dumper.add_implicit_resolver(TAG_PREFIX + "int", re.compile(r"^[-+]?0o?[0-7]+$"), list("-+0"))
