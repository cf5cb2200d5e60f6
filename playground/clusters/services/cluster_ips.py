"""What an API server gives a Service that its writer left out: cluster IP and node ports.

Helm and others wait for a Service until it has an address. The numbers follow from the sequence number of the entry
that makes the Service, so that equal logs give equal addresses and no table of taken ones is kept.

Source: pkg/registry/core/service/storage/{alloc,storage}.go (patchAllocatedValues), v1.34
Differs: addresses and ports that others wrote are not looked at; families are always [IPv4].
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Any, Final

FIRST_ADDRESS: Final = int(IPv4Address("10.96.1.0"))
N_ADDRESSES: Final = 2**20 - 2 * 256  # 10.96.0.0/12 without both ends
FIRST_NODE_PORT: Final = 30000
N_NODE_PORTS: Final = 2768
_WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")


def with_addresses(manifest: dict[str, Any], seq: int) -> dict[str, Any]:
    """A Service that is about to be created, with what it needs.

    Parameters
    ----------
    seq
        Of the entry that makes it.
    """
    spec = manifest.get("spec")
    if not isinstance(spec, Mapping) or spec.get("type") == "ExternalName":
        return manifest
    given = spec.get("clusterIPs") or []
    address = spec.get("clusterIP") or (given[0] if given else "")
    address = address or str(IPv4Address(FIRST_ADDRESS + seq % N_ADDRESSES))
    filled = {
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
        **spec,
        "clusterIP": address,
        "clusterIPs": given or [address],
    }
    return {**manifest, "spec": _with_node_ports(filled, seq)}


def with_kept_addresses(manifest: dict[str, Any], old: Mapping[str, Any], seq: int) -> dict[str, Any]:
    """A Service that takes the place of another, with the addresses that one was given.

    Parameters
    ----------
    old
        As stored.
    seq
        Of the entry that changes it, for what the other had no need of.
    """
    spec, was = manifest.get("spec"), old.get("spec")
    if not isinstance(spec, Mapping) or not isinstance(was, Mapping):
        return manifest
    spec = dict(spec)
    if spec.get("type") == "ExternalName":
        return manifest
    if was.get("type") != "ExternalName" and not spec.get("clusterIP") and was.get("clusterIP"):
        kept = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")
        spec = {key: was[key] for key in kept if key in was} | spec
    if was.get("type") in _WITH_NODE_PORTS and spec.get("type") in _WITH_NODE_PORTS:
        ports = {_port_key(port): port.get("nodePort") for port in was.get("ports") or ()}
        spec["ports"] = [
            port if port.get("nodePort") or not ports.get(_port_key(port))
            else {**port, "nodePort": ports[_port_key(port)]}
            for port in spec.get("ports") or ()
        ]  # fmt: skip
    return with_addresses({**manifest, "spec": spec}, seq)


def _with_node_ports(spec: dict[str, Any], seq: int) -> dict[str, Any]:
    ports = spec.get("ports") or []
    if spec.get("type") not in _WITH_NODE_PORTS or spec.get("allocateLoadBalancerNodePorts") is False:
        return spec
    numbered = []
    for place, port in enumerate(ports):
        # Neighbours in the log must not get neighbouring ports, as both may need several.
        free = FIRST_NODE_PORT + (seq * 7 + place * 997) % N_NODE_PORTS
        numbered.append({**port, "nodePort": port.get("nodePort") or free})
    return spec | {"ports": numbered}


def _port_key(port: Mapping[str, Any]) -> tuple[Any, Any]:
    return port.get("protocol") or "TCP", port.get("port")
