"""Waiting pods are decided, and their deadlines come, as if all of them were looked through each time."""

import json

import hypothesis.strategies as st
from hypothesis import given

from scheduler_core.framework.waiting_pods import WaitingPods
from scheduler_core.objects.pod import Pod, pod_from

UIDS = st.sampled_from(["a", "b", "c", "d"])
PLUGINS = st.sampled_from(["P", "Q"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), UIDS, st.dictionaries(PLUGINS, st.integers(1, 9), min_size=1)),
        st.tuples(st.sampled_from(["allow", "reject"]), UIDS, PLUGINS),
        st.tuples(st.just("remove"), UIDS),
        st.tuples(st.just("pass"), st.integers(0, 6)),
        st.tuples(st.just("settle")),
        st.tuples(st.just("restore")),
    ),
    max_size=30,
)


def pod(uid: str) -> Pod:
    labels = {"group": "first" if uid in "ab" else "second"}
    return pod_from({"metadata": {"name": uid, "uid": uid, "namespace": "default", "labels": labels}})


@given(STEPS)
def test_deadlines_and_decisions_are_those_found_by_looking_through_all_pods(steps: list[tuple]) -> None:
    waiting_pods, now_ns = WaitingPods(), 0
    for step in steps:
        match step:
            case ("add", uid, waits_ns):
                if waiting_pods.get(uid) is None:
                    waiting_pods.add(pod(uid), "node", waits_ns, now_ns)
            case ("allow" | "reject" as what, uid, plugin):
                waiting = waiting_pods.get(uid)
                if waiting is not None and what == "allow":
                    waiting.allow(plugin)
                elif waiting is not None:
                    waiting.reject(plugin, "no")
            case ("remove", uid):
                waiting_pods.remove(uid)
            case ("pass", by_ns):
                now_ns += by_ns
                undecided = [item for item in waiting_pods.all() if item.decided is None]
                due = {
                    item.pod.uid: next(name for name, at_ns in item.deadlines_ns.items() if at_ns <= now_ns)
                    for item in undecided
                    if any(at_ns <= now_ns for at_ns in item.deadlines_ns.values())
                }
                waiting_pods.expire(now_ns)
                for item in undecided:
                    plugin = due.get(item.pod.uid)
                    assert (None if item.decided is None else item.decided.plugin) == plugin
            case ("settle",):
                expected = [item for item in waiting_pods.all() if item.decided is not None]
                decided = waiting_pods.take_decided()
                assert decided == expected and not waiting_pods.take_decided()
                for item in decided:
                    waiting_pods.remove(item.pod.uid)
            case ("restore",):
                if all(item.decided is None for item in waiting_pods.all()):
                    state = json.loads(json.dumps(waiting_pods.state()))
                    pods = {item.pod.uid: item.pod for item in waiting_pods.all()}
                    waiting_pods = WaitingPods()
                    waiting_pods.restore(state, pods)
                    assert waiting_pods.state() == state
        undecided = [item for item in waiting_pods.all() if item.decided is None]
        for group in ("first", "second"):
            of_group = [item for item in undecided if item.pod.labels["group"] == group]
            assert waiting_pods.undecided("default", "group", group) == of_group
        deadlines = [at_ns for item in undecided for at_ns in item.deadlines_ns.values() if at_ns > now_ns]
        if all(item.decided is None for item in waiting_pods.all()):
            found = waiting_pods.next_deadline_ns()
            due = [at_ns for item in undecided for at_ns in item.deadlines_ns.values()]
            assert found == min(due, default=None) and (
                found is None or not deadlines or found <= min(deadlines)
            )
