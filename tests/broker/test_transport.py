from __future__ import annotations

from pathlib import Path

import kombu
import pytest

from playground import broker


@pytest.fixture
def connection(tmp_path: Path):
    folder = tmp_path / "a folder, 100% odd %41?#"
    folder.mkdir()
    with kombu.Connection(broker.url_for(folder / "broker.sqlite3")) as connection:
        yield connection


def test_the_file_is_where_the_address_says_even_with_odd_names(connection: kombu.Connection) -> None:
    connection.SimpleQueue("work").put("x")
    assert Path(connection.transport.path).exists()
    assert "100% odd %41?#" in str(connection.transport.path)


def test_an_acknowledged_message_is_gone(connection: kombu.Connection) -> None:
    queue = connection.SimpleQueue("work")
    queue.put({"n": 1})
    message = queue.get(timeout=1)
    assert message.payload == {"n": 1}
    assert queue.qsize() == 1
    message.ack()
    assert queue.qsize() == 0


def test_a_requeued_message_comes_back_marked_redelivered(connection: kombu.Connection) -> None:
    queue = connection.SimpleQueue("work")
    queue.put("x")
    queue.get(timeout=1).requeue()
    again = queue.get(timeout=1)
    assert again.delivery_info["redelivered"] is True
    again.ack()


def test_a_rejected_message_is_gone(connection: kombu.Connection) -> None:
    queue = connection.SimpleQueue("work")
    queue.put("x")
    queue.get(timeout=1).reject()
    assert queue.qsize() == 0


def test_a_closed_channel_gives_back_what_it_did_not_acknowledge(connection: kombu.Connection) -> None:
    connection.SimpleQueue("work").put("x")
    channel = connection.channel()
    assert channel.basic_get("work").payload == "x"
    channel.close()
    assert connection.SimpleQueue("work").get(timeout=1).payload == "x"


def test_a_fanout_message_reaches_every_bound_queue(connection: kombu.Connection) -> None:
    exchange = kombu.Exchange("news", type="fanout")
    queues = [kombu.Queue(name, exchange, auto_delete=True) for name in ("a", "b")]
    with connection.channel() as channel:
        for queue in queues:
            queue(channel).declare()
        connection.Producer(channel, exchange=exchange).publish("hello")
        messages = [queue(channel).get(no_ack=True) for queue in queues]
        assert [message.payload for message in messages] == ["hello", "hello"]
        assert messages[0].delivery_tag != messages[1].delivery_tag


def test_a_consumer_respects_its_prefetch_count(connection: kombu.Connection) -> None:
    connection.SimpleQueue("work").put(1)
    connection.SimpleQueue("work").put(2)
    received: list[kombu.Message] = []
    with connection.channel() as channel:
        queue = kombu.Queue("work", kombu.Exchange("work", type="direct"), "work")
        consumer = kombu.Consumer(channel, [queue], on_message=received.append)
        consumer.qos(prefetch_count=1)
        with consumer:
            connection.drain_events(timeout=1)
            with pytest.raises(TimeoutError):
                connection.drain_events(timeout=0.05)
            received[0].ack()
            connection.drain_events(timeout=1)
            received[1].ack()
    assert [message.payload for message in received] == [1, 2]


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("redis://127.0.0.1/0", "broker_transport_options"),
        ("amqp://guest@127.0.0.1//", "task_default_queue_type"),
        ("sqliteq:////x", "broker_transport_options"),
    ],
)
def test_each_known_broker_has_its_settings(url: str, key: str) -> None:
    assert key in broker.celery_settings(url)


def test_redis_does_not_hand_out_a_task_twice_while_it_runs(settings) -> None:
    options = broker.celery_settings("redis://127.0.0.1/0")["broker_transport_options"]
    assert options["visibility_timeout"] > settings.CELERY_TASK_TIME_LIMIT
