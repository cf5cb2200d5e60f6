"""What controllers decided: their kept runs, what the newest say of nodes and pods, and the settings of programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Max

from playground.clusters import kinds
from playground.clusters.errors import found
from playground.clusters.log.rows import rows_of
from playground.clusters.models import Cluster, ControllerRecord, LogEntry
from playground.clusters.objects.write import create_object, patch_object
from scheduler_core.autoscaler.cluster_state import DEFAULTS
from scheduler_core.descheduler.settings import read_settings
from scheduler_core.errors import InvalidObject
from scheduler_core.karpenter.node_pools import read_node_pools
from scheduler_core.objects.duration import format_duration
from scheduler_core.scenario.loops import round_sizes
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


@dataclass(frozen=True, slots=True)
class KeptLoop:
    """A loop in the kept runs.

    Attributes
    ----------
    steps
        Controller, and what it did, in words that name pods by their workloads and nodes by their groups.
    """

    period_ns: int
    steps: Sequence[tuple[str, str]]
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
    """Three queries."""
    settings = program_settings(cluster)
    rows = ControllerRecord.objects.filter(cluster=cluster)
    newest = rows.values("controller", "subject").annotate(newest=Max("pk")).values_list("newest", flat=True)
    kept = {row.pk: row for row in rows.order_by("-pk")[:MOST_READ]}
    kept |= {row.pk: row for row in rows.filter(pk__in=[pk for pk in newest if pk not in kept])}
    off = {COMPONENTS[name] for name in PROGRAMS if name not in settings}
    runs = [kept[pk].run for pk in sorted(kept)]
    outlook = outlook_of([run for run in runs if run.controller not in off], cluster.start_ns)
    circle = _circle(cluster, runs) if settings else None
    if circle is not None:
        by = list(dict.fromkeys(f"the {controller.rpartition('/')[2]}" for controller, _ in circle.steps))
        verb = "undo each other" if len(by) > 1 else "undoes its own work"
        sentence = (
            f"A loop: {' and '.join(by)} {verb} every {format_duration(circle.period_ns)};"
            f" {', '.join(circle.objects)} go round."
        )
        return ControllersNow(settings, runs, outlook, "loop", sentence, circle)
    state, sentence = _state(cluster, settings, runs, outlook)
    return ControllersNow(settings, runs, outlook, state, sentence)


def _circle(cluster: Cluster, runs: Sequence[ControllerRun]) -> KeptLoop | None:
    """The last acts, where they came twice in the same order and with nothing added or taken away in the end."""
    acting = [run for run in runs if any(act.effect != LOOKS for act in run.did)][-MOST_OF_A_LOOP:]
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
    last = acting[-size:]
    objects = {named(one) for run in last for act in run.did for one in act.about}
    steps = [
        (run.controller, "; ".join(_counted(texts)))
        for run, (_, _, texts) in zip(last, moments[-size:], strict=True)
    ]
    return KeptLoop(acting[-1].at_ns - acting[-1 - size].at_ns, steps, sorted(objects))


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
    going = [one for one in outlook.nodes if one.goes]
    if going:
        nodes = f"{len(going):,} node{' goes' if len(going) == 1 else 's go'}"
        return "changing", f"Still changing: {nodes} if nothing else changes."
    now = format_duration(cluster.now_ns - cluster.start_ns)
    if not acted:
        return "rest", f"At rest: no controller changed anything in {now}."
    last = acted[-1]
    at = format_duration(last.at_ns - cluster.start_ns)
    return "rest", f"At rest since {at} of virtual time: no controller wants a change."
