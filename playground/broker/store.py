"""Messages in one SQLite file: put, take, acknowledge, and give back what a dead process had taken."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from pathlib import Path
from typing import NamedTuple

from playground.broker.owners import OwnerLocks

_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS owner (id INTEGER PRIMARY KEY AUTOINCREMENT);
CREATE TABLE IF NOT EXISTS message (
    id INTEGER PRIMARY KEY,
    queue TEXT NOT NULL,
    tag TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL,
    owner INTEGER,
    redelivered INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS message_free ON message (queue, id) WHERE owner IS NULL;
CREATE INDEX IF NOT EXISTS message_taken ON message (owner) WHERE owner IS NOT NULL;
CREATE TABLE IF NOT EXISTS binding (
    exchange TEXT NOT NULL,
    routing_key TEXT NOT NULL,
    pattern TEXT NOT NULL,
    queue TEXT NOT NULL,
    PRIMARY KEY (exchange, routing_key, pattern, queue)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS private_queue (name TEXT PRIMARY KEY, owner INTEGER NOT NULL) WITHOUT ROWID;
COMMIT;
"""
RECLAIM_INTERVAL_S = 2.0


class Taken(NamedTuple):
    """A message handed to this process; it stays in the file until it is acknowledged."""

    body: str
    redelivered: bool


class MessageStore:
    """One process's door to the message file. Safe to use from several threads.

    A message is free, or taken by an owner (see `owners`), or gone. It goes when it is acknowledged; it
    becomes free again when it is released or when its owner is found dead, and is then `redelivered`.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        # After a power cut the newest messages may be missing. They are wake-ups; the rows are the truth.
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._connection.executescript(_SCHEMA)
        os.chmod(path, 0o600)
        self._locks = OwnerLocks(path.with_name(path.name + "-owners"))
        self._owner: int | None = None
        self._reclaim_at_s = 0.0

    @property
    def owner(self) -> int:
        """This process's number among the owners, taken on first need."""
        with self._lock:
            if self._owner is None:
                number = self._connection.execute("INSERT INTO owner DEFAULT VALUES").lastrowid
                assert number is not None
                self._locks.hold(number)
                self._owner = number
            return self._owner

    def put(self, queue: str, tag: str, body: str) -> None:
        with self._lock:
            self._connection.execute(
                "INSERT INTO message (queue, tag, body) VALUES (?, ?, ?)", (queue, tag, body)
            )

    def take(self, queue: str, *, keep: bool) -> Taken | None:
        """Take the oldest free message of `queue`, or None.

        Parameters
        ----------
        queue
            Name of the queue.
        keep
            Whether the message is kept until acknowledged; False for consumers that never acknowledge.
        """
        with self._lock:
            if time.monotonic() >= self._reclaim_at_s:
                self.reclaim()
            # Looking needs no write lock, so an idle consumer disturbs nobody.
            free = "SELECT id FROM message WHERE queue = ? AND owner IS NULL ORDER BY id LIMIT 1"
            if self._connection.execute(free, (queue,)).fetchone() is None:
                return None
            if keep:
                rows = self._connection.execute(
                    f"UPDATE message SET owner = ? WHERE id = ({free}) RETURNING body, redelivered",
                    (self.owner, queue),
                ).fetchall()
            else:
                rows = self._connection.execute(
                    f"DELETE FROM message WHERE id = ({free}) RETURNING body, redelivered", (queue,)
                ).fetchall()
            return Taken(rows[0][0], bool(rows[0][1])) if rows else None

    def acknowledge(self, tag: str) -> None:
        with self._lock:
            self._connection.execute("DELETE FROM message WHERE tag = ?", (tag,))

    def release(self, tag: str) -> None:
        """Give back a message this process took."""
        with self._lock:
            self._connection.execute(
                "UPDATE message SET owner = NULL, redelivered = 1 WHERE tag = ? AND owner = ?",
                (tag, self.owner),
            )

    def reclaim(self) -> None:
        """Free what dead processes had taken, and remove the queues that were theirs alone."""
        with self._lock:
            self._reclaim_at_s = time.monotonic() + RECLAIM_INTERVAL_S
            owners = self._connection.execute(
                "SELECT owner FROM message WHERE owner IS NOT NULL UNION SELECT owner FROM private_queue"
            ).fetchall()
            for (owner,) in owners:
                if self._locks.alive(owner):
                    continue
                self._connection.execute(
                    "UPDATE message SET owner = NULL, redelivered = 1 WHERE owner = ?", (owner,)
                )
                for (queue,) in self._connection.execute(
                    "SELECT name FROM private_queue WHERE owner = ?", (owner,)
                ).fetchall():
                    self.delete_queue(queue)
                self._connection.execute("DELETE FROM owner WHERE id = ?", (owner,))

    def size(self, queue: str) -> int:
        """Messages in `queue`, taken ones included."""
        with self._lock:
            (count,) = self._connection.execute(
                "SELECT count(*) FROM message WHERE queue = ?", (queue,)
            ).fetchone()
            return int(count)

    def purge(self, queue: str) -> int:
        """Remove the free messages of `queue`; how many they were."""
        with self._lock:
            return self._connection.execute(
                "DELETE FROM message WHERE queue = ? AND owner IS NULL", (queue,)
            ).rowcount

    def bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        with self._lock:
            self._connection.execute(
                "INSERT OR IGNORE INTO binding VALUES (?, ?, ?, ?)", (exchange, routing_key, pattern, queue)
            )

    def unbind(self, exchange: str, routing_key: str, queue: str) -> None:
        with self._lock:
            self._connection.execute(
                "DELETE FROM binding WHERE exchange = ? AND routing_key = ? AND queue = ?",
                (exchange, routing_key, queue),
            )

    def bindings(self, exchange: str) -> list[tuple[str, str, str]]:
        """(routing key, pattern, queue) of every queue bound to `exchange`, in a fixed order."""
        with self._lock:
            return self._connection.execute(
                "SELECT routing_key, pattern, queue FROM binding WHERE exchange = ?", (exchange,)
            ).fetchall()

    def own_queue(self, queue: str) -> None:
        """`queue` goes when this process ends, as its replies and control messages concern nobody else."""
        with self._lock:
            self._connection.execute(
                "INSERT OR REPLACE INTO private_queue VALUES (?, ?)", (queue, self.owner)
            )

    def delete_queue(self, queue: str) -> None:
        with self._lock:
            self._connection.execute("DELETE FROM message WHERE queue = ?", (queue,))
            self._connection.execute("DELETE FROM binding WHERE queue = ?", (queue,))
            self._connection.execute("DELETE FROM private_queue WHERE name = ?", (queue,))


_stores: dict[tuple[int, Path], MessageStore] = {}
_stores_lock = threading.Lock()


def store_at(path: Path) -> MessageStore:
    """This process's store for `path`; a forked child gets its own, as SQLite connections survive no fork."""
    key = (os.getpid(), path)
    store = _stores.get(key)
    if store is None:
        with _stores_lock:
            store = _stores.get(key)
            if store is None:
                store = _stores[key] = MessageStore(path)
    return store


def _fresh_lock_in_child() -> None:
    # Another thread of the parent may have held it at the moment of the fork.
    global _stores_lock
    _stores_lock = threading.Lock()


os.register_at_fork(after_in_child=_fresh_lock_in_child)
