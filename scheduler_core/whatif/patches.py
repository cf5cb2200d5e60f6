"""A change as commands to copy: `kubectl patch`, `label`, `delete`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

_GIVEN: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
_MOST: Final = 20
"""Objects that are named one by one."""

_SHOWN: Final = 6
"""Lines of a change that are shown, of those that go and of those that come."""
_NONE: Final = object()
_NUMBER: Final = re.compile(r"[-+]?[0-9][0-9._]*(?:[eE][-+]?[0-9]+)?")

Path = tuple[str | int, ...]
Before = Callable[[str, str, str], Mapping[str, Any] | None]
"""Kind, namespace, name -> the object as it is; None where it is not there."""


def without_given(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest without what a server gave it: an answer follows from what was written alone."""
    meta = {key: value for key, value in manifest["metadata"].items() if key not in _GIVEN}
    kept = {key: value for key, value in manifest.items() if key != "status" or manifest["kind"] == "Node"}
    return {**kept, "metadata": meta}


def patch_of(change: Mapping[str, Any], before: Before, *, node: str = "") -> str:
    """The commands that make a change, a line or more each.

    Parameters
    ----------
    node : str
        Of a move: the nodes that pods leave, which take no pod meanwhile.
    """
    lines: list[str] = []
    written = list(change.get("write", ()))
    new_nodes = [
        one for one in written if one["kind"] == "Node" and not before("Node", "", one["metadata"]["name"])
    ]
    if new_nodes:
        kinds: dict[str, int] = {}
        for one in new_nodes:
            labels = one["metadata"].get("labels") or {}
            kind = labels.get("node.kubernetes.io/instance-type") or ", ".join(
                f"{value} {key}" for key, value in one["status"]["allocatable"].items() if key != "pods"
            )
            kinds[kind] = kinds.get(kind, 0) + 1
        lines += [f"# in the node pool: {number} more of {kind}" for kind, number in kinds.items()]
    for one in written[:_MOST]:
        if one not in new_nodes:
            lines += _written(one, before)
    if len(written) > _MOST:
        lines.append(f"# and {len(written) - _MOST} more like these")
    moves = [key for key, _ in change.get("move", ())]
    if moves and node:
        lines.append(f"kubectl cordon {node}")
    by_namespace: dict[str, list[str]] = {}
    for key in (*change.get("delete", ()), *moves):
        namespace, _, name = key.partition("/")
        by_namespace.setdefault(namespace, []).append(name)
    lines += [f"kubectl delete pod -n {space} {' '.join(names)}" for space, names in by_namespace.items()]
    if moves and node:
        lines.append(f"kubectl uncordon {node}")
    return "\n".join(lines)


def _written(manifest: Mapping[str, Any], before: Before) -> Iterator[str]:
    kind, meta = manifest["kind"], manifest["metadata"]
    old = before(kind, meta.get("namespace") or "", meta["name"])
    where = f" -n {meta['namespace']}" if meta.get("namespace") else ""
    if (
        old is None
        or (kind == "Pod" and not (old.get("spec") or {}).get("nodeName"))
        or kind.endswith("Claim")
    ):
        if old is not None:
            yield f"kubectl delete {kind.lower()} {meta['name']}{where}"
        text = yaml.safe_dump(json.loads(json.dumps(manifest)), sort_keys=False).rstrip()
        yield f"kubectl apply -f - <<'EOF'\n{text}\nEOF"
        return
    operations = [_operation(*one) for one in _differences(dict(without_given(old)), dict(manifest), ())]
    if kind == "Node" and [one["path"] for one in operations] == ["/spec/unschedulable"]:
        yield f"kubectl uncordon {meta['name']}"
        return
    resize = " --subresource resize" if kind == "Pod" else ""
    text = json.dumps(operations, separators=(",", ":"))
    yield f"kubectl patch {kind.lower()} {meta['name']}{where}{resize} --type json -p '{text}'"


def lines_of(change: Mapping[str, Any], before: Before) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lines of manifests that go, and that come, with a change: those of what it writes, and pods that go.

    Of several objects of a kind their number.
    """
    removed: dict[str, None] = {}
    added: dict[str, None] = {}
    made: dict[str, list[str]] = {}
    for manifest in change.get("write", ()):
        kind, meta = manifest["kind"], manifest["metadata"]
        old = before(kind, meta.get("namespace") or "", meta["name"])
        if old is None:
            made.setdefault(kind, []).append(f"name: {meta['name']}")
            continue
        for path, was, now in _differences(dict(without_given(old)), dict(manifest), ()):
            name = next((str(key) for key in reversed(path) if isinstance(key, str)), "")
            if path[0] != "status":
                gone, new = ([item] if not isinstance(item, list) else item for item in (was, now))
                removed |= {
                    f"{name}: {inline(one)}": None for one in gone if one is not _NONE and one not in new
                }
                added |= {
                    f"{name}: {inline(one)}": None for one in new if one is not _NONE and one not in gone
                }
    moves = [key for key, _ in change.get("move", ())]
    going = [key.partition("/") for key in (*change.get("delete", ()), *change.get("reject", ()), *moves)]
    pods = {"Pod": [f"name: {name}, namespace: {namespace}" for namespace, _, name in going]} if going else {}
    return (*_of_kinds(pods), *removed)[:_SHOWN], (*_of_kinds(made), *added)[:_SHOWN]


def _of_kinds(names: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for kind, of in names.items():
        yield f"kind: {kind}, {of[0]}" if len(of) == 1 else f"{len(of):,} × kind: {kind}"


def inline(value: Any) -> str:
    """A value as YAML in one line, quoted where it would read as something else."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {inline(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(inline, value))}]"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    reads_otherwise = text.lower() in ("", "true", "false", "yes", "no", "on", "off", "null", "~")
    is_quoted = isinstance(value, str) and (reads_otherwise or _NUMBER.fullmatch(text))
    return f'"{text}"' if is_quoted else text


def _differences(old: Any, new: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    """(path, what was there, what is) that make `new` of `old`; a list of another length is replaced whole."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            yield from _differences(old.get(key, _NONE), new.get(key, _NONE), (*path, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _differences(one, other, (*path, place))
    elif old is not new and old != new:
        yield path, old, new


def _operation(path: Path, old: Any, new: Any) -> dict[str, Any]:
    """One operation of a JSON patch (RFC 6902)."""
    where = "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in path)
    if new is _NONE:
        return {"op": "remove", "path": where}
    return {"op": "add" if old is _NONE else "replace", "path": where, "value": new}
