"""Amounts as an API server writes them: pod-level requests from containers, and nothing finer than thousandths."""

from typing import Any

import pytest

from scheduler_core.objects.defaults import prepare


def pod(resources: dict[str, Any] | None, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """The prepared spec of a pod of these containers."""
    named = [{"name": f"c{index}", "resources": item} for index, item in enumerate(containers)]
    own = {"containers": named, **spec} | ({} if resources is None else {"resources": resources})
    result: dict[str, Any] = prepare({"kind": "Pod", "metadata": {"name": "p"}, "spec": own})["spec"]
    return result


HUGE = {"limits": {"hugepages-2Mi": "4Mi"}}


@pytest.mark.parametrize(
    ("written", "containers", "expected"),
    [
        # Every cpu and memory request of the containers counts, whatever is limited.
        ({"limits": {"memory": "2Gi"}}, [{"requests": {"cpu": "1"}}],
         {"limits": {"memory": "2Gi"}, "requests": {"cpu": "1", "memory": "2Gi"}}),
        ({"limits": {"cpu": "2"}}, [{"requests": {"memory": "1Gi"}}, {"requests": {"memory": "512Mi"}}],
         {"limits": {"cpu": "2"}, "requests": {"cpu": "2", "memory": "1536Mi"}}),
        # Limits of huge pages come first, so even a pod with requests alone has limits then.
        ({"requests": {"memory": "1Gi"}}, [{"requests": {"cpu": "1"}, **HUGE}, HUGE],
         {"limits": {"hugepages-2Mi": "8Mi"}, "requests": {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "8Mi"}}),
        # A request of that size at pod level keeps the limit from being made.
        ({"requests": {"hugepages-2Mi": "8Mi"}}, [HUGE], {"requests": {"hugepages-2Mi": "8Mi"}}),
        # Other sizes do not stand in for each other.
        ({"limits": {"hugepages-1Gi": "1Gi"}}, [HUGE],
         {"limits": {"hugepages-1Gi": "1Gi", "hugepages-2Mi": "4Mi"},
          "requests": {"hugepages-1Gi": "1Gi", "hugepages-2Mi": "4Mi"}}),
        # Without any limit nothing is requested for the pod as a whole.
        ({"requests": {"cpu": "3"}}, [{"requests": {"memory": "1Gi"}}], {"requests": {"cpu": "3"}}),
        ({}, [HUGE], {}),
        ({"limits": {"nvidia.com/gpu": "1"}}, [], {"limits": {"nvidia.com/gpu": "1"}}),
        # What containers request together is rounded as a whole.
        ({"limits": {"cpu": "1"}}, [{"requests": {"cpu": "100100u"}}] * 2,
         {"limits": {"cpu": "1"}, "requests": {"cpu": "201m"}}),
    ],
)  # fmt: skip
def test_pod_level_amounts_come_from_the_containers(
    written: dict[str, Any], containers: list[dict[str, Any]], expected: dict[str, Any]
) -> None:
    spec = pod(written, *containers)
    assert spec["resources"] == expected
    again = prepare({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec})["spec"]
    assert again["resources"] == expected
