"""PodTopologySpread: default constraints, and the weight of a topology."""

import math

import pytest

from scheduler_core.plugins.pod_topology_spread import normalizing_weight

pytestmark = pytest.mark.usefixtures("every_threshold")


@pytest.mark.parametrize("size", [*range(40), 4999, 15000])
def test_the_weight_of_a_topology_is_the_logarithm_to_one_unit_in_the_last_place(size: int) -> None:
    assert math.isclose(normalizing_weight(size), math.log(size + 2), rel_tol=3e-16)
