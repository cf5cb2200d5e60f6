"""The GPU use case, its four ways side by side."""

import re

import pytest
from django.core.cache import cache

from playground.scenarios.models import Comparison, Scenario
from playground.scenarios.services.gallery import compare_four_ways

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.dialect
def test_four_ways_are_run_by_a_worker_and_shown_side_by_side(client, work):
    cache.clear()
    here = "/gallery/gpu/four-ways/"
    assert "A worker runs the four ways" in client.get(here).content.decode()
    work()
    page = client.get(here).content.decode()
    assert page.count('<h2 id="w-') == 4
    told = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))
    counts = re.findall(r"(\d+) of 12 web pods on GPU nodes (\d+) of 6 training pods off them", told)
    assert [tuple(int(n) > 0 for n in pair) for pair in counts] == [
        (True, True),
        (False, True),
        (True, False),
        (False, False),
    ]
    assert page.count(", on the wrong kind of node") == sum(int(n) for pair in counts for n in pair)
    comparison = Comparison.objects.get()
    assert len(comparison.sides) == 4 and client.get(f"/compare/{comparison.public_id}/").status_code == 200
    n_shares = Scenario.objects.count()
    assert compare_four_ways().pk == comparison.pk and Scenario.objects.count() == n_shares
