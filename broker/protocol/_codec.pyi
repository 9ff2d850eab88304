"""What native/ compiles to; see `codec_python` for what the functions do."""

from collections.abc import Iterable

from broker.protocol.message import (
    Columns,
    Decoded,
    DecodedText,
    EncodedText,
    Fault,
    Opener,
    Scan,
    SingleAppends,
)
from broker.protocol.primitives import Buffer
from broker.protocol.read_message import MakeMessage
from broker.protocol.read_message import Message as Message
from broker.topic import TopicPartition

INTERFACE: int
CRC_ENGINE: str

def crc32(data: Buffer, value: int = 0, /) -> int: ...
def crc32_by_slicing(data: Buffer, value: int = 0, /) -> int: ...
def encode(payloads: Iterable[Buffer]) -> bytes: ...
def encode_delimited(
    buffer: Buffer, delimiter: bytes, max_payload_bytes: int, batch_count: int, batch_bytes: int, /
) -> EncodedText: ...
def scan(buffer: Buffer) -> Scan: ...
def find_entry(buffer: Buffer, stop: int, rest: int, /) -> tuple[int, bool]: ...
def boundaries(
    buffer: Buffer, least_bytes: int = ..., most_bytes: int = ..., most_count: int = ..., /
) -> list[int]: ...
def single_appends(buffer: Buffer, bounds: list[int], first: int, /) -> SingleAppends | None: ...
def publish_responses(template: bytes, ids: bytes, sizes: bytes, base_offset: int, /) -> bytes: ...
def decode(buffer: Buffer, base_offset: int, open_: Opener, /) -> Decoded: ...
def decode_messages(
    buffer: Buffer,
    base_offset: int,
    topic: str,
    partition: TopicPartition,
    open_: Opener,
    make: MakeMessage,
    /,
) -> tuple[list[Message], int, Fault]: ...
def payloads(buffer: Buffer, open_: Opener, /) -> tuple[list[bytes], int, Fault]: ...
def decode_delimited(
    buffer: Buffer, delimiter: bytes, limit: int, open_: Opener, /
) -> DecodedText: ...
def decode_columns(
    buffer: Buffer,
    base_offset: int,
    crc_check: int,
    max_value_bytes: int,
    columns: int,
    open_: Opener,
    /,
) -> Columns: ...
def count_byte(text: Buffer, byte: int, /) -> int: ...
