"""A producer of values, which a schema encodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypedDict, Unpack

from broker.api.errors import translated
from broker.api.producer import Delivery, Producer
from broker.api.schema_calls import Encoders
from broker.api.values import Headers, PartitionLike, Timeout, Value, topic_of
from broker.producer.parts import Parts


class SendOptions(TypedDict, total=False):
    """The options of `Producer.send_many`."""

    key: Value | None
    partition: PartitionLike | None
    timeout: Timeout


class MessageOptions(SendOptions, total=False):
    """The options of `Producer.send` for a single message."""

    headers: Headers | None
    timestamp: datetime | int | None


class SchemaProducer(Producer):
    """Queues values, encoded by a schema; made by `Client.schema_producer`. See `Producer`.

    Values are those of JSON. One that does not fit is a `SchemaMismatch`, which names the field:
    nothing is queued.
    """

    __module__ = "pylogctl"

    def __init__(
        self,
        encoders: Encoders,
        parts: Parts,
        on_delivery: Callable[[Delivery], object] | None,
        on_close: Callable[[Producer], object],
    ) -> None:
        super().__init__(parts, on_delivery, on_close)
        self._encoders = encoders

    def send(self, topic: str, value: object, **named: Unpack[MessageOptions]) -> Delivery:
        """Queue a value; see `Producer.send`. The first one of a topic looks its schema up."""
        return super().send(topic, *self._encoded(topic, [value]), **named)

    def send_many(
        self, topic: str, values: Iterable[object], **named: Unpack[SendOptions]
    ) -> Delivery:
        """Queue values for one partition, in this order; all of them or none. See `send`."""
        return super().send_many(topic, self._encoded(topic, values), **named)

    def _encoded(self, topic: str, values: Iterable[object]) -> list[bytes]:
        with translated():
            encoder = self._encoders.find(topic_of(topic))
            return [encoder.encode(one) for one in values]
