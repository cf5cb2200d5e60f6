"""What happens to a cluster or a run, as server-sent events: on the watch pages have, too (`clusters.pulse`)."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import StreamingHttpResponse
from rest_framework.exceptions import Throttled
from rest_framework.renderers import JSONRenderer

from playground.api import representations
from playground.api.views.base import Call, django_request
from playground.clusters import pulse
from playground.clusters.access import cluster_now
from playground.clusters.board.overview import with_counts
from playground.clusters.errors import NotFound
from playground.clusters.objects.queries import get_run
from playground.clusters.pulse import HERE, RETRY, changes
from playground.clusters.row_types import Cluster, Run

MOST_STREAMS: Final = 200
"""Open at once in one process."""
MOST_OF_A_PERSON: Final = 20
LONGEST_S: Final = 3600.0
"""A stream ends after so long; a client comes back with the id of the last event it saw."""
CHANGE, END = "change", "end"

Told = tuple[str, dict[str, Any]]
Look = Callable[[], Told]
"""The present state: `change`, or `end` where nothing comes after it, and what is told of it."""

_open: Counter[str] = Counter()


def _event(told: Told) -> tuple[str, bytes]:
    kind, body = told
    data = JSONRenderer().render(body).decode()
    name = hashlib.sha256(data.encode()).hexdigest()[:16]
    return name, f"id: {name}\nevent: {kind}\ndata: {data}\n\n".encode()


def _looked(look: Look) -> Told:
    """Read the database from any thread and close the thread's connection afterwards."""
    try:
        return look()
    except NotFound:
        return END, {}
    finally:
        connections.close_all()


async def _stream(pk: int, look: Look, last: str, whose: str) -> AsyncIterator[bytes]:
    read = sync_to_async(_looked, thread_sensitive=False)
    _open[whose] += 1
    try:
        yield RETRY
        async with asyncio.timeout(LONGEST_S), aclosing(changes(pk)) as watched:
            async for stamp in watched:
                if stamp is None:
                    yield HERE
                    continue
                told = (END, {}) if stamp == pulse.GONE else await read(look)
                name, event = _event(told)
                if name != last:
                    yield event
                last = name
                if told[0] == END:
                    return
    except TimeoutError:
        return
    finally:
        _open[whose] -= 1
        if not _open[whose]:
            del _open[whose]


def _once(look: Look, last: str) -> Iterator[bytes]:
    """Where no stream can be held open (WSGI): the present state, and the client comes back for the next."""
    yield RETRY
    name, event = _event(look())
    if name != last:
        yield event


def _streamed(call: Call, cluster: Cluster, look: Look) -> StreamingHttpResponse:
    """The answer.

    Raises
    ------
    Throttled
        Too many are open.
    """
    last = call.request.headers.get("Last-Event-ID", "")[:64]
    whose = "" if call.person is None else str(call.person.pk)
    most = MOST_STREAMS if call.person is None else MOST_OF_A_PERSON
    if _open[whose] >= most or _open.total() >= MOST_STREAMS:
        raise Throttled(wait=5, detail="too many event streams are open")

    def look_again() -> Told:
        return look() if cluster_now(cluster.pk, call.person) is not None else (END, {})

    is_async = isinstance(django_request(call.request), ASGIRequest)
    body = _stream(cluster.pk, look_again, last, whose) if is_async else _once(look, last)
    response = StreamingHttpResponse(body, content_type="text/event-stream")
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response


def clusters_events(call: Call, cluster: Cluster) -> Any:
    """Server-sent events: `change`, whose data is the cluster as `clusters_read` tells it, at first and at every
    change, twice a second at most; `end` when it is deleted.

    A stream ends after an hour. With `Last-Event-ID` the first event comes only if something has changed since.
    """
    return _streamed(call, cluster, lambda: (CHANGE, representations.cluster(with_counts(cluster))))


def runs_events(call: Call, cluster: Cluster, run: Run) -> Any:
    """As of a cluster; the data is the run as `runs_read` tells it, and `end` tells it when it is over."""

    def look() -> Told:
        now = get_run(cluster, run.public_id)
        return (CHANGE if now.is_open else END), representations.run(now, cluster.public_id)

    return _streamed(call, cluster, look)
