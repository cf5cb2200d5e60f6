"""Which broker carries the wake-ups, and how Celery is set for it.

The embedded broker (`transport.py`) keeps messages in one SQLite file, with real acknowledgements.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from kombu.entity import Exchange, Queue
from kombu.transport import TRANSPORT_ALIASES

SCHEME = "sqliteq"
TRANSPORT_ALIASES.setdefault(SCHEME, "playground.broker.transport:Transport")


def url_for(path: Path) -> str:
    """The broker address of the message file `path`."""
    return f"{SCHEME}://localhost/{quote(str(path.resolve()))}"


def check(url: str) -> None:
    """Look into the message file of the embedded broker, which is made anew if it cannot be read; else nothing.

    Raises
    ------
    sqlite3.Error, OSError
    """
    if url.partition(":")[0] == SCHEME:
        from playground.broker.store import store_at

        store_at(Path(unquote(urlsplit(url).path))).size("")


def queues(url: str, names: Iterable[str]) -> list[Queue]:
    """The queues of these names as the broker at `url` wants them declared."""
    quorum = url.partition(":")[0] in ("amqp", "amqps", "pyamqp")
    exchange = Exchange("playground", type="topic" if quorum else "direct")
    arguments = {"x-queue-type": "quorum"} if quorum else None
    return [Queue(name, exchange, routing_key=name, queue_arguments=arguments) for name in names]


def celery_settings(url: str) -> dict[str, Any]:
    """What Celery must be told for the broker at `url`, beyond what every broker gets."""
    scheme = url.partition(":")[0]
    if scheme == SCHEME:
        return {"broker_transport_options": {"polling_interval": 0.1}}
    if scheme in ("redis", "rediss", "valkey", "valkeys"):
        # visibility_timeout must be longer than the longest task and the longest countdown, or Redis
        # hands the same message out twice.
        return {
            "broker_transport_options": {
                "visibility_timeout": 900,
                "unacked_restore_interval": 5,
                "unacked_restore_throttle": 1,
                "socket_timeout": 10,
                "socket_keepalive": True,
            }
        }
    if scheme in ("amqp", "amqps", "pyamqp"):
        return {
            # Countdowns wait in the broker's delayed queues, which pass a message on by a topic exchange only.
            "task_default_exchange": "playground",
            "task_default_exchange_type": "topic",
            "task_default_queue_type": "quorum",
            "worker_detect_quorum_queues": True,
            "broker_native_delayed_delivery_queue_type": "quorum",
            "control_queue_durable": True,
            "control_queue_exclusive": False,
            "broker_transport_options": {"confirm_publish": True},
        }
    return {}
