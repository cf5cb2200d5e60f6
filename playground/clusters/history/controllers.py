"""What controllers decided: their kept runs, what the newest say of nodes and pods, and the settings of programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from django.db.models import Max

from playground.clusters import kinds
from playground.clusters.choices import CycleOutcome
from playground.clusters.errors import found
from playground.clusters.log.rows import rows_of
from playground.clusters.models import Cluster, ControllerRecord, Cycle, LogEntry
from playground.clusters.objects.write import create_object, patch_object
from scheduler_core.autoscaler.cluster_state import DEFAULTS
from scheduler_core.clock import SECOND_NS
from scheduler_core.descheduler.settings import read_settings
from scheduler_core.errors import InvalidObject
from scheduler_core.karpenter.node_pools import read_node_pools
from scheduler_core.objects.duration import format_duration
from scheduler_core.scenario.watch import round_sizes
from scheduler_core.sim.changes import ControllerRun, Mention
from scheduler_core.sim.controllers.deployment import deployment_behind
from scheduler_core.sim.controllers.programs import NAMESPACE, given_from, read_vertical
from scheduler_core.sim.controllers.programs import PROGRAMS as READERS
from scheduler_core.sim.outlook import LOOKS, TAKES, Outlook, outlook_of, reason_words

SCALES_PODS: Final = "horizontal-pod-autoscaler"
PROGRAMS: Final[Mapping[str, str]] = {text.rpartition("/")[2]: text for text in READERS}
"""Program -> the annotation of kube-system that holds its settings."""
COMPONENTS: Final[Mapping[str, str]] = {
    **{name: name for name in PROGRAMS},
    "descheduler": "sigs.k8s.io/descheduler",
}
"""Program -> the controller of its runs."""
MOST_OF_A_LOOP: Final = 60
"""Acting runs that are looked at for a loop."""
MOST_READ: Final = 400
STILL_NS: Final = 60 * SECOND_NS
"""After a change it takes so long without another to be at rest."""


def controller_runs(
    cluster: Cluster, *, controller: str = "", about: str = "", before: int | None = None, limit: int = 50
) -> list[ControllerRecord]:
    """Runs, newest first. One query.

    Parameters
    ----------
    about
        ``Kind namespace/name``: only those that acted on it, or left it for a new reason.
    before
        Only those with a smaller id.
    """
    rows = ControllerRecord.objects.filter(cluster=cluster)
    if controller:
        rows = rows.filter(controller=controller)
    if about:
        rows = rows.filter(mentions__contains=f"\n{about}\n")
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return list(rows.order_by("-pk")[:limit])


def controller_run(cluster: Cluster, pk: int) -> ControllerRecord:
    """One run.

    Raises
    ------
    NotFound
    """
    row = ControllerRecord.objects.filter(cluster=cluster, pk=pk).first()
    return found(row, f"controller run {pk}", kind="ControllerRun", name=str(pk))


def said_of(record: ControllerRecord, about: str, began_ns: int) -> Iterator[str]:
    """What a run did with an object, then why it did no more."""
    run = record.run
    for act in run.did:
        if any(str(one) == about for one in act.about) or about.partition(" ")[2] in act.facts.get(
            "pods", ()
        ):
            yield str(act)
    facts = run.why_not.get(about)
    if facts is not None:
        yield reason_words(facts, began_ns)


class LoopStep(NamedTuple):
    """One step of a loop, in words that name pods by their workloads and nodes by their groups.

    Attributes
    ----------
    run, cycle
        The decision: the id of a run, or of the scheduler the number of its first cycle.
    """

    controller: str
    what: str
    run: int | None = None
    cycle: int | None = None


@dataclass(frozen=True, slots=True)
class KeptLoop:
    """A loop in the kept runs."""

    period_ns: int
    steps: Sequence[LoopStep]
    objects: Sequence[str]


@dataclass(frozen=True, slots=True)
class ControllersNow:
    """What is on, what was decided, and what comes of it.

    Attributes
    ----------
    settings
        Program -> its settings as they are written; only those that are on.
    runs
        The newest kept runs, oldest first.
    sentence
        Whether they are at rest.
    """

    settings: Mapping[str, str]
    runs: Sequence[ControllerRun]
    outlook: Outlook
    state: str
    sentence: str
    circle: KeptLoop | None = None


def program_settings(cluster: Cluster) -> dict[str, str]:
    """Programs that are on, with their settings. One query."""
    row = rows_of(cluster, kinds.named("Namespace")).filter(name=NAMESPACE).first()
    annotations = {} if row is None else row.manifest["metadata"].get("annotations") or {}
    return {name: annotations[key] for name, key in PROGRAMS.items() if key in annotations}


def program_words(program: str, text: str) -> str:
    """The main settings of a program, as its expander and groups; empty where they cannot be read."""
    try:
        if program == "cluster-autoscaler":
            given = given_from(text)
            expander = given.options.get("expander", DEFAULTS["expander"])
            return (
                f"{expander}, {len(given.groups)} groups" if given.groups else f"{expander}, groups guessed"
            )
        if program == "karpenter":
            return f"{len(read_node_pools(text))} NodePools"
        if program == "vertical-pod-autoscaler":
            return f"{len(read_vertical(text).targets)} workloads"
        settings = read_settings(text)
    except InvalidObject:
        return ""
    enabled = [
        name
        for profile in settings.policy.get("profiles") or ()
        for point in (profile.get("plugins") or {}).values()
        for name in point.get("enabled") or ()
    ]
    return ", ".join(dict.fromkeys(enabled)) + (", dry run" if settings.dry_run else "")


def set_program(cluster: Cluster, program: str, text: str) -> None:
    """Turn a program on with these settings, or off with none, by its annotation of kube-system.

    Raises
    ------
    InvalidManifest
        The settings cannot be used; names the place and value.
    """
    kind, annotations = kinds.named("Namespace"), {PROGRAMS[program]: text or None}
    if rows_of(cluster, kind).filter(name=NAMESPACE).exists():
        patch = {"metadata": {"annotations": annotations}}
        patch_object(cluster=cluster, kind=kind, namespace="", name=NAMESPACE, patch=patch)
    elif text:
        meta = {"name": NAMESPACE, "annotations": annotations}
        create_object(cluster=cluster, manifest={"apiVersion": "v1", "kind": "Namespace", "metadata": meta})


def controllers_now(cluster: Cluster) -> ControllersNow:
    """Three queries, five where there is a loop."""
    settings = program_settings(cluster)
    rows = ControllerRecord.objects.filter(cluster=cluster)
    newest = rows.values("controller", "subject").annotate(newest=Max("pk")).values_list("newest", flat=True)
    kept = {row.pk: row for row in rows.order_by("-pk")[:MOST_READ]}
    kept |= {row.pk: row for row in rows.filter(pk__in=[pk for pk in newest if pk not in kept])}
    off = {COMPONENTS[name] for name in PROGRAMS if name not in settings}
    by_key = {pk: kept[pk].run for pk in sorted(kept)}
    runs = [*by_key.values()]
    outlook = outlook_of([run for run in runs if run.controller not in off], cluster.start_ns)
    circle = _circle(cluster, by_key) if settings else None
    if circle is not None:
        by = list(
            dict.fromkeys(f"the {step.controller.rpartition('/')[2]}" for step in circle.steps if step.run)
        )
        verb = "undo each other" if len(by) > 1 else "undoes its own work"
        sentence = (
            f"A loop: {' and '.join(by)} {verb} every {format_duration(circle.period_ns)};"
            f" {', '.join(circle.objects)} go round."
        )
        return ControllersNow(settings, runs, outlook, "loop", sentence, circle)
    state, sentence = _state(cluster, settings, runs, outlook)
    return ControllersNow(settings, runs, outlook, state, sentence)


def _circle(cluster: Cluster, by_key: Mapping[int, ControllerRun]) -> KeptLoop | None:
    """The last acts, where they came twice in the same order and with nothing added or taken away in the end."""
    runs = [*by_key.values()]
    acted = {pk: run for pk, run in by_key.items() if any(act.effect != LOOKS for act in run.did)}
    keys = [*acted][-MOST_OF_A_LOOP:]
    acting = [acted[pk] for pk in keys]
    names = _owners(
        cluster, {one.key for run in acting for act in run.did for one in act.about if one.kind == "Pod"}
    )
    nodes = {name: group for run in runs for name, group in _groups_of(run)}

    def named(one: Mention) -> str:
        if one.kind == "Pod":
            return f"a pod of {names[one.key]}" if one.key in names else str(one)
        return f"a node of {nodes[one.key]}" if one.kind == "Node" and nodes.get(one.key) else str(one)

    moments = [
        (
            run.controller,
            run.subject,
            tuple(sorted(act.told(named) for act in run.did if act.effect != LOOKS)),
        )
        for run in acting
    ]
    size = next((size for size in round_sizes(moments) if _comes_back(acting[-size:])), 0)
    if not size:
        return None
    before, last = acting[-1 - size], acting[-size:]
    objects = {named(one) for run in last for act in run.did for one in act.about}
    cycles = _cycles_between(cluster, before.at_ns, last[-1].at_ns)
    names |= _owners(cluster, {cycle.pod for cycle in cycles} - names.keys())
    steps, ends = list[LoopStep](), [*(run.at_ns for run in last[1:]), 0]
    for pk, run, (_, _, texts), end_ns in zip(keys[-size:], last, moments[-size:], ends, strict=True):
        steps.append(LoopStep(run.controller, "; ".join(_counted(texts)), run=pk))
        # What follows the last run was seen in the round before.
        spans = (run.at_ns, end_ns) if end_ns else (before.at_ns, last[0].at_ns)
        mine = [cycle for cycle in cycles if spans[0] <= cycle.at_ns < spans[1]]
        steps += _placed(mine, named)
    return KeptLoop(last[-1].at_ns - before.at_ns, steps, sorted(objects))


def _cycles_between(cluster: Cluster, from_ns: int, to_ns: int) -> list[Cycle]:
    """Cycles of one round that found a node, or none. One query."""
    rows = Cycle.objects.filter(cluster=cluster, at_ns__gte=from_ns, at_ns__lt=to_ns).defer("trace")
    rows = rows.filter(outcome__in=(CycleOutcome.BOUND, CycleOutcome.UNSCHEDULABLE))
    return list(rows.order_by("number")[:MOST_READ])


def _placed(cycles: Sequence[Cycle], named: Callable[[Mention], str]) -> Iterator[LoopStep]:
    """What the scheduler did between two runs, equal cycles after one another together."""

    def words(cycle: Cycle) -> str:
        pod = named(Mention("Pod", cycle.pod))
        return (
            f"places {pod} on {named(Mention('Node', cycle.node))}"
            if cycle.node
            else f"finds no node for {pod}"
        )

    for _, some in groupby(cycles, words):
        alike = list(some)
        (text,) = _counted([words(cycle) for cycle in alike])
        yield LoopStep("scheduler", text, cycle=alike[0].number)


def _comes_back(runs: Sequence[ControllerRun]) -> bool:
    """Whether what a round took away and what it added are the same, so that it ends where it began."""
    sums: Counter[str] = Counter()
    for run in runs:
        for act in run.did:
            sums[str(act.facts.get("group", ""))] += int(act.facts.get("delta", 0))
    return not any(sums.values()) and any(act.effect == TAKES for run in runs for act in run.did)


def _counted(texts: Sequence[str]) -> Iterator[str]:
    for text, number in Counter(texts).items():
        yield text if number == 1 else f"{number} times: {text}"


def _groups_of(run: ControllerRun) -> Iterator[tuple[str, str]]:
    for name, facts in run.why_not.items():
        kind, _, node = name.partition(" ")
        if kind == "Node" and facts.get("group"):
            yield node, str(facts["group"])


def _owners(cluster: Cluster, pods: Collection[str]) -> dict[str, str]:
    """Pods, gone ones among them -> their workloads. One query."""
    found: dict[str, str] = {}
    wanted = [key.partition("/")[2] for key in sorted(pods)]
    rows = LogEntry.objects.filter(cluster=cluster, object_kind="Pod", object_name__in=wanted, created=True)
    for namespace, name, payload in rows.values_list("object_namespace", "object_name", "payload"):
        owner = next(iter(payload["manifest"]["metadata"].get("ownerReferences") or ()), None)
        if owner is not None:
            labels = payload["manifest"]["metadata"].get("labels") or {}
            kind, own = deployment_behind(owner["kind"], owner["name"], labels)
            found[f"{namespace}/{name}"] = f"{kind} {namespace}/{own}"
    return found


def _state(
    cluster: Cluster, settings: Mapping[str, str], runs: Sequence[ControllerRun], outlook: Outlook
) -> tuple[str, str]:
    """``off``, ``waiting``, ``changing`` or ``rest``, and the sentence of it."""
    if not settings and not runs:
        return "off", "No controller beside the scheduler is on."
    if not runs:
        return (
            "waiting",
            "No controller has run yet. Let virtual time pass: a program starts 10 s after it is on.",
        )
    acted = [run for run in runs if any(act.effect != LOOKS for act in run.did)]
    now = format_duration(cluster.now_ns - cluster.start_ns)
    going = [one for one in outlook.nodes if one.goes]
    if going:
        nodes = f"{len(going):,} node{' goes' if len(going) == 1 else 's go'}"
        return "changing", f"Still changing after {now}: {nodes} if nothing else changes."
    if not acted:
        return "rest", f"At rest: no controller changed anything in {now}."
    last_ns = acted[-1].at_ns
    at = format_duration(last_ns - cluster.start_ns)
    if cluster.now_ns - last_ns < STILL_NS:
        return "changing", f"Still changing after {now}: the last change was at {at}, and no loop is found."
    return "rest", f"At rest since {at} of virtual time: no controller wants a change."
