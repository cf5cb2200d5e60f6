"""Whatever a plugin from outside does, its cycle fails with its name and place, and the engine stays whole."""

import json
import signal
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

from scheduler_core.clock import measure_cpu_ns
from scheduler_core.errors import ConstructionError
from scheduler_core.framework import interface
from scheduler_core.framework.amounts import Amount, Comparison
from scheduler_core.framework.cluster_event import NODE, NODE_ADD, QUEUE, ClusterEvent, ClusterEventWithHint
from scheduler_core.framework.interface import PreFilterResult, PreScoreResult, Reads
from scheduler_core.framework.limit import Limit, TookTooLong
from scheduler_core.framework.status import SUCCESS, Code, Status, Verdicts
from scheduler_core.releases import release_named
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.framework.outside import Likes, Picky, PickyWithHints, attempts, cluster, config
from tests.scheduler_core.sim.builders import START_NS, make_node, make_pod, pod_named, write
from tests.tables import table


class Everywhere(
    interface.PreEnqueuePlugin,
    interface.QueueSortPlugin,
    interface.PreFilterPlugin[None],
    interface.FilterPlugin[None],
    interface.PostFilterPlugin,
    interface.PreScorePlugin[None],
    interface.ScorePlugin[None],
    interface.ReservePlugin,
    interface.PermitPlugin,
    interface.PreBindPlugin,
    interface.BindPlugin,
    interface.PostBindPlugin,
):
    """Does no harm at any point."""

    name: ClassVar[str] = "Everywhere"
    normalizes: ClassVar[bool] = True
    filter_reads: ClassVar[Reads] = Reads.SPEC
    rejects: ClassVar[bool] = False

    def sign(self, pod: Any) -> Any:
        return pod.name

    def sort_key(self, queued: Any) -> Any:
        return queued.pod.name

    def pre_enqueue(self, pod: Any) -> Status:
        return SUCCESS

    def pre_filter(self, pod: Any, snapshot: Any) -> PreFilterResult[None]:
        return PreFilterResult()

    def filter(self, state: Any, pod: Any, nodes: Any, rows: Any) -> Verdicts:
        return Verdicts.where(np.full(len(rows), self.rejects), Code.Unschedulable)

    def reasons(self, *args: Any) -> tuple[str, ...]:
        return ("not here",)

    def compare(self, state: Any, pod: Any, snapshot: Any) -> Iterator[Comparison]:
        n_rows = len(snapshot.rows)
        yield Comparison(np.full(n_rows, self.rejects), ("asks ", Amount(np.full(n_rows, 7))))

    def post_filter(self, cycle: Any) -> interface.PostFilterResult:
        return interface.PostFilterResult(Status(Code.Unschedulable, ("no help",)))

    def pre_score(self, pod: Any, snapshot: Any, rows: Any) -> PreScoreResult[None]:
        return PreScoreResult()

    def score(self, state: Any, pod: Any, nodes: Any, rows: Any) -> Any:
        return np.zeros(len(rows), np.int64)

    def reserve(self, pod: Any, node_name: str) -> Status:
        return SUCCESS

    def permit(self, pod: Any, node_name: str) -> tuple[Status, int]:
        return SUCCESS, 0

    def pre_bind(self, pod: Any, node_name: str) -> Status:
        return SUCCESS

    def bind(self, pod: Any, node_name: str) -> Status:
        return Status(Code.Skip)

    def post_bind(self, pod: Any, node_name: str) -> None:
        return None


def broken(method: str, answer: Any = None, *, rejects: bool = False) -> type[interface.Plugin]:
    """Everywhere with one method that raises, or answers nonsense."""

    def misbehaves(self: Any, *args: Any) -> Any:
        if answer is None:
            raise ZeroDivisionError(f"a bug in {method}")
        return answer(*args) if callable(answer) else answer

    return type("Broken", (Everywhere,), {method: misbehaves, "rejects": rejects})


def run_two(plugin: type[interface.Plugin], **options: Any) -> Simulation:
    simulation = cluster(plugin, config=config("Everywhere", sort="Everywhere"), **options)
    write(simulation, make_pod("a"), make_pod("b"))
    simulation.run_until_idle(max_cycles=20)
    return simulation


def test_a_plugin_may_stand_at_every_point_and_do_no_harm() -> None:
    simulation = run_two(Everywhere)
    assert {name for pod in "ab" if (name := pod_named(simulation, pod)) and name.node_name}
    assert simulation.plugin_failures == ()


@pytest.mark.parametrize(
    ("method", "place"), table(__file__, "what_a_plugin_raises_fails_its_cycle_with_its_name_and_place")
)
def test_what_a_plugin_raises_fails_its_cycle_with_its_name_and_place(method: str, place: str) -> None:
    simulation = run_two(broken(method))
    traces = simulation.drain_cycles()
    assert traces and all(trace.outcome == "error" for trace in traces)
    for trace in traces:
        assert trace.failed_plugin == "Everywhere"
        assert trace.error == f"{place}: ZeroDivisionError: a bug in {method}"
        assert trace.explain()["sentence"]
    # The engine goes on, from its checkpoint too.
    again = Simulation.restore(json.loads(json.dumps(simulation.checkpoint())), plugins=[broken(method)])
    again.run_until_idle(max_cycles=5)


@pytest.mark.parametrize(
    "method", ["unreserve", "post_bind", "wakes", "take_writes", "checkpoint", "compare"]
)
def test_where_no_cycle_can_fail_the_failure_is_kept_and_told(method: str) -> None:
    parts: dict[str, Any] = {}
    if method == "unreserve":
        parts["permit"] = lambda self, pod, node: (Status(Code.Unschedulable, ("no",)), 0)
    if method == "wakes":
        parts["permit"] = lambda self, pod, node: (Status(Code.Wait), 10**9)
    if method == "take_writes":
        parts["pre_bind"] = lambda self, pod, node: Status(Code.Wait)
    plugin = type("Broken", (broken(method, rejects=method == "compare"),), parts)
    simulation = cluster(plugin, config=config("Everywhere", sort="Everywhere"))
    write(simulation, make_pod("0", cpu="99"), make_pod("a"))
    simulation.run_until_idle(max_cycles=20)
    simulation.checkpoint()
    assert any(f"ZeroDivisionError: a bug in {method}" in said for said in simulation.plugin_failures)


def test_a_pod_is_held_back_where_pre_enqueue_raises() -> None:
    simulation = run_two(broken("pre_enqueue"))
    assert simulation.drain_cycles() == []
    said = simulation.checkpoint()["queue"]["unschedulable"][0]["gating_reason"]
    assert said == 'running PreEnqueue plugin "Everywhere": ZeroDivisionError: a bug in pre_enqueue'


def test_post_filter_fails_its_cycle_and_missing_words_are_told() -> None:
    (trace, *_) = run_two(broken("post_filter", rejects=True)).drain_cycles()
    assert "running PostFilter plugin" in (trace.error or "")
    (trace, *_) = run_two(broken("reasons", rejects=True)).drain_cycles()
    assert '"Everywhere" does not say why: ZeroDivisionError: a bug in reasons' in (trace.message or "")


NO_SPEC = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}, "spec": 5}
IMPOSSIBLE: tuple[tuple[dict[str, Any], str], ...] = (
    ({"nominated_node_name": "nowhere"}, "as nominated node 'nowhere', which is no node"),
    ({"victims": ("a",)}, "victims ('a',), not a tuple of pods"),
    ({"cleared": None}, "cleared None, not a tuple of pods"),
    ({"trace": 5}, "'int' object has no attribute 'explain'"),
    ({"extender_calls": (5,)}, "extender_calls (5,), not a tuple of calls"),
    ({"writes": ({"kind": "Pod", "metadata": {"name": "x"}},)}, "without apiVersion, kind and metadata.name"),
    ({"writes": (NO_SPEC,)}, "spec: 5 must be"),
)
"""What PostFilter may want done that cannot be."""


@pytest.mark.parametrize(
    ("method", "answer", "words"),
    [
        ("filter", lambda *args: [0] * len(args[-1]), "filter returned list, not Verdicts"),
        ("filter", lambda *args: Verdicts(np.zeros(1, np.int8)), "codes of shape (1,) for 3 rows"),
        ("filter", lambda *args: Verdicts(np.zeros(3)), "codes of float64, not of int8"),
        ("filter", lambda *args: Verdicts(np.full(3, 5, np.int8)), "which a filter cannot say"),
        ("score", lambda *args: [1, 2, 3], "scores as list, not as an ndarray of int64"),
        ("score", lambda *args: np.array([1.0, np.nan, 2.0]), "scores of float64, not of int64"),
        ("normalize", lambda *args: np.full(3, 101, np.int64), "an invalid score 101"),
        ("pre_filter", lambda *args: PreFilterResult(node_names=["a"]), "not a tuple of names"),
        ("pre_score", "yes", "pre_score returned str, not PreScoreResult"),
        ("reserve", True, "reserve returned bool, not Status"),
        ("permit", SUCCESS, "how long the pod may wait"),
        ("bind", 0, "bind returned int, not Status"),
        ("sign", [], "returned what has no hash"),
        ("reserve", Status("refused", ("why",)), "a Status with the code 'refused'"),  # type: ignore[arg-type]
        ("pre_bind", Status(Code.Error, 5), "a Status with the reasons 5, not a tuple of texts"),  # type: ignore[arg-type]
        ("permit", (SUCCESS, 10**400), "how long the pod may wait"),
        ("reserve", Status(Code.Unschedulable, ("a\0",)), "a text with a NUL character"),
        ("reserve", Status(Code.Unschedulable, ("\ud800",)), "a text with half of a surrogate pair"),
        ("reserve", Status(Code.Unschedulable, ("a" * 10_001,)), "a text of 10001 characters"),
        ("reserve", Status(Code.Unschedulable, ("a",) * 101), "101 texts, there may be 100"),
        ("bind", Status(Code.Unschedulable, (), 5), "a Status of a plugin without a name"),  # type: ignore[arg-type]
        *(
            (
                "post_filter",
                interface.PostFilterResult(**{"status": Status(Code.Unschedulable), **parts}),
                words,
            )
            for parts, words in IMPOSSIBLE
        ),
    ],
)
def test_nonsense_fails_its_cycle(method: str, answer: Any, words: str) -> None:
    (trace, *_) = run_two(broken(method, answer, rejects=method == "post_filter")).drain_cycles()
    assert trace.failed_plugin == "Everywhere"
    assert words in (trace.error or "")


@pytest.mark.parametrize(
    ("method", "answer", "words"),
    [
        ("will_pre_bind", 5, "will_pre_bind returned int, not bool"),
        ("will_pre_bind", None, "ZeroDivisionError: a bug in will_pre_bind"),
        (
            "take_writes",
            ({"kind": "ConfigMap"},),
            "take_writes returned {'kind': 'ConfigMap'}, which is no manifest",
        ),
        ("take_writes", ({"metadata": {"a": float("nan")}},), "take_writes returned Out of range float"),
        ("pre_bind_deadline_ns", 1.5, "pre_bind_deadline_ns returned 1.5, not nanoseconds since the epoch"),
        ("devices", 7, "devices returned int, not dict"),
    ],
)
def test_nonsense_where_no_cycle_can_fail_is_told(method: str, answer: Any, words: str) -> None:
    parts: dict[str, Any] = {}
    if method in ("take_writes", "pre_bind_deadline_ns"):
        parts["pre_bind"] = lambda self, pod, node: Status(Code.Wait)
    # will_pre_bind is asked only where the expected node is told, as since 1.35.
    simulation = run_two(type("Broken", (broken(method, answer),), parts), release=release_named("1.35"))
    if method == "devices":
        (plugin,) = (
            one
            for one in simulation.scheduler.profiles["default-scheduler"].filter
            if one.name == "Everywhere"
        )
        pod = pod_named(simulation, "a")
        assert pod is not None and plugin.devices(None, pod, simulation.world.node("node-0")) is None
    assert any(words in said for said in simulation.plugin_failures), simulation.plugin_failures


def test_a_wait_in_pre_bind_whose_deadline_is_over_holds_nothing_up() -> None:
    plugin = type(
        "Broken",
        (broken("pre_bind", Status(Code.Wait)),),
        {
            "pre_bind_deadline_ns": lambda self, pod: np.int64(START_NS + 5),
            "permit": lambda *args: (SUCCESS, np.int64(7)),
        },
    )
    simulation = cluster(plugin, config=config("Everywhere", sort="Everywhere"))
    write(simulation, make_pod("a"))
    assert simulation.run_until_idle(max_cycles=3).stop == "idle"
    assert simulation.now_ns == START_NS + 5 and simulation.next_deadline() is None
    json.dumps(simulation.checkpoint())


@pytest.mark.parametrize(
    "told", table(__file__, "an_event_that_cannot_be_recorded_fails_the_cycle_of_who_tells_it")
)
def test_an_event_that_cannot_be_recorded_fails_the_cycle_of_who_tells_it(told: Any) -> None:
    def reserve(self: Any, pod: Any, node_name: str) -> Status:
        self.handle.record_event(pod if told[0] else None, *told[1:])
        return SUCCESS

    (trace, *_) = run_two(type("Broken", (Everywhere,), {"reserve": reserve})).drain_cycles()
    assert (trace.failed_point, trace.failed_plugin) == ("Reserve", "Everywhere")
    assert "record_event" in (trace.error or "")


@pytest.mark.parametrize(
    "answer",
    [5, None, SystemExit(2), ClusterEvent, QUEUE.because("a\0"), QUEUE.because(5)],  # type: ignore[arg-type]
)
def test_a_hint_that_fails_or_answers_nonsense_wakes_the_pod_and_is_told(answer: Any) -> None:
    def hint(pod: Any, old: Any, new: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    plugin = type(
        "Hinted",
        (PickyWithHints,),
        {"events": lambda self: [ClusterEventWithHint(NODE_ADD, hint)]},
    )
    simulation = cluster(plugin)
    write(simulation, make_pod("a"))
    simulation.run_until_idle()
    attempts(simulation)
    simulation.drain_moves()
    write(simulation, make_node("node-9"))
    simulation.run_until_idle()
    assert attempts(simulation)
    (move, *_) = (move for move in simulation.drain_moves() if move.plugin == "PickyWithHints")
    assert move.hint == "error" and move.reason.startswith(("TypeError: the hint returned", "SystemExit: 2"))


@pytest.mark.parametrize(
    "events",
    [
        [5],
        5,
        [ClusterEventWithHint(NODE_ADD, 5)],
        [ClusterEventWithHint(ClusterEvent(NODE, "add"), None)],
    ],
)  # type: ignore[arg-type]
def test_events_that_are_none_are_refused_before_anything_runs(events: Any) -> None:
    with pytest.raises(ConstructionError, match='initializing plugin "Picky": events: TypeError'):
        cluster(type("Broken", (Picky,), {"events": lambda self: events}))


def test_what_a_plugin_raises_can_be_written_down_whatever_it_says() -> None:
    def raises(*args: Any) -> Any:
        raise ValueError("\0 \ud800 " + "a" * 20_000)

    for method in ("filter", "reserve", "post_bind", "pre_enqueue", "sort_key"):
        simulation = run_two(type("Broken", (Everywhere,), {method: raises}))
        said = [*(trace.error or "" for trace in simulation.drain_cycles()), *simulation.plugin_failures]
        said += [info["gating_reason"] for info in simulation.checkpoint()["queue"]["unschedulable"]]
        told = [text for text in said if "ValueError" in text]
        assert told and all("\0" not in text and len(text.encode()) < 11_000 for text in told), method


@pytest.mark.parametrize(
    "method", ["filter", "score", "reasons", "compare", "post_bind", "pre_enqueue", "sort_key"]
)
def test_an_exception_that_cannot_say_what_it_is_is_told_by_its_class(method: str) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    def misbehaves(*args: Any) -> Any:
        raise Mute

    simulation = run_two(broken(method, misbehaves, rejects=method in ("reasons", "compare")))
    traces = simulation.drain_cycles()
    said = [
        *(f"{trace.error} {trace.message} {trace.explain()}" for trace in traces),
        *simulation.plugin_failures,
    ]
    pods = [simulation.world.pod("default", name) for name in ("a", "b")]
    assert "Mute (which cannot say more)" in "".join(said) or (
        method == "pre_enqueue" and not traces and all(pods)
    )


def test_a_plugin_that_takes_too_long_fails_its_cycle() -> None:
    spent, step_ns = [0], [0]

    def measure_ns() -> int:
        spent[0] += step_ns[0]
        return spent[0]

    simulation = cluster(Likes, plugin_limit=Limit(measure_ns, 300_000_000))
    step_ns[0] = 400_000_000
    write(simulation, make_pod("a"))
    simulation.step()
    (trace,) = simulation.drain_cycles()
    assert trace.error == ('running Score plugin "Likes": TookTooLong: took 0.40 s, it may take 0.3 s')


def endless(*args: Any) -> Any:
    while True:
        try:
            len(args)
        except Exception:
            continue


def asleep(*args: Any) -> Any:
    time.sleep(3600)


@pytest.mark.parametrize(
    ("method", "loop"),
    [("sort_key", endless), ("filter", endless), ("permit", asleep), ("post_bind", endless)],
)
def test_a_plugin_that_never_returns_is_stopped_and_the_engine_goes_on(method: str, loop: Any) -> None:
    limit = Limit(measure_cpu_ns, 40_000_000, stops=True)
    simulation = cluster(
        broken(method, loop), config=config("Everywhere", sort="Everywhere"), plugin_limit=limit
    )
    write(simulation, make_pod("a"))
    simulation.run_until_idle(max_cycles=1)
    said = [*(trace.error or "" for trace in simulation.drain_cycles()), *simulation.plugin_failures]
    assert "TookTooLong: took more than 0.04 s of the processor, or 0.48 s in all" in "".join(said), said


def test_a_hint_that_never_returns_wakes_the_pod_and_one_timer_leaves_the_others_alone() -> None:
    plugin = type("Slow", (Picky,), {"events": lambda self: [ClusterEventWithHint(NODE_ADD, endless)]})
    simulation = cluster(plugin, plugin_limit=Limit(measure_cpu_ns, 40_000_000, stops=True))
    write(simulation, make_pod("a"))
    simulation.run_until_idle(max_cycles=1)
    before = signal.getitimer(signal.ITIMER_REAL)[0]
    write(simulation, make_node("node-9"))
    simulation.run_until_idle(max_cycles=5)
    assert len(simulation.drain_cycles()) >= 2
    assert bool(signal.getitimer(signal.ITIMER_REAL)[0]) == bool(before)


def test_timers_are_set_once_for_many_calls_stop_the_one_that_lasts_and_go_when_none_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handler = signal.getsignal(signal.SIGALRM)
    left, interval = signal.setitimer(signal.ITIMER_REAL, 0)
    set_by = []
    real = signal.setitimer
    monkeypatch.setattr(signal, "setitimer", lambda *args: set_by.append(args) or real(*args))
    limit = Limit(measure_cpu_ns, 200_000_000, stops=True)
    try:
        assert [limit.call(abs, -number) for number in range(500)] == list(range(500))
        assert len(set_by) <= 10
        with pytest.raises(TookTooLong, match=r"0.2 s of the processor, or 2.4 s in all"):
            limit.call(endless)
        # The timers were set for a call that is over: the next one has all of its time.
        limit.call(abs, -1)
        signal.raise_signal(signal.SIGPROF)
        assert signal.getsignal(signal.SIGALRM) == handler
        assert not real(signal.ITIMER_PROF, 0)[0]
        with pytest.raises(TookTooLong):
            limit.call(asleep)
        limit.call(lambda: signal.raise_signal(signal.SIGALRM))
    finally:
        limit.call(abs, -1)
        signal.raise_signal(signal.SIGPROF)
        real(signal.ITIMER_REAL, left, interval)
    assert signal.getsignal(signal.SIGALRM) == handler
