"""A run of `pylogctl produce`: connect, read, send, wait until all is readable, verify, report."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from broker.client.cluster import Cluster, Connect
from broker.client.static_cluster import StaticCluster
from broker.errors import BrokerError
from broker.producer.config import ProducerConfig
from broker.producer.dispatcher import Moved
from broker.producer.partitioner import PARTITIONERS
from broker.producer.producer import Producer
from broker.producer.settings import ProducerSettings, settings_of
from broker.topic import TopicPartition
from broker.units import Pacer, count_text, format_count, format_duration, format_size
from pylogctl.cli.columns import Column, ColumnKind, Document, Fit
from pylogctl.cli.connections import Absence, connector, open_cluster, with_addresses
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.cli.process import StopRequest, graceful_stop
from pylogctl.cli.progress import Progress, announced_wait, progress
from pylogctl.cli.report import failure_of
from pylogctl.format.framing import Framing, Shape
from pylogctl.produce.batcher import Batcher, Lines, Refusals
from pylogctl.produce.broker_loss import BrokerWaits
from pylogctl.produce.input_reader import (
    STDIN,
    InputError,
    InputStopped,
    Sources,
    check_files,
    signal_wakeup,
)
from pylogctl.produce.messages import MessageSplitter, partition_for
from pylogctl.produce.plan import Plan
from pylogctl.produce.sender import Batch, Confirmed, Nowhere, Sender, numbers_text

if TYPE_CHECKING:
    from pylogctl.produce.audit import ConfirmedCounts
    from pylogctl.produce.readback import SentSets
    from pylogctl.produce.receipts import Receipt


_CONNECT_S = 1.0  # for a connection during the run; afterwards `--on-broker-loss` applies
_POLL_INTERVAL_S = 0.02  # for acknowledgements, while the rate makes a run wait


class Outcome(NamedTuple):
    """The result of a run; `partitions` has the number of messages acknowledged in each."""

    partitions: dict[TopicPartition, int]
    payload_bytes: int
    seconds: float
    refused_count: int
    resumed_count: int
    is_verified: bool
    status: ExitStatus

    @property
    def message_count(self) -> int:
        """Return how many messages were acknowledged."""
        return sum(self.partitions.values())


class Peers(NamedTuple):
    """The cluster, its producer, and a function that makes another producer by default settings."""

    cluster: Cluster
    connect: Connect
    producer: Producer
    make_producer: Callable[[], Producer]


def run(env: Environment, plan: Plan) -> Outcome:
    """Send the messages of the inputs; an error says how much was sent."""
    if not plan.input.skips_errors:
        check_files(plan.files)
    receipt = _load_receipt(plan)
    with ExitStack() as stack:
        peers = stack.enter_context(_connected(with_addresses(env, plan.config), plan))
        peers.producer.partitions(plan.topic)
        if isinstance(peers.cluster, StaticCluster):
            peers.cluster.follow_closely(_CONNECT_S)  # brokers had time to start until here
        receipts = stack.enter_context(_receipt_file(env, plan, receipt))
        stop = stack.enter_context(graceful_stop())
        sources = Sources(
            env,
            plan.files,
            stop=stop,
            wakeup_fd=stack.enter_context(signal_wakeup()),
            is_paced=plan.rate is not None,
        )
        return _Run(env, plan, peers, sources, stop, receipts, receipt).run()


class _Run:
    def __init__(
        self,
        env: Environment,
        plan: Plan,
        peers: Peers,
        sources: Sources,
        stop: StopRequest,
        receipts: BinaryIO | None,
        receipt: Receipt | None,
    ) -> None:
        self._env = env
        self._plan = plan
        self._peers = peers
        self._sources = sources
        self._stop = stop
        self._sent_sets = _sent_sets(env, plan)
        self._audit = _confirmed_counts(env, plan, peers)
        self._refusals = Refusals(skips=plan.input.skips_errors, tell=env.error)
        self._refused_number = (
            sys.maxsize
        )  # of the message that ends the run, of its batch the first
        self._sender = self._make_sender(receipts)
        self._receipt = receipt
        fixed = _fixed_partition(plan, peers.producer)
        where = f"partitions of {plan.topic}" if fixed is None else str(fixed)
        env.trace(1, f"sending to {where}, acks {settings_of(plan.config).acks.name.lower()}")
        self._batcher = Batcher(
            self._sender,
            Lines(fixed, plan.framing.delimiter)
            if fixed is not None and plan.is_plain
            else MessageSplitter(plan, peers.producer, fixed, env.clock),
            limits=plan.limits,
            max_messages=plan.input.max_messages,
            refusals=self._refusals,
            accepted=env.write if plan.records.tee else None,
            is_confirmed=None if receipt is None else receipt.is_confirmed,
        )

    def _make_sender(self, receipts: BinaryIO | None) -> Sender:
        plan = self._plan
        observers: list[Callable[[Confirmed], None]] = []
        if receipts is not None:
            from pylogctl.produce.receipts import ReceiptWriter

            observers.append(ReceiptWriter(receipts).write)
        if self._sent_sets is not None:
            observers.append(self._sent_sets.note)
        if self._audit is not None:
            observers.append(self._audit.note)
        sender = Sender(
            Nowhere() if self._env.settings.dry_run else self._peers.producer,
            sync=plan.options.sending.sync,
            pacer=None if plan.rate is None else Pacer(plan.rate, self._env.clock, self._wait),
            before_send=None if self._audit is None else self._audit.on_idle,
            observers=observers,
            refused=self._refused,
            can_move=plan.loss_rule.moves,
        )
        waits = BrokerWaits(self._stop, self._env.warn)

        def move(moved: Moved) -> None:
            sender.note_move(moved)
            waits.on_move(moved)

        self._peers.producer.watch(waits.on_wait, move)
        return sender

    def _wait(self, seconds: float) -> None:
        """Wait until the rate allows a message; process acknowledgements meanwhile."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0:
            if self._stop.wait(min(left_s, _POLL_INTERVAL_S)):
                return
            self._sender.poll()

    def _refused(self, batch: Batch, error: BrokerError) -> None:
        failure = failure_of(error)
        assert failure is not None
        if not self._plan.input.skips_errors:
            self._refused_number = batch.numbers[0]
        text = f"{numbers_text(batch.numbers)} refused: {failure.message}"
        self._refusals.refuse(CliError(failure.status, text), count=len(batch.numbers))

    def run(self) -> Outcome:
        started_s = time.monotonic()
        total = None if self._plan.uses_terminal else self._sources.total_bytes()
        with self._audit or nullcontext():
            self._send_all(total)
            is_verified = self._finish()
        return Outcome(
            self._sender.partitions,
            self._sender.payload_bytes,
            time.monotonic() - started_s,
            self._refusals.count,
            0 if self._receipt is None else self._receipt.hit_count,
            is_verified,
            self._status(),
        )

    def _send_all(self, total_bytes: int | None) -> None:
        """Send the messages of all inputs, and wait until they are confirmed."""
        with progress(self._env, "produce", total_bytes) as meter:
            try:
                self._read_inputs(meter)
                self._sender.flush()
                self._env.flush()
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
            if not self._plan.options.sending.no_barrier:
                self._sender.wait_until_readable()

    def _read_inputs(self, meter: Progress) -> None:
        read_bytes = 0
        for name in self._sources.names:
            try:
                read_bytes += self._read_input(name, meter)
            except InputStopped:
                return
            except InputError as error:
                self._refusals.refuse(error)
        if not read_bytes and not self._refusals.count:
            is_closed = STDIN in self._sources.names and self._env.streams.stdin is None
            what = "standard input is closed" if is_closed else "the input is empty"
            self._env.note(f"nothing to send: {what}")

    def _read_input(self, name: str, meter: Progress) -> int:
        """Send the messages of one input; return how many bytes were read."""
        before_wait = self._env.flush if self._plan.records.tee else _do_nothing
        with self._sources.open(
            name, on_read=meter.advance, before_wait=before_wait, chore=self._audit
        ) as reader:
            if reader is None:
                return 0
            if name == STDIN and self._plan.uses_terminal:
                self._env.note(_terminal_note(self._plan.framing))
            try:
                self._batcher.read(reader)
            except InputStopped:
                if self._batcher.position < reader.read_bytes:
                    left = reader.read_bytes - self._batcher.position
                    self._env.note(f"{left} bytes of an unfinished message were not sent")
                raise
            return reader.read_bytes

    def _finish(self) -> bool:
        """Wait until all messages can be read, and compare them; return whether that was done."""
        if self._env.settings.dry_run or self._plan.options.sending.no_barrier:
            return False
        with announced_wait(self._env, "the brokers to make all of it readable"):
            try:
                if self._audit is not None:
                    self._audit.publish_all()
            finally:  # messages must be readable even if their counts are lost
                self._sender.wait_until_readable()
        if self._sent_sets is None or self._stop.is_set:
            return False
        peers = self._peers
        self._sent_sets.verify(
            peers.cluster, peers.connect, timeout_s=_limit_s(self._env, self._plan.config)
        )
        return True

    def _status(self) -> ExitStatus:
        if self._stop.is_set:
            return self._stop.status
        return ExitStatus.PARTIAL if self._refusals.count else ExitStatus.OK


def _fixed_partition(plan: Plan, producer: Producer) -> TopicPartition | None:
    """Return the partition of all messages; None if each message has its own."""
    if plan.partition is not None:
        return partition_for(producer, plan.topic, plan.target.partition or "", plan.partition)
    key = plan.target.key
    if plan.has_fixed_partition:
        encoded = None if key is None else key.encode("utf-8", "surrogateescape")
        return producer.choose_partition(plan.topic, encoded)
    producer.partitions(plan.topic)
    return None


def _sent_sets(env: Environment, plan: Plan) -> SentSets | None:
    if not plan.records.verify or env.settings.dry_run:
        return None
    from pylogctl.produce.readback import SentSets

    return SentSets()


def _confirmed_counts(env: Environment, plan: Plan, peers: Peers) -> ConfirmedCounts | None:
    if plan.audit is None or env.settings.dry_run:
        return None
    from pylogctl.produce.audit import ConfirmedCounts

    counts = peers.make_producer()
    counts.partitions(plan.audit.topic)
    return ConfirmedCounts(counts, plan.audit, env.clock, env.warn)


def _do_nothing() -> None:
    """Do nothing before a wait."""


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
def _connected(env: Environment, plan: Plan) -> Iterator[Peers]:
    """Open a cluster and a producer, closed at the end of the block."""
    config = plan.config
    limit_s = _limit_s(env, config)
    if env.settings.timeout_s is not None:  # it limits the delivery, not a response
        env = env.changed(settings=env.settings._replace(timeout_s=limit_s))
    connect_s = config.connect_timeout_ms / 1000
    connect, connect_soon = (
        connector(
            env,
            timeout_s=limit_s,
            connect_timeout_s=one,
            send_bytes=config.socket_send_bytes,
        )
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
        producer = Producer(
            cluster, connect_soon, settings, partitioner=PARTITIONERS[plan.partitioner]()
        )
        try:
            yield Peers(cluster, connect, producer, make_producer)
        finally:
            producer.close()


def _load_receipt(plan: Plan) -> Receipt | None:
    """Return the receipt of an earlier run, for --resume.

    With --receipt on the same file it may be missing: then this is the script's first run.
    """
    path = plan.records.resume
    if path is None:
        return None
    from pylogctl.produce.receipts import Receipt

    if path == plan.records.receipt and not path.exists():
        return Receipt()
    return Receipt.load(path, plan.topic)


@contextmanager
def _receipt_file(
    env: Environment, plan: Plan, receipt: Receipt | None
) -> Iterator[BinaryIO | None]:
    """Open the file of --receipt; a resumed one is continued after its last whole line."""
    path = plan.records.receipt
    if path is None or env.settings.dry_run:
        yield None
        return
    goes_on = receipt is not None and path == plan.records.resume
    with path.open("ab" if goes_on else "wb") as stream:
        if goes_on and receipt is not None:
            stream.truncate(receipt.valid_bytes)
        yield stream


DOCUMENT = Document(
    "produce/1",
    (
        Column("topic", "topic that was written to"),
        Column(
            "partitions",
            "partitions that were written to",
            noted_fit=Fit.WRAP,
            values=list[str],
        ),
        Column("messages", "messages confirmed", ColumnKind.INTEGER),
        Column("bytes", "their payloads", ColumnKind.BYTES),
        Column("seconds", "time until all could be read", ColumnKind.SECONDS),
        Column("messages_per_second", "messages by time", ColumnKind.RATE),
        Column("refused", "messages left out as they could not be sent", ColumnKind.INTEGER),
        Column("resumed", "messages an earlier run had sent", ColumnKind.INTEGER),
        Column("verified", "all was read back and compared", ColumnKind.BOOLEAN),
        Column("dry_run", "nothing was sent", ColumnKind.BOOLEAN),
    ),
    empty="nothing",
)


def report(env: Environment, topic: str, outcome: Outcome) -> None:
    """Write the summary: as a document to stdout if one was asked for, else as a note."""
    dry_run = env.settings.dry_run
    if env.settings.output is None:
        env.note(_summary_text(topic, outcome, dry_run=dry_run))
        return
    from pylogctl.cli.render import render  # late: few runs write a document

    render(env, DOCUMENT, [_summary_record(topic, outcome, dry_run=dry_run)])


def _summary_record(topic: str, outcome: Outcome, *, dry_run: bool) -> dict[str, Any]:
    return {
        "topic": topic,
        "partitions": [partition.name for partition in sorted(outcome.partitions)],
        "messages": outcome.message_count,
        "bytes": outcome.payload_bytes,
        "seconds": round(outcome.seconds, 6),
        "messages_per_second": round(outcome.message_count / max(outcome.seconds, 1e-9)),
        "refused": outcome.refused_count,
        "resumed": outcome.resumed_count,
        "verified": outcome.is_verified,
        "dry_run": dry_run,
    }


_NAMED_PARTITIONS = 3


def _summary_text(topic: str, outcome: Outcome, *, dry_run: bool) -> str:
    count = outcome.message_count
    rate = format_count(count / max(outcome.seconds, 1e-9))
    what = f"{count_text(count)}, {format_size(outcome.payload_bytes)}"
    where = _where(topic, outcome.partitions)
    if dry_run:
        text = f"{what} would go to {where}; nothing was sent"
    else:
        text = f"{what} to {where} in {format_duration(outcome.seconds)} ({rate} msg/s)"
    if outcome.resumed_count:
        text += f"; {count_text(outcome.resumed_count)} confirmed before"
    if outcome.refused_count:
        text += f"; {count_text(outcome.refused_count)} left out"
    return text + ("; all read back and compared" if outcome.is_verified else "")


def _where(topic: str, partitions: Mapping[TopicPartition, int]) -> str:
    if not partitions:
        return topic
    if len(partitions) > _NAMED_PARTITIONS:
        return f"{len(partitions)} partitions of {topic}"
    return ", ".join(str(partition) for partition in sorted(partitions))
