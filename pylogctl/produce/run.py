"""A run of `pylogctl produce`: connect, read, send, wait until all is readable, verify, report."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, BinaryIO, NamedTuple

from broker.client.cluster import Cluster, Connect
from broker.client.side import Side
from broker.client.static_cluster import StaticCluster
from broker.errors import BrokerError
from broker.producer.config import ProducerConfig
from broker.producer.dispatcher import Moved
from broker.producer.producer import Producer
from broker.producer.settings import ProducerSettings, settings_of
from broker.producer.stamper import Stamper, has_envelopes
from broker.topic import FORMAT_07, FORMAT_KAFKA, TopicPartition
from broker.units import Pacer, count_text, format_size
from pylogctl.cli.columns import Bytes, Document, Fit, Flag, Integer, Rate, Row, Seconds, Text
from pylogctl.cli.connections import Absence, connector, open_cluster, with_addresses
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.process import StopRequest, graceful_stop
from pylogctl.cli.progress import Progress, announced_wait, progress
from pylogctl.cli.render import render
from pylogctl.cli.report import failure_of
from pylogctl.format.framing import Framing, Shape
from pylogctl.produce import input_reader
from pylogctl.produce.batcher import Batcher, Lines, Refusals
from pylogctl.produce.broker_loss import BrokerWaits
from pylogctl.produce.input_reader import STDIN, InputError, InputStopped, Sources
from pylogctl.produce.messages import MessageSplitter, partition_for
from pylogctl.produce.plan import ProducePlan
from pylogctl.produce.receipts import EarlierReceipt, write_receipt
from pylogctl.produce.sender import Confirmed, MessageBatch, Sender, numbers_text, pace_text

if TYPE_CHECKING:
    from pylogctl.produce.audit import ConfirmedCounts
    from pylogctl.produce.readback import SentSets


_CONNECT_S = 1.0  # for a connection during the run; afterwards `--on-broker-loss` applies
_POLL_INTERVAL_S = 0.02  # for acknowledgements, while the rate makes a run wait


class ProduceRow(Row):
    """What a run has sent."""

    topic: Annotated[Text, "topic that was written to"]
    partitions: Annotated[list[str], "partitions that were written to", Fit.WRAP]
    messages: Annotated[Integer, "messages confirmed"]
    bytes: Annotated[Bytes, "their payloads"]
    seconds: Annotated[Seconds, "time until all could be read"]
    messages_per_second: Annotated[Rate, "messages by time"]
    refused: Annotated[Integer, "messages left out as they could not be sent"]
    resumed: Annotated[Integer, "messages an earlier run had sent"]
    verified: Annotated[Flag, "all was read back and compared"]
    dry_run: Annotated[Flag, "nothing was sent"]


DOCUMENT = Document("produce/1", ProduceRow, empty="nothing")


class Peers(NamedTuple):
    """The cluster, its producer, and a function that makes another producer by default settings."""

    cluster: Cluster
    connect: Connect
    producer: Producer
    make_producer: Callable[[], Producer]


def run(env: Environment, plan: ProducePlan) -> ExitStatus:
    """Send the messages of the inputs, and report; an error says how much was sent.

    The summary is written as a document to stdout if one was asked for, else as a note.
    """
    if not plan.options.input.skips_errors:
        input_reader.check_files(plan.files)
    receipt = _load_receipt(plan)
    with ExitStack() as stack:
        peers = stack.enter_context(_connected(with_addresses(env, plan.config), plan))
        peers.producer.partitions(plan.topic)
        if isinstance(peers.cluster, StaticCluster):
            peers.cluster.follow_closely(_CONNECT_S)  # brokers had time to start until here
        receipts = stack.enter_context(_receipt_file(env, plan, receipt))
        stop = stack.enter_context(graceful_stop())
        wakeup_fd = stack.enter_context(input_reader.signal_wakeup())
        sources = Sources(env, plan.files, stop, wakeup_fd, is_paced=plan.rate is not None)
        done = _Run(env, plan, peers, sources, stop, receipts, receipt)
        done.run()
    if env.settings.output is None:
        env.note(done.summary())
    else:
        render(env, DOCUMENT, [done.row()])
    return done.status


@dataclass(eq=False)
class _Run:
    env: Environment
    plan: ProducePlan
    peers: Peers
    sources: Sources
    stop: StopRequest
    receipts: BinaryIO | None
    receipt: EarlierReceipt | None

    def __post_init__(self) -> None:
        env, plan, producer = self.env, self.plan, self.peers.producer
        _refuse_unstored(plan, producer)
        self._sent_sets = _sent_sets(env, plan)
        self._audit = _confirmed_counts(env, plan, self.peers)
        self._seconds = 0.0
        self._is_verified = False
        self._refusals = Refusals(skips=plan.options.input.skips_errors, tell=env.error)
        # of the message that ends the run, of its batch the first
        self._refused_number = sys.maxsize
        self._sender = self._make_sender()
        stamper = _stamper(env, plan, self.peers)
        fixed = _fixed_partition(plan, producer)
        where = f"partitions of {plan.topic}" if fixed is None else str(fixed)
        env.trace(1, f"sending to {where}, acks {settings_of(plan.config).acks.name.lower()}")
        has_blocks = fixed is not None and not fixed.has_records  # no line is handled alone
        self._batcher = Batcher(
            self._sender,
            Lines(fixed, plan.framing.delimiter)
            if fixed is not None and has_blocks and plan.is_plain and stamper is None
            else MessageSplitter(plan, producer, fixed, env.clock, self._encode(), stamper),
            limits=plan.limits,
            max_messages=plan.options.input.max_messages,
            refusals=self._refusals,
            accepted=env.write if plan.options.records.tee else None,
            is_confirmed=None if self.receipt is None else self.receipt.is_confirmed,
        )

    def _encode(self) -> Callable[[bytes], bytes] | None:
        given, peers = self.plan.options.input.schema, self.peers
        if given is None:
            return None
        from pylogctl.cli.decoding import encoder_of  # late: few topics have schemas

        return encoder_of(self.env, given, self.plan.topic, Side(peers.cluster, peers.connect))

    def _make_sender(self) -> Sender:
        plan = self.plan
        observers: list[Callable[[Confirmed], None]] = []
        if self.receipts is not None:
            observers.append(partial(write_receipt, self.receipts))
        if self._sent_sets is not None:
            observers.append(self._sent_sets.note)
        if self._audit is not None:
            observers.append(self._audit.note)
        sender = Sender(
            None if self.env.settings.dry_run else self.peers.producer,
            sync=plan.options.sending.sync,
            pacer=None if plan.rate is None else Pacer(plan.rate, self.env.clock, self._wait),
            before_send=None if self._audit is None else self._audit.on_idle,
            observers=observers,
            refused=self._refused,
            can_move=plan.loss_rule.moves,
        )
        waits = BrokerWaits(self.stop, self.env.warn)

        def move(moved: Moved) -> None:
            sender.note_move(moved)
            waits.on_move(moved)

        self.peers.producer.watch(waits.on_wait, move)
        return sender

    def _wait(self, seconds: float) -> None:
        """Wait until the rate allows a message; process acknowledgements meanwhile."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0:
            if self.stop.wait(min(left_s, _POLL_INTERVAL_S)):
                return
            self._sender.poll()

    def _refused(self, batch: MessageBatch, error: BrokerError) -> None:
        failure = failure_of(error)
        assert failure is not None
        if not self.plan.options.input.skips_errors:
            self._refused_number = batch.numbers[0]
        text = f"{numbers_text(batch.numbers)} refused: {failure.message}"
        self._refusals.refuse(CliError(failure.status, text), count=len(batch.numbers))

    def run(self) -> None:
        started_s = time.monotonic()
        total = None if self.plan.uses_terminal else self.sources.total_bytes()
        with self._audit or nullcontext():
            self._send_all(total)
            self._is_verified = self._finish()
        self._seconds = time.monotonic() - started_s

    def _send_all(self, total_bytes: int | None) -> None:
        """Send the messages of all inputs, and wait until they are confirmed."""
        with progress(self.env, "produce", total_bytes) as meter:
            try:
                self._read_inputs(meter)
                self._sender.flush()
                self.env.flush()
            except CliError as error:
                if not self._sender.has_failed:
                    self._finish_quietly()
                    error.hints += self._sent_hint()
                raise
            except OSError:
                self._finish_quietly()
                raise

    def _sent_hint(self) -> tuple[str, ...]:
        count, last = self._sender.message_count, self._sender.last_number
        if last > self._refused_number:  # these were on their way when the broker refused it
            return (f"messages sent: {count}, also behind it, up to message {last}",)
        return (f"messages sent before: {count}",) if count else ()

    def _finish_quietly(self) -> None:
        """Wait for batches sent before an error; only the first error is reported."""
        with suppress(CliError, BrokerError):
            self._sender.flush()
            if not self.plan.options.sending.no_barrier:
                self._sender.wait_until_readable()

    def _read_inputs(self, meter: Progress) -> None:
        read_bytes = 0
        for name in self.sources.names:
            try:
                read_bytes += self._read_input(name, meter)
            except InputStopped:
                return
            except InputError as error:
                self._refusals.refuse(error)
        if not read_bytes and not self._refusals.count:
            is_closed = STDIN in self.sources.names and self.env.streams.stdin is None
            what = "standard input is closed" if is_closed else "the input is empty"
            self.env.note(f"nothing to send: {what}")

    def _read_input(self, name: str, meter: Progress) -> int:
        """Send the messages of one input; return how many bytes were read."""
        before_wait = self.env.flush if self.plan.options.records.tee else (lambda: None)
        with self.sources.open(name, meter.advance, before_wait, self._audit) as reader:
            if reader is None:
                return 0
            if name == STDIN and self.plan.uses_terminal:
                self.env.note(_terminal_note(self.plan.framing))
            try:
                self._batcher.read(reader)
            except InputStopped:
                if self._batcher.position < reader.read_bytes:
                    left = reader.read_bytes - self._batcher.position
                    self.env.note(f"{left} bytes of an unfinished message were not sent")
                raise
            return reader.read_bytes

    def _finish(self) -> bool:
        """Wait until all messages can be read, and compare them; return whether that was done."""
        if self.env.settings.dry_run or self.plan.options.sending.no_barrier:
            return False
        with announced_wait(self.env, "the brokers to make all of it readable"):
            try:
                if self._audit is not None:
                    self._audit.publish_all()
            finally:  # messages must be readable even if their counts are lost
                self._sender.wait_until_readable()
        if self._sent_sets is None or self.stop.is_set:
            return False
        peers = self.peers
        self._sent_sets.verify(
            peers.cluster, peers.connect, timeout_s=_limit_s(self.env, self.plan.config)
        )
        return True

    @property
    def status(self) -> ExitStatus:
        if self.stop.is_set:
            return self.stop.status
        return ExitStatus.PARTIAL if self._refusals.count else ExitStatus.OK

    def row(self) -> ProduceRow:
        sender = self._sender
        return ProduceRow(
            self.plan.topic,
            [partition.name for partition in sorted(sender.partitions)],
            sender.message_count,
            sender.payload_bytes,
            round(self._seconds, 6),
            round(sender.message_count / max(self._seconds, 1e-9)),
            self._refusals.count,
            0 if self.receipt is None else self.receipt.hit_count,
            self._is_verified,
            self.env.settings.dry_run,
        )

    def summary(self) -> str:
        sender = self._sender
        what = f"{count_text(sender.message_count)}, {format_size(sender.payload_bytes)}"
        where = _where(self.plan.topic, sender.partitions)
        if self.env.settings.dry_run:
            text = f"{what} would go to {where}; nothing was sent"
        else:
            text = f"{what} to {where} {pace_text(sender.message_count, self._seconds)}"
        if self.receipt is not None and self.receipt.hit_count:
            text += f"; {count_text(self.receipt.hit_count)} confirmed before"
        if self._refusals.count:
            text += f"; {count_text(self._refusals.count)} left out"
        return text + ("; all read back and compared" if self._is_verified else "")


def _refuse_unstored(plan: ProducePlan, producer: Producer) -> None:
    """Refuse options that are for topics of the other format."""
    options = plan.options
    of_07 = {"--verify": options.records.verify, "--envelope": options.input.envelope}
    format = producer.partitions(plan.topic)[0].format
    given = of_07 if format == FORMAT_KAFKA else {"--header": options.target.header}
    for option in (one for one, is_given in given.items() if is_given):
        raise CliError(
            ExitStatus.UNSUPPORTED,
            f"{option} is for topics of format {FORMAT_07 if given is of_07 else FORMAT_KAFKA}, "
            f"and '{plan.topic}' is of format {format}",
        )


def _fixed_partition(plan: ProducePlan, producer: Producer) -> TopicPartition | None:
    """Return the partition of all messages; None if each message has its own."""
    target = plan.options.target
    if plan.partition is not None:
        return partition_for(producer, plan.topic, target.partition or "", plan.partition)
    if plan.has_fixed_partition:
        encoded = None if target.key is None else target.key.encode("utf-8", "surrogateescape")
        return producer.choose_partition(plan.topic, encoded)
    producer.partitions(plan.topic)
    return None


def _stamper(env: Environment, plan: ProducePlan, peers: Peers) -> Stamper | None:
    """Return what puts envelopes in front of messages; None unless option or topic ask for it."""
    if not plan.options.input.envelope:
        try:
            if not has_envelopes(peers.cluster, peers.connect, plan.topic):
                return None
        except BrokerError as error:
            env.trace(1, f"envelope: not known of topic '{plan.topic}', so none: {error}")
            return None
    return Stamper()


def _sent_sets(env: Environment, plan: ProducePlan) -> SentSets | None:
    if not plan.options.records.verify or env.settings.dry_run:
        return None
    from pylogctl.produce.readback import SentSets

    return SentSets()


def _confirmed_counts(env: Environment, plan: ProducePlan, peers: Peers) -> ConfirmedCounts | None:
    if plan.audit is None or env.settings.dry_run:
        return None
    from pylogctl.produce.audit import ConfirmedCounts

    counts = peers.make_producer()
    counts.partitions(plan.audit.topic)
    return ConfirmedCounts(counts, plan.audit, env.clock, env.warn)


def _terminal_note(framing: Framing) -> str:
    is_by_line = framing.shape in (Shape.HEX, Shape.BASE64, Shape.JSONL)
    if is_by_line or framing == Framing(Shape.DELIMITED):
        return "reading messages from the terminal, one per line, Ctrl-D to end"
    return "reading messages from the terminal, Ctrl-D to end"


def _limit_s(env: Environment, config: ProducerConfig) -> float:
    """Return the timeout of a response: the socket's, or that of the delivery if it is shorter."""
    limit_s = config.socket_timeout_ms / 1000
    return min(limit_s, env.timeout_s(limit_s))


@contextmanager
def _connected(env: Environment, plan: ProducePlan) -> Iterator[Peers]:
    """Open a cluster and a producer, closed at the end of the block."""
    config = plan.config
    limit_s = _limit_s(env, config)
    if env.settings.timeout_s is not None:  # it limits the delivery, not a response
        env = env.changed(settings=env.settings._replace(timeout_s=limit_s))
    connect_s = config.connect_timeout_ms / 1000
    send_bytes = config.socket_send_bytes
    connect, connect_soon = (
        connector(env, timeout_s=limit_s, connect_timeout_s=one, send_bytes=send_bytes)
        for one in (connect_s, min(_CONNECT_S, connect_s))
    )
    with open_cluster(env, connect, absence=Absence.WARN, config=config) as cluster:
        settings = replace(
            settings_of(config),
            delivery_timeout_s=plan.loss_rule.wait_s,
            timeout_s=limit_s,
            moves=plan.loss_rule.moves,
            creates_topics=not env.settings.dry_run,
        )
        of_counts = ProducerSettings(
            timeout_s=limit_s,
            delivery_timeout_s=settings.delivery_timeout_s,
            retries=settings.retries,
            backoff_s=settings.backoff_s,
        )
        make_producer = partial(Producer, cluster, connect_soon, of_counts)
        producer = Producer(cluster, connect_soon, settings, partitioner=plan.choose)
        with closing(producer):
            yield Peers(cluster, connect, producer, make_producer)


def _load_receipt(plan: ProducePlan) -> EarlierReceipt | None:
    """Return the receipt of an earlier run, for --resume.

    With --receipt on the same file it may be missing: then this is the script's first run.
    """
    path = plan.options.records.resume
    if path is None:
        return None
    if path == plan.options.records.receipt and not path.exists():
        return EarlierReceipt()
    return EarlierReceipt.load(path, plan.topic)


@contextmanager
def _receipt_file(
    env: Environment, plan: ProducePlan, receipt: EarlierReceipt | None
) -> Iterator[BinaryIO | None]:
    """Open the file of --receipt; a resumed one is continued after its last whole line."""
    path = plan.options.records.receipt
    if path is None or env.settings.dry_run:
        yield None
        return
    goes_on = receipt is not None and path == plan.options.records.resume
    with path.open("ab" if goes_on else "wb") as stream:
        if goes_on and receipt is not None:
            stream.truncate(receipt.valid_bytes)
        yield stream


_NAMED_PARTITIONS = 3


def _where(topic: str, partitions: Mapping[TopicPartition, int]) -> str:
    if not partitions:
        return topic
    if len(partitions) > _NAMED_PARTITIONS:
        return f"{len(partitions)} partitions of {topic}"
    return ", ".join(str(partition) for partition in sorted(partitions))
