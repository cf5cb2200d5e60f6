"""Services get what an API server gives them: addresses, node ports; and keep both."""

from __future__ import annotations

from typing import Any

import pytest

from playground.clusters.objects.apply import apply_documents
from tests.kube_api.conftest import Kube
from tests.manifests import make_object
from tests.tables import table

SERVICES = "/api/v1/namespaces/default/services"


def service(name: str, **spec: Any) -> dict[str, Any]:
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    return make_object("v1", "Service", name, spec={"ports": ports} | spec)


def test_addresses_differ_and_are_of_the_usual_range(kube: Kube) -> None:
    made = [kube.post(SERVICES, service(name)).json()["spec"] for name in ("a", "b")]
    addresses = [spec["clusterIP"] for spec in made]
    assert addresses[0] != addresses[1] and all(one.startswith("10.96.") for one in addresses)
    assert [spec["clusterIPs"] for spec in made] == [[one] for one in addresses]
    assert made[0]["ipFamilies"] == ["IPv4"] and "nodePort" not in made[0]["ports"][0]


@pytest.mark.parametrize(
    ("spec", "address", "n_ports"),
    table(__file__, "each_type_gets_what_it_needs"),
)
def test_each_type_gets_what_it_needs(
    kube: Kube, spec: dict[str, Any], address: str | None, n_ports: int
) -> None:
    made = kube.post(SERVICES, service("x", **spec)).json()["spec"]
    assert (made.get("clusterIP"), made.get("clusterIPs")) == (address, address and [address])
    assert len({port["nodePort"] for port in made["ports"] if "nodePort" in port}) == n_ports


def test_what_was_given_stays_over_every_way_to_write(kube: Kube, cluster: Any) -> None:
    first = kube.post(SERVICES, service("x", type="NodePort")).json()["spec"]
    again = service("x", type="NodePort", selector={"app": "web"})
    assert kube.put(f"{SERVICES}/x", again).json()["spec"] == first | {"selector": {"app": "web"}}
    result = apply_documents(cluster=cluster, objects=[again])
    assert [item.name for item in result.unchanged] == ["x"]
    assert kube.put(f"{SERVICES}/x", service("x")).json()["spec"]["clusterIP"] == first["clusterIP"]
    ports = kube.put(f"{SERVICES}/x", service("x", type="NodePort")).json()["spec"]["ports"]
    assert all(30000 <= port["nodePort"] < 32768 for port in ports)
    other = kube.patch(f"{SERVICES}/x", {"spec": {"clusterIP": "10.96.9.9", "clusterIPs": ["10.96.9.9"]}})
    assert other.json()["message"] == (
        'Service "x" is invalid: spec.clusterIPs[0]: Invalid value: ["10.96.9.9"]: may not change once set'
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    table(__file__, "a_service_that_cannot_be_is_refused"),
)
def test_a_service_that_cannot_be_is_refused(kube: Kube, spec: dict[str, Any], message: str) -> None:
    assert kube.post(SERVICES, service("x", **spec)).json()["message"] == f'Service "x" is invalid: {message}'


def test_a_service_that_becomes_a_name_and_an_address_again(kube: Kube) -> None:
    kube.post(SERVICES, service("x"))
    named = kube.put(f"{SERVICES}/x", service("x", type="ExternalName", externalName="x.example")).json()[
        "spec"
    ]
    assert "clusterIP" not in named
    assert kube.put(f"{SERVICES}/x", service("x")).json()["spec"]["clusterIP"].startswith("10.96.")
