"""What another release of Kubernetes would decide otherwise, as a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.http import HttpRequest
from django.urls import reverse

from playground.engine.releases import release_names, title_of
from playground.scenarios import services
from playground.scenarios.services.upgrades import upgrade_result
from playground.web.requests import site_user
from playground.web.scenarios.asked_for import Work
from playground.web.scenarios.badge import release_of

if TYPE_CHECKING:
    from playground.scenarios.row_types import Upgrade

SHOWN: Final = 100
"""Differences of one cause on the page."""
FIGURES: Final = (
    ("moved", "Land elsewhere"),
    ("newlyPending", "Newly pending"),
    ("newlyPlaced", "Newly placed"),
    ("newlyEvicted", "Newly evicted"),
    ("otherWords", "Other message"),
    ("otherCourse", "Same end, other way"),
)


def _ask(request: HttpRequest, **of: Any) -> Upgrade:
    return services.request_upgrade(name=request.POST.get("release", ""), gates=_gates(request), **of)


def _gates(request: HttpRequest) -> dict[str, bool]:
    """Gates as the release page posts them: `gate:NAME` is on or off, empty leaves it at its default."""
    return {
        name.removeprefix("gate:"): value == "on"
        for name, value in request.POST.items()
        if name.startswith("gate:") and value in ("on", "off")
    }


def _shown(request: HttpRequest, upgrade: Upgrade | None, of: Mapping[str, Any]) -> dict[str, Any]:
    now = of["cluster"].kubernetes_release if "cluster" in of else release_of(of["scenario"])
    others = [name for name in reversed(release_names()) if name != now]
    chosen = upgrade.after["name"] if upgrade is not None else ""
    context: dict[str, Any] = {
        "releases": release_names(),
        "chosen": chosen if chosen in others else others[0],
    }
    if upgrade is None:
        return context
    context |= {"before": title_of(upgrade.before), "after": title_of(upgrade.after)}
    found = upgrade_result(upgrade)
    if found is None:
        return context
    counts = found["counts"]
    test = found.get("test")
    return context | {
        "found": found,
        "figures": [(words, counts[kind]) for kind, words in FIGURES],
        "causes": [_cause(cause) for cause in found["causes"]],
        # JSON is YAML.
        "test": f"expect:\n- {json.dumps(test)}\n" if test else "",
        "command": _command(upgrade),
        "api": _api(upgrade),
    }


def _cause(cause: Mapping[str, Any]) -> dict[str, Any]:
    words = dict(FIGURES)
    differences = [{**one, "how": words[one["kind"]].lower()} for one in cause["differences"][:SHOWN]]
    return {**cause, "differences": differences}


def _command(upgrade: Upgrade) -> str:
    """What says the same elsewhere."""
    gates = ",".join(f"{name}={str(on).lower()}" for name, on in upgrade.after.get("switched", {}).items())
    switched = f" --feature-gates {gates}" if gates else ""
    names = f"--release {upgrade.before['name']} --release {upgrade.after['name']}"
    return f"python -m scheduler_core compare scenario.yaml {names}{switched}"


def _api(upgrade: Upgrade) -> str:
    if upgrade.cluster is not None:
        return reverse("api:cluster-upgrade", args=[upgrade.cluster.public_id])
    assert upgrade.scenario is not None
    return reverse("api:scenario-upgrade", args=[upgrade.scenario.public_id])


def _share(request: HttpRequest, upgrade: Upgrade) -> str:
    shared = services.share_upgrade(upgrade=upgrade, owner=site_user(request))
    return reverse("scenarios:upgrade", args=[shared.scenario.public_id])


def _branch(request: HttpRequest, upgrade: Upgrade) -> str:
    made = services.branch_of_upgrade(upgrade=upgrade, owner=site_user(request))
    messages.success(request, f"{made.name}: a new cluster; the steps of the old one wait under Share.")
    return reverse("web:board", args=[made.public_id])


WORK: Final = Work(
    name="upgrade",
    row="upgrade",
    refused="a preview wants a login",
    place={"tab": "config", "sub": "release"},
    ask=_ask,
    shown=_shown,
    acts={"share": _share, "branch": _branch},
)
of_cluster = WORK.of_cluster()
of_scenario = WORK.of_scenario()
