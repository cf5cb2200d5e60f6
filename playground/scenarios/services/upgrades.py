"""What an upgrade would change: asked for here, run by a worker in a process that can be ended."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from django.db import transaction

from playground.clusters.drive.config import checked_release
from playground.clusters.errors import ClusterError, Conflict
from playground.clusters.models import Cluster
from playground.engine.scenarios import RunStopped, ScenarioProblem, opening_of
from playground.engine.upgrades import upgrade_document
from playground.scenarios import wake
from playground.scenarios.models import Scenario, Upgrade
from playground.scenarios.services.forking import fork, make_text
from playground.scenarios.services.recording import packed, unpacked
from playground.scenarios.services.shares import Shared, as_error, share
from scheduler_core.version import ENGINE_VERSION

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
    InvalidManifest
        The scenario cannot be read here: a plugin it runs is not installed.
    Conflict
        Nothing was decided yet, another preview is open, or it is the release that is followed already.
    """
    after = checked_release(name, gates)
    if cluster is not None:
        whose: dict[str, Any] = {"cluster": cluster, "generation": cluster.generation}
        last = cluster.next_cycle - 1
        before = {"name": cluster.kubernetes_release, "switched": cluster.feature_gates}
    else:
        assert scenario is not None
        whose, last = {"scenario": scenario}, scenario.n_cycles
        try:
            opened = opening_of(bytes(scenario.document)).release
        except ScenarioProblem as problem:
            raise as_error(problem) from None
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
            **whose, cycle=last, before=before, after=after, engine_version=ENGINE_VERSION
        )
        wake.on_commit(wake.UPGRADE, upgrade_id=found.pk)
    return found


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


def share_upgrade(*, upgrade: Upgrade, owner: Any = None) -> Shared:
    """The answer as a page of its own: the cluster's run up to then as a share, with what was found of it.

    Raises
    ------
    Conflict
        There is no answer yet.
    InvalidManifest, QuotaExceeded
    """
    if upgrade.state != Upgrade.State.DONE:
        raise Conflict("there is no answer yet to share", kind="Upgrade")
    with transaction.atomic():
        shared = share(document=_document_of(upgrade), owner=owner)
        same = Upgrade.objects.filter(scenario=shared.scenario, before=upgrade.before, after=upgrade.after)
        if not same.filter(state=Upgrade.State.DONE).exists():
            Upgrade.objects.create(
                scenario=shared.scenario,
                cycle=upgrade.cycle,
                before=upgrade.before,
                after=upgrade.after,
                engine_version=upgrade.engine_version,
                state=upgrade.state,
                progress=upgrade.progress,
                took_ms=upgrade.took_ms,
                result=upgrade.result,
            )
    return shared


def branch_of_upgrade(*, upgrade: Upgrade, owner: Any = None) -> Cluster:
    """A cluster that begins as this run did, on the release that was previewed; its steps wait to be done.

    Raises
    ------
    Conflict
        There is no answer yet.
    ClusterError
    """
    with transaction.atomic():
        shared = share_upgrade(upgrade=upgrade, owner=owner)
        name = f"{shared.scenario.words[:80]} on {upgrade.after['name']}"
        return fork(scenario=shared.scenario, owner=owner, name=name, release=upgrade.after)
