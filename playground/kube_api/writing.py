"""Writes: every one ends in a service, with the same objects the pages and /api give it.

Pod templates are kept as written, and answered with the API's defaults. `kubectl edit`, `replace` and `rollout undo`
send the whole of what they read; it is the same template (`as_once_written`), so that no pod is replaced for it.

Source of scales: staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/etcd.go (ScaleREST), v1.34
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.http import HttpRequest

from playground.clusters import kinds
from playground.clusters.clock import virtual_now_ns
from playground.clusters.errors import AlreadyExists, Conflict, NotFound
from playground.clusters.kinds import Kind
from playground.clusters.objects.admission import MOST_TRIES, FieldValidation
from playground.clusters.objects.deletion import POLICIES
from playground.clusters.objects.queries import counted, get_object, list_objects
from playground.clusters.objects.write import (
    bind_pod,
    create_object,
    delete_object,
    delete_objects,
    evict_pod,
    replace_object,
)
from playground.clusters.row_types import Cluster
from playground.engine.admission import taken_only_here
from playground.kube_api import managed_fields, patches
from playground.kube_api.built_in import built_in_object, keep, recreate, write_down
from playground.kube_api.reading import page_of, switched, with_read_defaults
from playground.kube_api.requests import (
    APPLY,
    JSON_PATCH,
    LONGEST_MANAGER,
    MERGE,
    PATCH_TYPES,
    STRATEGIC,
    UNKNOWN_FORMAT,
    Target,
    check_named,
    document_of,
    dry_run_errors,
    manifest_of,
    patch_of,
)
from playground.kube_api.status import Refusal, check_fields, success
from playground.kube_api.tables import path_of, values
from scheduler_core.errors import invalid, not_supported
from scheduler_core.objects.fields import format_seconds
from scheduler_core.objects.merge import merge_patch


@dataclass(frozen=True, slots=True)
class WriteAnswer:
    """What a write gives back.

    Attributes
    ----------
    code
        HTTP status.
    body
        An object or a Status.
    is_object
        Whether it is an object of the target's kind, which may be wanted as a Table.
    warnings
        What the client should be told besides.
    """

    code: int
    body: dict[str, Any]
    is_object: bool = True
    warnings: tuple[str, ...] = ()


def create(request: HttpRequest, cluster: Cluster, target: Target) -> WriteAnswer:
    """POST to a collection."""
    manifest = manifest_of(document_of(request), target.kind, namespace=target.namespace)
    name = manifest["metadata"].get("name")
    if name and built_in_object(cluster, dataclasses.replace(target, name=name)) is not None:
        raise AlreadyExists(
            f'{target.kind.resource} "{name}" already exists',
            kind=target.kind.kind,
            namespace=target.namespace,
            name=name,
        )
    return _created(request, cluster, target, manifest)


def replace(request: HttpRequest, cluster: Cluster, target: Target) -> WriteAnswer:
    """PUT of an object, its status or its scale."""
    document = document_of(request)
    if target.subresource == "scale":
        return _scaled(request, cluster, target, lambda _: document)
    manifest = manifest_of(document, target.kind, target.name, target.namespace)
    live = _live(cluster, target)
    managers = _after_update(request, cluster, live, manifest)
    return _replaced(request, cluster, target, live, manifest, managers, uid=_uid(manifest))


def _uid(manifest: Mapping[str, Any]) -> str:
    """Of the object that a write is about, where it says so."""
    uid = manifest["metadata"].get("uid")
    return uid if isinstance(uid, str) else ""


def patch(request: HttpRequest, cluster: Cluster, target: Target) -> WriteAnswer:
    """PATCH of an object, its status or its scale; server-side apply is one of its media types."""
    kind, document = patch_of(request)
    if kind in APPLY:
        return _apply(request, cluster, target, document)
    if kind == STRATEGIC and target.kind.custom is not None and target.subresource != "scale":
        taken = ", ".join(each for each in PATCH_TYPES if each != STRATEGIC)
        raise Refusal("UnsupportedMediaType", UNKNOWN_FORMAT + taken)
    change = _change(kind, document)
    if target.subresource == "scale":
        return _scaled(request, cluster, target, change)

    def patched() -> WriteAnswer:
        live = _live(cluster, target)
        changed = change(live)
        if not isinstance(changed, dict) or not isinstance(changed.get("metadata"), dict):
            raise Refusal("BadRequest", "the patch leaves no object")
        manifest = manifest_of(changed, target.kind, target.name, target.namespace)
        managers = _after_update(request, cluster, live, manifest)
        return _replaced(request, cluster, target, live, manifest, managers)

    return _on_newest(patched)


def _on_newest(write: Callable[[], WriteAnswer]) -> WriteAnswer:
    """Write what is about the newest version, again where another client was faster.

    What names a version itself meets the same conflict each time.

    Raises
    ------
    Conflict
    """
    for _ in range(MOST_TRIES - 1):
        with suppress(Conflict):
            return write()
    return write()


def _change(kind: str, document: Any) -> Callable[[dict[str, Any]], Any]:
    if kind == JSON_PATCH:
        return lambda live: patches.json_patch(live, document)
    if kind == MERGE:
        return lambda live: merge_patch(live, document)
    return lambda live: patches.strategic_merge_patch(live, document)


def _apply(request: HttpRequest, cluster: Cluster, target: Target, document: Any) -> WriteAnswer:
    manager, force = request.GET["fieldManager"], switched(request, "force")
    if target.subresource == "scale":
        raise Refusal("UnsupportedMediaType", "a scale is patched by merge, not applied")
    wanted = manifest_of(document, target.kind, target.name, target.namespace)
    meta = wanted["metadata"]
    if meta.get("managedFields"):
        raise Refusal("BadRequest", "metadata.managedFields must be nil")

    def applied() -> WriteAnswer:
        # A part of an object makes none.
        live = _live(cluster, target) if target.subresource else _found(cluster, target)
        manifest, managers = managed_fields.applied(
            live, wanted, manager=manager, force=force, time=_stamp(cluster)
        )
        if live is None:
            return _created(request, cluster, target, manifest, managers)
        if meta.get("resourceVersion"):
            manifest["metadata"]["resourceVersion"] = meta["resourceVersion"]
        return _replaced(request, cluster, target, live, manifest, managers, uid=_uid(wanted))

    return _on_newest(applied)


def _created(
    request: HttpRequest,
    cluster: Cluster,
    target: Target,
    manifest: dict[str, Any],
    managers: list[dict[str, Any]] | None = None,
) -> WriteAnswer:
    fields = _field_validation(request)
    with _dry_run(request) as dry:
        stored = create_object(
            cluster=cluster,
            manifest=manifest,
            namespace=target.namespace or None,
            managed_fields=managers,
            fields=fields,
        )
        stored = counted(cluster, target.kind, stored)
    body = _of_version(stored, None) if dry else stored
    return WriteAnswer(201, body, warnings=(*fields.warnings, *taken_only_here(stored)))


def _replaced(
    request: HttpRequest,
    cluster: Cluster,
    target: Target,
    live: dict[str, Any],
    manifest: dict[str, Any],
    managers: list[dict[str, Any]] | None,
    uid: str = "",
) -> WriteAnswer:
    fields = _field_validation(request)
    with _dry_run(request) as dry:
        stored = replace_object(
            cluster=cluster,
            manifest=as_once_written(cluster, target.kind, live, keep(cluster, target, manifest)),
            namespace=target.namespace or None,
            subresource=target.subresource,
            managed_fields=managers,
            fields=fields,
            uid=uid,
        )
        stored = counted(cluster, target.kind, stored)
    body = _of_version(stored, live["metadata"].get("resourceVersion")) if dry else stored
    told = () if target.subresource else taken_only_here(stored)
    return WriteAnswer(200, body, warnings=(*fields.warnings, *told))


def _field_validation(request: HttpRequest) -> FieldValidation:
    return FieldValidation(request.GET.get("fieldValidation") or "Warn")


def _of_version(manifest: dict[str, Any], version: str | None) -> dict[str, Any]:
    """The object as a dry run answers: of the version it has, since none is written."""
    meta = {key: value for key, value in manifest["metadata"].items() if key != "resourceVersion"}
    return manifest | {"metadata": meta | ({"resourceVersion": version} if version else {})}


def delete(request: HttpRequest, cluster: Cluster, target: Target) -> WriteAnswer:
    """DELETE of one object; a pod on a node is there until its grace period is over."""
    options = _delete_options(request)
    with _dry_run(request, options):
        write_down(cluster, target)
        last = delete_object(
            cluster=cluster, kind=target.kind, namespace=target.namespace, name=target.name, **options[0]
        )
        recreate(cluster, target)
    return _deleted(target.kind, last)


def delete_collection(request: HttpRequest, cluster: Cluster, target: Target) -> WriteAnswer:
    """DELETE of everything a selector finds."""
    options = _delete_options(request)
    options[0].pop("uid", None)
    options[0].pop("resource_version", None)
    found = page_of(request, cluster, target)[0]
    names = [(meta.get("namespace", ""), meta["name"]) for meta in (each["metadata"] for each in found)]
    ones = [dataclasses.replace(target, namespace=namespace, name=name) for namespace, name in names]
    with _dry_run(request, options):
        for one in ones:
            write_down(cluster, one)
        gone = delete_objects(cluster=cluster, kind=target.kind, names=names, **options[0])
        for one in ones:
            recreate(cluster, one)
    body = {
        "kind": f"{target.kind.kind}List",
        "apiVersion": target.kind.api_version,
        "metadata": {"resourceVersion": str(cluster.last_seq)},
        "items": gone,
    }
    return WriteAnswer(200, body, is_object=False)


def bind(request: HttpRequest, cluster: Cluster, target: Target) -> WriteAnswer:
    """POST of a Binding: put a pod on a node, whatever the scheduler thinks of it."""
    document = document_of(request)
    _expect(document, "Binding", ("v1",))
    meta, aim = _map(document, "metadata"), _map(document, "target")
    name = target.name or meta.get("name")
    if not isinstance(name, str) or not name or meta.get("name") not in (None, "", name):
        raise Refusal("BadRequest", "the name in the Binding is not that of the pod")
    for key in ("uid", "resourceVersion"):
        if not isinstance(meta.get(key), str | None):
            raise Refusal("BadRequest", f"metadata.{key}: must be a string")
    node = aim.get("name")
    if aim.get("kind") not in (None, "", "Node"):
        raise Refusal("BadRequest", f"a pod is bound to a Node, not to a {aim.get('kind')}")
    with _dry_run(request):
        bind_pod(
            cluster=cluster,
            namespace=target.namespace,
            name=name,
            node=node if isinstance(node, str) else "",
            uid=meta.get("uid") or "",
            resource_version=meta.get("resourceVersion") or "",
        )
    return WriteAnswer(201, success({"name": name, "kind": "pods"}), is_object=False)


def evict(request: HttpRequest, cluster: Cluster, target: Target) -> WriteAnswer:
    """POST of an Eviction: delete a pod unless a PodDisruptionBudget forbids it."""
    document = document_of(request)
    _expect(document, "Eviction", ("policy/v1", "policy/v1beta1"))
    meta, options = _map(document, "metadata"), _map(document, "deleteOptions")
    if meta.get("name") not in (None, "", target.name):
        raise Refusal("BadRequest", "name in URL does not match name in Eviction object")
    with _dry_run(request, ({}, _wants_dry_run(options))):
        evict_pod(
            cluster=cluster,
            namespace=target.namespace,
            name=target.name,
            grace_s=_grace(options.get("gracePeriodSeconds")),
            **_preconditions(options),
        )
    return WriteAnswer(201, success({"name": target.name, "kind": "pods"}), is_object=False)


def _scaled(
    request: HttpRequest, cluster: Cluster, target: Target, change: Callable[[dict[str, Any]], Any]
) -> WriteAnswer:
    def write() -> WriteAnswer:
        live = _live(cluster, target)
        wanted = change(scale_of(target.kind, live))
        wanted = wanted if isinstance(wanted, dict) else {}
        meta, replicas = _map(wanted, "metadata"), _map(wanted, "spec").get("replicas", 0)
        check_named(meta, target.name)
        if isinstance(replicas, bool) or not isinstance(replicas, int) or not 0 <= replicas < 2**31:
            error = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
            check_fields(f'Scale.autoscaling "{target.name}"', [error])
        manifest = scaled(target.kind, live, replicas)
        version = meta.get("resourceVersion") or live["metadata"]["resourceVersion"]
        manifest["metadata"] = {**live["metadata"], "resourceVersion": version}
        with _dry_run(request):
            stored = replace_object(
                cluster=cluster,
                manifest=manifest,
                namespace=target.namespace or None,
                managed_fields=_after_update(request, cluster, live, manifest),
            )
        return WriteAnswer(200, scale_of(target.kind, stored), is_object=False)

    return _on_newest(write)


def _deleted(kind: Kind, last: dict[str, Any]) -> WriteAnswer:
    meta = last["metadata"]
    if kind.row_kind == "Pod" or meta.get("deletionTimestamp"):
        return WriteAnswer(200, last)
    details = {"name": meta["name"], "group": kind.group, "kind": kind.plural, "uid": meta.get("uid", "")}
    body = success({key: value for key, value in details.items() if value})
    return WriteAnswer(200, body, is_object=False)


def _live(cluster: Cluster, target: Target) -> dict[str, Any]:
    return built_in_object(cluster, target) or get_object(cluster, target.kind, target.namespace, target.name)


def _found(cluster: Cluster, target: Target) -> dict[str, Any] | None:
    try:
        return _live(cluster, target)
    except NotFound:
        return None


def _stamp(cluster: Cluster) -> str:
    return format_seconds(virtual_now_ns(cluster))


def _after_update(
    request: HttpRequest, cluster: Cluster, live: dict[str, Any], manifest: dict[str, Any]
) -> list[dict[str, Any]] | None:
    agent = request.headers.get("User-Agent", "").partition("/")[0]
    manager = (request.GET.get("fieldManager") or agent or "unknown")[:LONGEST_MANAGER]
    return managed_fields.updated(live, manifest, manager=manager, time=_stamp(cluster))


def _delete_options(request: HttpRequest) -> tuple[dict[str, Any], bool]:
    """Arguments of the service, and whether it is all a dry run."""
    document = document_of(request)
    if document:
        _expect(document, "DeleteOptions", ())
    grace = document.get("gracePeriodSeconds", request.GET.get("gracePeriodSeconds") or None)
    if isinstance(grace, str):
        grace = int(grace) if grace.isascii() and grace.isdecimal() and len(grace) < 10 else -1
    return (
        {"grace_s": _grace(grace), **_preconditions(document), **_propagation(request, document)},
        _wants_dry_run(document),
    )


def _preconditions(options: Mapping[str, Any]) -> dict[str, Any]:
    """Which object is meant, as arguments of the service."""
    conditions = _map(options, "preconditions")
    return {"uid": conditions.get("uid"), "resource_version": conditions.get("resourceVersion")}


def _map(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key)
    if not isinstance(value, Mapping | None):
        raise Refusal("BadRequest", f"{key}: must be an object")
    return value or {}


def _propagation(request: HttpRequest, document: Mapping[str, Any]) -> dict[str, bool]:
    """Whether dependents stay, or go first."""
    policy = document.get("propagationPolicy") or request.GET.get("propagationPolicy") or ""
    old = document.get("orphanDependents")
    errors = []
    if policy and old is not None:
        words = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid("propagationPolicy", policy, words))
    if policy not in ("", *POLICIES):
        errors.append(not_supported("propagationPolicy", policy, [*reversed(POLICIES), "nil"]))
    check_fields(_DELETE_OPTIONS, errors)
    return {"orphans": policy == "Orphan" or old is True, "foreground": policy == "Foreground"}


_DELETE_OPTIONS: Final = 'DeleteOptions.meta.k8s.io ""'


def _grace(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        words = "must be a whole number of 0 or more"
        check_fields(_DELETE_OPTIONS, [invalid("gracePeriodSeconds", value, words)])
    return int(value)


def _wants_dry_run(options: Mapping[str, Any]) -> bool:
    check_fields(_DELETE_OPTIONS, dry_run_errors(options.get("dryRun")))
    return options.get("dryRun") == ["All"]


def _expect(document: Mapping[str, Any], kind: str, api_versions: tuple[str, ...]) -> None:
    written = (document.get("apiVersion") or "", document.get("kind") or kind)
    if written[1] != kind or (api_versions and written[0] not in ("", *api_versions)):
        raise Refusal("BadRequest", f"a {kind} is expected in the body, not a {written[1]} of {written[0]}")


@contextmanager
def _dry_run(request: HttpRequest, options: tuple[Any, bool] = (None, False)) -> Iterator[bool]:
    """Everything as if, and nothing kept, when the query (or the options in the body) ask for it; whether they do."""
    if not options[1] and request.GET.get("dryRun") != "All":
        yield False
        return
    with transaction.atomic():
        yield True
        transaction.set_rollback(True)


_HASH: Final = "pod-template-hash"


def as_once_written(
    cluster: Cluster, kind: Kind, live: Mapping[str, Any], manifest: dict[str, Any]
) -> dict[str, Any]:
    """An object that takes the place of `live`, its template spelt as the live one's, or an earlier one's, was."""
    template = _template(manifest)
    if template is None or _template(live) in (None, template):
        return manifest
    wanted = _read(template)
    for known in (_template(live), *_earlier(cluster, kind, live)):
        if known is not None and _read(known) == wanted:
            return manifest | {"spec": manifest["spec"] | {"template": known}}
    return manifest


def _template(manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    spec = manifest.get("spec")
    template = spec.get("template") if isinstance(spec, Mapping) else None
    return template if isinstance(template, dict) and isinstance(template.get("spec"), dict) else None


def _earlier(cluster: Cluster, kind: Kind, live: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The templates of a Deployment's ReplicaSets."""
    of_set = kinds.by_kind("ReplicaSet")
    if kind.row_kind != "Deployment" or of_set is None:
        return
    rows = list_objects(cluster, of_set, namespace=live["metadata"].get("namespace"))
    for manifest in rows.order_by("-resource_version").values_list("manifest", flat=True):
        owners = manifest["metadata"].get("ownerReferences") or ()
        template = _template(manifest)
        if template is not None and any(each.get("uid") == live["metadata"].get("uid") for each in owners):
            meta = template.get("metadata") or {}
            labels = {key: value for key, value in (meta.get("labels") or {}).items() if key != _HASH}
            yield template | {"metadata": meta | {"labels": labels}}


def _read(template: dict[str, Any]) -> dict[str, Any]:
    """A template as clients are answered it."""
    read = with_read_defaults("Deployment", {"metadata": {}, "spec": {"template": template}})["spec"][
        "template"
    ]
    meta = {key: value for key, value in (read.get("metadata") or {}).items() if value}
    return {**read, "metadata": meta}


_KEPT: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(kind: Kind, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The Scale of an object.

    Raises
    ------
    Refusal
        A custom resource has no such field.
    """
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    if kind.custom is None:
        selector = spec.get("selector") or {}
        labels = selector.get("matchLabels", {}) if "matchLabels" in selector else selector
        words = ",".join(f"{key}={value}" for key, value in sorted(labels.items()) if isinstance(value, str))
        replicas, now = spec.get("replicas"), status.get("replicas")
        replicas = 1 if replicas is None else replicas
    else:
        paths = _paths(kind)
        named = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
        replicas, now, words = (_at(manifest, paths.get(name, "")) for name in named)
        if not isinstance(replicas, int):
            said = f'the spec replicas field "{paths["specReplicasPath"]}" does not exist'
            raise Refusal("InternalError", f"Internal error occurred: {said}")
    meta = manifest["metadata"]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: meta[key] for key in _KEPT if key in meta},
        "spec": {"replicas": replicas},
        "status": {
            "replicas": now if isinstance(now, int) else 0,
            **({"selector": words} if isinstance(words, str) else {}),
        },
    }


def scaled(kind: Kind, manifest: Mapping[str, Any], replicas: int) -> dict[str, Any]:
    """The object with another number of replicas."""
    path = [part for part in _paths(kind)["specReplicasPath"].split(".") if part]
    return _with(manifest, path, replicas)


def _paths(kind: Kind) -> Mapping[str, str]:
    if kind.custom is None:
        return {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    found: Mapping[str, str] = kind.custom["subresources"]["scale"]
    return found


def _at(manifest: Mapping[str, Any], path: str) -> Any:
    return next(iter(values(manifest, path_of(path))), None)


def _with(value: Mapping[str, Any], path: list[str], replicas: int) -> dict[str, Any]:
    first, *rest = path
    inner = value.get(first)
    return {
        **value,
        first: _with(inner if isinstance(inner, Mapping) else {}, rest, replicas) if rest else replicas,
    }
