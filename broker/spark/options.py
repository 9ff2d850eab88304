"""Options of the data source `pylog`: text of Spark to typed values, and back.

Spark hands a data source only text. It is parsed once, on the driver; the rest of this package
works with the values. `to_options` is the way back, for programs that start a read or write through
Spark. Malformed text raises a `ConfigError` that names the option.

Each option is declared once, at its field of `ReadOptions`, `WriteOptions` or `ConnectionOptions`:
its name, how its text is read and written, and its default.

Names follow Spark's Kafka source where the meaning is the same. Imports little and opens nothing:
Spark imports this module on every look-up of a format.
"""

from __future__ import annotations

import difflib
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    NamedTuple,
    TypeVar,
    get_args,
    get_type_hints,
)

from broker.endpoints import join_address
from broker.errors import ConfigError, InvalidPatternError, ProtocolError, TopicNotFoundError
from broker.patterns import Pattern
from broker.properties import Secret
from broker.protocol.compression import Codec
from broker.times import epoch_ms, parse_moment
from broker.topic import TopicPartition, validate_topic_name

if TYPE_CHECKING:
    from broker.client.connection import Connection
    from broker.consumer.boundaries import BoundaryFinder
    from broker.protocol.responses import BrokerAddress
    from broker.security.client_security import ClientSecurity

logger = logging.getLogger(__name__)

Offsets = dict[TopicPartition, int]
OffsetDocument = dict[str, dict[str, int]]
"""Offsets as checkpoints and manifests have them: `{"topic": {"0-0": 123}}`."""

EARLIEST = -2
"""Stands for the log start offset, as in 0.7's requests."""
LATEST = -1
"""Stands for the high watermark, as in 0.7's requests."""


def partition_of(topic: str, name: str) -> TopicPartition:
    """Return the partition of a topic that is named `HOME-INDEX`, such as `0-3`.

    A number alone is one of Kafka's, which have no home.
    """
    try:
        return TopicPartition.named(topic, name)
    except ValueError as error:
        raise ConfigError(
            f"'{name}' is no partition of '{topic}'; valid: HOME-INDEX, such as 0-3, or a number "
            "of Kafka's topics"
        ) from error


def parse_offsets(text: str, option: str, *, minimum: int = EARLIEST) -> Offsets:
    """Return the numbers by partition in an option such as `{"topic": {"0-0": 123}}`."""
    try:
        document = json.loads(text)
        items = [
            (partition_of(topic, name), number)
            for topic, numbers in document.items()
            for name, number in numbers.items()
        ]
    except (ValueError, AttributeError) as error:
        raise _malformed(text, option, '{"topic": {"0-0": 123}}') from error
    for partition, number in items:
        if not isinstance(number, int) or isinstance(number, bool) or number < minimum:
            raise ConfigError(f"{option}: {partition} has {number!r}; valid: {minimum} and up")
    return dict(items)


def parse_assignment(text: str, option: str) -> frozenset[TopicPartition]:
    """Return the partitions in an option such as `{"topic": ["0-0"]}` or `{"topic": [0]}`."""
    try:
        document = json.loads(text)
        names = [
            (topic, str(name) if type(name) is int else name)
            for topic, names in document.items()
            for name in list(names)
        ]
    except (ValueError, AttributeError, TypeError) as error:
        raise _malformed(text, option, '{"topic": ["0-0"]}') from error
    if not all(isinstance(name, str) for _, name in names):
        raise _malformed(text, option, '{"topic": ["0-0"]}')
    return frozenset(partition_of(topic, name) for topic, name in names)


def _malformed(text: str, option: str, example: str) -> ConfigError:
    return ConfigError(f"{option}: '{text}' is not of the form {example}")


def to_document(offsets: Mapping[TopicPartition, int]) -> OffsetDocument:
    """Return offsets as a document for a checkpoint or manifest, sorted."""
    document: OffsetDocument = {}
    for partition, offset in sorted(offsets.items()):
        document.setdefault(partition.topic, {})[partition.name] = offset
    return document


def from_document(document: Mapping[str, Mapping[str, int]]) -> Offsets:
    """Return the offsets in a document; malformed partition names are those of another source."""
    return {
        partition_of(topic, name): offset
        for topic, offsets in document.items()
        for name, offset in offsets.items()
    }


def to_json(offsets: Mapping[TopicPartition, int]) -> str:
    """Return offsets as the text of an option."""
    return json.dumps(to_document(offsets), separators=(",", ":"))


def to_assignment(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions as the text of an option, such as `{"topic":["0-0","1-0"]}`."""
    document: dict[str, list[str]] = {}
    for partition in sorted(partitions):
        document.setdefault(partition.topic, []).append(partition.name)
    return json.dumps(document, separators=(",", ":"))


_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_UNITS = {"": 1, "k": _KIB, "m": _MIB, "g": _GIB}
_SIZE_TEXT = re.compile(r"([0-9]+) ?([kmg]?)(?:i?b)?", re.IGNORECASE)
_WORDS = {"earliest": EARLIEST, "latest": LATEST}
_Value = TypeVar("_Value")

_WHERE = ("brokers", "kafka.bootstrap.servers", "zk")
_PATHS = ("path", "paths")
_SELECT = ("subscribe", "subscribePattern", "assign")
_OF_SPARK = ("path", "checkpointLocation", "queryName")  # Spark hands these on to the source

_WITHOUT_EFFECT = {
    "includeHeaders": "messages have no headers",
    "fetchOffset.numRetries": "offsets are asked for again during timeoutMs",
    "fetchOffset.retryIntervalMs": "offsets are asked for again during timeoutMs",
    "kafkaConsumer.pollTimeoutMs": "timeoutMs limits the wait for a response",
}
"""Options of Spark's Kafka source that are accepted and ignored, and why."""

_HINTS = {
    "maxoffsetspertrigger": "offsets are bytes here: use maxBytesPerTrigger",
    "minoffsetspertrigger": "there is no such limit; use a trigger with an interval",
    "maxrecordsperpartition": "use maxBytesPerPartition",
    "includeheaders": "messages have no headers",
    "kafka.group.id": "Spark keeps the offsets, no group does",
    "groupidprefix": "Spark keeps the offsets, no group does",
    "pushfilters": "filters are not pushed down; use assign, startingOffsets and endingOffsets",
    "startingoffsetsbytimestampstrategy": "times always have a segment: it is not needed",
}


class Crc(Enum):
    """How a read treats a message whose bytes are damaged."""

    FAIL = "fail"
    """The task fails, naming topic, partition and offset."""
    MARK = "mark"
    """The row is delivered with `crc_ok` false; only then is there such a column."""
    SKIP = "skip"
    """The message is left out, with a warning and an entry in the report."""
    OFF = "off"
    """CRCs are not validated; a broken chain of lengths still fails."""


@dataclass(frozen=True, slots=True)
class _Kind(Generic[_Value]):
    """How the text of an option is read, and written again."""

    parse: Callable[[str], _Value]  # raises a `ValueError` if the text is malformed
    valid: str
    text: Callable[[_Value], str] = str


def _numbers(minimum: int) -> _Kind[int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < minimum:
            raise ValueError(text)
        return int(text)

    return _Kind(parse, f"whole numbers from {minimum}")


def _choice(choices: Mapping[str, _Value]) -> _Kind[_Value]:
    def parse(text: str) -> _Value:
        if text.lower() not in choices:
            raise ValueError(text)
        return choices[text.lower()]

    names = {value: name for name, value in choices.items()}
    return _Kind(parse, ", ".join(choices), names.__getitem__)


def _parse_size(text: str) -> int:
    found = _SIZE_TEXT.fullmatch(text.strip())
    size = int(found[1]) * _UNITS[found[2].lower()] if found else 0
    if not size:
        raise ValueError(text)
    return size


def _parse_topic(text: str) -> str:
    validate_topic_name(text)
    return text


_COUNT, _COUNT_OR_0 = _numbers(1), _numbers(0)


def _parse_time(text: str) -> int:
    return epoch_ms(parse_moment(text)) if text != "0" else 0  # the usual word for the beginning


_TIME = _Kind(
    _parse_time,
    "2026-11-20T08:00:05Z, or seconds, milliseconds, .. since 1970",
    lambda time_ms: datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(),
)
_MILLISECONDS = _Kind(
    lambda text: _COUNT.parse(text) / 1000,
    _COUNT.valid,
    lambda seconds: str(max(1, round(seconds * 1000))),
)
_SIZE = _Kind(_parse_size, "bytes, such as 1048576, 512k, 64m, 1g")
_FLAG = _choice({"true": True, "false": False})
_CRC = _choice({one.value: one for one in Crc})
_DECODE = _choice({"auto": "auto"})
_CODEC = _choice({one.name.lower(): one for one in Codec})
_TOPIC = _Kind(_parse_topic, "names of topics")
_PATH = _Kind(lambda text: Path(text).absolute() if text else None, "paths")


def _parse_pem(text: str) -> Secret:
    if text.startswith("-----BEGIN"):
        return Secret(text)
    try:
        return Secret(Path(text).read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read '{text}': {error}") from error


_PEM = _Kind(_parse_pem, "PEM files, or their text", Secret.reveal)
_SECRET = _Kind(Secret, "passwords", Secret.reveal)
_NAME = _Kind(str, "names")


@cache
def _file_of(content: Secret) -> Path:
    """Return a file with a content; only this user can read it, and it goes with the process."""
    import atexit
    import shutil
    import tempfile

    directory = Path(tempfile.mkdtemp(prefix="pylogctl-tls-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    path = directory / "content.pem"
    path.touch(mode=0o600)
    path.write_text(content.reveal(), encoding="ascii")
    return path


class _Option(NamedTuple):
    """The option that sets a field of a record."""

    name: str
    kind: _Kind[Any]


@cache
def _options_of(record: type) -> dict[str, _Option]:
    """Return the options of a record by its fields; other fields have several options each."""
    hints = get_type_hints(record, include_extras=True).items()
    return {name: one for name, hint in hints for one in get_args(hint) if type(one) is _Option}


def _names_of(record: type) -> list[str]:
    return [option.name for option in _options_of(record).values()]


def _texts_of(record: Any) -> dict[str, str]:
    """Return the options that are set in a record, with their texts."""
    options = _options_of(record.__class__).items()
    found = [(option, getattr(record, name)) for name, option in options]
    return {name: kind.text(value) for (name, kind), value in found if value is not None}


@dataclass(frozen=True, slots=True)
class Where:
    """Where messages are read or written: brokers, a ZooKeeper, or segment files; one is set."""

    brokers: tuple[BrokerAddress, ...] = ()
    zookeeper: str | None = None  # HOST:PORT[,..][/CHROOT]
    paths: tuple[Path, ...] = ()  # segment files, directories above them, and patterns

    def to_options(self) -> dict[str, str]:
        """Return the option of the data source for this."""
        if self.paths:
            return {"paths": json.dumps([str(path) for path in self.paths])}
        if self.zookeeper is not None:
            return {"zk": self.zookeeper}
        return {"brokers": ",".join(_address_text(*one) for one in self.brokers)}


def _address_text(broker_id: int, host: str, port: int) -> str:
    address = join_address(host, port)
    return address if broker_id < 0 else f"{broker_id}:{address}"


@dataclass(frozen=True, slots=True)
class Selection:
    """Selected topics or partitions; all if nothing is set, none if `partitions` is empty."""

    topics: tuple[str, ...] = ()
    pattern: Pattern | None = None
    partitions: frozenset[TopicPartition] | None = None

    def has_topic(self, topic: str) -> bool:
        """Return whether a topic, or a partition of it, is selected."""
        if self.pattern is not None:
            return self.pattern.fullmatch(topic) is not None
        if self.partitions is not None:
            return any(one.topic == topic for one in self.partitions)
        return not self.topics or topic in self.topics

    def has_partition(self, partition: TopicPartition) -> bool:
        """Return whether a partition is selected."""
        if self.partitions is not None:
            return partition in self.partitions
        return self.has_topic(partition.topic)

    def check_all_found(
        self, found: Iterable[TopicPartition], *, absent: str, hint: str = ""
    ) -> None:
        """Raise a `TopicNotFoundError` for a named topic or partition that is not among `found`."""
        lacking = set(self.topics).difference(one.topic for one in found)
        for topic in self.topics:
            if topic in lacking:
                raise TopicNotFoundError(f"topic '{topic}' {absent}")
        if missing := sorted((self.partitions or frozenset()).difference(found)):
            raise TopicNotFoundError(f"partition {missing[0]} {absent}{hint}")

    def to_options(self) -> dict[str, str]:
        """Return the option of the data source for this."""
        if self.partitions is not None:
            return {"assign": to_assignment(self.partitions)}
        if self.pattern is not None:
            return {"subscribePattern": self.pattern.text}
        return {"subscribe": ",".join(self.topics)} if self.topics else {}


ALL_TOPICS = Selection()


@dataclass(frozen=True, slots=True)
class Bound:
    """Where reading starts or ends in each partition.

    Attributes:
        option: the option it comes from, for error messages.
        default: an offset, `EARLIEST` or `LATEST`; with `is_time` milliseconds since 1970.
        by_partition: the same for each partition that is read; empty if `default` is for all.
        offset_of: finds the offset when the read is planned, where no number or time can name it,
            such as 100 messages before the end.
    """

    option: str
    default: int
    by_partition: Mapping[TopicPartition, int] = field(default_factory=dict)
    is_time: bool = False
    offset_of: Callable[[TopicPartition, BoundaryFinder], int] | None = None

    def value(self, partition: TopicPartition) -> int:
        """Return the number for one partition; raise a `ConfigError` if only others have one."""
        if not self.by_partition:
            return self.default
        if partition not in self.by_partition:
            raise ConfigError(
                f"{self.option} has nothing for {partition}: name all partitions, "
                f"{EARLIEST} standing for the start and {LATEST} for the end"
            )
        return self.by_partition[partition]

    def to_options(self) -> dict[str, str]:
        """Return the option of the data source for this; a bound with `offset_of` has none."""
        assert self.offset_of is None
        if self.by_partition:
            return {self.option: to_json(self.by_partition)}
        if self.is_time:
            return {self.option: _TIME.text(self.default)}
        (word,) = (word for word, number in _WORDS.items() if number == self.default)
        return {self.option: word}


FROM_START = Bound("startingOffsets", EARLIEST)
UP_TO_END = Bound("endingOffsets", LATEST)


def _bound_names(default: Bound) -> tuple[str, str, str]:
    """Return the options of a start or an end: offsets, a time, times by partition."""
    side = default.option.removesuffix("Offsets")
    return default.option, f"{side}Timestamp", f"{side}OffsetsByTimestamp"


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """Timeouts of connections to brokers, in seconds, and how they are secured.

    Certificates are kept by content, as executors have no files of the driver.
    """

    timeout_s: Annotated[float, _Option("timeoutMs", _MILLISECONDS)] = 30.0
    connect_timeout_s: Annotated[float, _Option("connectTimeoutMs", _MILLISECONDS)] = 5.0
    tls: Annotated[bool, _Option("tls", _FLAG)] = False
    tls_ca: Annotated[Secret | None, _Option("tlsCa", _PEM)] = None
    tls_cert: Annotated[Secret | None, _Option("tlsCert", _PEM)] = None
    tls_key: Annotated[Secret | None, _Option("tlsKey", _PEM)] = None
    user: Annotated[str | None, _Option("user", _NAME)] = None
    password: Annotated[Secret | None, _Option("password", _SECRET)] = None

    def secured(self, security: ClientSecurity | None) -> ConnectionOptions:
        """Return the same timeouts with the security of another client; its files are read."""
        if security is None:
            return self
        paths = security.tls_ca, security.tls_cert, security.tls_key
        ca, cert, key = (None if one is None else _PEM.parse(str(one)) for one in paths)
        timed = replace(self, tls=security.has_tls, tls_ca=ca, tls_cert=cert, tls_key=key)
        user, password = (security.user, security.password) if security.user else (None, None)
        return replace(timed, user=user, password=password)

    @property
    def security(self) -> ClientSecurity:
        """How connections are secured; certificates are files of this process then."""
        from broker.security.client_security import ClientSecurity  # late: few jobs need it

        files = {"ca": self.tls_ca, "cert": self.tls_cert, "key": self.tls_key}
        return ClientSecurity.of_files(
            has_tls=self.tls,
            **{name: _file_of(content) for name, content in files.items() if content is not None},
            user=self.user,
            password=None if self.password is None else self.password.reveal(),
        )

    def connect(self, address: BrokerAddress) -> Connection:
        """Return a connection to a broker, opened with the first request."""
        from broker.client.connection import Connection

        return Connection(
            address,
            timeout_s=self.timeout_s,
            connect_timeout_s=self.connect_timeout_s,
            security=self.security,
        )

    def to_options(self) -> dict[str, str]:
        """Return the options of the data source for these."""
        return _texts_of(self)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of a read; the table in `broker/spark/__init__.py` says what they mean."""

    where: Where
    selection: Selection = ALL_TOPICS
    starting: Bound = FROM_START
    ending: Bound = UP_TO_END
    fail_on_data_loss: Annotated[bool, _Option("failOnDataLoss", _FLAG)] = True
    crc: Annotated[Crc, _Option("crc", _CRC)] = Crc.FAIL
    # None: the default of the reader, 1 GiB, in loads 64 MiB
    max_partition_bytes: Annotated[int | None, _Option("maxBytesPerPartition", _SIZE)] = None
    min_partitions: Annotated[int | None, _Option("minPartitions", _COUNT)] = None
    max_trigger_bytes: Annotated[int | None, _Option("maxBytesPerTrigger", _SIZE)] = None
    fetch_bytes: Annotated[int, _Option("fetchSize", _SIZE)] = _MIB
    report_path: Annotated[Path | None, _Option("reportPath", _PATH)] = None
    decode: Annotated[str | None, _Option("decode", _DECODE)] = None
    reader_schema: Annotated[int | None, _Option("readerSchema", _COUNT)] = None
    connection: ConnectionOptions = ConnectionOptions()

    @property
    def task_bytes(self) -> int:
        """Return the maximum bytes of a task."""
        return self.max_partition_bytes or _GIB

    def between(self, starts: Offsets, ends: Offsets) -> ReadOptions:
        """Return options for these ranges only; bounds may be `EARLIEST` or `LATEST`."""
        return replace(
            self,
            selection=Selection(partitions=frozenset(starts)),
            starting=replace(FROM_START, by_partition=starts),
            ending=replace(UP_TO_END, by_partition=ends),
        )

    def to_options(self) -> dict[str, str]:
        """Return these options as the text that Spark takes; parsing it gives them again."""
        return {
            **self.where.to_options(),
            **self.selection.to_options(),
            **self.starting.to_options(),
            **self.ending.to_options(),
            **self.connection.to_options(),
            **_texts_of(self),
        }


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a write, from the same table."""

    where: Where  # not segment files
    topic: Annotated[str | None, _Option("topic", _TOPIC)] = None  # None: each row names its own
    codec: Annotated[Codec, _Option("compression", _CODEC)] = Codec.NONE
    batch_bytes: Annotated[int, _Option("batchSize", _SIZE)] = 256 * _KIB
    # of a message set; None: until the producer's delivery timeout
    retries: Annotated[int | None, _Option("retries", _COUNT_OR_0)] = None
    # None: tasks send at once; see `writer`
    staging_path: Annotated[Path | None, _Option("stagingPath", _PATH)] = None
    connection: ConnectionOptions = ConnectionOptions()

    def to_options(self) -> dict[str, str]:
        """Return these options as the text that Spark takes; parsing it gives them again."""
        return {**self.where.to_options(), **self.connection.to_options(), **_texts_of(self)}


def parse_read_options(options: Mapping[str, str], *, is_stream: bool = False) -> ReadOptions:
    """Parse the options of a read; a stream starts at `latest` by default, and has no end."""
    values = _Values(options)
    values.drop_without_effect()
    several = (*_PATHS, *_SELECT, *_bound_names(FROM_START), *_bound_names(UP_TO_END))
    values.check_names(*several, *_names_of(ReadOptions))
    where = _parse_where(values)
    ending = _parse_bound(values, UP_TO_END, forbidden=EARLIEST)
    if is_stream:
        if where.paths:
            raise ConfigError("streams read from brokers: set brokers or zk instead of path")
        if ending != UP_TO_END:
            raise ConfigError(f"{ending.option} is for batch reads; a stream has no end")
        starting = _parse_bound(values, replace(FROM_START, default=LATEST))
    else:
        if values.get("maxBytesPerTrigger") is not None:
            raise ConfigError("maxBytesPerTrigger cannot be used here: it is for streams")
        starting = _parse_bound(values, FROM_START, forbidden=LATEST)
    return ReadOptions(
        where=where,
        selection=_parse_selection(values, is_required=not where.paths),
        starting=starting,
        ending=ending,
        **values.fields_of(ReadOptions),
        connection=values.connection(),
    )


def parse_crc(options: Mapping[str, str]) -> Crc:
    """Parse the option `crc`, and no other."""
    return _Values(options).parsed("crc", _CRC) or Crc.FAIL


def names_files(options: Mapping[str, str]) -> bool:
    """Return whether options name segment files, and not brokers."""
    values = _Values(options)
    return any(values.get(name) is not None for name in _PATHS)


def parse_write_options(options: Mapping[str, str]) -> WriteOptions:
    """Parse the options of a write."""
    values = _Values(options)
    values.check_names(*_names_of(WriteOptions))
    where = _parse_where(values)
    if where.paths:
        raise ConfigError("topics are written through brokers: set brokers or zk instead of path")
    found = values.fields_of(WriteOptions)
    return WriteOptions(where, **found, connection=values.connection())


class _Values:
    """Options by name in any case; None for those that are not set."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in options.items()}

    def check_names(self, *known: str) -> None:
        everywhere = (*_WHERE, *_names_of(ConnectionOptions))
        names = {name.lower(): name for name in (*everywhere, *known, *_OF_SPARK)}
        for name in self._values:
            if name not in names:
                raise ConfigError(f"unknown option '{name}'{_hint(name, names)}")

    def drop_without_effect(self) -> None:
        for name, reason in _WITHOUT_EFFECT.items():
            if name == "includeHeaders" and self.parsed(name, _FLAG):
                continue  # `check_names` refuses it
            if self._values.pop(name.lower(), None) is not None:
                logger.warning("the option %s has no effect: %s", name, reason)

    def get(self, name: str) -> str | None:
        return self._values.get(name.lower())

    def one_of(
        self, names: tuple[str, ...], text: str, *, is_required: bool = True
    ) -> tuple[str, str]:
        """Return the only option of some that is set, and its text; both are empty if none is."""
        given = [name for name in names if self.get(name) is not None]
        if len(given) > 1 or (is_required and not given):
            found = f"these are set: {', '.join(given)}" if given else "none of them is set"
            raise ConfigError(f"exactly one of {text} is needed; {found}")
        return (given[0], self.get(given[0]) or "") if given else ("", "")

    def parsed(self, name: str, kind: _Kind[_Value]) -> _Value | None:
        text = self.get(name)
        if text is None:
            return None
        try:
            return kind.parse(text)
        except ValueError:
            raise ConfigError(f"{name} is '{text}'; valid: {kind.valid}") from None

    def fields_of(self, record: type) -> dict[str, Any]:
        """Return those fields of a record whose option is set."""
        found = {field: self.parsed(*option) for field, option in _options_of(record).items()}
        return {field: value for field, value in found.items() if value is not None}

    def connection(self) -> ConnectionOptions:
        return ConnectionOptions(**self.fields_of(ConnectionOptions))


def _hint(name: str, names: Mapping[str, str]) -> str:
    if hint := _HINTS.get(name):
        return f": {hint}"
    close = difflib.get_close_matches(name, names, n=1)
    return (
        f"; did you mean {names[close[0]]}?" if close else f"; valid: {', '.join(names.values())}"
    )


def _parse_where(values: _Values) -> Where:
    name, text = values.one_of((*_WHERE, *_PATHS), "brokers, zk and path")
    if not text.strip():
        raise ConfigError(f"{name} is empty")
    if name == "zk":
        return Where(zookeeper=text)
    if name in _PATHS:
        paths = [text] if name == "path" else json.loads(text)
        if not paths:
            raise ConfigError(f"{name} is empty")
        return Where(paths=tuple(Path(one) for one in paths))
    return Where(brokers=parse_brokers(text, name))


def parse_brokers(text: str, option: str) -> tuple[BrokerAddress, ...]:
    """Parse a static list of brokers."""
    from broker.client.connection import parse_broker_list  # late: see the module's docstring

    try:
        return tuple(parse_broker_list(text))
    except ProtocolError as error:
        raise ConfigError(f"{option}: {error}") from error


def _parse_selection(values: _Values, *, is_required: bool) -> Selection:
    name, text = values.one_of(_SELECT, ", ".join(_SELECT), is_required=is_required)
    if not name:
        return ALL_TOPICS
    if name == "subscribePattern":
        return Selection(pattern=parse_topic_pattern(text, name))
    if name == "assign":
        return Selection(partitions=parse_assignment(text, name))
    return parse_topics(text)


def parse_topics(text: str) -> Selection:
    """Return the selection of topics named in a list with commas."""
    topics = tuple(dict.fromkeys(one.strip() for one in text.split(",") if one.strip()))
    if not topics:
        raise ConfigError("subscribe names no topic")
    for topic in topics:
        validate_topic_name(topic)
    return Selection(topics)


def parse_topic_pattern(text: str, option: str) -> Pattern:
    """Compile a regular expression for whole names of topics."""
    try:
        return Pattern(text)
    except InvalidPatternError as error:
        raise ConfigError(f"{option}: {error}") from error


def _parse_bound(values: _Values, default: Bound, *, forbidden: int | None = None) -> Bound:
    """Return a bound: a time takes precedence over times by partition, those over offsets."""
    option, by_time, by_times = _bound_names(default)
    if (time_ms := values.parsed(by_time, _TIME)) is not None:
        return Bound(by_time, time_ms, is_time=True)
    if (text := values.get(by_times)) is not None:
        found = parse_offsets(text, by_times, minimum=0)
        try:
            times = {one: _parse_time(str(number)) for one, number in found.items()}
        except ValueError as error:
            raise ConfigError(f"{by_times}: {error}; valid: {_TIME.valid}") from error
        return Bound(by_times, default.default, times, is_time=True)
    text = values.get(option)
    if text is None:
        return default
    if text.lower() in _WORDS:
        bound = Bound(option, _WORDS[text.lower()])
    else:
        bound = replace(default, by_partition=parse_offsets(text, option))
    wanted = set(bound.by_partition.values()) or {bound.default}
    if forbidden in wanted:
        word = next(word for word, number in _WORDS.items() if number == forbidden)
        raise ConfigError(f"{option} of a batch read cannot be {word}: there would be nothing")
    return bound
