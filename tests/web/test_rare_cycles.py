"""Cycles a demo seldom has, decided by the real engine: each has a page that says what happened."""

import re
from html import unescape

import pytest

from playground.clusters.models import Cycle
from playground.clusters.objects.apply import apply_documents
from tests import rare_cycles
from tests.markup import html_of
from tests.rare_cycles import RARE_CYCLES
from tests.tables import table

pytestmark = pytest.mark.django_db(transaction=True)

# PreFilter leaves the one node that its affinity names.
NAMED = table(__file__, "NAMED")
SAID = table(__file__, "SAID")


def words_of(response):
    """What a page says, without its markup."""
    assert response.status_code == 200
    main = html_of(response).split("<main", 1)[1].replace("<wbr>", "")
    without_tags = re.sub(r"<(/?)(b|span|code)\b[^>]*>", "", main)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", without_tags)).split())


@pytest.mark.parametrize("name", RARE_CYCLES)
def test_a_rare_cycle_has_a_page_that_says_so(name, client, settings, live_server):
    settings.PLAYGROUND_OWN_URL = live_server.url
    cluster = rare_cycles.make(name)
    number = Cycle.objects.get(cluster=cluster, pod_name="web-0").number
    words = words_of(client.get(f"/c/{cluster.public_id}/cycles/{number}/"))
    assert [said for said in SAID[name] if said not in words] == [], words
    for page in ("pods/default/web-0/", "?pod=default/web-0"):
        assert "web-0" in words_of(client.get(f"/c/{cluster.public_id}/{page}"))


def test_a_node_looked_at_alone_is_no_sample(client):
    cluster = rare_cycles.make("pre-filter")
    apply_documents(cluster=cluster, text=NAMED)
    rare_cycles.run_until(cluster, "cycle")
    words = words_of(client.get(f"/c/{cluster.public_id}/cycles/2/"))
    assert "Nodes 2 possible, 1 feasible, 1 viable, 1 evaluated" in words and "sampled" not in words


def test_one_node_is_not_asked_why_not_another(client, settings):
    cluster = rare_cycles.make("one-node")
    page = html_of(client.get(f"/c/{cluster.public_id}/cycles/1/"))
    assert "Why not" not in page
