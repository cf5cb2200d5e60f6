"""Running a scenario: the cluster is built, the steps are done, and what came of it is kept."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_core.errors import InvalidObject
from scheduler_core.framework.record import sentence
from scheduler_core.objects.defaults import NAMESPACED_KINDS
from scheduler_core.objects.fields import format_seconds
from scheduler_core.objects.merge import merge_patch
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.reading import is_foreign
from scheduler_core.releases import Release
from scheduler_core.scenario import types
from scheduler_core.scenario.bounds import RunBounds, time_problem
from scheduler_core.scenario.canonical import effective_steps, in_run_order
from scheduler_core.scenario.errors import Problem, ScenarioError
from scheduler_core.scenario.load import TEMPLATED, check_shape, field_notes, plugin_notes, problems_of
from scheduler_core.scenario.ran import Others, RunPart, ScenarioRun
from scheduler_core.scenario.record import Finding
from scheduler_core.schema.fields_check import check_fields
from scheduler_core.schema.tables import types_by_kind
from scheduler_core.sim import changes
from scheduler_core.sim.admission import with_default_tolerations
from scheduler_core.sim.checkpoint import with_seed
from scheduler_core.sim.options import SimulationOptions
from scheduler_core.sim.simulation import Simulation
from scheduler_core.validation.admission import admitted
from scheduler_core.version import ENGINE_VERSION
from scheduler_core.whatif.model import MAX_OBJECTS, Checker, ModelReport

FULL_TRACES_UP_TO_NODES = 200
"""By default cycles keep every verdict and score in clusters up to this size, summaries above."""


Look = Callable[[ScenarioRun, RunPart, int], bool]
"""Sees a run, what happened since it was called last, and how many steps were done before; true ends the run."""
Check = Callable[[Iterable[types.Expectation], ScenarioRun, str], list[Finding]]
"""Whether each expectation holds at this moment; they stand at that path (`expectations.check`)."""


class _Reached(Exception):
    """The cycle that was wanted has been run, or who looks has seen enough."""


class _IsGone(ScenarioError):
    """The object of a step is missing or has changed."""


def _bounded(step: types.Step, n_cycles: int) -> types.Step:
    if step.run is not None and step.run.until == "idle":
        return types.Step(run=types.Run("idle", n_cycles))
    if step.advance is not None:
        return types.Step(advance=types.Advance(step.advance.by_ns, n_cycles))
    return step


class _Runner:
    """One run under way."""

    def __init__(
        self,
        scenario: types.Scenario,
        seed: int | None,
        full_traces: bool | None,
        max_cycles: int,
        checkpoint: Mapping[str, Any] | None = None,
        bounds: RunBounds | None = None,
        release: Release | None = None,
        first_of_ties: bool = False,
        check: Check | None = None,
    ) -> None:
        self.check = check
        self.bounds = bounds or RunBounds()
        n_nodes = sum(manifest.get("kind") == "Node" for manifest in scenario.objects)
        full = n_nodes <= FULL_TRACES_UP_TO_NODES if full_traces is None else full_traces
        seed = scenario.seed if seed is None else seed
        self.draws_otherwise = seed != scenario.seed
        self.posts_bindings = scenario.extenders is not None and scenario.extenders.post_bindings
        options = SimulationOptions(
            full_traces=full,
            first_of_ties=first_of_ties,
            default_tolerations=True,
            extenders_post_bindings=self.posts_bindings,
            assumed_pod_ttl_ns=scenario.assumed_expiry_ns or 0,
        )
        release = release or scenario.release
        self.transport = scenario.transport()
        if checkpoint is None:
            self.simulation = Simulation(
                scenario.scheduler,
                seed=seed,
                start_ns=scenario.start_ns,
                options=options,
                transport=self.transport,
                release=release,
            )
        else:
            expiry_ns = checkpoint["options"]["assumed_pod_ttl_ns"] or options.assumed_pod_ttl_ns
            options = dataclasses.replace(options, assumed_pod_ttl_ns=expiry_ns)
            document = {**with_seed(checkpoint, seed), "options": dataclasses.asdict(options)}
            self.simulation = Simulation.restore(document, transport=self.transport)
        self.transport.simulation = self.simulation
        self.until_ns = self.simulation.now_ns + self.bounds.virtual_ns
        self.run = ScenarioRun(scenario, self.simulation, release, first_of_ties)
        expected = [*scenario.expect, *(item for step in scenario.steps for item in step.expect or ())]
        if any(item.agreement is not None for item in expected):
            self.run.others = Others(self.simulation)
        self.cycles_left = max_cycles
        self.max_cycles = max_cycles
        self.stops_quietly = False
        """Reaching the bound on cycles is what was wanted, no error."""
        self.look: Look | None = None
        self.done: list[types.Step] = []
        """Steps so far, the last one bounded to what of it was run."""
        self._path = ""
        self._versions = 0
        self._generations: dict[tuple[str, str, str], int] = {}
        self._has_input = False

    def go(self) -> None:
        """Build the cluster and do all steps."""
        try:
            self._go_through()
        except OverflowError as error:
            said = "a number does not fit 64 bits"
            raise ScenarioError([Problem(self._path, said)]) from error

    def _go_through(self) -> None:
        scenario = self.run.scenario
        self._note_what_has_no_effect("scheduler")
        places = {id(manifest): index for index, manifest in enumerate(scenario.objects)}
        for manifest in in_run_order(scenario.objects):
            self._path = f"objects[{places[id(manifest)]}]"
            self.apply(manifest, self._path)
        for index, step in enumerate(effective_steps(scenario)):
            self._path = f"steps[{index}]"
            self.do(step, self._path)

    # ---- objects

    def apply(self, manifest: types.Manifest, path: str) -> None:
        """Create or replace an object as an API server admits it; one that is left out by its type is passed over."""
        if is_foreign(manifest):
            return
        world = self.simulation.world
        kind, namespace, name = key = types.object_key(manifest)
        before = world.get(kind, namespace, name)
        self._versions += 1
        meta = {**(manifest.get("metadata") or {}), "resourceVersion": str(self._versions)}
        document = {**manifest, "metadata": meta}
        if kind in TEMPLATED:
            # An API server drops the fields that a kind does not have: its pods' template has its hash without them.
            document, _ = check_fields(document, types_by_kind().get((manifest["apiVersion"], kind), ""))
        if before is None:
            generation = self._generations.get(key, 0) + 1
            self._generations[key] = generation
            if generation > 1 and not meta.get("uid"):
                meta["uid"] = f"{namespace}/{name}#{generation}" if namespace else f"{name}#{generation}"
            meta.setdefault("creationTimestamp", format_seconds(self.simulation.now_ns))
        else:
            old_meta = before.manifest["metadata"]
            meta["uid"] = old_meta.get("uid")
            if "creationTimestamp" in old_meta:
                meta["creationTimestamp"] = old_meta["creationTimestamp"]
            if "status" not in manifest and "status" in before.manifest:
                document["status"] = before.manifest["status"]
            if kind == "Pod" and before.typed.node_name and not (manifest.get("spec") or {}).get("nodeName"):
                document["spec"] = {**(manifest.get("spec") or {}), "nodeName": before.typed.node_name}
        try:
            check_shape(document)
            others = [stored.manifest for stored in world.all(kind)] if kind == "PriorityClass" else ()
            old = None if before is None else before.manifest
            prepared = admitted(
                document, world.priority_classes, others=others, old=old, release=self.run.release
            )
            if kind == "Pod":
                prepared["spec"] = with_default_tolerations(prepared["spec"])
            self._submit(changes.WriteObject(prepared))
        except InvalidObject as error:
            raise ScenarioError(problems_of(error, path)) from None
        if kind == "Pod":
            self.run.saw_pod(prepared)

    def _note_what_has_no_effect(self, path: str) -> None:
        """Name the entries of a Policy that have no counterpart today."""
        for item in self.simulation.scheduler.loaded.untranslated:
            self.run.notes.append(f"{path}.{item.field}: {item.name} has no effect: {item.reason}")

    def _submit(self, change: changes.Change) -> None:
        self.simulation.submit(change)
        self._has_input = True

    def _existing(self, kind: str, namespace: str, name: str, path: str) -> Any:
        if kind in NAMESPACED_KINDS:
            namespace = namespace or "default"
        stored = self.simulation.world.get(kind, namespace, name)
        if stored is None:
            last = self.run.cycles[-1].number if self.run.cycles else 0
            named = f"{namespace}/{name}" if namespace else name
            when = f"after cycle {last}" if last else "at that moment"
            raise _IsGone([Problem(path, f"there is no {kind} {named} {when}")])
        return stored

    # ---- steps

    def do(self, step: types.Step, path: str) -> None:
        """Do one step."""
        verb = step.verb
        here = f"{path}.{verb}"
        try:
            self._do(step, here)
        except _IsGone as gone:
            # With other draws other pods were evicted, and their controllers gave theirs other names.
            if not self.draws_otherwise and not self._was_evicted(step):
                raise
            self.run.notes += [f"{problem}, so the step changed nothing" for problem in gone.problems]
        self.done.append(step)

    def _was_evicted(self, step: types.Step) -> bool:
        """Whether a step is about a pod that this run evicted for another: in a live cluster it may have stayed."""
        about = step.delete or step.patch
        self.run.collect()
        return about is not None and any(
            about.kind == "Pod" and evicted.pod == f"{about.namespace or 'default'}/{about.name}"
            for evicted in self.run.evictions
        )

    def _do(self, step: types.Step, here: str) -> None:
        if step.apply is not None:
            for index, manifest in enumerate(step.apply):
                self.apply(manifest, f"{here}[{index}]")
        elif step.patch is not None:
            stored = self._existing(step.patch.kind, step.patch.namespace, step.patch.name, here)
            if step.patch.by and self.run.others is not None and step.patch.kind == "Pod":
                changed = merge_patch(stored.manifest, step.patch.patch)
                self.run.others.patched(stored.typed, changed, step.patch.by)
            self._replace(stored.manifest, step.patch.patch, here)
        elif step.delete is not None:
            self._delete(step, here)
        elif step.cordon or step.uncordon:
            stored = self._existing("Node", "", step.cordon or step.uncordon, here)
            self._replace(stored.manifest, {"spec": {"unschedulable": True if step.cordon else None}}, here)
        elif step.drain:
            self._drain(step.drain, here)
        elif step.allow is not None:
            self._permit(step.allow, True, here)
        elif step.reject is not None:
            self._permit(step.reject, False, here)
        elif step.bind is not None:
            self._bind(step.bind, here)
        elif step.configure is not None:
            self._submit(changes.SetConfiguration(step.configure))
            self._note_what_has_no_effect(here)
            if self.run.others is not None:
                self.run.others.configured(step.configure)
        elif step.upgrade is not None:
            self._submit(changes.SetConfiguration(self.simulation.config, step.upgrade.release))
            if self.run.others is not None:
                release = step.upgrade.release.document()
                self.run.others.configured(self.simulation.config, release)
        elif step.assumed_expiry_ns is not None:
            self._submit(changes.SetAssumedPodExpiry(step.assumed_expiry_ns))
        elif step.expect is not None:
            self.run.collect()
            if self.check is not None:
                self.run.findings += self.check(step.expect, self.run, here)
        else:
            for part in self._moments(step):
                self._go(part, here)

    def _moments(self, step: types.Step) -> Iterator[types.Step]:
        """An advance that is looked at in parts, up to each moment in which time changes something."""
        simulation = self.simulation
        if self.look is None or step.advance is None or step.advance.cycles is not None:
            yield step
            return
        target_ns = simulation.now_ns + step.advance.by_ns
        yield types.Step(advance=types.Advance(0))
        while (deadline := simulation.next_deadline()) is not None and deadline.at_ns <= target_ns:
            yield types.Step(advance=types.Advance(deadline.at_ns - simulation.now_ns))
        yield types.Step(advance=types.Advance(target_ns - simulation.now_ns))

    def _check_time(self, path: str, at_ns: int) -> None:
        if at_ns > self.until_ns:
            elapsed_ns = at_ns - self.until_ns + self.bounds.virtual_ns
            raise ScenarioError([time_problem(path, elapsed_ns, self.bounds)])

    def _replace(self, manifest: types.Manifest, patch: types.Manifest, path: str) -> None:
        changed = merge_patch(manifest, patch)
        if types.object_key(changed) != types.object_key(manifest) or changed.get(
            "apiVersion"
        ) != manifest.get("apiVersion"):
            raise ScenarioError([Problem(path, "a patch cannot rename an object")])
        self.apply(changed, f"{path}.patch")

    def _delete(self, step: types.Step, path: str) -> None:
        assert step.delete is not None
        wanted = step.delete
        stored = self._existing(wanted.kind, wanted.namespace, wanted.name, path)
        if wanted.by and wanted.kind == "Pod" and self.run.others is not None:
            self.run.others.evicted(stored.typed, wanted.by)
        self._submit(changes.DeleteObject(*wanted.key, wanted.grace_period_s))

    def _drain(self, node: str, path: str) -> None:
        """Cordon and evict, as `kubectl drain --ignore-daemonsets --force` tries it once.

        A pod whose budget allows no disruption stays, and is noted.
        """
        stored = self._existing("Node", "", node, path)
        self._replace(stored.manifest, {"spec": {"unschedulable": True}}, path)
        world = self.simulation.world
        pods: list[Pod] = [item.typed for item in world.all("Pod") if item.typed.node_name == node]
        for pod in pods:
            owner = pod.meta.controller
            if (owner is not None and owner.kind == "DaemonSet") or pod.is_terminating:
                continue
            budgets = [
                item.typed
                for item in world.all("PodDisruptionBudget")
                if item.typed.meta.namespace == pod.namespace and item.typed.selector.matches(pod.labels)
            ]
            spent = next((budget for budget in budgets if budget.disruptions_allowed <= 0), None)
            if spent is not None and not pod.is_terminal:
                said = f"its budget {spent.meta.namespace}/{spent.meta.name} allows no disruption"
                self.run.notes.append(f"{path}: {pod.key} stays on {node}: {said}")
                continue
            self._submit(changes.DeleteObject("Pod", pod.namespace, pod.name, None))

    def _permit(self, answer: types.PermitAnswer, allow: bool, path: str) -> None:
        namespace, _, name = answer.pod.partition("/")
        pod: Pod = self._existing("Pod", namespace, name, path).typed
        if self.simulation.scheduler.waiting_pods.get(pod.uid) is None:
            self.run.notes.append(
                f"{path}: {answer.pod} does not wait at Permit, so the answer changed nothing"
            )
        self._submit(changes.PermitDecision(namespace, name, allow, answer.plugin or None, answer.reason))

    def _bind(self, binding: types.Binding, path: str) -> None:
        namespace, _, name = binding.pod.partition("/")
        pod: Pod = self._existing("Pod", namespace, name, path).typed
        if binding.by and self.run.others is not None:
            self.run.others.bound(pod, binding.node, binding.by)
        refusal = self.simulation.world.bind(namespace, name, pod.uid, binding.node)
        if refusal is not None:
            raise _IsGone([Problem(path, refusal)])
        self._has_input = True

    def _go(self, step: types.Step, path: str) -> None:
        simulation = self.simulation
        if self._has_input:
            # What a live engine does once it has read its inputs.
            simulation.advance(0, max_cycles=0)
            self._has_input = False
        bound = self.cycles_left
        wanted = step.run.cycles if step.run is not None else step.advance.cycles if step.advance else None
        if wanted is not None:
            bound = min(bound, wanted)
        if step.advance is not None:
            self._check_time(path, simulation.now_ns + step.advance.by_ns)
        target_ns = simulation.now_ns + (step.advance.by_ns if step.advance is not None else 0)
        while True:
            if step.run is not None and step.run.until == "cycle":
                report = simulation.step()
            elif step.run is not None:
                report = simulation.run_until_idle(max_cycles=bound, until_ns=self.until_ns)
            else:
                report = simulation.advance(target_ns - simulation.now_ns, max_cycles=bound)
            self.cycles_left -= report.cycles
            bound -= report.cycles
            calls = simulation.bind_calls()
            for call in calls:
                [answer] = self.transport([call.request])
                simulation.submit(changes.BindCallAnswered(call.pod.uid, answer))
            one_is_done = step.run is not None and step.run.until == "cycle" and report.cycles
            if report.stop != "call" or not calls or one_is_done or bound <= 0:
                break
        self.run.stop = report.message
        happened = self.run.collect()
        if self.look is not None and self.look(self.run, happened, len(self.done)):
            raise _Reached
        if self.stops_quietly and self.cycles_left <= 0:
            self.done.append(_bounded(step, report.cycles))
            raise _Reached
        if step.advance is None and report.stop == "time":
            self._check_time(path, self.until_ns + 1)
        if report.stop == "budget" and self.cycles_left <= 0:
            limit = f"{self.max_cycles:,}"
            raise ScenarioError(
                [Problem("steps", f"the run was stopped after {limit} cycles, the bound of a run")]
            )


def run(
    scenario: types.Scenario,
    *,
    seed: int | None = None,
    full_traces: bool | None = None,
    max_cycles: int = types.MAX_CYCLES,
    before_cycle: Callable[[Simulation], None] | None = None,
    after_cycle: Callable[[Simulation], None] | None = None,
    after_moment: Look | None = None,
    checkpoint: Mapping[str, Any] | None = None,
    bounds: RunBounds | None = None,
    release: Release | None = None,
    first_of_ties: bool = False,
    timed: bool = False,
    check: Check | None = None,
) -> ScenarioRun:
    """Run a scenario from its beginning.

    Parameters
    ----------
    seed : int, optional
        Instead of the scenario's own. A step about a pod that is gone with these draws then changes nothing.
    full_traces : bool, optional
        Keep every verdict and score; by default in clusters of up to `FULL_TRACES_UP_TO_NODES` nodes.
    max_cycles : int
        Bound on the whole run.
    before_cycle, after_cycle : callable, optional
        Look at the cluster before and after each cycle; must change nothing.
    after_moment : callable, optional
        The same after each moment in which steps or time change something. The run ends quietly where it wants that,
        or at the bound on cycles.
    checkpoint : mapping, optional
        The scenario goes on from there rather than from an empty cluster (`make_scenario(goes_on=True)`). Taken
        before anything was decided or drawn, it is right for every seed.
    bounds : RunBounds, optional
        On virtual time.
    release : Release, optional
        Instead of the scenario's own.
    first_of_ties : bool
        Equals are taken by name; by the seed otherwise.
    timed : bool
        Keep what `ScenarioRun.timeline` reads.
    check : callable, optional
        Looks what was expected, at each step that says so and at the end; nothing is found otherwise.

    Raises
    ------
    ScenarioError
        A step cannot be done, or the bound was reached.
    ValueError
        The checkpoint was taken too late, or is of another version.
    """
    runner = _Runner(
        scenario, seed, full_traces, max_cycles, checkpoint, bounds, release, first_of_ties, check
    )
    runner.run.timed = timed
    runner.simulation.before_cycle = before_cycle
    runner.simulation.after_cycle = after_cycle
    runner.look, runner.stops_quietly = after_moment, after_moment is not None
    with contextlib.suppress(_Reached):
        runner.go()
    result = runner.run
    result.collect()
    cassette = runner.transport.cassette
    result.notes += [*plugin_notes(scenario), *(note.words for note in field_notes(scenario))]
    result.notes += [f"a plugin failed: {said}" for said in runner.simulation.plugin_failures[:20]]
    result.notes += [f"no recorded answer to {what}" for what in cassette.missing[:20]]
    result.notes += [f"the request differs from the recorded one: {what}" for what in cassette.changed[:20]]
    if check is not None:
        result.findings += check(scenario.expect, result, "expect")
    return result


def run_prefix(
    scenario: types.Scenario, number: int, *, release: Release | None = None, first_of_ties: bool = False
) -> list[str]:
    """The digests of a run's cycles up to a number, as they are right after it."""
    bare = dataclasses.replace(scenario, expect=(), path=(), decisions=None)
    runner = _Runner(bare, None, False, number, release=release, first_of_ties=first_of_ties)
    runner.stops_quietly = True
    with contextlib.suppress(_Reached):
        runner.go()
    runner.run.collect()
    return [trace.digest for trace in runner.run.cycles]


def run_to_cycle(
    scenario: types.Scenario,
    number: int,
    *,
    seed: int | None = None,
    release: Release | None = None,
    first_of_ties: bool = False,
) -> tuple[ScenarioRun, types.Scenario]:
    """Run up to a cycle and stop right after it, keeping that cycle's trace in full whatever the cluster's size.

    Returns
    -------
    run : ScenarioRun
        As of that moment; expectations at the end are not asked.
    scenario : Scenario
        The same, ending there: a branch to go on from with other steps. It expects nothing.

    Raises
    ------
    ScenarioError
        The run has no such cycle.
    """
    bare = dataclasses.replace(scenario, expect=(), path=(), decisions=None)
    runner = _Runner(bare, seed, None, number, release=release, first_of_ties=first_of_ties)
    runner.stops_quietly = True
    scheduler = runner.simulation.scheduler

    def look(simulation: Simulation) -> None:
        if simulation.scheduler.cycle == number - 1:
            options = simulation.scheduler.options
            simulation.scheduler.options = dataclasses.replace(options, full_traces=True)

    if number == 1:
        scheduler.options = dataclasses.replace(scheduler.options, full_traces=True)
    runner.simulation.after_cycle = look
    try:
        runner.go()
    except _Reached:
        runner.run.collect()
        return runner.run, dataclasses.replace(bare, steps=tuple(runner.done))
    n_cycles = len(runner.run.cycles)
    raise ScenarioError([Problem("", f"there is no cycle {number}, the run had {n_cycles}")])


def check_scenario(scenario: types.Scenario, *, max_objects: int = MAX_OBJECTS) -> ModelReport:
    """Run a scenario and check the formal model on every cycle of it.

    Raises
    ------
    ScenarioError
        A step cannot be done, or the bound on cycles was reached.
    """
    checker = Checker(max_objects=max_objects)
    run(scenario, full_traces=True, before_cycle=checker.before_cycle, after_cycle=checker.after_cycle)
    return checker.report


LINES_UP_TO_CYCLES = 2_000
"""Longer runs are recorded by their digest alone."""


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a run made the decisions that were recorded.

    Attributes
    ----------
    n_recorded, n_same : int
        Cycles recorded, and how many from the first on are the same (known only where lines were recorded,
        or all are).
    first_difference : int or None
        Number of the first cycle that differs; None when all are the same, or it cannot be told.
    sentence : str
    """

    same: bool
    n_recorded: int
    n_same: int
    first_difference: int | None
    sentence: str


def with_decisions(run: ScenarioRun) -> types.Scenario:
    """The run's scenario, carrying what was decided."""
    with_lines = len(run.cycles) <= LINES_UP_TO_CYCLES
    decisions = types.Decisions(
        digest=run.digest,
        count=len(run.cycles),
        engine=ENGINE_VERSION,
        cycles=tuple(run.cycle_lines()) if with_lines else (),
    )
    return dataclasses.replace(run.scenario, decisions=decisions)


def verify(run: ScenarioRun, recorded: types.Decisions | None = None) -> Verification | None:
    """Compare a run with recorded decisions (the scenario's own by default); None when there are none."""
    decisions = recorded or run.scenario.decisions
    if decisions is None:
        return None
    count = decisions.count
    if decisions.digest == run.digest:
        return Verification(True, count, count, None, f"reproduced {count}/{count} decisions")
    ours = run.cycle_lines()
    if not decisions.cycles:
        said = (
            f"the decisions differ: {len(ours)} cycles with digest {run.digest[:12]} instead of {count} with "
            f"{decisions.digest[:12]}; which differs first was not recorded"
        )
        return Verification(False, count, 0, None, said)
    n_same = 0
    for was, is_now in zip(decisions.cycles, ours, strict=False):
        if was[:12] != is_now[:12]:
            break
        n_same += 1
    number = n_same + 1
    was = decisions.cycles[n_same][13:] if n_same < len(decisions.cycles) else "nothing, the run was over"
    trace = run.cycles[n_same] if n_same < len(run.cycles) else None
    now = sentence(trace) if trace is not None else "nothing, the run is over."
    engine = f" (engine {decisions.engine})" if decisions.engine not in ("", ENGINE_VERSION) else ""
    if n_same == len(ours) == len(decisions.cycles):
        said = "every cycle is as recorded, but the recorded digest is not theirs"
        return Verification(False, count, n_same, None, said)
    said = (
        f"reproduced {n_same}/{count} decisions; cycle {number} differs. Recorded{engine}: {was}. Now: {now}"
    )
    return Verification(False, count, n_same, number, said)
