"""A budget's fields are typed columns: derived in the same write."""

from typing import Any

import pytest

from playground.clusters.errors import InvalidManifest
from playground.clusters.models import PodDisruptionBudget
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import create_object, replace_object
from tests.clusters.builders import make_cluster
from tests.tables import table

AT = "2026-01-01T00:00:00Z"


def make_budget(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "db"}}} | spec,
    }
    return budget | ({"status": status} if status else {})


@pytest.mark.django_db
def test_the_columns_follow_the_manifest() -> None:
    counts = {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 4}
    cluster = make_cluster(
        make_budget(counts | {"disruptedPods": {"b": AT, "a": AT}}, minAvailable="50%"),
    )
    row = PodDisruptionBudget.objects.get(cluster=cluster)
    assert (row.min_available, row.max_unavailable) == ("50%", "")
    assert row.selector == {"matchLabels": {"app": "db"}}
    assert (row.expected_pods, row.current_healthy, row.desired_healthy, row.disruptions_allowed) == (
        4,
        3,
        2,
        1,
    )
    assert (row.disrupted_pods, row.counted, row.given) == (["a", "b"], True, True)
    # Another rule makes a status from elsewhere old: it goes, and the controller counts anew.
    replace_object(cluster=cluster, manifest=make_budget(maxUnavailable=0))
    row.refresh_from_db()
    assert (row.min_available, row.max_unavailable, row.counted, row.given) == ("", "0", False, False)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("spec", "place", "words"),
    table(__file__, "what_an_api_server_refuses_is_refused_in_its_words"),
)
def test_what_an_api_server_refuses_is_refused_in_its_words(
    spec: dict[str, Any], place: str, words: str
) -> None:
    cluster = make_cluster()
    with pytest.raises(InvalidManifest) as refused:
        create_object(cluster=cluster, manifest=make_budget(**spec))
    assert refused.value.path == place
    assert refused.value.message.endswith(words)
    with pytest.raises(InvalidManifest) as refused:
        apply_documents(cluster=cluster, objects=[make_budget(**spec)])
    assert refused.value.path == place
    assert not PodDisruptionBudget.objects.filter(cluster=cluster).exists()
