"""A change as commands to copy: `kubectl patch`, `label`, `delete`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import yaml

_GIVEN: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
_MOST: Final = 20
"""Objects that are named one by one."""

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
    operations = list(_differences(dict(without_given(old)), dict(manifest), ""))
    if kind == "Node" and [one["path"] for one in operations] == ["/spec/unschedulable"]:
        yield f"kubectl uncordon {meta['name']}"
        return
    resize = " --subresource resize" if kind == "Pod" else ""
    text = json.dumps(operations, separators=(",", ":"))
    yield f"kubectl patch {kind.lower()} {meta['name']}{where}{resize} --type json -p '{text}'"


def _differences(old: Any, new: Any, path: str) -> Iterator[dict[str, Any]]:
    """Operations of a JSON patch (RFC 6902) that make `new` of `old`; a list of another length is replaced whole."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in old:
            at = f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"
            if key not in new:
                yield {"op": "remove", "path": at}
            else:
                yield from _differences(old[key], new[key], at)
        for key in new:
            if key not in old:
                yield {
                    "op": "add",
                    "path": f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}",
                    "value": new[key],
                }
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _differences(one, other, f"{path}/{place}")
    elif old != new:
        yield {"op": "replace", "path": path, "value": new}
