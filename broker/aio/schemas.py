"""Values with schemas in an event loop: schemas are looked up in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Unpack

from broker.aio.access import AsyncAccess
from broker.aio.producer import AsyncDelivery, AsyncProducer
from broker.api.schema_calls import Encoders
from broker.api.schema_producer import MessageOptions, SendOptions
from broker.api.values import topic_of
from broker.producer.parts import Parts

if TYPE_CHECKING:
    from broker.schemas.payloads import Decoder


class AsyncSchemaProducer(AsyncProducer):
    """Queues values, encoded by a schema; made by `AsyncClient.schema_producer`.

    See `SchemaProducer`, and `AsyncProducer`.
    """

    __module__ = "pylogctl"

    def __init__(
        self,
        encoders: Encoders,
        parts: Parts,
        access: AsyncAccess,
        on_delivery: Callable[[AsyncDelivery], object] | None,
        client: object,
    ) -> None:
        super().__init__(parts, access, on_delivery, client)
        self._encoders = encoders

    async def send(
        self, topic: str, value: object, **named: Unpack[MessageOptions]
    ) -> AsyncDelivery:
        """Queue a value; see `AsyncProducer.send`. The first one of a topic looks its schema up."""
        return await super().send(topic, *await self._encoded(topic, [value]), **named)

    async def send_many(
        self, topic: str, values: Iterable[object], **named: Unpack[SendOptions]
    ) -> AsyncDelivery:
        """Queue values for one partition, in this order; all of them or none. See `send`."""
        return await super().send_many(topic, await self._encoded(topic, values), **named)

    async def _encoded(self, topic: str, values: Iterable[object]) -> list[bytes]:
        self._validate()
        encoder = self._encoders.known(topic_of(topic))
        if encoder is None:
            encoder = await self._in_thread(self._encoders.find, topic)
        return [encoder.encode(one) for one in values]


class AsyncDecoder:
    """Makes values of messages, by the schemas whose ids stand in front of them."""

    __module__ = "pylogctl"

    def __init__(self, access: AsyncAccess, decoder: Decoder) -> None:
        self._access = access
        self._decoder = decoder
        self._known: set[int] = set()

    async def decode(self, payload: bytes) -> object:
        """Return the value in a message; the first one of a schema is decoded in a thread.

        Raises:
            SchemaMismatch: it has no id in front, or is no value of that schema.
        """
        from broker.schemas.payloads import split

        schema_id = split(payload)[0]
        if schema_id in self._known:
            return self._decoder.decode(payload)
        value = await self._access.in_thread(self._decoder.decode, payload)
        self._known.add(schema_id)
        return value
