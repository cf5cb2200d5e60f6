from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from playground.broker.store import MessageStore
from tests.broker import processes


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "broker.sqlite3"


@pytest.fixture
def store(path: Path) -> MessageStore:
    return MessageStore(path)


def test_messages_come_out_in_the_order_they_went_in(store: MessageStore) -> None:
    for body in ("a", "b", "c"):
        store.put("work", body, body)
    assert [store.take("work", keep=True).body for _ in range(3)] == ["a", "b", "c"]
    assert store.take("work", keep=True) is None


def test_a_taken_message_stays_in_the_file_until_it_is_acknowledged(store: MessageStore) -> None:
    store.put("work", "tag", "body")
    store.take("work", keep=True)
    assert store.size("work") == 1
    store.acknowledge("tag")
    assert store.size("work") == 0


def test_a_consumer_that_never_acknowledges_leaves_nothing_behind(store: MessageStore) -> None:
    store.put("work", "tag", "body")
    assert store.take("work", keep=False).body == "body"
    assert store.size("work") == 0


def test_a_released_message_is_free_again_and_marked_redelivered(store: MessageStore) -> None:
    store.put("work", "tag", "body")
    assert store.take("work", keep=True).redelivered is False
    store.release("tag")
    assert store.take("work", keep=True).redelivered is True


def test_what_another_process_took_cannot_be_released(path: Path, store: MessageStore) -> None:
    store.put("work", "tag", "body")
    store.take("work", keep=True)
    MessageStore(path).release("tag")
    assert store.take("work", keep=True) is None


def test_purge_leaves_taken_messages_alone(store: MessageStore) -> None:
    store.put("work", "1", "taken")
    store.put("work", "2", "free")
    store.take("work", keep=True)
    assert store.purge("work") == 1
    assert store.size("work") == 1


def test_queues_do_not_see_each_others_messages(store: MessageStore) -> None:
    store.put("work", "1", "body")
    assert store.take("other", keep=True) is None


def test_several_processes_take_each_message_exactly_once(path: Path, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    # All start on a file that is not there yet, so creating it is part of the test.
    producers = [
        context.Process(target=processes.put_many, args=(path, first, 200)) for first in (0, 200, 400)
    ]
    for producer in producers:
        producer.start()
    for producer in producers:
        producer.join(60)
    outs = [tmp_path / f"taken-{number}" for number in range(3)]
    consumers = [context.Process(target=processes.take_everything, args=(path, out)) for out in outs]
    for consumer in consumers:
        consumer.start()
    for consumer in consumers:
        consumer.join(60)
    taken = [int(line) for out in outs for line in out.read_text().split()]
    assert sorted(taken) == list(range(600))
    assert MessageStore(path).size("work") == 0


@pytest.fixture
def holder(path: Path, store: MessageStore):
    """Another process that took the only message and waits."""
    store.put("work", "tag", "body")
    code = f"from tests.broker import processes; processes.take_and_hang({str(path)!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "taken\n"
    yield process
    process.kill()
    process.communicate()


def test_what_a_living_process_took_is_not_handed_out(holder: subprocess.Popen, store: MessageStore) -> None:
    store.reclaim()
    assert store.take("work", keep=True) is None


def test_what_a_killed_process_took_is_handed_out_again(
    holder: subprocess.Popen, store: MessageStore
) -> None:
    holder.kill()
    holder.wait()
    store.reclaim()
    message = store.take("work", keep=True)
    assert message.body == "body"
    assert message.redelivered


def test_the_private_queues_of_a_killed_process_go(holder: subprocess.Popen, store: MessageStore) -> None:
    assert store.bindings("everybody") == [("", "", "replies")]
    holder.kill()
    holder.wait()
    store.put("replies", "answer", "it is not read")
    store.reclaim()
    assert store.bindings("everybody") == []
    assert store.size("replies") == 0


def test_the_message_file_is_for_its_owner_only(path: Path, store: MessageStore) -> None:
    assert os.stat(path).st_mode & 0o077 == 0
