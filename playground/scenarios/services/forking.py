"""A share becomes a cluster to work on, and a cluster becomes a share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from django.db import transaction
from django.utils.text import slugify

from playground.clusters import kinds
from playground.clusters.custom_kinds import table_of
from playground.clusters.drive.config import set_assumed_expiry, set_config, set_release
from playground.clusters.drive.runs import decide_permit, parse_duration_ns, request_run
from playground.clusters.errors import Conflict, InvalidInput, NotFound
from playground.clusters.extenders.mock import mock_rules_throughout, serve_mock_extenders, with_extenders_at
from playground.clusters.foreign.following import begins_ns, followed_of, incident_of
from playground.clusters.history.cycles import get_cycle
from playground.clusters.history.undo import Undone
from playground.clusters.history.undo import undo as undo_cluster
from playground.clusters.lifecycle import create_cluster, note_opening
from playground.clusters.log.changes import one_change, written_by
from playground.clusters.log.changes import opening as begins
from playground.clusters.log.entries import entries_of, initial_config, initial_release
from playground.clusters.log.quotas import check_token
from playground.clusters.log.rows import rows_of
from playground.clusters.models import Cluster, Cycle, LogEntry, Pod
from playground.clusters.objects.actions import act_on_nodes
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.queries import get_object
from playground.clusters.objects.write import bind_pod, delete_object, replace_object, set_cordon
from playground.engine.entries import Cut, until
from playground.engine.extender_answers import extenders_of
from playground.engine.scenarios import MadeText, RunStopped, ScenarioError, Step, asked, opening_of
from playground.scenarios.models import Origin, Scenario
from playground.scenarios.services.errands import through_a_worker
from playground.scenarios.services.shares import Shared, as_error, share
from scheduler_core.incident.as_scenario import WhatIfSpan, scenario_of
from scheduler_core.objects.merge import merge_patch
from scheduler_core.releases import release_from
from scheduler_core.scenario.load import dump_scenario
from scheduler_core.scenario.make import make_scenario

TRACES_UP_TO: Final = 2000


def fork(
    *, scenario: Scenario, owner: Any = None, name: str = "", release: Mapping[str, Any] | None = None
) -> Cluster:
    """A new cluster that begins as the share does; its steps wait to be done one by one.

    With a release (as `Cluster.release` has it) it follows that one throughout: steps that change it are left out.
    Extenders made of rules become mock extenders of the cluster. Recorded answers stay behind: there the cluster's
    scheduler asks the extender itself.

    Raises
    ------
    InvalidManifest
        An object the playground's API server does not take.
    """
    try:
        opening = opening_of(bytes(scenario.document))
    except ScenarioError as problem:
        raise as_error(problem) from None
    begins_as = opening.scenario
    follows: Mapping[str, Any] = release or begins_as.release.document()
    steps = [step for step in opening.steps if release is None or step.verb != "upgrade"]
    with transaction.atomic(), begins():
        cluster = create_cluster(
            name=(name or scenario.words)[:100],
            owner=owner,
            seed=begins_as.seed,
            config=begins_as.scheduler,
            kubernetes_release=follows["name"],
            feature_gates=follows.get("switched"),
            start_ns=begins_as.start_ns,
            parent_share=scenario.public_id,
        )
        urls = serve_mock_extenders(cluster=cluster, rules=opening.mock_rules)
        set_assumed_expiry(cluster=cluster, after_ns=begins_as.assumed_expiry_ns or 0)
        if begins_as.objects or begins_as.kept:
            apply_documents(cluster=cluster, objects=[*begins_as.objects, *begins_as.kept])
        cluster.refresh_from_db()
        note_opening(cluster)
        Origin.objects.create(
            cluster=cluster,
            scenario=scenario,
            scenario_id_kept=scenario.public_id,
            generation=cluster.generation,
            input_seq=cluster.last_input_seq,
            steps=[asdict(_at_home(step, urls)) for step in steps],
        )
    return cluster


def _at_home(step: Step, urls: Mapping[int, str]) -> Step:
    """A step that configures the scheduler, naming the cluster's own mock extenders."""
    if step.verb != "configure" or not urls:
        return step
    return replace(step, argument=with_extenders_at(step.argument, urls))


def do_next_step(*, cluster: Cluster) -> str:
    """Do the next step of the scenario the cluster was forked from; its words.

    Raises
    ------
    NotFound
        There is none, or what it is about does not exist.
    Conflict
        A run is still under way.
    ClusterError
        The cluster refuses it.
    """
    with transaction.atomic():
        origin = Origin.objects.select_for_update(of=("self",)).filter(cluster=cluster).first()
        if origin is None or origin.next_step >= len(origin.steps):
            raise NotFound("no step is left to be done", kind="Step")
        if cluster.runs.filter(state__in=["queued", "running"]).exists():
            raise Conflict("a run is under way; the next step comes after it", kind="Cluster")
        step = origin.steps[origin.next_step]
        untouched = origin.input_seq == cluster.last_input_seq
        kept = {"draft": {"step": origin.next_step, "input": origin.input_seq}}
        with one_change(step["words"], kept):
            _do(cluster, step["verb"], step["argument"])
        origin.next_step += 1
        cluster.refresh_from_db()
        if untouched:
            # What the scenario itself does is no change of it.
            origin.input_seq = cluster.last_input_seq
        origin.save(update_fields=["next_step", "input_seq"])
    return str(step["words"])


def _do(cluster: Cluster, verb: str, argument: Any) -> None:
    """Do a step; one that another scheduler decided stays his."""
    with written_by(str(argument.get("by") or "") if isinstance(argument, dict) else ""):
        _do_it(cluster, verb, argument)


def _do_it(cluster: Cluster, verb: str, argument: Any) -> None:
    match verb:
        case "apply":
            apply_documents(cluster=cluster, objects=argument)
        case "patch":
            before = _existing(cluster, argument)
            replace_object(cluster=cluster, manifest=merge_patch(before, argument["patch"]))
        case "delete":
            found = _existing(cluster, argument)
            delete_object(
                cluster=cluster,
                kind=_kind(argument["kind"]),
                namespace=found["metadata"].get("namespace", ""),
                name=argument["name"],
                grace_s=argument.get("gracePeriodSeconds"),
            )
        case "cordon" | "uncordon":
            set_cordon(cluster=cluster, node=argument, unschedulable=verb == "cordon")
        case "drain":
            act_on_nodes(cluster=cluster, action="drain", nodes=[argument])
        case "allow" | "reject":
            namespace, _, name = argument["pod"].partition("/")
            decide_permit(
                cluster=cluster,
                namespace=namespace,
                name=name,
                decision=verb,
                plugin=argument.get("plugin"),
                reason=argument.get("reason", ""),
            )
        case "advance" | "run":
            until = argument["by"] if verb == "advance" else argument.get("until", "idle")
            request_run(cluster=cluster, until=until, max_cycles=argument.get("cycles") or 100_000)
        case "bind":
            namespace, _, name = argument["pod"].partition("/")
            if not _bound_already(cluster, namespace, name, argument["node"]):
                bind_pod(cluster=cluster, namespace=namespace, name=name, node=argument["node"])
        case "durationToExpireAssumedPod":
            set_assumed_expiry(cluster=cluster, after_ns=parse_duration_ns(argument))
        case "configure":
            set_config(cluster=cluster, config=argument)
        case "upgrade":
            release, gates = argument["kubernetesRelease"], argument.get("featureGates")
            set_release(cluster=cluster, name=release, gates=gates)


def _bound_already(cluster: Cluster, namespace: str, name: str, node: str) -> bool:
    """Whether the cluster's own mock extender did it when it was asked, as the one did whose Binding the step is."""
    return Pod.objects.filter(cluster=cluster, namespace=namespace, name=name, node_name=node).exists()


def _existing(cluster: Cluster, ref: Mapping[str, Any]) -> dict[str, Any]:
    kind = _kind(ref["kind"])
    namespace = (ref.get("namespace") or "default") if kind.namespaced else ""
    return get_object(cluster, kind, namespace, ref["name"])


def _kind(name: str) -> kinds.Kind:
    kind = kinds.by_kind(name)
    if kind is None:
        raise InvalidInput(f"{name} is no kind of this playground", field="kind", value=name)
    return kind


def make_text(
    *,
    cluster: Cluster,
    cycle: int | None = None,
    redact: bool = False,
    title: str = "",
    ours_decide: bool = False,
    span: tuple[int, int] | None = None,
    what_if: WhatIfSpan | None = None,
    test: bool = False,
) -> MadeText:
    """The scenario of a cluster: how it began and what people did to it, up to now or up to a cycle.

    What the engine has decided goes along, of up to `TRACES_UP_TO` cycles; it is what a proof is held to.

    Parameters
    ----------
    ours_decide
        What other schedulers decided is left out and their pods ask for ours; else it goes along as recorded.
    span
        From when to when, in nanoseconds, of a cluster that follows a live one; None is all that is kept.
    what_if
        What is otherwise in it than it was.
    test
        It expects where each pod ends, as a run of it does.

    Raises
    ------
    NotFound
        There was no such cycle.
    InvalidManifest
    """
    if cluster.is_followed:
        made = _named(_of_live(cluster, span, title, ours_decide, what_if), cluster, redact, title)
        return _through(cluster, "test", made) if test else made
    log = LogEntry.objects.filter(cluster=cluster).exclude(source=LogEntry.Source.KEPT)
    cycles = Cycle.objects.filter(cluster=cluster).order_by("number")
    cut = None
    if cycle is not None:
        cut = _cut(cluster, cycle)
        cycles = cycles.filter(number__lte=cycle)
    is_told = not ours_decide and cycles.count() <= TRACES_UP_TO
    decided = list(cycles.defer("trace").iterator(500)) if is_told else []
    rules, others = mock_rules_throughout(cluster, _configs(cluster))
    try:
        found = make_scenario(
            until(entries_of(log), cut),
            name=slugify(cluster.name) or "cluster",
            title=title or cluster.name,
            seed=cluster.seed,
            start_ns=cluster.start_ns,
            config=initial_config(cluster),
            release=release_from(initial_release(cluster)),
            traces=decided,
            mock=extenders_of(rules),
            ours_decide=ours_decide,
            kept=_kept_objects(cluster),
        )
        made = MadeText(dump_scenario(found.scenario), found.notes)
    except ScenarioError as problem:
        raise as_error(problem) from None
    made = _named(made, cluster, redact, title)
    if others:
        words = ", ".join(str(place) for place in others)
        said = f"extender {words} was another one at times: what it answered goes along, not its rules"
        made = MadeText(made.text, (*made.notes, said))
    return made


def _named(made: MadeText, cluster: Cluster, redact: bool, title: str) -> MadeText:
    """With its names, or without them."""
    if not redact:
        return made
    # The title of a cluster is a name too: only one that was chosen for this goes along.
    return _through(cluster, "redact", made, title="" if title == cluster.name else title)


def _through(cluster: Cluster, do: str, made: MadeText, **how: Any) -> MadeText:
    """What a process that runs a scenario makes of it."""
    try:
        return asked(do, made.text, MadeText, ask=through_a_worker(owner=cluster.owner), **how)
    except ScenarioError as problem:
        raise as_error(problem) from None
    except RunStopped as stopped:
        words = "the names could not be taken out" if do == "redact" else "it could not be run"
        raise Conflict(f"{words}: {stopped}", kind="Cluster") from None


_NUMBERS: Final = {"more_n": (1, 100), "weight": (0, 100), "priority": (-(2**31), 10**9)}


def what_if_of(asked: Mapping[str, Any]) -> tuple[str, WhatIfSpan]:
    """What is to be otherwise in a span, in words and as it is.

    Parameters
    ----------
    asked
        `more_like` (a node) and `more_n`, `weight_of` (a score plugin) and `weight`, `priority_of` (a pod or workload,
        ``namespace/name``) and `priority`; numbers may be text.

    Raises
    ------
    InvalidInput
    """
    numbers = {}
    for name, (low, high) in _NUMBERS.items():
        text = str(asked.get(name) if asked.get(name) not in (None, "") else 1).strip()
        if not text.removeprefix("-").isdecimal() or not low <= int(text) <= high:
            raise InvalidInput(f"is no whole number from {low:,} to {high:,}", field=name, value=text)
        numbers[name] = int(text)
    n_more, weight, priority = numbers.values()
    like, plugin, pods = (
        str(asked.get(name) or "").strip() for name in ("more_like", "weight_of", "priority_of")
    )
    words = [f"{n_more} more like {like}"] if like else []
    words += [f"{plugin} with a weight of {weight}"] if plugin else []
    words += [f"{pods} with priority {priority:,}"] if pods else []
    if not words:
        raise InvalidInput("name a node, a score plugin or a workload", field="more_like")
    named = pods if "/" in pods or not pods else f"default/{pods}"
    what_if = WhatIfSpan(
        like, n_more if like else 0, {plugin: weight} if plugin else {}, {named: priority} if named else {}
    )
    return ", ".join(words), what_if


def _of_live(
    cluster: Cluster, span: tuple[int, int] | None, title: str, ours_decide: bool, what_if: WhatIfSpan | None
) -> MadeText:
    """A span of a live cluster: its objects at the beginning, the changes, and decisions as recorded or ours."""
    from_ns, to_ns = span or (begins_ns(cluster, followed_of(cluster)), cluster.now_ns + 1)
    try:
        scenario = scenario_of(
            incident_of(cluster, from_ns, to_ns),
            release=release_from(cluster.release),
            config=cluster.config,
            recorded=not ours_decide,
            from_ns=from_ns,
            to_ns=to_ns,
            what_if=what_if,
        )
    except ScenarioError as problem:
        raise as_error(problem) from None
    return MadeText(dump_scenario(replace(scenario, title=title or cluster.name)), ())


def _configs(cluster: Cluster) -> Iterator[Any]:
    """Every configuration the cluster had, the first one first."""
    yield initial_config(cluster)
    log = LogEntry.objects.filter(cluster=cluster, kind=LogEntry.Kind.CONFIG).order_by("seq")
    for payload in log.values_list("payload", flat=True):
        yield payload["document"]


def _kept_objects(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """What shapes no placement, but for Events, which tell of a moment."""
    for kind in sorted(table_of(cluster).kinds, key=lambda item: item.apply_rank):
        if kind.interpreted or kind.row_kind == "Event":
            continue
        rows = rows_of(cluster, kind).order_by("resource_version")
        yield from rows.values_list("manifest", flat=True).iterator(chunk_size=500)


def _cut(cluster: Cluster, number: int) -> Cut:
    cycle = get_cycle(cluster, number)
    n_cycles = cluster.cycles.filter(ran_seq=cycle.ran_seq, number__lte=number).count()
    return Cut(cycle.ran_seq, n_cycles, cycle.at_ns)


def make_from_cluster(
    *, cluster: Cluster, made: MadeText | None = None, owner: Any = None, cycle: int | None = None, **how: Any
) -> Shared:
    """Share a cluster: its scenario, with the lineage of what it was forked from.

    Parameters
    ----------
    made
        The scenario (`make_text`); None is made up to now, or up to the cycle.
    how
        Who sees it, until when and with which words: as `share` takes them.

    Raises
    ------
    InvalidManifest, InvalidInput, TooLarge
    """
    check_token(owner)
    made = made or make_text(cluster=cluster, cycle=cycle)
    origin = Origin.objects.filter(cluster=cluster).select_related("scenario").first()
    parent = origin.scenario if origin else None
    shared = share(document=made.text, owner=owner, parent=parent, **how)
    if cycle is None and not cluster.is_followed:
        steps = {"steps": origin.steps, "next_step": origin.next_step} if origin else {}
        Origin.objects.update_or_create(
            cluster=cluster,
            defaults={
                "scenario": shared.scenario,
                "scenario_id_kept": shared.scenario.public_id,
                "shared": True,
                "generation": cluster.generation,
                "input_seq": cluster.last_input_seq,
                **steps,
            },
        )
    return replace(shared, notes=(*shared.notes, *made.notes))


def undo(*, cluster: Cluster, seq: int | None = None) -> Undone:
    """As `clusters.history.undo`; a step of a scenario that is undone is still to be done.

    Raises
    ------
    Conflict
    """
    with transaction.atomic():
        undone = undo_cluster(cluster=cluster, seq=seq)
        origin = Origin.objects.select_for_update(of=("self",)).filter(cluster=cluster).first()
        if origin is not None:
            kept = undone.more.get("draft")
            if kept is not None:
                origin.next_step, origin.input_seq = kept["step"], kept["input"]
            if origin.generation == cluster.generation - 1:
                origin.generation = cluster.generation
                if origin.input_seq == undone.before_seq:  # it is again what was shared
                    origin.input_seq = undone.after_seq
            origin.save(update_fields=["next_step", "input_seq", "generation"])
    return undone
