"""What the readers of messages and of records share: settings, and columns with one value."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import pyarrow as pa

from broker.spark.options import ReadOptions

MAX_BATCH_BYTES = 32 << 20  # of payload: few compressed bytes can be very many
HEADERS_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """Settings common to all tasks of a read."""

    schema: pa.Schema  # of the batches
    options: ReadOptions


class Repeated:
    """A string as columns of any length, which share their memory."""

    def __init__(self, text: str) -> None:
        self._text = text.encode()
        self._longest = self._of(0)

    def column(self, count: int) -> pa.Array:
        """Return a column of so many rows."""
        if count > len(self._longest):
            self._longest = self._of(count)
        return self._longest.slice(0, count)

    def _of(self, count: int) -> pa.Array:
        # from buffers: PyArrow's scalars import pandas, where that is installed
        size = len(self._text)
        ends = array("i", range(0, (count + 1) * size, size) if size else [0] * (count + 1))
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(self._text * count)]
        return pa.Array.from_buffers(pa.string(), count, buffers)


def constant(number: int, count: int) -> pa.Array:
    """Return a column of so many rows with one number."""
    # from buffers: PyArrow's scalars import pandas, where that is installed
    return pa.Array.from_buffers(
        pa.int32(), count, [None, pa.py_buffer(array("i", [number]) * count)]
    )
