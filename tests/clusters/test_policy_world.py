"""A Policy on the site: what has no effect is named, extenders of one's own machine are allowed by hand."""

import json
import ssl
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from playground.clusters.drive import extender_calls
from playground.clusters.drive.config import set_config
from playground.clusters.errors import Forbidden, InvalidInput, InvalidManifest
from playground.clusters.models import Cluster, Cycle, ExtenderCall
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.clusters.test_extenders import configuration
from tests.engine.extender_server import serving
from tests.tables import table

pytestmark = pytest.mark.django_db(transaction=True)

POLICY = table(__file__, "POLICY")


def test_what_a_policy_asks_for_in_vain_is_named_in_the_answer_and_on_the_page(client: Client) -> None:
    cluster = make_cluster(make_node())
    path = f"/api/v1/clusters/{cluster.public_id}/config"
    answer = client.put(path, json.dumps(POLICY), content_type="application/json").json()
    assert [(item["field"], item["name"]) for item in answer["withoutEffect"]] == [
        ("predicates[0]", "CheckNodeCondition"),
        ("priorities[0]", "ResourceLimitsPriority"),
    ]
    assert client.get(path).json() == answer
    body = json.dumps({"name": "old", "config": POLICY})
    made = client.post("/api/v1/clusters/", body, content_type="application/json").json()
    assert made["withoutEffect"] == answer["withoutEffect"]
    page = client.get(f"/c/{cluster.public_id}/config/").content.decode()
    for item in answer["withoutEffect"]:
        assert item["name"] in page
        assert item["reason"] in page
    for kept in ({}, {"apiVersion": "v1"}):
        bare = kept | {key: value for key, value in POLICY.items() if key not in ("kind", "apiVersion")}
        refused = client.put(path, json.dumps(bare), content_type="application/json")
        assert refused.status_code == 400
        assert "kind: Policy" in refused.json()["detail"]
    wrong = client.put(path, json.dumps(POLICY | {"predicate": []}), content_type="application/json").json()
    assert (wrong["kind"], wrong["field"], wrong["detail"]) == (
        "Policy",
        "predicate",
        "unknown field (did you mean predicates?)",
    )


def test_a_policy_is_read_whatever_the_case_of_its_keys(client: Client) -> None:
    """As encoding/json read the early ones."""
    cluster = make_cluster(make_node())
    path = f"/api/v1/clusters/{cluster.public_id}/config"
    today = table(__file__, "a_policy_is_read_whatever_the_case_of_its_keys")

    def shouted(value: Any) -> Any:
        if isinstance(value, list):
            return [shouted(item) for item in value]
        if not isinstance(value, dict):
            return value
        named = ("kind", "apiVersion")
        return {
            key if key in named else key[0].upper() + key[1:]: shouted(item) for key, item in value.items()
        }

    answer = client.put(path, json.dumps(shouted(today)), content_type="application/json")
    assert answer.status_code == 200, answer.content
    cluster.refresh_from_db()
    # What else reads it, the rule about an extender's host above all, finds the keys of today.
    assert cluster.config == today
    assert extender_calls.refused_hosts(cluster) == ["127.0.0.1:9"]
    twice = today | {"Extenders": []}
    refused = client.put(path, json.dumps(twice), content_type="application/json").json()
    assert (refused["field"], refused["detail"]) == (
        "Extenders",
        "unknown field (did you mean extenders?)",
    )


def test_an_extender_of_this_machine_is_called_once_it_is_allowed_on_the_page(
    client: Client, settings: Any
) -> None:
    settings.PLAYGROUND_EXTENDER_HOSTS = []
    with serving(lambda path, body: {"nodenames": ["n1"]}) as server:
        cluster = make_cluster(make_node("n1"), make_node("n2"), make_pod("p"))
        host = f"127.0.0.1:{server.port}"
        set_config(cluster=cluster, config=configuration(f"http://{host}", "filter"))
        assert extender_calls.refused_hosts(cluster) == [host]
        page = f"/c/{cluster.public_id}/config/"
        assert f"Allow {host}" in client.get(page).content.decode()
        with pytest.raises(InvalidInput, match="no extender"):
            extender_calls.allow_extender_host(cluster=cluster, host="127.0.0.1:1")
        assert client.post(page, {"host": host, "action": "allow"}).status_code == 302
        shown = client.get(page).content.decode()
        assert f"Forbid {host}" in shown
        assert f"Allow {host}" not in shown
        cluster.refresh_from_db()
        run(cluster)
        assert list(Cycle.objects.values_list("outcome", "node")) == [("bound", "n1")]
        assert ExtenderCall.objects.filter(error="").count() == 1
        client.post(page, {"host": host, "action": "forbid"})
        cluster.refresh_from_db()
        assert extender_calls.refused_hosts(cluster) == [host]


def test_elsewhere_the_operator_names_the_hosts(settings: Any) -> None:
    cluster = make_cluster(make_node())
    url = "http://127.0.0.1:9"
    set_config(cluster=cluster, config=configuration(url, "filter"))
    Cluster.objects.update(extender_hosts=["127.0.0.1:9"])
    cluster.refresh_from_db()
    settings.EMBEDDED = False
    with pytest.raises(Forbidden, match="operator"):
        extender_calls.allow_extender_host(cluster=cluster, host="127.0.0.1:9")
    assert extender_calls.refused_hosts(cluster) == ["127.0.0.1:9"]


def test_files_of_ones_own_machine_are_read_and_plainly_refused_elsewhere(
    settings: Any, tmp_path: Path
) -> None:
    cluster = make_cluster(make_node())
    file = tmp_path / "ca.pem"
    config = configuration("https://e.test", "filter", tlsConfig={"caFile": str(file)})
    with pytest.raises(InvalidManifest, match="no such file"):
        set_config(cluster=cluster, config=config)
    file.write_text("no certificate")
    with pytest.raises(InvalidManifest, match="unable to parse bytes as PEM block"):
        set_config(cluster=cluster, config=config)
    file.write_text(ssl.DER_cert_to_PEM_cert(b"0"))
    assert set_config(cluster=cluster, config=config).config == config
    settings.EMBEDDED = False
    with pytest.raises(InvalidManifest, match="files of this server are not read") as caught:
        set_config(cluster=cluster, config=config)
    assert caught.value.path == "extenders[0].tlsConfig.caFile"
