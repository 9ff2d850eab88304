"""The two engines of the codec as one type, whichever of them the product runs with."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import sys
import sysconfig
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

import pytest

from broker.errors import BrokerError
from broker.protocol.codec import (
    NEW_BATCH,
    RECORD_COLUMN_NAMES,
    BatchScan,
    Columns,
    CrcCheck,
    Decoded,
    DecodedRecords,
    DecodedText,
    EncodedText,
    Fault,
    Record,
    RecordBatch,
    RecordColumns,
    Scan,
    SingleAppends,
)
from broker.protocol.codec import Message as ReadMessage
from broker.protocol.compression import Codec
from broker.protocol.message import COLUMN_NAMES
from broker.protocol.primitives import Buffer
from broker.protocol.record_batch import Opener, open_batch
from broker.topic import TopicPartition

ENGINE_NAMES = ("python", "compiled")


class Engine(Protocol):
    """The functions of the seam."""

    def encode(self, payloads: Iterable[Buffer]) -> bytes: ...

    def encode_delimited(
        self,
        buffer: Buffer,
        delimiter: bytes,
        *,
        max_payload_bytes: int,
        batch_count: int,
        batch_bytes: int | None = None,
    ) -> EncodedText: ...

    def scan(self, buffer: Buffer) -> Scan: ...

    def find_entry(self, buffer: Buffer, stop: int, rest: int, /) -> tuple[int, bool]: ...

    def boundaries(
        self,
        buffer: Buffer,
        least_bytes: int = 5,
        most_bytes: int = 2**31 - 1,
        most_count: int = sys.maxsize,
        /,
    ) -> list[int]: ...

    def single_appends(
        self, buffer: Buffer, bounds: list[int], first: int, /
    ) -> SingleAppends | None: ...

    def publish_responses(
        self, template: bytes, ids: bytes, sizes: bytes, base_offset: int, /
    ) -> bytes: ...

    def decode(self, buffer: Buffer, base_offset: int) -> Decoded: ...

    Message: type[ReadMessage]

    def decode_messages(
        self, buffer: Buffer, base_offset: int, topic: str, partition: TopicPartition
    ) -> tuple[list[ReadMessage], int, Fault]: ...

    def decode_delimited(
        self, buffer: Buffer, delimiter: bytes, limit: int = -1
    ) -> DecodedText: ...

    def decode_columns(
        self,
        buffer: Buffer,
        base_offset: int,
        *,
        crc_check: CrcCheck = CrcCheck.STOP,
        max_value_bytes: int = 2**31 - 1,
        columns: Collection[str] = COLUMN_NAMES,
    ) -> Columns: ...

    def count_delimiters(self, text: Buffer, delimiter: bytes) -> int: ...

    def unfold(self, codec: Codec, payload: Buffer) -> list[bytes]: ...

    def count_unfolded(
        self, codec: Codec, payload: Buffer, *, max_bytes: int = 64 << 20
    ) -> tuple[int, int]: ...

    def crc32c(self, data: Buffer, crc: int = 0, /) -> int: ...

    def scan_batches(self, buffer: Buffer) -> BatchScan: ...

    def verify_batches(
        self, buffer: Buffer, *, deep: bool = True, opener: Opener = open_batch
    ) -> BatchScan: ...

    def decode_records(
        self, buffer: Buffer, *, with_control: bool = False, max_bytes: int = 64 << 20
    ) -> DecodedRecords: ...

    def decode_record_columns(
        self,
        buffer: Buffer,
        *,
        max_bytes: int = 64 << 20,
        columns: Collection[str] = RECORD_COLUMN_NAMES,
    ) -> RecordColumns: ...

    def encode_batch(self, records: Sequence[Record], batch: RecordBatch = NEW_BATCH) -> bytes: ...

    def encode_records(
        self, records: Sequence[Record], base_offset: int, base_timestamp: int, /
    ) -> bytes: ...

    def stamp_batches(
        self, buffer: Buffer, base_offset: int, leader_epoch: int, /
    ) -> tuple[bytes, int]: ...


def is_built() -> bool:
    """Return whether there is a compiled engine."""
    return importlib.util.find_spec("broker.protocol._codec") is not None


def could_be_built() -> bool:
    """Return whether this machine has what its build needs."""
    header = Path(sysconfig.get_path("include"), "Python.h")
    return shutil.which("cc") is not None and header.is_file()


def load_engine(name: str) -> Engine:
    """Return a engine; skips the test where the compiled one cannot be built."""
    if name == "compiled" and not is_built():
        if could_be_built():
            pytest.fail("the compiled codec is not built; run `make setup`")
        pytest.skip("the compiled codec is not built, and there is no compiler")
    return cast("Engine", importlib.import_module(f"broker.protocol._codec_{name}"))


def assert_alike(engines: tuple[Engine, Engine], call: Callable[[Engine], Any]) -> None:
    """Check that a call gives the same with both engines, plain one first."""
    plain, compiled = (_outcome(partial(call, engine)) for engine in engines)
    assert compiled == plain
    assert type(compiled) is type(plain)


def _outcome(call: Callable[[], Any]) -> Any:
    """Return what a call returns, or the type of what it raises and the text of our own errors."""
    try:
        return call()
    except (BrokerError, ValueError, OverflowError) as error:
        return type(error), str(error) if isinstance(error, BrokerError) else ""
