"""The formal model checked on every cycle of a cluster or a share: asked for here, answered by a worker."""

from __future__ import annotations

import time
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.utils import timezone

from playground.clusters.errors import ClusterError, Conflict
from playground.clusters.models import Cluster
from playground.engine.model import check_document
from playground.engine.scenarios import RunStopped, ScenarioProblem
from playground.scenarios import wake
from playground.scenarios.models import ModelCheck, Scenario
from playground.scenarios.services.forking import make_text
from playground.scenarios.services.recording import packed, unpacked
from scheduler_core.version import ENGINE_VERSION

KEPT: Final = 10
"""Checks of one cluster."""


def request_model_check(*, cluster: Cluster | None = None, scenario: Scenario | None = None) -> ModelCheck:
    """Ask what the model says of all cycles so far, or find it asked already (of this very engine).

    Raises
    ------
    Conflict
        No cycle was run.
    """
    if cluster is not None:
        last = cluster.next_cycle - 1
        whose: dict[str, Any] = {"cluster": cluster, "generation": cluster.generation, "cycle": last}
    else:
        assert scenario is not None
        last = scenario.n_cycles
        whose = {"scenario": scenario}
    if not last:
        raise Conflict("no cycle was run yet, so there is nothing to check", kind="ModelCheck")
    found = ModelCheck.objects.filter(**whose).first()
    if found is not None and (
        found.state in (ModelCheck.State.FAILED, ModelCheck.State.CANCELLED)
        or found.engine_version != ENGINE_VERSION
    ):
        found.delete()
        found = None
    if found is None:
        try:
            with transaction.atomic():
                found = ModelCheck.objects.create(**{"cycle": last, **whose}, engine_version=ENGINE_VERSION)
                wake.on_commit(wake.MODEL, check_id=found.pk)
        except IntegrityError:  # asked for twice at this moment
            found = ModelCheck.objects.get(**whose)
        if cluster is not None:
            _forget_old(cluster)
    return found


def _forget_old(cluster: Cluster) -> None:
    rows = ModelCheck.objects.filter(cluster=cluster).exclude(state__in=ModelCheck.OPEN)
    last = rows.order_by("-pk").values_list("pk", flat=True)[KEPT : KEPT + 1].first()
    if last is not None:
        rows.filter(pk__lte=last).delete()


def check_model_now(*, check_id: int) -> None:
    """Check and keep what was found. Twice is once."""
    rows = ModelCheck.objects.filter(pk=check_id, state__in=ModelCheck.OPEN)
    if not rows.update(state=ModelCheck.State.RUNNING, touched=timezone.now()):
        return
    check = rows.select_related("cluster", "scenario").get()
    began = time.monotonic()
    try:
        result = check_document(_document_of(check))
    except (ClusterError, ScenarioProblem, RunStopped) as error:
        rows.update(state=ModelCheck.State.FAILED, problem=str(error)[:1000], touched=timezone.now())
        return
    rows.update(
        state=ModelCheck.State.DONE,
        result=packed(result),
        took_ms=round(1000 * (time.monotonic() - began)),
        touched=timezone.now(),
    )


def _document_of(check: ModelCheck) -> str | bytes:
    """What is run: the share, or the cluster as a scenario."""
    if check.scenario is not None:
        return bytes(check.scenario.document)
    assert check.cluster is not None
    return make_text(cluster=check.cluster, cycle=check.cycle).text


def model_result(check: ModelCheck) -> dict[str, Any] | None:
    """What was found (`engine.model.check_document`); None while there is nothing yet."""
    found: dict[str, Any] | None = unpacked(check.result) if check.result else None
    return found
