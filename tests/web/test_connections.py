"""What a request leaves behind in the database's list of clients."""

import gc
import time
from contextlib import ExitStack, closing
from urllib.request import urlopen

import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.web.factories import make_cluster

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.database]


def _n_connections() -> int:
    """Of this test's process, to its database."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
            (count,) = cursor.fetchone()
        return int(count)
    # SQLite keeps the files of closed connections for later ones, as long as any connection holds a lock.
    wrappers = (thing for thing in gc.get_objects() if issubclass(type(thing), BaseDatabaseWrapper))
    return sum(wrapper.connection is not None for wrapper in wrappers)


def test_requests_and_watching_clients_keep_no_connection(asgi_server: str) -> None:
    cluster = make_cluster()
    board = f"{asgi_server}/c/{cluster.public_id}/"
    pods = f"{asgi_server}/k8s/{cluster.public_id}/api/v1/pods?watch=1"
    gc.disable()  # A thread's connection would go with its garbage, at some time.
    try:
        before = _n_connections()
        with ExitStack() as watching:
            for _ in range(8):
                with closing(urlopen(board, timeout=60)) as answer:
                    answer.read()
                # Sent in parts, which are read from the database one after the other.
                with closing(urlopen(f"{board}export.yaml", timeout=60)) as answer:
                    assert answer.read().startswith(b"---\napiVersion: ")
            for address in (f"{board}ticks/", pods) * 4:
                watching.enter_context(closing(urlopen(address, timeout=60)))
            # What reads for those that watch may be at it.
            deadline = time.monotonic() + 60
            while _n_connections() > before + 2 and time.monotonic() < deadline:
                time.sleep(0.1)
            assert _n_connections() <= before + 2
    finally:
        gc.enable()
