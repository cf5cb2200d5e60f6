"""From posted text to objects an API server would keep: read, expand lists, default, admit, validate."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from playground.engine.validation import validate, validate_metadata
from playground.engine.workload_defaults import with_workload_defaults
from scheduler_core.errors import ForbiddenObject, InvalidObject
from scheduler_core.objects.defaults import (
    KeptPriority,
    PriorityClasses,
    prepare,
    priority_class_from,
)
from scheduler_core.objects.documents import MAX_BYTES, DocumentError, LineMap, load_documents
from scheduler_core.objects.writing import DocumentWriter, dump_yaml
from scheduler_core.sim.admission import (
    POD_UPDATES,
    SYSTEM_PREFIX,
    check_priority_class,
    check_priority_is_kept,
    system_priority_classes,
    to_current_version,
    with_default_tolerations,
    with_gated_condition,
)

__all__ = [
    "POD_UPDATES",
    "SYSTEM_PREFIX",
    "DocumentWriter",
    "InvalidObject",
    "ManifestProblem",
    "Posted",
    "PriorityClasses",
    "admit",
    "as_read_today",
    "check_metadata",
    "dump_yaml",
    "priority_classes",
    "read_posted",
    "system_priority_classes",
    "with_gated_condition",
]


class ManifestProblem(ValueError):
    """One thing wrong with posted manifests, with every place that is known.

    Attributes
    ----------
    reason : str
        In words, without the place.
    document, line, column : int or None
        Document from 0; line and column in the whole text, from 1.
    path : str
        Field path, from the root of the object (of its list, if it came in one).
    value : object
        The value at fault.
    kind, name : str
        The object at fault.
    too_large : bool
        Over the size limit.
    forbidden : bool
        Admission refuses it as it stands, in a sentence of its own.
    type : str
        As `InvalidObject.type`.
    """

    type = ""

    def __init__(
        self,
        reason: str,
        *,
        document: int | None = None,
        line: int | None = None,
        column: int | None = None,
        path: str = "",
        value: object = None,
        kind: str = "",
        name: str = "",
        too_large: bool = False,
        forbidden: bool = False,
    ) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.reason = reason
        self.document = document
        self.line = line
        self.column = column
        self.path = path
        self.value = value
        self.kind = kind
        self.name = name
        self.too_large = too_large
        self.forbidden = forbidden

    @classmethod
    def of(cls, error: DocumentError) -> Self:
        """A text that could not be read, as a problem of what was posted."""
        return cls(
            error.reason,
            document=error.document,
            line=error.line,
            column=error.column,
            path=error.path,
            value=error.value,
            too_large=error.too_large,
        )


@dataclass(frozen=True, slots=True)
class Posted:
    """One object a client posted.

    Attributes
    ----------
    manifest
        As it was written.
    document
        Its document in the text, from 0.
    prefix
        ``items[3]`` for a member of a list, else empty.
    lines
        Finds lines in the text; None for objects that did not come as text.
    """

    manifest: dict[str, Any]
    document: int = 0
    prefix: str = ""
    lines: LineMap | None = None

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

    def problem(self, reason: str, *, path: str = "", value: object = None) -> ManifestProblem:
        """A problem of this object at a field path of its own."""
        whole = ".".join(part for part in (self.prefix, path) if part)
        place = self.lines.place(self.document, whole) if self.lines else None
        return ManifestProblem(
            reason,
            document=self.document,
            line=place[0] if place else None,
            column=place[1] if place else None,
            path=whole,
            value=value,
            kind=self.kind,
            name=self.name,
        )

    def value_problem(self, path: str, reason: str) -> ManifestProblem:
        """A problem of the value at a top-level field, which the sentence begins with."""
        return self.invalid(InvalidObject(path, self.manifest.get(path), reason))

    def invalid(self, error: InvalidObject) -> ManifestProblem:
        """The same problem, placed in the posted text."""
        forbidden = isinstance(error, ForbiddenObject)
        problem = self.problem(
            error.reason if forbidden else _words(error), path=error.path, value=error.value
        )
        problem.forbidden = forbidden
        problem.type = error.type
        return problem


def _words(error: InvalidObject) -> str:
    if error.value is None or isinstance(error.value, dict | list):
        return error.reason
    shown = f'"{error.value}"' if isinstance(error.value, str) else repr(error.value)
    return f"{shown[:80]} {error.reason}"


def read_posted(text: str | bytes, *, json_only: bool = False, max_bytes: int = MAX_BYTES) -> list[Posted]:
    """Every object of a text: multi-document YAML or JSON, `kind: List` and `*List` opened.

    Raises
    ------
    ManifestProblem
        For the first thing that cannot be read.
    """
    try:
        documents = load_documents(text, json_only=json_only, max_bytes=max_bytes)
    except DocumentError as error:
        raise ManifestProblem.of(error) from None
    decoded = text if isinstance(text, str) else text.decode("utf-8-sig")
    lines = LineMap(decoded.removeprefix("\ufeff"))
    result: list[Posted] = []
    for document in documents:
        _expand(Posted(document.value, document.index, "", lines), result)
    return result


def from_objects(manifests: Iterable[Mapping[str, Any]]) -> list[Posted]:
    """Objects that come as data rather than text; lists are opened too."""
    result: list[Posted] = []
    for index, manifest in enumerate(manifests):
        _expand(Posted(dict(manifest), index), result)
    return result


def _expand(posted: Posted, result: list[Posted]) -> None:
    manifest = posted.manifest
    for key in ("apiVersion", "kind"):
        if not isinstance(manifest.get(key), str) or not manifest[key]:
            value = manifest.get(key)
            raise posted.problem("is required and must be a string", path=key, value=value)
    if not (posted.kind.endswith("List") and "items" in manifest):
        try:
            current = dict(to_current_version(manifest))
        except InvalidObject as error:
            raise posted.invalid(error) from None
        result.append(dataclasses.replace(posted, manifest=current))
        return
    items = manifest["items"]
    if items is None:
        return
    if not isinstance(items, list):
        raise posted.problem("must be a list", path="items", value=items)
    member = posted.kind.removesuffix("List")
    for index, item in enumerate(items):
        path = f"{posted.prefix}.items[{index}]" if posted.prefix else f"items[{index}]"
        if not isinstance(item, dict):
            raise Posted(manifest, posted.document, "", posted.lines).problem("must be an object", path=path)
        if member:  # the members of a PodList need not say what they are
            item = {"apiVersion": posted.api_version, "kind": member} | item
        _expand(Posted(item, posted.document, path, posted.lines), result)


def priority_classes(manifests: Iterable[Mapping[str, Any]]) -> PriorityClasses:
    """What pods may name, from PriorityClass manifests."""
    return PriorityClasses([priority_class_from(manifest) for manifest in manifests])


def as_read_today(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A stored object with the defaults of today, as an API server reads what an earlier version stored.

    What admission decided when it was created stays.
    """
    kept = manifest.get("kind") in ("Pod", "PodGroup")
    classes = KeptPriority(manifest.get("spec") or {}) if kept else PriorityClasses()
    return with_workload_defaults(prepare(manifest, classes))


def check_metadata(posted: Posted, kind: str = "") -> None:
    """Check name, namespace, labels and annotations alone, of an object the simulation does not read.

    Raises
    ------
    ManifestProblem
    """
    try:
        validate_metadata(posted.manifest, kind)
    except InvalidObject as error:
        raise posted.invalid(error) from None


def admit(
    posted: Posted,
    classes: PriorityClasses,
    *,
    others: Iterable[Mapping[str, Any]] = (),
    old: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The object after v1 defaulting and priority admission, checked.

    Parameters
    ----------
    posted
        What was written. `metadata.uid` must be set already if it is to be another than the derived one.
    classes
        The PriorityClasses of the cluster, for pods and PodGroups to name.
    others
        Their manifests, for a PriorityClass to stand among.
    old
        The object it replaces, of a PriorityClass, a pod or a PodGroup, whose priority is settled when it is created.

    Raises
    ------
    ManifestProblem
        With the place in the text, if it came as text.
    """
    try:
        if posted.kind in ("Pod", "PodGroup") and old is not None:
            classes = KeptPriority(old.get("spec") or {})
        manifest = with_workload_defaults(prepare(posted.manifest, classes))
        if posted.kind == "Pod":
            manifest["spec"] = with_default_tolerations(manifest["spec"])
            status = manifest.get("status")
            manifest["status"] = {"phase": "Pending"} | (dict(status) if isinstance(status, Mapping) else {})
            if not manifest["status"].get("phase"):
                manifest["status"]["phase"] = "Pending"
        validate(manifest)
        if posted.kind == "PodGroup" and old is not None:
            check_priority_is_kept(manifest, as_read_today(old))
        if posted.kind == "PriorityClass":
            check_priority_class(manifest, others, old)
    except InvalidObject as error:
        raise posted.invalid(error) from None
    return manifest
