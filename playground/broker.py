"""Which broker carries the wake-ups, and how Celery is set for it.

The embedded broker is a folder in which each lane has at most one file. A message only says "look"
(`clusters/wake.py`); rows say what there is to do, and workers look anyway every few moments. So one message is as good
as many, and nothing is lost with one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from queue import Empty
from typing import Any
from urllib.parse import quote, unquote, urlsplit
from uuid import uuid4

from kombu.entity import Exchange, Queue
from kombu.transport import TRANSPORT_ALIASES, virtual
from kombu.utils.json import dumps, loads

from scheduler_core.schema.tables import table_beside

SCHEME = "folder"
TRANSPORT_ALIASES.setdefault(SCHEME, "playground.broker:Transport")
_LONGEST_WAIT_S = 0.2
"""A worker that is to end does not wait longer for a message."""


def url_for(folder: Path) -> str:
    """The address of the broker whose messages are in this folder."""
    return f"{SCHEME}://localhost/{quote(str(folder.resolve()))}"


def check(url: str) -> None:
    """Write into the folder of the embedded broker, which is made if it is gone; nothing for a broker of a server.

    Raises
    ------
    OSError
    """
    if _kind_of(url) == SCHEME:
        folder = Path(unquote(urlsplit(url).path))
        _write(folder, "probe", "")
        (folder / "probe").unlink(missing_ok=True)


def queues(url: str, names: Iterable[str]) -> list[Queue]:
    """The queues of these names as the broker at `url` wants them declared."""
    quorum = _kind_of(url) == "amqp"
    exchange = Exchange("playground", type="topic" if quorum else "direct")
    arguments = {"x-queue-type": "quorum"} if quorum else None
    return [Queue(name, exchange, routing_key=name, queue_arguments=arguments) for name in names]


def celery_settings(url: str) -> dict[str, Any]:
    """Celery settings that depend on the broker at `url`."""
    found: dict[str, Any] = table_beside(__package__, "broker.yaml").get(_kind_of(url), {})
    return found


def _kind_of(url: str) -> str:
    scheme = url.partition(":")[0]
    return {"pyamqp": "amqp", "amqps": "amqp", "rediss": "redis", "valkey": "redis", "valkeys": "redis"}.get(
        scheme, scheme
    )


def _write(folder: Path, name: str, text: str) -> None:
    """Put a file in place of another at once: a reader sees one or the other."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = folder / f".{name}-{uuid4()}"
    try:
        beside.write_text(text, "utf-8")
        beside.replace(folder / name)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


class Channel(virtual.Channel):
    """A file for each queue: a message takes the place of the one before."""

    do_restore = False

    @property
    def folder(self) -> Path:
        return Path("/", self.connection.client.virtual_host)

    def _put(self, queue: str, message: dict[str, Any], **kwargs: Any) -> None:
        _write(self.folder, queue, dumps(message))

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        taken = self.folder / f".{queue}-{uuid4()}"
        try:
            # Of several workers one moves it, and has it.
            (self.folder / queue).rename(taken)
            message: dict[str, Any] = loads(taken.read_bytes())
        except (FileNotFoundError, ValueError):
            raise Empty from None
        finally:
            taken.unlink(missing_ok=True)
        return message

    def _size(self, queue: str) -> int:
        return int((self.folder / queue).exists())

    def _purge(self, queue: str) -> int:
        size = self._size(queue)
        (self.folder / queue).unlink(missing_ok=True)
        return size


class Transport(virtual.Transport):
    Channel = Channel
    can_parse_url = False
    driver_type = driver_name = SCHEME
    polling_interval = 0.05
    connection_errors: tuple[type[Exception], ...] = (  # type: ignore[assignment]  # Kombu's own is longer, too
        *virtual.Transport.connection_errors,
        OSError,
    )

    def driver_version(self) -> str:
        return str(os.name)

    # As Kombu's transport that this is one of, which differs in the same way from the one below it.
    def drain_events(self, connection: Any, timeout: float | None = None) -> None:  # type: ignore[override]
        super().drain_events(connection, timeout=min(timeout or _LONGEST_WAIT_S, _LONGEST_WAIT_S))
