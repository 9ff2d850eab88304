"""Partitioners, encoders, callbacks and event handlers that a producer's properties name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from broker.errors import ConfigError, MessageDroppedError, PluginError
from broker.producer.config import ProducerConfig
from broker.producer.named import callbacks_of, encoder_of, partitioner_of
from broker.producer.partitioner import hash_partitioner
from broker.topic import TopicPartition
from tests.support.fake_broker import FakeBroker, Reports
from tests.unit.broker.producer.test_async_producer import NEVER_S, ProducerFactory
from tests.unit.broker.producer.test_async_producer import open_producer as open_producer

MODULE = "producer_plugins_of_a_unit_test"
SOURCE = """
from broker import ProducerCallbacks

def choosy(key, count):
    if key == b"bad":
        raise ValueError("no such region")
    return 0
def encoded(message):
    if message == "bad":
        raise ValueError("no such word")
    return message.encode()
class Marking(ProducerCallbacks):
    def __init__(self, mark):
        self.mark = mark.encode()
    def before_enqueue(self, event):
        if event.message == b"bad":
            raise ValueError("not this one")
        return event._replace(message=self.mark + event.message)
class Silent(ProducerCallbacks):
    def before_enqueue(self, event):
        return None
def careful(events):
    for event in events:
        if b"bad" in event.message:
            raise ValueError("not these")
        yield event._replace(message=event.message + b"!")
def ending(events):
    raise SystemExit(1)
def forgetful(events):
    return [one.message for one in events]
"""
T = TopicPartition("t", 0, 0)


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"{MODULE}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, MODULE, raising=False)


def config(**texts: str) -> ProducerConfig:
    """Settings by property names with `_` for dots; `@name` is one of the module."""
    named = {
        name.replace("_", "."): text.replace("@", f"{MODULE}:") for name, text in texts.items()
    }
    return ProducerConfig.from_properties({"producer.type": "async"}, named)


def test_settings_when_a_file_has_the_class_names_of_07_then_they_mean_the_defaults() -> None:
    ported = config(
        partitioner_class="kafka.producer.DefaultPartitioner",
        serializer_class="kafka.serializer.DefaultEncoder",
        event_handler="kafka.producer.async.DefaultEventHandler",
    )
    assert partitioner_of(ported) is None
    assert encoder_of(ported)(b"x") == b"x"
    assert callbacks_of(ported) is None
    assert encoder_of(config(serializer_class="kafka.serializer.StringEncoder"))("ä") == b"\xc3\xa4"
    assert partitioner_of(config(partitioner_class="hash")) is hash_partitioner


def test_settings_when_handlers_are_for_a_synchronous_producer_then_error_names_the_setting() -> (
    None
):
    with pytest.raises(ConfigError, match=r"event\.handler=.*:careful needs producer\.type=async"):
        callbacks_of(config(event_handler="@careful", producer_type="sync"))
    with pytest.raises(ConfigError, match=r"callback\.handler\.props is 'x'; it must be NAME=VALU"):
        callbacks_of(config(callback_handler="@Marking", callback_handler_props="x"))


def test_send_when_partitioner_or_encoder_fails_then_error_names_topic_and_message(
    open_producer: ProducerFactory,
) -> None:
    named = config(partitioner_class="@choosy", serializer_class="@encoded")
    broker = FakeBroker()
    producer = open_producer(broker, partitioner=partitioner_of(named), encoder=encoder_of(named))

    with pytest.raises(PluginError, match=r"^the message with key b'bad' for topic 't': partition"):
        producer.send("t", ["a"], key=b"bad")
    with pytest.raises(
        PluginError, match=r"^message 'bad' for topic 't': serializer.class=.*word$"
    ):
        producer.send("t", ["good", "bad"])
    producer.send("t", ["good"])
    producer.flush()
    assert broker.log(T) == [(0, b"good")]


def test_handlers_when_both_are_named_then_callbacks_come_first_and_all_is_encoded_once(
    open_producer: ProducerFactory,
) -> None:
    named = config(
        serializer_class="json",
        callback_handler="@Marking",
        callback_handler_props="mark=>",
        event_handler="@careful",
    )
    broker, reports = FakeBroker(), Reports()
    producer = open_producer(
        broker, on_delivery=reports, callbacks=callbacks_of(named), encoder=encoder_of(named)
    )
    producer.send("t", [{"a": 1}]).result(60)
    assert broker.log(T) == [(0, b'>{"a":1}!')]

    with pytest.raises(PluginError, match=r"message b'bad' for topic 't': callback.handler=.* not"):
        open_producer(broker, callbacks=callbacks_of(named)).send("t", [b"bad"])


@pytest.mark.parametrize(
    ("handler", "cause"),
    [
        ("careful", "failed: ValueError: not these"),
        ("ending", "failed: SystemExit: 1"),
        ("forgetful", "returned b'bad one' for an event"),
    ],
)
def test_event_handler_when_it_fails_then_each_message_is_reported_and_the_thread_goes_on(
    open_producer: ProducerFactory, handler: str, cause: str
) -> None:
    broker, reports = FakeBroker(), Reports()
    callbacks = callbacks_of(config(event_handler=f"@{handler}"))
    producer = open_producer(broker, on_delivery=reports, callbacks=callbacks, linger_s=NEVER_S)

    lost = producer.send("t", [b"bad one", b"bad two"])
    producer.flush()

    assert isinstance(lost.error, MessageDroppedError)
    assert f"event.handler={MODULE}:{handler} {cause}" in str(lost.error)
    assert "message b'bad one' and 1 more for topic 't'" in str(lost.error)
    assert set(reports.errors) == {b"bad one", b"bad two"}
    if handler == "careful":
        producer.send("t", [b"good"])
        producer.flush()
        assert broker.log(T) == [(0, b"good!")]


def test_callbacks_when_they_return_no_event_then_error_names_them(
    open_producer: ProducerFactory,
) -> None:
    callbacks = callbacks_of(config(callback_handler="@Silent"))
    with pytest.raises(PluginError, match=r"callback.handler=.*Silent returned None for an event"):
        open_producer(FakeBroker(), callbacks=callbacks).send("t", [b"x"])
