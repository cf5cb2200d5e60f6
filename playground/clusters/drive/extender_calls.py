"""Extender calls of a cluster: who may be called, what is kept of each call, and bind calls.

A bind call's intent is committed before it (`intend`, in the batch's own transaction). After a crash the pod is
looked up first, so a bind is never sent for a pod that is bound. The other verbs may be called again.
"""

import json
import logging
import re
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction

from playground.clusters import wake
from playground.clusters.drive import lease as leases
from playground.clusters.drive.lease import Fenced, Lease
from playground.clusters.errors import Forbidden, InvalidInput
from playground.clusters.log.writer import LogWriter, locked, writing
from playground.clusters.models import Cluster, ExtenderCall, LogEntry, MockExtender, Pod
from playground.engine.configuration import loaded_and_problem
from playground.engine.extender_answers import entry_payload
from playground.engine.outbound import OutboundPolicy, OwnSite, host_of, may_be_called
from playground.engine.transport import Exchanged, HttpTransport
from scheduler_core.actions import BindByExtender
from scheduler_core.extender.transport import ExtenderAnswer, ExtenderRequest

logger = logging.getLogger(__name__)

RENEW_EVERY_S: Final = 5.0
MAX_KEPT_BYTES: Final = 1024 * 1024
"""Of a request or answer, compressed."""
_OWN_PATH: Final = re.compile(r"/mock-extenders/([a-z0-9]{4,24})/[^/]+")


def transport_for(cluster: Cluster, lease: Lease, *, cycle: Callable[[], int]) -> HttpTransport:
    """The transport of one visit: guarded, recorded, and renewing the lease while it waits.

    Parameters
    ----------
    cycle
        Number of the cycle that runs.
    """
    renewed_s = time.monotonic()

    def renew() -> None:
        nonlocal renewed_s
        if time.monotonic() - renewed_s < RENEW_EVERY_S:
            return
        if not leases.renew(lease):
            raise Fenced
        renewed_s = time.monotonic()

    return HttpTransport(
        _policy(cluster),
        is_own=lambda path: _is_own(cluster, path),
        measured=cluster.clock_mode == Cluster.ClockMode.REALTIME,
        may_read_files=settings.EMBEDDED,
        while_waiting=renew,
        record=lambda exchanged: _record(cluster, cycle(), exchanged),
    )


def asking_transport(cluster: Cluster) -> HttpTransport:
    """The transport of a question: as guarded as a visit's, and of which nothing is recorded."""
    return HttpTransport(
        _policy(cluster), is_own=lambda path: _is_own(cluster, path), may_read_files=settings.EMBEDDED
    )


def allowed_by_person(cluster: Cluster) -> frozenset[str]:
    """Hosts its person has allowed for this cluster: on a machine of one's own only (embedded mode)."""
    return frozenset(cluster.extender_hosts) if settings.EMBEDDED else frozenset()


def allow_extender_host(*, cluster: Cluster, host: str, allowed: bool = True) -> Cluster:
    """Let the server call an extender of this cluster inside the network, or no longer.

    Parameters
    ----------
    host
        ``host:port`` of an extender of the cluster's configuration.

    Raises
    ------
    Forbidden
        The machine is not the person's own: there PLAYGROUND_EXTENDER_HOSTS names the hosts.
    InvalidInput
        No extender of the configuration has this host.
    """
    if not settings.EMBEDDED:
        raise Forbidden("on this server its operator names the hosts extenders may have")
    extenders = loaded_and_problem(cluster.config, cluster.release)[0].configuration.extenders
    if allowed and host not in [host_of(extender.url_prefix) for extender in extenders]:
        raise InvalidInput("no extender of the configuration has this host", field="host", value=host)
    with writing(cluster) as writer:
        row = writer.cluster
        row.extender_hosts = sorted(
            {*row.extender_hosts, host} if allowed else {*row.extender_hosts} - {host}
        )
        writer.words = f"{'allow' if allowed else 'forbid'} calls of {host}"
        wake.cluster_on_commit(row)
    return cluster


def refused_hosts(cluster: Cluster) -> list[str]:
    """Hosts of its extenders inside the network that nothing lets this server call."""
    policy = _policy(cluster)
    urls = [
        extender.url_prefix
        for extender in loaded_and_problem(cluster.config, cluster.release)[0].configuration.extenders
    ]
    refused = [
        host_of(url)
        for url in urls
        if not (_is_own(cluster, f"{urlsplit(url).path.rstrip('/')}/filter") or may_be_called(url, policy))
    ]
    return list(dict.fromkeys(filter(None, refused)))


def _policy(cluster: Cluster) -> OutboundPolicy:
    own = urlsplit(settings.PLAYGROUND_OWN_URL)
    site = OwnSite(own.hostname or "127.0.0.1", own.port or 80, settings.PLAYGROUND_OWN_HOST or own.netloc)
    return OutboundPolicy(
        allowed_hosts=frozenset(settings.PLAYGROUND_EXTENDER_HOSTS) | allowed_by_person(cluster),
        only_allowed=not settings.EMBEDDED,
        own_site=site,
    )


def _is_own(cluster: Cluster, path: str) -> bool:
    match = _OWN_PATH.fullmatch(path)
    return (
        match is not None and MockExtender.objects.filter(cluster=cluster, public_id=match.group(1)).exists()
    )


def _record(cluster: Cluster, cycle: int, exchanged: Sequence[Exchanged]) -> None:
    """Keep calls as they went, at once; a bind call has its row already."""
    rows = []
    for item in exchanged:
        request, answer = item.request, item.answer
        logger.info(
            "extender %s: %s in %.1f ms",
            request.verb,
            answer.error or answer.status,
            item.took_ns / 1e6,
            extra={"cluster": cluster.public_id, "cycle": cycle, "url": request.url},
        )
        if request.verb == "bind":
            continue
        meta = (request.body.get("Pod") or request.body.get("pod") or {}).get("metadata") or {}
        pod = [meta.get(key, "") for key in ("namespace", "name", "uid")]
        rows.append(_row(cluster, cycle, request, *pod, **_outcome(item)))
    ExtenderCall.objects.bulk_create(rows)


def _row(
    cluster: Cluster,
    cycle: int,
    request: ExtenderRequest,
    namespace: str,
    name: str,
    uid: str,
    **outcome: Any,
) -> ExtenderCall:
    return ExtenderCall(
        cluster=cluster,
        cycle=cycle,
        pod_namespace=namespace,
        pod_name=name,
        pod_uid=uid,
        verb=request.verb,
        url=request.url,
        request=_packed(json.dumps(request.body, separators=(",", ":"))),
        **outcome,
    )


def _outcome(item: Exchanged) -> dict[str, Any]:
    return {
        "address": item.address,
        "state": ExtenderCall.State.ANSWERED,
        "status": item.answer.status or None,
        "error": item.answer.error or "",
        "took_ms": item.took_ns / 1e6,
        "answer": _packed(item.answer.text),
    }


def _packed(text: str) -> bytes | None:
    data = zlib.compress(text.encode(), 1)
    return data if len(data) <= MAX_KEPT_BYTES else None


# ---- bind calls


def intend(cluster: Cluster, calls: Sequence[BindByExtender]) -> None:
    """Note bind calls before they are made; part of the transaction that commits their cycles."""
    if not calls:
        return
    intended = ExtenderCall.State.INTENDED
    noted = {*ExtenderCall.objects.filter(cluster=cluster, state=intended).values_list("pod_uid", "url")}
    ExtenderCall.objects.bulk_create(
        _row(
            cluster, cluster.next_cycle - 1, call.request,
            call.pod.namespace, call.pod.name, call.pod.uid, state=intended,
        )
        for call in calls
        if (call.pod.uid, call.request.url) not in noted
    )  # fmt: skip


def make_bind_calls(lease: Lease, calls: Sequence[BindByExtender], transport: HttpTransport) -> None:
    """Make bind calls one after the other; each answer becomes an input of the log.

    Raises
    ------
    Fenced
        The lease was lost; its holder now looks the pods up and goes on.
    """
    for call in calls:
        pod = Pod.objects.filter(
            cluster_id=lease.cluster_id, namespace=call.pod.namespace, name=call.pod.name
        ).first()
        item: Exchanged | None = None
        if pod is None or pod.manifest["metadata"]["uid"] != call.pod.uid:
            answer = ExtenderAnswer(error=f'pods "{call.pod.name}" not found')
        elif pod.node_name:
            # Bound by the extender before a crash, or by another client; the answer that was lost said as much.
            answer = ExtenderAnswer(status=200, text="{}")
        else:
            item = _sent(transport, call)
            answer = item.answer
        _keep_answer(lease, call, answer, item)


def _sent(transport: HttpTransport, call: BindByExtender) -> Exchanged:
    return transport.exchange([call.request])[0]


def _keep_answer(lease: Lease, call: BindByExtender, answer: ExtenderAnswer, item: Exchanged | None) -> None:
    with transaction.atomic():
        cluster = locked(lease.cluster_id)
        if cluster.lease_token != lease.token:
            raise Fenced
        writer = LogWriter(cluster)
        pod = {"uid": call.pod.uid, "namespace": call.pod.namespace, "name": call.pod.name}
        writer.append(LogEntry.Source.API, LogEntry.Kind.EXTENDER, entry_payload(call.request, answer, pod))
        writer.flush()
        rows = ExtenderCall.objects.filter(
            cluster=cluster, pod_uid=call.pod.uid, url=call.request.url, state=ExtenderCall.State.INTENDED
        )
        if item is None:
            rows.update(state=ExtenderCall.State.SKIPPED, error=answer.error or "")
        else:
            rows.update(**_outcome(item))


def awaited(cluster_id: int) -> bool:
    """Whether bind calls were intended whose answers are not in the log."""
    return ExtenderCall.objects.filter(cluster_id=cluster_id, state=ExtenderCall.State.INTENDED).exists()


# ---- Extender calls as they went over the wire: how long they took by the wall clock, and what came back


def calls_of_cycle(cluster: Cluster, number: int) -> list[ExtenderCall]:
    """The calls of one cycle in the order they were made, its bind call among them. One query."""
    return list(ExtenderCall.objects.filter(cluster=cluster, cycle=number).order_by("pk"))


def matched(
    told: Iterable[tuple[str, str]], made: Sequence[ExtenderCall]
) -> tuple[list[ExtenderCall | None], list[ExtenderCall]]:
    """Calls that a cycle's record tells of beside those that were made.

    Parameters
    ----------
    told
        (verb, url) of each recorded call, in order.

    Returns
    -------
    list of ExtenderCall or None
        Aligned with `told`; None where what went over the wire is not kept.
    list of ExtenderCall
        Bind calls, which are made after the cycle's decision.
    """
    left = list(made)
    found: list[ExtenderCall | None] = []
    for key in told:
        wire = next((one for one in left if (one.verb, one.url) == key), None)
        if wire is not None:
            left.remove(wire)
        found.append(wire)
    return found, [wire for wire in left if wire.verb == "bind"]


def bind_calls_of(cluster: Cluster, uid: str) -> list[ExtenderCall]:
    """The bind calls that were made for a pod. One query."""
    return list(ExtenderCall.objects.filter(cluster=cluster, pod_uid=uid, verb="bind").order_by("pk"))
