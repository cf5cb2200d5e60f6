"""The search for devices on one node in words: why each device was rejected, and which were taken.

The search itself tells it (`allocator.Observer`); the checks of a single device are asked once more one by one, each
alone, in the allocator's order, so that what a search did not come to is answered, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler_core.dynamic_resources.allocation import AllocationError, UndefinedCapacity, has_room
from scheduler_core.dynamic_resources.allocator import (
    CAPACITY,
    CONSTRAINT,
    COUNTER,
    IN_USE,
    SELECTOR,
    TAINT,
    Allocator,
    NodeSearch,
    NotOnNode,
    Observer,
    counted,
    is_tolerated,
    overdrawn,
)
from scheduler_core.dynamic_resources.model import Claim, Device, DeviceId, Manifest, Request
from scheduler_core.dynamic_resources.pools import DevicePool, node_matches
from scheduler_core.dynamic_resources.selectors import DeviceSelectorError, compiled
from scheduler_core.objects.node import Node

TAKEN, REFUSED, PUT_BACK, NOT_TRIED = "taken", "refused", "put back", "not tried"
MAX_ROWS = 512
"""Devices times requests that are told of one node."""

Key = tuple[int, int, int]
Holders = Mapping[DeviceId, str]
"""Who holds a device: `claim gpus (pod rerank-2)`."""


class _Told(Observer):
    """Keeps the first thing that stood against each device."""

    def __init__(self) -> None:
        self.first: dict[tuple[Key, DeviceId], tuple[str, str]] = {}
        self.back: set[tuple[Key, DeviceId]] = set()
        self.order: dict[tuple[Key, DeviceId], None] = {}

    def refused(self, key: Key, device: Device, check: str, words: str = "") -> None:
        self.order.setdefault((key, device.id))
        self.first.setdefault((key, device.id), (check, words))

    def took(self, key: Key, device: Device) -> None:
        self.order.setdefault((key, device.id))

    def put_back(self, key: Key, device: Device) -> None:
        self.order.setdefault((key, device.id))
        self.back.add((key, device.id))


def story(allocator: Allocator, node: Node, claims: Sequence[Claim], holders: Holders) -> dict[str, Any]:
    """The search on one node in words.

    Returns
    -------
    dict
        `node`, `verdict` (`allocated`, `rejected` or `error`), `reason`; `claims` with their requests and
        constraints; `devices`: a row for each device and request, in the order of the search, with `outcome`
        (`taken`, `refused`, `put back`, `not tried`), `check`, `words` and all `checks`; `refusals`: check -> rows;
        `nMore`: rows left out; `pools` that cannot be used, with why.
    """
    told = _Told()
    attempt = NodeSearch(allocator, node, claims, told)
    verdict, reason = "rejected", "cannot allocate all claims"
    try:
        if attempt.run() is not None:
            verdict, reason = "allocated", ""
    except NotOnNode as error:
        reason = str(error)
    except AllocationError as error:
        verdict, reason = "error", str(error)
    rows = _rows(attempt, told, holders, is_done=verdict == "allocated")
    refusals: dict[str, int] = {}
    for row in rows:
        if row["outcome"] == REFUSED:
            refusals[row["check"]] = refusals.get(row["check"], 0) + 1
    return {
        "node": node.name,
        "verdict": verdict,
        "reason": reason,
        "claims": [_claim(claim) for claim in claims],
        "devices": rows[:MAX_ROWS],
        "nMore": max(len(rows) - MAX_ROWS, 0),
        "refusals": refusals,
        "pools": [
            {"pool": pool.name, "why": pool.invalid or "its slices are not all there"}
            for pool in attempt.pools
            if pool.invalid or pool.is_incomplete
        ],
        "nDevices": sum(len(pool.devices) for pool in attempt.pools),
    }


def _claim(claim: Claim) -> dict[str, Any]:
    constraints = []
    for item in claim.spec.get("constraints") or ():
        kind = "matchAttribute" if item.get("matchAttribute") is not None else "distinctAttribute"
        constraints.append(
            {"kind": kind, "attribute": item.get(kind), "requests": list(item.get("requests") or ())}
        )
    annotations = claim.manifest["metadata"].get("annotations") or {}
    return {
        "claim": claim.key,
        "podClaim": annotations.get("resource.kubernetes.io/pod-claim-name") or "",
        "requests": [
            [
                {
                    "request": request.full_name,
                    "class": request.class_name,
                    "count": "all" if request.mode == "All" else str(request.count),
                    "selectors": [item["cel"]["expression"] for item in request.selectors if "cel" in item],
                    "capacity": {name: str(value) for name, value in request.capacity_requests.items()},
                    "adminAccess": request.admin_access,
                }
                for request in alternatives
            ]
            for alternatives in claim.requests
        ],
        "constraints": constraints,
    }


def _rows(attempt: NodeSearch, told: _Told, holders: Holders, *, is_done: bool) -> list[dict[str, Any]]:
    taken = {
        (index, chosen.request.full_name, chosen.device.id)
        for index, results in enumerate(attempt.results)
        for chosen in results
        if is_done
    }
    rows = []
    for key, row in attempt.rows.items():
        claim = attempt.claims[key[0]]
        places = {pair[1]: place for place, pair in enumerate(told.order) if pair[0] == key}
        for pool in attempt.pools:
            for device in pool.devices:
                checks = _checks(attempt, row.request, row.device_class, device, pool, holders)
                failed = next((item for item in checks if not item["ok"]), None)
                outcome, check, words = NOT_TRIED, "", ""
                if (key[0], row.request.full_name, device.id) in taken:
                    outcome = TAKEN
                elif (key, device.id) in told.first:
                    outcome = REFUSED
                    check, words = told.first[key, device.id]
                    if check == SELECTOR and failed is not None:
                        check = failed["check"]
                    if not words and failed is not None:
                        words = failed["words"]
                    if not words and check == IN_USE:
                        words = "chosen for another request of this pod"
                elif (key, device.id) in told.back:
                    outcome, words = PUT_BACK, "with it the other requests find nothing"
                if (
                    outcome in (REFUSED, PUT_BACK)
                    and check in (COUNTER, CONSTRAINT, IN_USE)
                    and failed is None
                ):
                    checks.append({"check": check, "ok": False, "words": words})
                rows.append(
                    {
                        "claim": claim.key,
                        "request": row.request.full_name,
                        "driver": device.id[0],
                        "pool": device.id[1],
                        "device": device.id[2],
                        "about": _about(device),
                        "outcome": outcome,
                        "check": check,
                        "words": words,
                        "checks": checks,
                        "place": places.get(device.id, -1),
                        "holder": holders.get(device.id, ""),
                        "taints": _taints(device),
                    }
                )
    return rows


def _about(device: Device) -> str:
    """What tells it from others, in a few words."""
    values = {
        name.rpartition("/")[2]: next(iter(value.values()), "") for name, value in device.attributes.items()
    }
    shown = [str(values[name]) for name in ("productName", "model", "profile", "type") if values.get(name)]
    amounts = [f"{value['value']} {name}" for name, value in list(device.capacity.items())[:1]]
    return ", ".join([*dict.fromkeys(shown), *amounts])


def _taints(device: Device) -> list[str]:
    return [
        f"{taint.get('key')}{'=' + str(taint['value']) if taint.get('value') else ''}:{taint.get('effect')}"
        for taint in device.document.get("taints") or ()
    ]


# ---- one device, check by check


def _checks(
    attempt: NodeSearch,
    request: Request,
    device_class: Manifest,
    device: Device,
    pool: DevicePool,
    holders: Holders,
) -> list[dict[str, Any]]:
    """Each check about the device alone, as things were before this pod's search, in the allocator's order."""
    found: list[dict[str, Any]] = []

    def say(check: str, ok: bool, words: str) -> None:
        found.append({"check": check, "ok": ok, "words": words})

    is_held = device.id in attempt.shared.allocated.devices and not request.admin_access
    say(IN_USE, not is_held, f"held by {holders.get(device.id, 'another claim')}" if is_held else "free")
    class_name = device_class["metadata"]["name"]
    for where, selectors in (
        (f"class {class_name}", (device_class.get("spec") or {}).get("selectors") or ()),
        ("request", request.selectors),
    ):
        for selector in selectors:
            text = selector["cel"]["expression"]
            try:
                say(f"{where} selector", compiled(text).matches(device), text)
            except DeviceSelectorError as error:
                say(f"{where} selector", False, str(error))
    document = device.document
    if device.slice.document.get("perDeviceNodeSelection"):
        ok = node_matches(attempt.node, document)
        say("node", ok, "the device is on this node" if ok else "the device is on other nodes")
    if request.capacity_requests or device.is_shared:
        _say_capacity(attempt, request, device, say)
    if device.counters:
        _say_counters(attempt, device, pool, say)
    taints = _taints(device)
    if taints:
        ok = not attempt.release.gate("DRADeviceTaints") or is_tolerated(device, request)
        say(TAINT, ok, f"{', '.join(taints)}{'' if ok else ' is not tolerated'}")
    return found


def _say_capacity(attempt: NodeSearch, request: Request, device: Device, say: Any) -> None:
    taken = attempt.shared.allocated.capacity.get(device.id, {})
    asked = ", ".join(f"{value} {name}" for name, value in request.capacity_requests.items()) or "its default"
    held = ", ".join(f"{value} {name}" for name, value in taken.items()) or "nothing"
    whole = ", ".join(f"{item['value']} {name}" for name, item in device.capacity.items())
    try:
        ok = not attempt.release.gate("DRAConsumableCapacity") or has_room(
            request, device, taken, attempt.release
        )
    except UndefinedCapacity:
        say(CAPACITY, False, f"asks for {asked}, which the device does not have")
        return
    except AllocationError as error:
        say(CAPACITY, False, str(error))
        return
    say(CAPACITY, ok, f"asks for {asked}; {held} of {whole} taken")


def _say_counters(attempt: NodeSearch, device: Device, pool: DevicePool, say: Any) -> None:
    available = attempt.available_counters(pool)
    short = [
        f"{name} of {set_name}: it takes {amount}, {available[set_name, name]} left"
        for (set_name, name), amount in counted(device)
        if (set_name, name) in available and available[set_name, name].cmp(amount) < 0
    ] or overdrawn(available)
    say(COUNTER, not short, "; ".join(short[:4]) or "its share of the counters is free")
