"""Messages in one SQLite file: put, take, acknowledge, and give back what a dead process had taken."""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from playground.broker.owners import OwnerLocks

logger = logging.getLogger(__name__)
T = TypeVar("T")

FORMAT = 2
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS owner (id INTEGER PRIMARY KEY AUTOINCREMENT);
CREATE TABLE IF NOT EXISTS message (
    id INTEGER PRIMARY KEY,
    queue TEXT NOT NULL,
    tag TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL,
    due REAL NOT NULL DEFAULT 0,
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
PRAGMA user_version = {FORMAT};
COMMIT;
"""
RECLAIM_INTERVAL_S = 2.0
_UNREADABLE = ("not a database", "malformed", "no such table", "no such column", "unsupported file format")


class Taken(NamedTuple):
    """A message handed to this process; it stays in the file until it is acknowledged."""

    body: str
    redelivered: bool


class MessageStore:
    """One process's door to the message file. Safe to use from several threads.

    A message is free, or taken by an owner (see `owners`), or gone. It goes when it is acknowledged; it
    becomes free again when it is released or when its owner is found dead, and is then `redelivered`.

    A file that cannot be read, or is of another format, is put aside and made anew: messages are wake-ups, and what
    they woke for stands in rows. A process that has the old file open notices at its next call.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._locks = OwnerLocks(path.with_name(path.name + "-owners"))
        self._owner: int | None = None
        self._reclaim_at_s = 0.0
        self._bound: dict[tuple[str, str, str, str], None] = {}
        self._private: dict[str, None] = {}
        self._open()

    # ---- the file

    def _open(self) -> None:
        with _alone(self._path):
            try:
                self._connect()
            except sqlite3.DatabaseError as error:
                if not _is_unreadable(error):
                    raise
                self._put_aside(str(error))
                self._connect()

    def _connect(self) -> None:
        connection = sqlite3.connect(self._path, timeout=30, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            # After a power cut the newest messages may be missing. They are wake-ups; the rows are the truth.
            connection.execute("PRAGMA synchronous=NORMAL")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            (n_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if n_tables and version != FORMAT:
                raise sqlite3.DatabaseError(f"unsupported file format {version}")
            if not n_tables:
                connection.executescript(_SCHEMA)
            (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if said != "ok":
                raise sqlite3.DatabaseError(f"malformed: {said}")
        except BaseException:
            connection.close()
            raise
        os.chmod(self._path, 0o600)
        self._connection = connection
        self._inode = self._path.stat().st_ino

    def _put_aside(self, why: str) -> None:
        logger.error("the message file %s cannot be read (%s); a new one is made", self._path, why)
        aside = self._path.with_name(self._path.name + ".unreadable")
        os.replace(self._path, aside)
        for ending in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(self._path.with_name(self._path.name + ending))

    def _do(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """Do it, on a new file if the one we know was put aside, or cannot be read now."""
        with self._lock:
            if not self._is_ours():
                self._begin_anew()
            try:
                return action(self._connection)
            except sqlite3.DatabaseError as error:
                if not _is_unreadable(error):
                    raise
                with suppress(sqlite3.Error):
                    self._connection.close()
                with _alone(self._path):
                    if self._is_ours():
                        self._put_aside(str(error))
                self._begin_anew()
                return action(self._connection)

    def _is_ours(self) -> bool:
        try:
            return self._path.stat().st_ino == self._inode
        except FileNotFoundError:
            return False

    def _begin_anew(self) -> None:
        """In a new file we are another owner, and our queues are bound again."""
        with suppress(sqlite3.Error):
            self._connection.close()
        self._owner = None
        self._open()
        for binding in self._bound:
            self._connection.execute("INSERT OR IGNORE INTO binding VALUES (?, ?, ?, ?)", binding)
        for queue in self._private:
            self._connection.execute(
                "INSERT OR REPLACE INTO private_queue VALUES (?, ?)", (queue, self.owner)
            )

    @property
    def owner(self) -> int:
        """This process's number among the owners, taken on first need."""
        with self._lock:
            while self._owner is None:
                number = self._connection.execute("INSERT INTO owner DEFAULT VALUES").lastrowid
                assert number is not None
                with suppress(OSError):  # held by a process that knows an older file
                    self._locks.hold(number)
                    self._owner = number
            return self._owner

    # ---- messages

    def put(self, queue: str, tag: str, body: str, *, due: float | None = None) -> None:
        """Add a message; with `due`, seconds since the epoch, it is not taken before."""
        row = (queue, tag, body, due or 0.0)
        self._do(
            lambda connection: connection.execute(
                "INSERT INTO message (queue, tag, body, due) VALUES (?, ?, ?, ?)", row
            )
        )

    def take(self, queue: str, *, keep: bool) -> Taken | None:
        """Take the oldest free message of `queue` that is due, or None.

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
            return self._do(lambda connection: self._take(connection, queue, keep))

    def _take(self, connection: sqlite3.Connection, queue: str, keep: bool) -> Taken | None:
        # Looking needs no write lock, so an idle consumer disturbs no other.
        free = "SELECT id FROM message WHERE queue = ? AND owner IS NULL AND due <= ? ORDER BY id LIMIT 1"
        wanted = (queue, time.time())
        if connection.execute(free, wanted).fetchone() is None:
            return None
        if keep:
            rows = connection.execute(
                f"UPDATE message SET owner = ? WHERE id = ({free}) RETURNING body, redelivered",
                (self.owner, *wanted),
            ).fetchall()
        else:
            rows = connection.execute(
                f"DELETE FROM message WHERE id = ({free}) RETURNING body, redelivered", wanted
            ).fetchall()
        return Taken(rows[0][0], bool(rows[0][1])) if rows else None

    def acknowledge(self, tag: str) -> None:
        self._do(lambda connection: connection.execute("DELETE FROM message WHERE tag = ?", (tag,)))

    def release(self, tag: str) -> None:
        """Give back a message this process took."""
        self._do(
            lambda connection: connection.execute(
                "UPDATE message SET owner = NULL, redelivered = 1 WHERE tag = ? AND owner = ?",
                (tag, self.owner),
            )
        )

    def reclaim(self) -> None:
        """Free what dead processes had taken, and remove the queues that were theirs alone."""
        with self._lock:
            self._reclaim_at_s = time.monotonic() + RECLAIM_INTERVAL_S
            self._do(self._reclaim)

    def _reclaim(self, connection: sqlite3.Connection) -> None:
        owners = connection.execute(
            "SELECT owner FROM message WHERE owner IS NOT NULL UNION SELECT owner FROM private_queue"
        ).fetchall()
        for (owner,) in owners:
            if self._locks.alive(owner):
                continue
            connection.execute("UPDATE message SET owner = NULL, redelivered = 1 WHERE owner = ?", (owner,))
            for (queue,) in connection.execute(
                "SELECT name FROM private_queue WHERE owner = ?", (owner,)
            ).fetchall():
                _delete_queue(connection, queue)
            connection.execute("DELETE FROM owner WHERE id = ?", (owner,))

    def size(self, queue: str) -> int:
        """Messages in `queue`, taken ones included."""

        def count(connection: sqlite3.Connection) -> int:
            (number,) = connection.execute(
                "SELECT count(*) FROM message WHERE queue = ?", (queue,)
            ).fetchone()
            return int(number)

        return self._do(count)

    def purge(self, queue: str) -> int:
        """Remove the free messages of `queue`; how many they were."""
        statement = "DELETE FROM message WHERE queue = ? AND owner IS NULL"
        return self._do(lambda connection: connection.execute(statement, (queue,)).rowcount)

    # ---- queues and bindings

    def bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        binding = (exchange, routing_key, pattern, queue)
        with self._lock:
            self._bound[binding] = None
            self._do(
                lambda connection: connection.execute(
                    "INSERT OR IGNORE INTO binding VALUES (?, ?, ?, ?)", binding
                )
            )

    def unbind(self, exchange: str, routing_key: str, queue: str) -> None:
        with self._lock:
            for binding in [
                one for one in self._bound if (*one[:2], one[3]) == (exchange, routing_key, queue)
            ]:
                del self._bound[binding]
            self._do(
                lambda connection: connection.execute(
                    "DELETE FROM binding WHERE exchange = ? AND routing_key = ? AND queue = ?",
                    (exchange, routing_key, queue),
                )
            )

    def bindings(self, exchange: str) -> list[tuple[str, str, str]]:
        """(routing key, pattern, queue) of every queue bound to `exchange`, in a fixed order."""
        statement = "SELECT routing_key, pattern, queue FROM binding WHERE exchange = ?"
        return self._do(lambda connection: connection.execute(statement, (exchange,)).fetchall())

    def own_queue(self, queue: str) -> None:
        """`queue` goes when this process ends, as its replies and control messages concern no other."""
        with self._lock:
            self._private[queue] = None
            self._do(
                lambda connection: connection.execute(
                    "INSERT OR REPLACE INTO private_queue VALUES (?, ?)", (queue, self.owner)
                )
            )

    def delete_queue(self, queue: str) -> None:
        with self._lock:
            self._private.pop(queue, None)
            self._bound = {binding: None for binding in self._bound if binding[3] != queue}
            self._do(lambda connection: _delete_queue(connection, queue))


def _delete_queue(connection: sqlite3.Connection, queue: str) -> None:
    connection.execute("DELETE FROM message WHERE queue = ?", (queue,))
    connection.execute("DELETE FROM binding WHERE queue = ?", (queue,))
    connection.execute("DELETE FROM private_queue WHERE name = ?", (queue,))


def _is_unreadable(error: sqlite3.DatabaseError) -> bool:
    said = str(error).lower()
    return any(words in said for words in _UNREADABLE)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """While one process opens the file or makes it anew, the others wait."""
    descriptor = os.open(path.with_name(path.name + "-anew"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


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
