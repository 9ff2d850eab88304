"""Message sets of a producer: which are compressed, and which messages are refused."""

from __future__ import annotations

import pytest

from broker.errors import MessageSizeTooLargeError
from broker.producer.encoder import Packer
from broker.producer.settings import ProducerSettings
from broker.protocol.codec import encode
from broker.protocol.compression import Codec


@pytest.mark.parametrize(("limit", "codec"), [(1000, Codec.GZIP), (10, Codec.NONE)])
def test_compress_when_a_wrapper_is_above_the_limit_then_the_set_stays_plain(
    limit: int, codec: Codec
) -> None:
    packer = Packer(ProducerSettings(codec=Codec.GZIP, max_message_bytes=limit))
    message_set, is_wrapped = packer.compress("t", encode([b"aaaa"]))
    assert bytes(message_set)[5] == codec
    assert is_wrapped is bool(codec)


def test_pack_messages_when_bytes_come_in_any_form_then_as_payloads_and_pack() -> None:
    packer = Packer(ProducerSettings(max_message_bytes=100))
    messages = [b"a", bytearray(b"bc"), memoryview(b"d-e-")[::2]]
    expected = packer.pack("t", packer.payloads(messages))
    assert packer.pack_messages("t", messages) == expected


def test_pack_messages_when_one_is_above_the_limit_then_refused() -> None:
    with pytest.raises(MessageSizeTooLargeError, match="a message has 11 bytes; the limit is 10"):
        Packer(ProducerSettings(max_message_bytes=10)).pack_messages("t", [b"fits", b"x" * 11])


def test_pack_messages_when_none_exceeds_the_limit_but_all_together_do_then_taken() -> None:
    packer = Packer(ProducerSettings(max_message_bytes=20))
    assert packer.pack_messages("t", [b"x" * 20] * 3)[0] == encode([b"x" * 20] * 3)


def test_pack_messages_when_one_is_text_then_the_error_names_the_encoder() -> None:
    with pytest.raises(TypeError, match="a message is str, not bytes; a producer's encoder"):
        Packer(ProducerSettings(max_message_bytes=10)).pack_messages("t", [b"a", "b"])
