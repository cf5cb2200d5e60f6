"""Bring your own scheduler: what starts one, and those that were seen, by page and REST."""

import html
import re
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from django.test import Client
from django.urls import reverse

from playground.clusters.models import Cluster
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.kube_api.conftest import Kube
from tests.kube_api.schedulers import Packing
from tests.markup import html_of

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


def lease(name: str, renewed: str, holder: str = "host-1_5f0c") -> dict[str, Any]:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def cluster(client: Client, db: None, wakes: list[Any]) -> Cluster:
    """A packing scheduler has been at work, one leads and has decided nothing, one was never seen."""
    wanted = [("pack-a", "1", "bin-packer"), ("pack-b", "9", "bin-packer"), ("led", "1", "leader"),
              ("lost-a", "1", "gone"), ("lost-b", "1", "gone"), ("own", "1", "default-scheduler")]  # fmt: skip
    pods = [make_pod(name, cpu=cpu, schedulerName=scheduler) for name, cpu, scheduler in wanted]
    made = make_cluster(make_node("n1", cpu="4"), *pods)
    kube = Kube(client, f"/k8s/{made.public_id}")
    Packing(kube).decide()
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    for body in (
        lease("leader", now),
        lease("gone", "2020-01-01T00:00:00.000000Z"),
        lease("my-operator", now),
    ):
        assert kube.post(LEASES, body).status_code == 201
    return made


def test_rest_tells_who_schedules_who_leads_and_who_is_missed(client: Client, cluster: Cluster) -> None:
    body = client.get(f"/api/v1/clusters/{cluster.public_id}/schedulers/").json()
    named = {row["schedulerName"]: row for row in body["items"]}
    assert set(named) == {"bin-packer", "leader", "gone", "default-scheduler"}
    assert {name for name, row in named.items() if row["here"]} == set(named) - {"gone"}
    assert [name for name, row in named.items() if row["profile"]] == ["default-scheduler"]
    packed = named["bin-packer"]
    assert [packed[key] for key in ("pods", "bound", "pending", "decisions")] == [2, 1, 1, 2]
    assert packed["programs"] == ["bin-packer/v0.9"] and packed["lastDecision"] is not None
    assert named["gone"]["lastDecision"] is None and body["waiting"] == 2
    [program] = body["programs"]
    assert program["author"] == "bin-packer/v0.9 (linux/amd64)" and program["schedulerNames"] == [
        "bin-packer"
    ]
    assert [program[key] for key in ("binds", "preemptions", "noNode")] == [1, 0, 1]
    held = {row["name"]: (row["held"], row["holderIdentity"]) for row in body["leases"]}
    assert held == {"leader": (True, "host-1_5f0c"), "gone": (False, "host-1_5f0c")}


def shown(client: Client, cluster: Cluster) -> str:
    answer = client.get(reverse("web:schedulers", args=[cluster.public_id]))
    assert answer.status_code == 200
    return html_of(answer)


def written(client: Client, cluster: Cluster) -> str:
    """The page to the last space: what is copied from it is YAML."""
    return client.get(reverse("web:schedulers", args=[cluster.public_id])).content.decode()


def copied(page: str, name: str) -> str:
    """The text of a block that can be copied."""
    found = re.search(rf'<pre class="code" id="{name}"[^>]*>(.*?)</pre>', page, re.S)
    assert found is not None and f'data-copy-from="{name}"' in page
    return html.unescape(found[1])


def test_the_page_tells_the_same_and_names_the_cluster(client: Client, cluster: Cluster) -> None:
    page = " ".join(shown(client, cluster).replace("<wbr>", "").split())
    assert f"<title>Bring your own scheduler · {cluster.name}" in page
    assert f"<b>2</b> pending pods of <b>{cluster.name}</b> wait for a scheduler that is not here" in page
    assert page.count("not seen here") == 1 and "the holder of its Lease" in page
    assert "host-1_5f0c" in page and "my-operator" not in page
    row = page[page.index("Programs by their decisions") :].partition("</tbody>")[0]
    assert "bin-packer/v0.9" in row and 'data-l="Binds">1<' in row


def test_the_kubeconfig_has_no_token_here_and_a_place_for_one_in_a_team(
    client: Client, cluster: Cluster, settings: Any, django_user_model: Any
) -> None:
    page = written(client, cluster)
    alone = yaml.safe_load(copied(page, "kubeconfig"))
    assert alone["clusters"][0]["cluster"]["server"] == f"http://testserver/k8s/{cluster.public_id}"
    assert alone["users"][0]["user"] == {} and alone["current-context"] == alone["contexts"][0]["name"]
    assert copied(page, "command") == "kube-scheduler --kubeconfig kubeconfig.yaml"
    settings.EMBEDDED = False
    cluster.owner = django_user_model.objects.create_user(username="owner")
    cluster.save(update_fields=["owner"])
    client.force_login(cluster.owner)
    page = written(client, cluster)
    [user] = yaml.safe_load(copied(page, "kubeconfig"))["users"]
    assert user["user"] == {"token": "PUT-YOUR-TOKEN-HERE"} and reverse("accounts:account") in page
    client.force_login(django_user_model.objects.create_user(username="stranger"))
    assert client.get(reverse("web:schedulers", args=[cluster.public_id])).status_code == 404
    assert client.get(f"/api/v1/clusters/{cluster.public_id}/schedulers/").status_code == 404
