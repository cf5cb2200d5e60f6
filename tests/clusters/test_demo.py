"""The demo cluster."""

import pytest

from playground.clusters import demo, selectors
from playground.clusters.models import Cluster
from tests.clusters.builders import folded, same_objects, stored

pytestmark = pytest.mark.django_db


def test_the_demo_is_made_once_and_has_something_of_everything() -> None:
    cluster = demo.ensure_demo()
    assert demo.ensure_demo() == cluster
    assert Cluster.objects.count() == 1
    board = selectors.board(cluster)
    assert (board.n_nodes, board.n_pods, board.n_pending) == (12, 49, 8)
    assert list(board.zones) == ["zone-a", "zone-b", "zone-c"]
    assert [card.name for card in board.cards if not card.ready] == ["node-c2"]
    assert [card.name for card in board.cards if card.unschedulable] == ["node-c3"]
    assert all(bar.percent <= 100 for card in board.cards for bar in card.bars)
    assert same_objects(folded(cluster), stored(cluster))
