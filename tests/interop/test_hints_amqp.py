"""Gates with hints over a real RabbitMQ broker; one for the module, since it starts slowly."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator

import pika
import pytest

from strongroom.coordination.hints import Hints, multicast
from strongroom.coordination.hints.address import address_of
from strongroom.coordination.hints.amqp import AmqpBus
from strongroom.coordination.hints.bus import BusHints, BusRefused, BusUnavailable
from strongroom.testing.ports import HOST, free_port
from tests.coordination import hint_trials
from tests.interop.rabbitmq import USER, Broker

ESCAPED = "s3cret%2Fword"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    running = Broker(tmp_path_factory.mktemp("rabbitmq"))
    yield running
    running.stop()


@pytest.fixture
def make(broker: Broker) -> Callable[[], Hints]:
    return lambda: multicast(f"amqp://{USER}:{ESCAPED}@{HOST}:{broker.port}/")


def test_fifty_nodes_are_released_by_the_message(make: Callable[[], Hints]) -> None:
    hint_trials.all_are_released_by_the_message(make)


def test_tasks_are_released_by_the_message(make: Callable[[], Hints]) -> None:
    hint_trials.tasks_are_released_by_the_message(make)


def test_lost_messages_strand_nobody(make: Callable[[], Hints]) -> None:
    hint_trials.nobody_is_stranded_by_lost_messages(make)


def test_a_wrong_password_is_refused(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    hints = multicast(f"amqp://{USER}:wr0ng%2Fword@{HOST}:{broker.port}/")
    hint_trials.a_wrong_secret_is_refused(hints, "wr0ng", caplog)


def test_a_virtual_host_that_is_none_is_refused(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    hints = multicast(f"amqp://{USER}:{ESCAPED}@{HOST}:{broker.port}/nowhere")
    hint_trials.a_wrong_secret_is_refused(hints, "s3cret", caplog)


def test_an_exchange_of_another_kind_is_refused(
    broker: Broker, make: Callable[[], Hints], caplog: pytest.LogCaptureFixture
) -> None:
    credentials = pika.PlainCredentials(USER, "s3cret/word")
    there = pika.ConnectionParameters(HOST, broker.port, credentials=credentials)
    with pika.BlockingConnection(there) as connection:
        connection.channel().exchange_declare("taken", "direct")
        hints = multicast(f"amqp://{USER}:{ESCAPED}@{HOST}:{broker.port}/?exchange=taken")
        hint_trials.a_wrong_secret_is_refused(hints, "s3cret", caplog)


def test_a_virtual_host_is_percent_encoded(broker: Broker) -> None:
    root = address_of(f"amqp://{USER}:{ESCAPED}@{HOST}:{broker.port}/%2F", 5672, {})
    AmqpBus(root).publish("gate/g")
    other = address_of(f"amqp://{USER}:{ESCAPED}@{HOST}:{broker.port}/%2Fa", 5672, {})
    with pytest.raises(BusRefused, match="/a"):
        AmqpBus(other).publish("gate/g")


def test_over_tls_to_a_broker_that_proves_its_name(broker: Broker) -> None:
    url = f"amqps://{USER}:{ESCAPED}@{HOST}:{broker.tls_port}/"
    hint_trials.all_are_released_by_the_message(
        lambda: multicast(f"{url}?ca={broker.certificate}"), 4
    )
    stranger = multicast(url)
    assert isinstance(stranger, BusHints)
    with pytest.raises(BusUnavailable, match="SSL"):
        stranger.check()


def test_a_broker_that_hangs_holds_nobody_up(
    broker: Broker, make: Callable[[], Hints], caplog: pytest.LogCaptureFixture
) -> None:
    broker.send(signal.SIGSTOP)
    try:
        hint_trials.a_bus_that_hangs_holds_nobody_up(make(), caplog)
    finally:
        broker.send(signal.SIGCONT)


def test_no_broker_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    hints = multicast(f"amqp://{USER}:{ESCAPED}@{HOST}:{free_port()}/")
    hint_trials.a_bus_that_is_away_is_reported_once(hints, caplog)
    assert "s3cret" not in caplog.text


def test_a_broker_that_restarts_strands_nobody(
    broker: Broker, make: Callable[[], Hints], caplog: pytest.LogCaptureFixture
) -> None:
    hint_trials.a_restart_strands_nobody(make, broker.kill, broker.start, caplog)
    assert "s3cret" not in caplog.text
    assert [record.levelno for record in caplog.records if "again" in record.message] == [
        logging.INFO
    ] * 12
