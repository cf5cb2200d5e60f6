"""Time travel: what a cluster or a scenario's run looked like after any of its cycles, and branching off there.

States are decided again (from the nearest checkpoint of a cluster, from the start of a scenario) in a task, a
window of neighbours at once, and cached.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.db import transaction
from django.db.models import Q

from playground.clusters import wake
from playground.clusters.custom_kinds import DEFINITION, built_in_of, with_definitions
from playground.clusters.drive.advance import nearest
from playground.clusters.errors import Conflict, NotFound
from playground.clusters.extenders.mock import mock_rules_of, serve_mock_extenders
from playground.clusters.history.cycles import get_cycle
from playground.clusters.lifecycle import begin, create_cluster
from playground.clusters.log.entries import initial_config, initial_release, recorded, stretch
from playground.clusters.log.housekeeping import check_past_is_there
from playground.clusters.models import Cluster, Cycle, LogEntry, Node, Pod
from playground.clusters.objects.apply import apply_documents, in_order
from playground.engine.batch import collector_paused
from playground.engine.moments import StateReader, replay_moments
from playground.engine.scenarios import RunStopped, ScenarioError, opening_of, run_fresh, states_of
from playground.scenarios.models import Moment, Scenario
from playground.scenarios.services import forking
from playground.scenarios.services.errands import through_a_worker
from playground.scenarios.services.recording import keep_moments, moment_row
from scheduler_core.objects.reading import Posted

WINDOW: Final = 25
WINDOW_OBJECTS: Final = 500
LARGE_WINDOW: Final = 4
WHOLE_RUN_CELLS: Final = 200_000
KEPT_OF_CLUSTER: Final = 2000
DIFFERS: Final = (
    "The engine of today decides this stretch differently than it was recorded, so it cannot be shown."
)


def request_moment(*, cycle: int, cluster: Cluster | None = None, scenario: Scenario | None = None) -> None:
    """Ask a worker for the state after a cycle."""
    if cluster is not None:
        wake.send("moments", cluster_id=cluster.pk, cycle=cycle, generation=cluster.generation)
    elif scenario is not None:
        wake.send("moments", scenario_id=scenario.pk, cycle=cycle)


def compute_moments(
    *, cycle: int, cluster_id: int | None = None, scenario_id: int | None = None, generation: int = 0
) -> None:
    """Fill the cache around a cycle."""
    if cluster_id is not None:
        cluster = Cluster.objects.filter(pk=cluster_id, generation=generation).first()
        if cluster is not None:
            with collector_paused():
                cluster_moments(cluster, cycle)
    elif scenario_id is not None:
        scenario = Scenario.objects.filter(pk=scenario_id, state=Scenario.State.RECORDED).first()
        if scenario is not None:
            scenario_moments(scenario, cycle)


def cluster_moments(cluster: Cluster, cycle: int) -> None:
    """Replay a cluster's log around a cycle and keep the states found."""
    if Moment.objects.filter(cluster=cluster, generation=cluster.generation, cycle=cycle).exists():
        return
    numbers = Cycle.objects.filter(cluster=cluster)
    n_objects = Node.objects.filter(cluster=cluster).count() + Pod.objects.filter(cluster=cluster).count()
    around = WINDOW if n_objects <= WINDOW_OBJECTS else 0
    wanted = dict(
        numbers.filter(number__gte=cycle - around, number__lte=cycle + around).values_list(
            "number", "ran_seq"
        )
    )
    if cycle not in wanted:
        return
    first, last = min(wanted), max(wanted)
    # The batch of the first one must be replayed whole, so the checkpoint has to lie before it.
    engine, engine_seq = nearest(cluster, wanted[first] - 1)
    try:
        entries = stretch(cluster, engine, engine_seq, wanted[last])
        found = replay_moments(engine, entries, first, last, recorded=recorded(cluster))
    except ValueError:
        found = {}
    rows = [
        moment_row(number, state, cluster=cluster, generation=cluster.generation)
        for number, state in found.items()
    ]
    if cycle not in found:
        rows.append(Moment(cluster=cluster, generation=cluster.generation, cycle=cycle, note=DIFFERS))
    Moment.objects.bulk_create(rows, ignore_conflicts=True, batch_size=200)
    kept = Moment.objects.filter(cluster=cluster).order_by("-pk")
    oldest = kept.values_list("pk", flat=True)[KEPT_OF_CLUSTER : KEPT_OF_CLUSTER + 1].first()
    Moment.objects.filter(cluster=cluster).filter(
        ~Q(generation=cluster.generation) | Q(pk__lte=oldest or 0)
    ).delete()


def scenario_moments(scenario: Scenario, cycle: int) -> None:
    """Run a scenario again and keep the states around a cycle; after all cycles if they are few and small."""
    if Moment.objects.filter(scenario=scenario, cycle=cycle).exclude(data=None).exists():
        return
    n_objects = scenario.n_nodes + scenario.n_pods
    first, last = 1, scenario.n_cycles
    if last * n_objects > WHOLE_RUN_CELLS:
        around = WINDOW if n_objects <= WINDOW_OBJECTS else LARGE_WINDOW
        first, last = max(1, cycle - around), min(last, cycle + around)
    try:
        states = states_of(bytes(scenario.document), first, last)
    except (ScenarioError, RunStopped) as error:
        Moment.objects.bulk_create(
            [Moment(scenario=scenario, cycle=cycle, note=str(error)[:300])], ignore_conflicts=True
        )
        return
    keep_moments(scenario=scenario, moments=states)


def cluster_now(cluster: Cluster) -> dict[str, Any]:
    """The state after the engine's last commit; not cached."""
    engine, engine_seq = nearest(cluster, cluster.engine_seq)
    simulation: Any = engine.simulation
    entries = stretch(cluster, engine, engine_seq, cluster.engine_seq)
    engine.replay(entries, recorded=recorded(cluster))
    return StateReader().read(simulation, with_figures=True)


def branch(
    *,
    cycle: int,
    cluster: Cluster | None = None,
    scenario: Scenario | None = None,
    name: str = "",
    owner: Any = None,
    edit: str = "",
) -> Cluster:
    """A new cluster with the objects as they were after a cycle, bound pods included; its own log begins there.

    Parameters
    ----------
    edit
        Manifests to apply to it before anything else happens, as YAML.

    Raises
    ------
    NotFound
        There was no such cycle.
    InvalidManifest
        The edit cannot be applied; there is no new cluster then.
    """
    # Of a share the moment is decided again by a worker: before the transaction, as that would hold up others.
    past = None if scenario is None else _past_of_scenario(scenario, cycle, owner)
    with transaction.atomic():
        made = _branch(cycle, cluster, scenario, past, name, owner)
        if edit.strip():
            apply_documents(cluster=made, text=edit, field_validation="Strict")
    made.refresh_from_db()
    return made


def fork(*, scenario: Scenario, owner: Any = None, name: str = "") -> Cluster:
    """A new cluster at the moment that the author of a share chose: without one at its beginning, all steps to do."""
    if scenario.opens_at is None:
        return forking.fork(scenario=scenario, owner=owner, name=name)
    return branch(scenario=scenario, cycle=scenario.opens_at, owner=owner, name=name or scenario.words[:100])


def _past_of_scenario(scenario: Scenario, cycle: int, owner: Any) -> Mapping[str, Any]:
    from playground.scenarios.services.shares import as_error

    if not 1 <= cycle <= scenario.n_cycles:
        raise NotFound(f"cycle {cycle} not found", kind="Cycle", name=str(cycle))
    try:
        run = run_fresh(
            bytes(scenario.document), objects_at=cycle, traces_up_to=0, ask=through_a_worker(owner=owner)
        )
    except ScenarioError as problem:
        raise as_error(problem) from None
    except RunStopped as stopped:
        raise Conflict(f"the moment could not be made: {stopped}", kind="Scenario") from None
    assert run.objects is not None
    return run.objects


def _branch(
    cycle: int,
    cluster: Cluster | None,
    scenario: Scenario | None,
    past: Mapping[str, Any] | None,
    name: str,
    owner: Any,
) -> Cluster:
    if cluster is not None:
        config, release, at_ns, manifests, read_seq = past_of(cluster, cycle)
        words, seed, expiry_ns = cluster.name, cluster.seed, cluster.assumed_expiry_ns
        rules: Mapping[int, Any] = mock_rules_of(cluster, config)
        origin: dict[str, Any] = {"parent": cluster, "parent_seq": read_seq, "parent_cycle": cycle}
    else:
        assert scenario is not None and past is not None
        begins = opening_of(bytes(scenario.document))
        config, release, at_ns, manifests = (
            past[key] for key in ("config", "release", "clock_ns", "manifests")
        )
        words, seed, expiry_ns = scenario.words, scenario.seed, begins.scenario.assumed_expiry_ns or 0
        rules = begins.mock_rules
        origin = {"parent_share": scenario.public_id, "parent_cycle": cycle}
    with transaction.atomic():
        branch = create_cluster(
            name=(name or f"{words[:80]} after {cycle}")[:100],
            owner=owner,
            seed=seed,
            config=config,
            kubernetes_release=release["name"],
            feature_gates=release.get("switched"),
            start_ns=at_ns,
            assumed_expiry_ns=expiry_ns,
            **origin,
        )
        serve_mock_extenders(cluster=branch, rules=rules)
        definitions = [item for item in manifests if item["kind"] == DEFINITION]
        table = with_definitions(built_in_of(release["name"]), definitions)
        ranked = ((table.by_key(item.get("apiVersion", ""), item["kind"]), item) for item in manifests)
        known = (
            (kind, Posted(manifest))
            for kind, manifest in ranked
            if kind is not None and kind.row_kind != "Event"
        )
        # What is owned before its owners, which would make it anew.
        begin(branch, ((kind, item.manifest) for kind, item in in_order(known)))
    return branch


def past_of(cluster: Cluster, number: int) -> tuple[Any, Any, int, list[dict[str, Any]], int]:
    """Configuration, release, clock, objects and newest input after a cycle: the fold of the log up to there."""
    cycle = get_cycle(cluster, number)
    check_past_is_there(cluster, cycle.ran_seq)
    log = LogEntry.objects.filter(cluster=cluster)
    engine = log.filter(source=LogEntry.Source.ENGINE)
    last = (
        engine.filter(cycle=number, at_ns__lte=cycle.at_ns, seq__lt=cycle.ran_seq)
        .order_by("-seq")
        .values_list("seq", flat=True)
        .first()
    ) or cycle.ran_seq
    ran = engine.filter(seq=cycle.ran_seq).values_list("payload", flat=True).first() or {}
    read = int(ran.get("read", last))
    config, release = initial_config(cluster), initial_release(cluster)
    objects: dict[tuple[str, str, str], dict[str, Any]] = {}
    past = log.filter(
        Q(source__in=(LogEntry.Source.ENGINE, LogEntry.Source.KEPT), seq__lte=last)
        | Q(source=LogEntry.Source.API, seq__lte=read)
    ).filter(kind__in=[LogEntry.Kind.WRITE, LogEntry.Kind.DELETE, LogEntry.Kind.CONFIG])
    for entry in past.order_by("seq").iterator(2000):
        key = (entry.object_kind, entry.object_namespace, entry.object_name)
        if entry.kind == LogEntry.Kind.CONFIG:
            config = entry.payload["document"]
            release = entry.payload.get("release") or release
        elif entry.kind == LogEntry.Kind.DELETE and entry.payload.get("gone", True):
            objects.pop(key, None)
        else:
            objects[key] = entry.payload["manifest"]
    return config, release, cycle.at_ns, list(objects.values()), read
