from pathlib import Path
from queue import Empty

import kombu
import pytest

from playground import broker
from tests.tables import table


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "a folder, 100% odd %41?#"


@pytest.fixture
def connection(folder: Path):
    with kombu.Connection(broker.url_for(folder)) as connection:
        yield connection


def test_a_message_is_a_file_where_the_address_says_even_with_odd_names(
    connection: kombu.Connection, folder: Path
) -> None:
    connection.SimpleQueue("work").put({"n": 1})
    assert [path.name for path in folder.iterdir()] == ["work"]
    message = connection.SimpleQueue("work").get(timeout=1)
    message.ack()
    assert message.payload == {"n": 1} and not list(folder.iterdir())


def test_one_message_is_as_good_as_many(connection: kombu.Connection) -> None:
    queue = connection.SimpleQueue("work")
    queue.put(1)
    queue.put(2)
    assert queue.qsize() == 1 and queue.get(timeout=1).payload == 2
    with pytest.raises(Empty):
        queue.get(timeout=0.05)


def test_a_message_comes_once_whatever_becomes_of_its_taker(connection: kombu.Connection) -> None:
    connection.SimpleQueue("work").put("x")
    channel = connection.channel()
    assert channel.basic_get("work").payload == "x"
    channel.close()
    with pytest.raises(Empty):
        connection.SimpleQueue("work").get(timeout=0.05)


def test_a_file_that_is_no_message_is_left_out(connection: kombu.Connection, folder: Path) -> None:
    queue = connection.SimpleQueue("work")
    queue.put("x")
    (folder / "work").write_bytes(b"\xff no message")
    with pytest.raises(Empty):
        queue.get(timeout=0.05)
    queue.put("y")
    assert queue.get(timeout=1).payload == "y"


def test_a_folder_that_is_gone_is_made_again_and_one_that_cannot_be_is_said(
    connection: kombu.Connection, folder: Path
) -> None:
    connection.SimpleQueue("work").put("x")
    (folder / "work").unlink()
    folder.rmdir()
    broker.check(broker.url_for(folder))
    assert folder.is_dir() and not list(folder.iterdir())
    folder.rmdir()
    folder.write_text("in the way")
    with pytest.raises(OSError):
        broker.check(broker.url_for(folder))


@pytest.mark.parametrize(("url", "key"), table(__file__, "each_known_broker_has_its_settings"))
def test_each_known_broker_has_its_settings(url: str, key: str) -> None:
    assert key in broker.celery_settings(url)


def test_redis_does_not_hand_out_a_task_twice_while_it_runs(settings) -> None:
    options = broker.celery_settings("redis://127.0.0.1/0")["broker_transport_options"]
    assert options["visibility_timeout"] > settings.CELERY_TASK_TIME_LIMIT
