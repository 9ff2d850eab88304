"""The plan of `pylogctl produce`: its options as values, validated before a connection is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from broker.partition_patterns import PartitionPattern, parse_partition
from broker.producer.config import ProducerConfig
from broker.producer.encoder import Encoder, bytes_encoder
from broker.producer.named import encoder_of, partitioner_of
from broker.producer.partitioner import PARTITIONERS, Partitioner
from broker.producer.settings import acks_of
from broker.protocol.client_requests import Acks
from broker.topic import validate_topic_name
from broker.units import Rate, parse_duration_s, parse_rate, parse_size
from pylogctl.cli.environment import Environment, UsageError
from pylogctl.cli.properties import PRODUCE, client_settings
from pylogctl.format.framing import Framing, Shape, choose_framing, unescape
from pylogctl.produce.batcher import ANY_COUNT, BatchLimits
from pylogctl.produce.broker_loss import LossRule, parse_loss_rule
from pylogctl.produce.input_reader import STDIN
from pylogctl.produce.options import ProduceOptions

if TYPE_CHECKING:
    from pylogctl.produce.audit import AuditPlan


DEFAULT_BATCH_BYTES = 512 << 10
DEFAULT_LINGER_S = 0.005


class ProducePlan(NamedTuple):
    """What a run does: its options as given, and what was parsed of them."""

    topic: str
    files: tuple[str, ...]
    uses_terminal: bool  # messages are typed at a terminal
    options: ProduceOptions
    config: ProducerConfig  # the `-X` properties, overridden by options
    framing: Framing
    partition: PartitionPattern | None
    key_delimiter: bytes | None
    limits: BatchLimits
    rate: Rate | None
    loss_rule: LossRule
    audit: AuditPlan | None
    partitioner: str  # of `PARTITIONERS`, or of a plug-in
    choose: Partitioner
    encode: Encoder

    @property
    def has_fixed_partition(self) -> bool:
        """Return whether all messages go to one partition."""
        target = self.options.target
        if target.keep_partition or self.key_delimiter is not None:
            return False
        if self.partition is not None or self.partitioner == "sticky":
            return True
        return target.key is not None and self.partitioner == "hash"

    @property
    def is_plain(self) -> bool:
        """Return whether blocks of text may become sets, without handling each message."""
        given, records = self.options.input, self.options.records
        needs_look = given.csv_column is not None or given.skip_empty or given.template
        needs_look = needs_look or given.schema is not None
        has_receipt = records.receipt is not None or records.resume is not None
        return (
            self.framing.shape is Shape.DELIMITED
            and self.has_fixed_partition
            and not needs_look
            and not has_receipt
            and self.encode is bytes_encoder
        )


def make_plan(
    env: Environment, topic: str, files: Sequence[str], options: ProduceOptions
) -> ProducePlan:
    """Return the validated options of a run; `-X dump` raises `typer.Exit`."""
    target, sending = options.target, options.sending
    config = _config(env, options)
    validate_topic_name(topic)
    choice_of_partition = _check_target(options)
    _check_records(env, options)
    uses_terminal = STDIN in (files or (STDIN,)) and env.streams.stdin_is_tty
    rate = None if sending.rate is None else parse_rate(sending.rate)
    partitioner, choose = _partitioner(options, config)
    return ProducePlan(
        topic=topic,
        files=tuple(files) or (STDIN,),
        uses_terminal=uses_terminal,
        options=options,
        config=config,
        framing=_framing(options),
        partition=None if target.partition is None else parse_partition(target.partition),
        key_delimiter=None if target.key_delimiter is None else unescape(target.key_delimiter),
        limits=_limits(options, config.max_message_bytes, rate, uses_terminal=uses_terminal),
        rate=rate,
        loss_rule=parse_loss_rule(
            sending.on_broker_loss,
            choice_of_partition=choice_of_partition,
            wait_s=config.delivery_timeout_ms / 1000,
        ),
        audit=_audit(options, topic),
        partitioner=partitioner,
        choose=choose,
        encode=encoder_of(config),
    )


def _partitioner(options: ProduceOptions, config: ProducerConfig) -> tuple[str, Partitioner]:
    """Return the name of the partitioner, and a new one."""
    target, setting = options.target, "partitioner.class"
    if target.partitioner is not None:
        config, setting = replace(config, partitioner=target.partitioner), "--partitioner"
    has_key = target.key is not None or target.key_delimiter is not None
    default = "hash" if has_key else "sticky"
    found = partitioner_of(config, setting)
    if found is None:
        return default, PARTITIONERS[default]()
    return config.partitioner, found


def _limits(
    options: ProduceOptions, message_bytes: int, rate: Rate | None, *, uses_terminal: bool
) -> BatchLimits:
    sending = options.sending
    messages = 1 if sending.sync else sending.batch_messages or ANY_COUNT
    size, linger_s = DEFAULT_BATCH_BYTES, 0.0 if uses_terminal else DEFAULT_LINGER_S
    if sending.batch_bytes is not None:
        size = parse_size(sending.batch_bytes)
    if sending.linger is not None:
        linger_s = parse_duration_s(sending.linger)
    if rate is not None and rate.in_bytes:
        size = min(size, rate.burst)
    elif rate is not None:
        messages = min(messages, rate.burst)
    return BatchLimits(message_bytes, messages, size, linger_s)


def _audit(options: ProduceOptions, topic: str) -> AuditPlan | None:
    records = options.records
    if records.audit is None:
        if records.time_field is not None:
            raise UsageError("--time-field says how --audit counts, which is not given")
        return None
    from pylogctl.produce.audit import make_audit_plan  # late: few runs are audited

    return make_audit_plan(records.audit, records.time_field, topic)


def _check_target(options: ProduceOptions) -> str:
    """Return the option that chooses the partition; empty if none is given."""
    target = options.target
    chosen = {
        "--partition": target.partition is not None,
        "--key": target.key is not None,
        "--key-delimiter": target.key_delimiter is not None,
        "--keep-partition": target.keep_partition,
    }
    names = [name for name, is_given in chosen.items() if is_given]
    if len(names) > 1:
        raise UsageError(f"{names[0]} cannot be used with {names[1]} (each chooses the partition)")
    if names and target.partitioner is not None:
        has_key = names[0] in ("--key", "--key-delimiter")
        others = PARTITIONERS.keys() - {"hash"}
        if not has_key or target.partitioner in others:
            raise UsageError(
                f"{names[0]} cannot be used with --partitioner {target.partitioner}",
                *(["a key chooses the partition by its hash"] if has_key else []),
            )
    if target.key_delimiter == "":
        raise UsageError("--key-delimiter is empty")
    of_jsonl = {"--keep-partition": target.keep_partition, "--strict": options.input.strict}
    for option, is_given in of_jsonl.items():
        if is_given and not options.input.jsonl:
            raise UsageError(f"{option} needs --jsonl")
    return names[0] if names else ""


def _check_records(env: Environment, options: ProduceOptions) -> None:
    records = options.records
    if records.tee and env.settings.output is not None:
        raise UsageError("--tee cannot be used with --output (both write to stdout)")
    if records.resume is not None and options.input.template:
        raise UsageError("--template cannot be used with --resume (its messages never repeat)")
    if records.verify and options.sending.no_barrier:
        raise UsageError(
            "--verify cannot be used with --no-barrier (only what is flushed can be read back)"
        )


def _framing(options: ProduceOptions) -> Framing:
    given = options.input
    framing = choose_framing(given.framing, jsonl=given.jsonl, whole=given.whole)
    is_other = given.framing.names or framing != Framing(Shape.DELIMITED)
    if given.csv_column is not None and is_other:
        raise UsageError("only one framing is possible: --csv-column and another framing")
    return framing


def _config(env: Environment, options: ProduceOptions) -> ProducerConfig:
    """Return the producer's settings: `-X` properties, overridden by options.

    Where a topic has no replicas brokers acknowledge written messages, as the run waits at its end
    until they are flushed; a line of a receipt is final, so with --receipt they are flushed before.
    """
    sending, records = options.sending, options.records
    timeout_s = env.settings.timeout_s
    given = {
        "delivery.timeout.ms": None if timeout_s is None else f"{max(1, round(timeout_s * 1000))}",
        "socket.timeout.ms": None,  # may be shorter than the delivery: see `_limit_s` in `run`
        "compression.codec": sending.codec,
        "max.message.size": None if sending.max_size is None else str(parse_size(sending.max_size)),
        "max.in.flight.requests": "1" if sending.sync else None,
    }
    use = PRODUCE
    if records.receipt is not None:
        committed = {"request.required.acks": str(Acks.COMMITTED.value)}
        use = use._replace(defaults=dict(use.defaults) | committed)
    config = client_settings(env, use, ProducerConfig, given)
    acks = acks_of(config)
    if records.receipt is not None and acks is not Acks.COMMITTED:
        raise UsageError(
            f"--receipt cannot be used with request.required.acks={config.acks} "
            "(its lines are of messages that are safe)"
        )
    if records.verify and acks is Acks.NONE:
        raise UsageError("--verify cannot be used with request.required.acks=0")
    return config
