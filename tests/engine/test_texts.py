"""What is told of a pod by the text of a log entry is what reading its manifest tells, or nothing is told."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.engine.compressed import to_json
from playground.engine.redecide_log import _Simulation, is_gone, pod_then
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.pod import Pod
from scheduler_core.sim.past import STILL, PodThen
from tests.scheduler_core.sim.builders import make_pod
from tests.scheduler_core.sim.test_manifests import pods
from tests.tables import table

STATUSES: list[dict[str, Any]] = table(__file__, "STATUSES")
SPECS: list[dict[str, Any]] = table(__file__, "SPECS")
METADATA: list[dict[str, Any]] = table(__file__, "METADATA")


def told(pod: Pod) -> Any:
    then = PodThen.of(pod)
    return then[:-1] if then.is_counted else then.is_counted


@given(pods(), st.sampled_from(METADATA), st.sampled_from(SPECS), st.sampled_from(STATUSES))
def test_the_text_tells_what_reading_tells(
    pod: dict[str, Any], metadata: dict[str, Any], spec: dict[str, Any], status: dict[str, Any]
) -> None:
    pod["metadata"] |= {"uid": "u1", **metadata}
    pod["spec"] |= spec
    pod["status"] = status
    entry = {"manifest": pod, "reason": "bound"}
    meta = pod["metadata"]
    read = parse(pod).typed
    text = to_json(entry)
    then = pod_then(text, meta["namespace"], meta["name"], lambda: read)
    if then is not None:
        assert then.key == (meta["namespace"], meta["name"]) and then.read() is read
        assert (then[:-1] if then.is_counted else then.is_counted) == told(read)
        assert not read.scheduling_group and not (read.nominated_node_name and not read.node_name)


@pytest.mark.parametrize("status", STATUSES[:3])
def test_of_most_pods_the_text_does_tell(status: dict[str, Any]) -> None:
    pod = make_pod("p", cpu="1", labels={"a": "x"})
    pod["metadata"]["uid"] = "u1"
    pod["spec"]["nodeName"] = "n1"
    pod["status"] = status
    assert pod_then(to_json({"manifest": pod}), "default", "p", lambda: parse(pod).typed) is not None


def test_a_pod_that_terminates_is_not_gone() -> None:
    assert is_gone(to_json({"kind": "Pod"})) and is_gone(to_json({"gone": True}))
    assert not is_gone(to_json({"gone": False, "manifest": {"gone": True}}))
    assert not is_gone(b'{"gone":false,"a":"\\ud800"}')


def test_what_must_be_still_is_read_of_a_checkpoint() -> None:
    assert set(STILL) <= set(_Simulation.__struct_fields__)
