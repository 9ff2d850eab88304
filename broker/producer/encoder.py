"""Encodes an application's messages as payloads, and payloads as message sets.

Only this module applies the size limit and compresses sets.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from broker.errors import MessageSizeTooLargeError, PluginError
from broker.producer.records import Queued, validate_record
from broker.producer.settings import ProducerSettings
from broker.protocol.codec import (
    ENTRY_OVERHEAD_BYTES,
    NEW_BATCH,
    Record,
    encode,
    encode_batch,
)
from broker.protocol.compression import BATCH_CODECS, Codec
from broker.protocol.message_set import wrap
from broker.protocol.primitives import Buffer

Encoder = Callable[[Any], bytes]  # makes a payload; its errors come out of `Producer.send`


def bytes_encoder(message: Any) -> bytes:
    """Return bytes unchanged: the default; `TypeError` for other values."""
    if isinstance(message, bytes | bytearray | memoryview):
        return bytes(message)
    raise TypeError(
        f"a message is {type(message).__name__}, not bytes; a producer's encoder can change that"
    )


def text_encoder(message: Any) -> bytes:
    """Return the UTF-8 of text, as 0.7's `StringEncoder`; bytes unchanged."""
    return message if isinstance(message, bytes) else str(message).encode()


def json_encoder(message: Any) -> bytes:
    """Return JSON without spaces of a value for `json.dumps`."""
    import json  # late: few producers need it, and commands count their imports

    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()


Packed = tuple[Buffer, bool]  # a message set; whether it is one wrapper, with one offset for all


class Packer:
    """Makes payloads and message sets with the settings of one producer."""

    def __init__(self, settings: ProducerSettings, encoder: Encoder = bytes_encoder) -> None:
        self._encode = encoder
        self._takes_bytes = encoder is bytes_encoder
        self._codec = settings.codec
        self._compressed_topics = frozenset(settings.compressed_topics)
        self.max_message_bytes: int = settings.max_message_bytes

    def payloads(self, messages: Iterable[Any], topic: str = "") -> list[bytes]:
        """Return the payloads of messages; `MessageSizeTooLargeError` if one is above the limit."""
        if self._takes_bytes:
            return self.validated(messages)
        encode_one, found = self._encode, []
        for one in messages:
            try:
                found.append(encode_one(one))
            except PluginError as error:
                shown = reprlib.repr(one)  # a message may be long
                raise error.about(f"message {shown} for topic '{topic}'") from error
        return self.validated(found)

    def validated(self, payloads: Iterable[Any]) -> list[bytes]:
        """Return payloads as they are; errors as `bytes_encoder` and `payloads` raise them."""
        found = [one if type(one) is bytes else bytes_encoder(one) for one in payloads]
        limit = self.max_message_bytes
        for payload in found:
            if len(payload) > limit:
                raise MessageSizeTooLargeError(
                    f"a message has {len(payload)} bytes; the limit is {limit}"
                )
        return found

    def pack(self, topic: str, payloads: Sequence[bytes]) -> Packed:
        """Return the message set of payloads, compressed if their topic is to be."""
        return self.compress(topic, encode(payloads))

    def pack_messages(self, topic: str, messages: Sequence[Any]) -> Packed:
        """Return the message set of messages; the same as `payloads` and `pack`, but faster."""
        if self._takes_bytes:
            try:
                message_set = encode(messages)
            except (TypeError, BufferError):  # `payloads` names the culprit, or makes bytes of it
                message_set = b""
            # if all together are below the limit, each message is
            if message_set and len(message_set) <= self.max_message_bytes:
                return self.compress(topic, message_set)
        return self.pack(topic, self.payloads(messages, topic))

    def compress(self, topic: str, message_set: Buffer) -> Packed:
        """Return a message set as one wrapper if its topic is to be compressed."""
        # A set whose wrapper is above the size limit is not compressed, as each of its messages is
        # below the limit. An empty set gives no wrapper, as in 0.7.
        codec = self._codec_for(topic)
        if not codec or not len(message_set):
            return message_set, False
        wrapped = wrap(message_set, codec)
        if len(wrapped) - ENTRY_OVERHEAD_BYTES > self.max_message_bytes:
            return message_set, False
        return wrapped, True

    def _codec_for(self, topic: str) -> Codec:
        is_left_out = self._compressed_topics and topic not in self._compressed_topics
        return Codec.NONE if is_left_out else self._codec

    def pack_records(
        self, topic: str, records: Sequence[Record], *, compresses: bool = True
    ) -> bytes:
        """Return a record batch, compressed if its topic is to be; see `numbered` for the rest."""
        codec = self._codec_for(topic) if compresses else Codec.NONE
        return encode_batch(records, NEW_BATCH._replace(attributes=BATCH_CODECS.index(codec)))

    def validate_records(self, queued: Queued, payloads: Iterable[bytes]) -> None:
        """Raise `MessageSizeTooLargeError` if a record cannot be in a batch below the limit."""
        for payload in payloads:
            validate_record(queued, payload, self.max_message_bytes)
