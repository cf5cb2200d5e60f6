"""A kombu transport over one SQLite file, with real acknowledgements: ``sqliteq:////path/to/file``.

Unlike kombu's other transports without a server it keeps a message until it is acknowledged, so a worker
killed in the middle of a task loses nothing: the message is handed out again as soon as its taker is seen
to be dead. One machine, a local disk and a POSIX system are all it serves.
"""

from __future__ import annotations

import datetime
import sqlite3
import threading
import time
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import virtual
from kombu.utils.json import dumps, loads

from playground.broker.store import MessageStore, store_at

Message = dict[str, Any]


class QoS(virtual.QoS):
    """Tells the store, too, when a message is done with."""

    channel: Channel

    def ack(self, delivery_tag: str) -> None:
        self.channel.store.acknowledge(str(delivery_tag))
        super().ack(delivery_tag)
        self.channel.transport_woken()

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        if requeue:
            self.channel.store.release(str(delivery_tag))
        else:
            self.channel.store.acknowledge(str(delivery_tag))
        super().ack(delivery_tag)
        self.channel.transport_woken()


class Channel(virtual.Channel):
    QoS = QoS
    supports_fanout = True

    def __init__(self, connection: Transport, **kwargs: Any) -> None:
        # Kept apart from `connection`, which a closed channel forgets while late acknowledgements still come.
        self._transport = connection
        self._unacknowledged_queues: set[str] = set()
        super().__init__(connection, **kwargs)

    @property
    def store(self) -> MessageStore:
        return store_at(self._transport.path)

    def transport_woken(self) -> None:
        self._transport.woken.set()

    # Messages.
    def _put(self, queue: str, message: Message, **kwargs: Any) -> None:
        due = None
        if eta := (message.get("headers") or {}).get("eta"):
            # Kept here until then, rather than by a worker, which may be gone by that time or has no timer to spare.
            due = datetime.datetime.fromisoformat(eta).timestamp()
            message = message | {"headers": message["headers"] | {"eta": None}}
        self.store.put(queue, str(message["properties"]["delivery_tag"]), dumps(message), due=due)

    def _put_fanout(self, exchange: str, message: Message, routing_key: str, **kwargs: Any) -> None:
        for _, _, queue in self.store.bindings(exchange):
            properties = message["properties"] | {"delivery_tag": self._next_delivery_tag()}
            self._put(queue, message | {"properties": properties})

    def _get(self, queue: str, timeout: float | None = None) -> Message:
        return self._take(queue, keep=queue not in self._unacknowledged_queues)

    def _take(self, queue: str, *, keep: bool) -> Message:
        taken = self.store.take(queue, keep=keep)
        if taken is None:
            raise Empty
        message: Message = loads(taken.body)
        if taken.redelivered:
            message["properties"].setdefault("delivery_info", {})["redelivered"] = True
        return message

    def _restore(self, message: virtual.Message) -> None:
        self.store.release(str(message.delivery_tag))

    def basic_consume(self, queue: str, no_ack: bool, *args: Any, **kwargs: Any) -> None:
        if no_ack:
            self._unacknowledged_queues.add(queue)
        super().basic_consume(queue, no_ack, *args, **kwargs)

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> virtual.Message | None:
        try:
            message = self.Message(self._take(queue, keep=not no_ack), channel=self)
        except Empty:
            return None
        if not no_ack:
            self.qos.append(message, message.delivery_tag)
        return message

    # Queues and bindings: they live in the file, so that every process routes alike.
    def _new_queue(self, queue: str, *, auto_delete: bool = False, **kwargs: Any) -> None:
        if auto_delete:
            self.store.own_queue(queue)

    def _queue_bind(self, exchange: str, routing_key: str | None, pattern: str | None, queue: str) -> None:
        self.store.bind(exchange, routing_key or "", pattern or "", queue)

    def queue_unbind(
        self,
        queue: str,
        exchange: str | None = None,
        routing_key: str = "",
        arguments: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().queue_unbind(queue, exchange, routing_key, arguments, **kwargs)
        self.store.unbind(exchange or "", routing_key or "", queue)

    def get_table(self, exchange: str) -> list[tuple[str, str, str]]:
        return self.store.bindings(exchange)

    def _size(self, queue: str) -> int:
        return self.store.size(queue)

    def _purge(self, queue: str) -> int:
        return self.store.purge(queue)

    def _delete(self, queue: str, *args: Any, **kwargs: Any) -> None:
        self.store.delete_queue(queue)


class Transport(virtual.Transport):
    Channel = Channel
    can_parse_url = False
    driver_type = "sqlite"
    driver_name = "sqliteq"
    polling_interval = 0.1
    #: Set when this process is about to end: nothing is waited for any longer.
    ending = False
    connection_errors: tuple[type[Exception], ...] = (  # type: ignore[assignment]  # Kombu's own is longer, too
        *virtual.Transport.connection_errors,
        sqlite3.OperationalError,
    )
    implements = virtual.Transport.implements.extend(exchange_type=frozenset(["direct", "topic", "fanout"]))

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        self.path = Path("/", client.virtual_host)
        self.woken = threading.Event()

    def driver_version(self) -> str:
        return sqlite3.sqlite_version

    # As Kombu's transport that this is one of, which differs in the same way from the one below it.
    def drain_events(self, connection: Any, timeout: float | None = None) -> None:  # type: ignore[override]
        """Deliver one message; between looks, wait until one is done with or `polling_interval` is over."""
        deadline_s = None if timeout is None else time.monotonic() + timeout
        assert self.cycle is not None
        while True:
            self.woken.clear()
            try:
                self.cycle.get(self._deliver, timeout=timeout)
                return
            except Empty:
                pause_s = self.polling_interval
                if deadline_s is not None:
                    left_s = deadline_s - time.monotonic()
                    if left_s <= 0 or Transport.ending:
                        raise TimeoutError from None
                    pause_s = min(pause_s, left_s)
                self.woken.wait(pause_s)
