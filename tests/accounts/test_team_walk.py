"""Every URL that names a cluster, as a viewer and as an editor of its team; strangers: `test_every_url`."""

import pytest

from playground.accounts.models import User
from playground.clusters.models import Cluster
from tests.accounts.test_every_url import METHODS_OF, path_of
from tests.accounts.world import SECRET, asked, client_of
from tests.clusters.builders import make_pod

pytestmark = pytest.mark.any_database

# Beginning a run, or a question about it, is an editor's; these only read, though they are posted.
READING_POSTS = (
    "apply-to-parent",  # changes the parent, for which it asks; this cluster has none
    "why-not",
    "weights",
    "seeds",
    "try",
    "fix",
    "preview",
    "clone",
    "branch",  # like a clone: a cluster of their own
    "questions",
    "compare",
)
# The stream of ticks says 501 to everybody here: the test client is no ASGI server (tests/web asks it for real).
ROUTES = [route for route in METHODS_OF if "cluster_id" in route and not route.endswith("/ticks/")]


@pytest.fixture
def names(world: dict[str, str]) -> dict[str, str]:
    return world | {"action": "rename"}


@pytest.mark.slow
def test_a_viewer_looks_and_changes_nothing(names: dict[str, str]) -> None:
    vic = client_of(User.objects.get(username="vic"))
    before = Cluster.objects.get().next_seq
    shown = 0
    for route in ROUTES:
        path = path_of(route, names)
        read = asked(vic, "GET", path)
        shown += read.status_code == 200
        assert read.status_code != 403, (path, read.status_code)
        assert read.status_code < 500, (path, read.status_code)
        for method in [name for name in METHODS_OF[route] if name != "GET"]:
            answer = asked(vic, method, path)
            if any(word in path for word in READING_POSTS):
                assert answer.status_code < 500, (method, path)
            else:
                assert answer.status_code in (403, 405, 404), (method, path, answer.status_code)
    row = Cluster.objects.get(public_id=names["cluster_id"])
    assert (row.next_seq, row.name, row.clock_mode) == (before, SECRET, "paused")
    assert shown > len(ROUTES) / 2


def test_an_editor_changes_and_only_an_owner_deletes(names: dict[str, str]) -> None:
    cluster = Cluster.objects.get()
    ed, ada = client_of(User.objects.get(username="ed")), client_of(User.objects.get(username="ada"))
    here = f"/api/v1/clusters/{cluster.public_id}/"
    body = {"name": "renamed"}
    assert ed.patch(here, body, content_type="application/json").status_code == 200
    pods = f"/k8s/{cluster.public_id}/api/v1/namespaces/default/pods"
    assert ed.post(pods, make_pod("new"), content_type="application/json").status_code == 201
    assert ed.delete(here).status_code == 403
    assert ed.post(f"/c/{cluster.public_id}/cluster/delete/", {"sure": "yes"}).status_code == 403
    assert ada.delete(here).status_code == 204
