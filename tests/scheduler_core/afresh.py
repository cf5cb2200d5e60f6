"""A cluster met for the first time: what is kept from cycle to cycle has to give what this gives."""

from scheduler_core.cli.conformance_cycles import CaseCluster
from scheduler_core.objects.kinds import KINDS


def afresh(cluster: CaseCluster) -> CaseCluster:
    """The same objects and nominations, in the same orders, before a scheduler that has seen none of them."""
    cache, result = cluster.cache, CaseCluster([], None, release=cluster.loaded.release)
    for name in cache.node_order():
        result.cache.set_node(cache.nodes.node(cache.nodes.row_of[name]))
    # An image has the size its first node told, and a node forgets a port with the first of its pods that leaves it,
    # as upstream's do: history, not content.
    result.cache.nodes.image_size_bytes.update(cache.nodes.image_size_bytes)
    for kind in KINDS:
        for item in cache.listers.all(kind):
            result.cache.listers.set(kind, item.meta.namespace, item.meta.name, item)
    # Of two equal pods the one that came first is the more important: arrivals of all nodes in one order.
    pods = cache.pods
    for uid in sorted(cache.pod_order(), key=lambda uid: int(pods.arrival[pods.id_of[uid]])):
        pod = cache.pod(uid)
        assert pod is not None
        result.cache.add_pod(pod)
    for name, port in cache.forgotten_ports():
        result.cache.forget_port(name, port)
    for uid, name in cluster.nominator.state():
        nominated = cluster.nominator.pod(uid)
        assert nominated is not None
        result.nominator.add(nominated, name)
    return result
