"""Where runs stop, and what they say of it."""

from scheduler_core.sim.changes import DeleteObject
from scheduler_core.sim.options import FaultOptions
from tests.scheduler_core.sim.builders import (
    SECOND_NS,
    START_NS,
    make_cluster,
    make_node,
    make_pod,
    make_workload,
    pod_named,
    state,
    write,
)

ALWAYS_REFUSED = FaultOptions(failed_binds_percent=100)


def test_an_empty_cluster_is_idle_and_nothing_is_left() -> None:
    report = make_cluster(0).run_until_idle()
    assert (report.stop, report.cycles, report.next_deadline) == ("idle", 0, None)
    assert report.message == "idle after 0 cycles; nothing is left to happen"


def test_a_step_is_one_cycle_and_says_so() -> None:
    simulation = make_cluster(1, make_pod("a"), make_pod("b"))
    assert [simulation.step().stop for _ in range(3)] == ["cycle", "cycle", "idle"]


def test_steps_and_a_run_lead_to_the_same_place() -> None:
    objects = (make_workload("Deployment", "web", replicas=5), make_pod("big", cpu="9"), make_pod("p"))
    stepped, run = make_cluster(2, *objects), make_cluster(2, *objects)
    while stepped.step().stop != "idle":
        pass
    run.run_until_idle()
    assert state(stepped) == state(run)


def test_the_flush_of_unschedulable_pods_is_a_leftover() -> None:
    simulation = make_cluster(1, make_pod("big", cpu="9"))
    report = simulation.run_until_idle()
    assert report.stop == "idle" and report.clock_ns == START_NS
    assert report.message == "idle after 1 cycle; next: the flush of unschedulable pods in 330.0 s"
    assert simulation.step().stop == "idle" and simulation.now_ns == START_NS
    assert simulation.advance(330 * SECOND_NS).cycles == 1


def test_leftovers_still_happen_on_the_way_to_something_else() -> None:
    simulation = make_cluster(1, make_pod("once", annotations={"playground.dev/duration": "1h"}))
    write(simulation, make_pod("big", cpu="9"))
    report = simulation.run_until_idle()
    assert report.clock_ns == START_NS + 3600 * SECOND_NS
    # One attempt at the beginning, one a flush, the last one woken by room that is given back.
    assert 10 < report.cycles < 20


def test_a_pod_that_fails_again_and_again_is_left_in_its_backoff() -> None:
    simulation = make_cluster(1, make_pod("unlucky"), faults=ALWAYS_REFUSED)
    report = simulation.run_until_idle()
    assert report.stop == "idle" and report.cycles == 2
    assert report.message.startswith("idle after 2 cycles; next: a pod leaves backoff")
    assert report.next_deadline is not None
    [waiting] = simulation.queue_view()["backoff"]
    assert waiting["until_ns"] == report.next_deadline.at_ns
    # Something happens in the cluster: the pod is worth waiting for again.
    write(simulation, make_node("node-9"))
    assert simulation.run_until_idle().cycles == 2


def test_a_run_stops_at_its_bounds() -> None:
    simulation = make_cluster(1, *(make_pod(f"p{index}") for index in range(5)))
    report = simulation.run_until_idle(max_cycles=3)
    assert (report.stop, report.cycles) == ("budget", 3)
    write(simulation, make_pod("once", annotations={"playground.dev/duration": "1h"}))
    report = simulation.run_until_idle(until_ns=START_NS + 60 * SECOND_NS)
    assert report.stop == "time" and simulation.now_ns <= START_NS + 60 * SECOND_NS


def test_timers_of_pods_that_are_gone_hold_nothing_up() -> None:
    simulation = make_cluster(1, make_pod("once", annotations={"playground.dev/duration": "1h"}))
    simulation.run_until_idle(until_ns=START_NS)
    simulation.submit(DeleteObject("Pod", "default", "once", 0))
    report = simulation.run_until_idle()
    assert report.clock_ns == START_NS and report.next_deadline is None


def test_advancing_goes_past_what_idle_leaves() -> None:
    simulation = make_cluster(1, make_pod("once", annotations={"playground.dev/duration": "10s"}))
    report = simulation.advance(5 * SECOND_NS)
    assert (report.stop, report.clock_ns) == ("time", START_NS + 5 * SECOND_NS)
    assert report.next_deadline is not None
    assert report.next_deadline.what == "pod default/once ends by itself"
    simulation.advance(5 * SECOND_NS)
    once = pod_named(simulation, "once")
    assert once is not None and once.phase == "Succeeded"


def test_a_slow_binding_is_waited_for() -> None:
    faults = FaultOptions(slow_binds_percent=100, slow_bind_ms=1500)
    simulation = make_cluster(1, make_pod("p"), faults=faults)
    report = simulation.run_until_idle()
    assert report.stop == "idle" and report.clock_ns == START_NS + 1_500_000_000
    pod = pod_named(simulation, "p")
    assert pod is not None and pod.phase == "Running"
