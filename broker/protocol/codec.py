"""The codec: every loop over the messages, batches or requests of a buffer is one of these.

Each works on a whole buffer and returns plain values. Two engines implement them: `_codec_python`,
which documents each function and runs everywhere, and the one in C (`native/`), which runs where it
is built. `PYLOGCTL_CODEC` forces one of them. No hot path loops over messages elsewhere.
"""

from __future__ import annotations

import os

from broker.errors import ConfigError
from broker.protocol.message import ENTRY_OVERHEAD_BYTES as ENTRY_OVERHEAD_BYTES
from broker.protocol.message import MAX_NESTING as MAX_NESTING
from broker.protocol.message import Columns as Columns
from broker.protocol.message import CrcCheck as CrcCheck
from broker.protocol.message import Decoded as Decoded
from broker.protocol.message import DecodedText as DecodedText
from broker.protocol.message import EncodedText as EncodedText
from broker.protocol.message import Fault as Fault
from broker.protocol.message import OversizePieceError as OversizePieceError
from broker.protocol.message import Scan as Scan
from broker.protocol.message import SingleAppends as SingleAppends
from broker.protocol.record_batch import NEW_BATCH as NEW_BATCH
from broker.protocol.record_batch import RECORD_COLUMN_NAMES as RECORD_COLUMN_NAMES
from broker.protocol.record_batch import BatchScan as BatchScan
from broker.protocol.record_batch import DecodedRecords as DecodedRecords
from broker.protocol.record_batch import Record as Record
from broker.protocol.record_batch import RecordBatch as RecordBatch
from broker.protocol.record_batch import RecordColumns as RecordColumns
from broker.protocol.record_batch import unfold_batch as unfold_batch

VARIABLE = "PYLOGCTL_CODEC"
"""The environment variable that forces an engine: `python` or `compiled`."""
# the compiled engine must have the same number: an older build may be in this folder
_INTERFACE = 11


def _is_compiled() -> bool:
    """Return whether the compiled engine runs; `ConfigError` if it is forced and missing."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "python", "compiled"):
        raise ConfigError(f"{VARIABLE} is {wanted!r}; set it to python or compiled, or unset it")
    if wanted == "python":
        return False
    problem = _problem_of_compiled()
    if problem and wanted:
        raise ConfigError(
            f"{VARIABLE} asks for the compiled codec, but {problem}; "
            "install again where there is a C compiler, or unset the variable"
        )
    return not problem


def _problem_of_compiled() -> str:
    """Return why the compiled engine cannot run; empty if it can."""
    try:
        from broker.protocol import _codec
    except (ImportError, AttributeError) as error:  # AttributeError: it misses one of our types
        return f"it is not built ({error})"
    if _codec.INTERFACE != _INTERFACE:
        return "it was built from sources of another version"
    return ""


IS_COMPILED = _is_compiled()

if IS_COMPILED:
    from broker.protocol import _codec_compiled as engine
    from broker.protocol._codec_compiled import Message as Message
else:
    from broker.protocol import _codec_python as engine  # type: ignore[no-redef]
    from broker.protocol._codec_python import Message as Message

boundaries, find_entry, scan = engine.boundaries, engine.find_entry, engine.scan
encode, encode_delimited = engine.encode, engine.encode_delimited
decode, decode_delimited = engine.decode, engine.decode_delimited
decode_columns, decode_messages = engine.decode_columns, engine.decode_messages
make_message = engine.make_message
unfold, count_unfolded = engine.unfold, engine.count_unfolded
single_appends, publish_responses = engine.single_appends, engine.publish_responses
count_delimiters = engine.count_delimiters
crc32c, scan_batches, stamp_batches = engine.crc32c, engine.scan_batches, engine.stamp_batches
decode_records, decode_record_columns = engine.decode_records, engine.decode_record_columns
encode_batch, verify_batches = engine.encode_batch, engine.verify_batches


def describe() -> str:
    """Return a text that names the engine and its CRC routine."""
    if not IS_COMPILED:
        return "plain Python, CRC-32 by zlib"
    from broker.protocol import _codec

    return f"compiled, CRC-32 by {_codec.CRC_ENGINE}"
