"""Reading inputs, each at its own time; what people wrote meanwhile is put together with what the cluster did.

An input may have the cluster act at once (a pod is allowed at Permit, and bound) before the next one is read, and at
1x an engine reads inputs a moment after they were made, and goes through that moment as if it had been there. So it
may write an object before a person's write that knew nothing of it, and which holds the whole object as the person
knew it: a pod that was created and labelled is bound in between. What the person changed holds then, and so does what
the cluster changed; the object that comes of it is an outcome of the batch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from playground.engine.entries import Entry
from playground.engine.ports import Simulation, Simulator

CATCH_UP_CYCLES: Final = 1_000_000
"""Bound on the cycles run while the clock catches up with an input's own time."""
PUT_TOGETHER: Final = "changed by a person meanwhile"
"""Reason of the write."""

Key = tuple[str, str, str]


def read(simulator: Simulator, simulation: Simulation, entries: Iterable[Entry]) -> None:
    """Submit inputs, each at its own time if the clock runs behind it; the world takes them in."""
    entries = list(entries)
    known: dict[Key, Mapping[str, Any] | None] = {}
    """Objects as people know them, whose writes are changes of that."""
    given: dict[Key, Mapping[str, Any] | None] = {}
    """Objects as the cluster was given them last; whichever is another one by now, it has written since."""
    written: set[Key] = set()
    if len(entries) > 1 or any(entry.at_ns > simulation.now_ns for entry in entries):
        known = {key: simulator.manifest(simulation, *key) for key in map(_key, entries) if key is not None}
        given = dict(known)
    for entry in entries:
        if entry.at_ns > simulation.now_ns:
            simulation.advance(entry.at_ns - simulation.now_ns, max_cycles=CATCH_UP_CYCLES)
        if entry.kind in ("clock", "undo"):
            continue
        taken: Entry | None = entry
        key = _key(entry)
        if key is not None and known:
            present = simulator.manifest(simulation, *key)
            if present is not given[key]:
                written.add(key)
            taken = _together(entry, known[key], present, is_written=key in written)
            known[key] = None if _is_gone(entry) else entry.payload["manifest"]
            if taken is not None:
                given[key] = None if _is_gone(taken) else taken.payload["manifest"]
        if taken is not None:
            simulation.submit(simulator.change(taken))
    if entries:
        simulation.advance(0, max_cycles=0)


def _key(entry: Entry) -> Key | None:
    if entry.kind not in ("write", "delete"):
        return None
    manifest = entry.payload["manifest"]
    meta = manifest["metadata"]
    return (str(manifest["kind"]), str(meta.get("namespace") or ""), str(meta["name"]))


def _is_gone(entry: Entry) -> bool:
    return entry.kind == "delete" and bool(entry.payload.get("gone", True))


def _together(
    entry: Entry,
    known: Mapping[str, Any] | None,
    present: Mapping[str, Any] | None,
    *,
    is_written: bool,
) -> Entry | None:
    """The input as it holds now; None if it is about what the cluster has removed in the meantime.

    What the cluster wrote of the object on the way here (`is_written`) becomes entries after this one, which knew
    nothing of it: so it is said again, also where the cluster has come back to what the object was.
    """
    if known is None or _is_gone(entry) or present is known:
        return entry
    if present is None or present["metadata"].get("uid") != known["metadata"].get("uid"):
        return None
    theirs = entry.payload["manifest"]
    if theirs["metadata"].get("uid") != known["metadata"].get("uid"):
        return entry
    merged = merged_changes(known, theirs, present)
    node = (present.get("spec") or {}).get("nodeName")
    if merged["kind"] == "Pod" and node:  # a pod stays where it was bound
        merged["spec"] = {**merged["spec"], "nodeName": node}
    merged["metadata"] = {**merged["metadata"], "resourceVersion": theirs["metadata"].get("resourceVersion")}
    if merged == theirs and not is_written:
        return entry
    return replace(entry, kind="write", payload={"manifest": merged, "reason": PUT_TOGETHER})


def merged_changes(known: Any, theirs: Any, present: Any) -> Any:
    """`theirs`, with what `present` changed of `known`; where both changed the same, theirs holds. Lists are whole."""
    if theirs == known:
        return present
    if isinstance(theirs, Mapping) and isinstance(present, Mapping) and isinstance(known, Mapping):
        merged = {}
        for name in [*theirs, *(name for name in present if name not in theirs)]:
            if name in theirs and name in present:
                merged[name] = merged_changes(known.get(name), theirs[name], present[name])
            elif name in theirs:
                if name not in known or theirs[name] != known[name]:  # else the cluster has removed it
                    merged[name] = theirs[name]
            elif name not in known or present[name] != known[name]:  # else the person has removed it
                merged[name] = present[name]
        return merged
    return theirs
