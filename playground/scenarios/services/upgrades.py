"""What an upgrade would change: asked for here, run by a worker in a process that can be ended."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from django.db import transaction

from playground.clusters.errors import ClusterError, Conflict
from playground.clusters.models import Cluster
from playground.clusters.services.config import checked_release
from playground.engine import engine_version
from playground.engine.scenarios import RunStopped, ScenarioProblem, opening_of
from playground.engine.upgrades import upgrade_document
from playground.scenarios import wake
from playground.scenarios.models import Scenario, Upgrade
from playground.scenarios.services.forking import make_text
from playground.scenarios.services.recording import packed, unpacked

KEPT: Final = 10
"""Previews of one cluster or share."""


def request_upgrade(
    *,
    name: str,
    gates: Mapping[str, bool] | None = None,
    cluster: Cluster | None = None,
    scenario: Scenario | None = None,
) -> Upgrade:
    """Ask what another release, or a switched gate, would decide otherwise. One is open at a time.

    Raises
    ------
    InvalidInput
        There is no such release, or a gate cannot be switched so.
    Conflict
        Nothing was decided yet, another preview is open, or it is the release that is followed already.
    """
    after = checked_release(name, gates)
    if cluster is not None:
        whose: dict[str, Any] = {"cluster": cluster, "generation": cluster.generation}
        last, before = cluster.next_cycle - 1, cluster.release
    else:
        assert scenario is not None
        whose, last = {"scenario": scenario}, scenario.n_cycles
        opened = opening_of(bytes(scenario.document)).release
        before = {"name": opened["name"], "switched": opened.get("switched", {})}
    if not last:
        raise Conflict("no cycle was run yet, so there is nothing to decide again", kind="Upgrade")
    if after == before:
        raise Conflict("that is what is followed already: choose another release or gate", kind="Upgrade")
    rows = Upgrade.objects.filter(**whose)
    if rows.filter(state__in=Upgrade.OPEN).exists():
        raise Conflict("a preview is under way; cancel it, or wait for it", kind="Upgrade")
    old = list(rows.order_by("-pk").values_list("pk", flat=True)[KEPT - 1 :])
    with transaction.atomic():
        Upgrade.objects.filter(pk__in=old).delete()
        found = Upgrade.objects.create(
            **whose, cycle=last, before=before, after=after, engine_version=engine_version()
        )
        wake.on_commit(wake.UPGRADE, upgrade_id=found.pk)
    return found


def cancel_upgrade(*, upgrade: Upgrade) -> None:
    """It is not wanted any more; a worker that is at it stops within a second. Twice is once."""
    Upgrade.objects.filter(pk=upgrade.pk, state__in=Upgrade.OPEN).update(
        state=Upgrade.State.CANCELLED, problem="Cancelled.", step=""
    )


def preview_upgrade_now(*, upgrade_id: int) -> None:
    """Run it and keep what was found. Twice is once: only an open one is written."""
    rows = Upgrade.objects.filter(pk=upgrade_id, state__in=Upgrade.OPEN)
    if not rows.update(state=Upgrade.State.RUNNING, step="making the run again"):
        return
    upgrade = rows.select_related("cluster", "scenario").get()
    began = time.monotonic()

    def told(step: str, share: float) -> bool:
        """Whether it is still wanted."""
        return bool(rows.update(step=step[:200], progress=share))

    try:
        result = upgrade_document(_document_of(upgrade), upgrade.before, upgrade.after, told=told)
    except (ClusterError, ScenarioProblem, RunStopped) as error:
        rows.update(state=Upgrade.State.FAILED, problem=str(error)[:1000], step="")
        return
    rows.update(
        state=Upgrade.State.DONE,
        result=packed(result),
        progress=1.0,
        step="",
        took_ms=round(1000 * (time.monotonic() - began)),
    )


def _document_of(upgrade: Upgrade) -> str | bytes:
    """What is run: the share, or the cluster as a scenario."""
    if upgrade.scenario is not None:
        return bytes(upgrade.scenario.document)
    assert upgrade.cluster is not None
    return make_text(cluster=upgrade.cluster, cycle=upgrade.cycle).text


def upgrade_result(upgrade: Upgrade) -> dict[str, Any] | None:
    """What was found (`engine.upgrades.upgrade_document`); None while there is nothing yet."""
    found: dict[str, Any] | None = unpacked(upgrade.result) if upgrade.result else None
    return found
