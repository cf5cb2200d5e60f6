"""What the other processes of the broker's tests do."""

from __future__ import annotations

from pathlib import Path

from playground.broker.store import MessageStore


def take_everything(path: Path, out: Path) -> None:
    """Take and acknowledge until the queue is empty; write down what was taken."""
    store = MessageStore(path)
    taken = []
    while (message := store.take("work", keep=True)) is not None:
        taken.append(message.body)
        store.acknowledge(message.body)
    out.write_text("\n".join(taken))


def put_many(path: Path, first: int, count: int) -> None:
    store = MessageStore(path)
    for number in range(first, first + count):
        store.put("work", str(number), str(number))


def take_and_hang(path: str) -> None:
    """Take one message, own a queue, say so, and wait to be killed."""
    store = MessageStore(Path(path))
    store.own_queue("replies")
    store.bind("everybody", "", "", "replies")
    assert store.take("work", keep=True) is not None
    print("taken", flush=True)
    input()
