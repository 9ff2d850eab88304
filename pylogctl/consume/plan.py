"""Turns the options of `pylogctl consume` into a request: what to read, and how to write it.

All options are validated here, before a connection is made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from broker.consumer.config import ConsumerConfig
from broker.units import parse_duration_s
from pylogctl.cli.confirmation import refuse_change
from pylogctl.cli.connections import with_addresses
from pylogctl.cli.decoding import check_decode
from pylogctl.cli.environment import Environment, UsageError
from pylogctl.cli.offsets import Span, make_span, validate_order
from pylogctl.cli.properties import CONSUME, client_settings
from pylogctl.cli.selection import group_pattern
from pylogctl.consume.options import FOR_EVER, NO_COMMAND, Chosen, ConsumeOptions, Form
from pylogctl.format.envelope import write_envelope
from pylogctl.format.filters import Filter, SampleFilter, grep, parse_sample, parse_where
from pylogctl.format.framing import Framing, Shape, choose_framing, write_message
from pylogctl.format.message_format import Received, Render, compile_format

if TYPE_CHECKING:
    from broker.protocol.client_requests import PayloadFilter
    from pylogctl.consume.exec import ExecOptions, Executor


class ConsumePlan(NamedTuple):
    """How to write messages and when to end.

    Attributes:
        render: returns a message's bytes, delimiter included.
        delimiter: follows each payload, if nothing else is written; allows the fast path.
        filters: a message must pass all.
        chosen: how many messages are written, and what becomes of corrupt ones.
        form: the delimiters.
        unbuffered: flush after each message.
        timeout_s: end after this time.
        group: the consumer group's name, for formats that show it; empty for none.
        executor: gets each message instead of standard output.
        payload_filter: applied by brokers; `filters` contains the same condition.
        has_no_start: neither an offset nor a group says where to start: only new messages are read.
    """

    render: Render
    delimiter: bytes | None
    filters: Sequence[Filter] = ()
    chosen: Chosen = Chosen()
    form: Form = Form()
    unbuffered: bool = False
    timeout_s: float | None = None
    group: str = ""
    executor: Executor | None = None
    payload_filter: PayloadFilter | None = None
    has_no_start: bool = False

    @property
    def is_plain(self) -> bool:
        """Return whether the messages of a chunk may be written together."""
        is_each_handled = self.filters or self.unbuffered or self.executor is not None
        return self.delimiter is not None and not is_each_handled


NO_TOPIC = "missing TOPIC (or --include RE; with --group all topics are consumed)"


def make_request(env: Environment, topics: Sequence[str], options: ConsumeOptions) -> Request:
    """Return what to read and how to write it; `-X dump` raises `typer.Exit`."""
    reading = options.reading
    config = client_settings(env, CONSUME, ConsumerConfig, {})
    env = with_addresses(env, config)
    _check_decode(options)
    span = make_span(
        env,
        reading.offset or (),
        from_beginning=reading.from_beginning,
        exit_at_end=reading.exit_at_end,
    )
    pattern = _group_pattern(options)
    if pattern is not None and options.membership.commit != "none":
        refuse_change(env, "consume --group")
    _validate_selection(env, topics, options, span)
    validate_order(reading.order, span)
    executing = None
    if options.execution != NO_COMMAND:
        from pylogctl.consume.exec import make_exec_options  # late: the retry store's database

        executing = make_exec_options(options.execution, is_in_group=pattern is not None)
        _validate_exec(options.form)
    plan = _make_plan(env, options)
    wait_s = _wait_s(reading.wait_for_topic)
    return Request(env, topics, options, span, plan, config, pattern, wait_s, executing)


def _check_decode(options: ConsumeOptions) -> None:
    check_decode(options.form.decoding, takes_plugins=True)
    if options.form.decoding.decode is None:
        return
    if options.form.raw:
        raise UsageError("--raw writes payloads as they are; it cannot be used with --decode")
    if options.chosen.grep_at == "broker":
        raise UsageError("--grep-at broker cannot be used with --decode: brokers decode nothing")


def _wait_s(text: str | None) -> float | None:
    if text is None:
        return None
    return math.inf if text == FOR_EVER else parse_duration_s(text)


def _group_pattern(options: ConsumeOptions) -> str | None:
    """Return the pattern that chooses a group's topics if none is named; None without a group."""
    given = options.membership
    if given.group is None:
        if given.metrics_port is not None:
            raise UsageError("--metrics-port is for members of a group: it needs --group")
        return None
    from broker.admin.groups import validate_group_name  # late: loads the ZooKeeper client

    validate_group_name(given.group)
    return group_pattern(options.reading.patterns)


def _make_plan(env: Environment, options: ConsumeOptions) -> ConsumePlan:
    reading, chosen, form = options.reading, options.chosen, options.form
    render, delimiter = _rendering(env, form)
    group = options.membership.group or ""
    return ConsumePlan(
        render=render,
        delimiter=delimiter,
        filters=_filters(chosen),
        chosen=chosen,
        form=form,
        unbuffered=form.unbuffered or env.streams.stdout_is_tty,
        timeout_s=env.settings.timeout_s,
        group=group,
        payload_filter=_payload_filter(chosen),
        has_no_start=not (reading.offset or reading.from_beginning or group),
    )


def _rendering(env: Environment, form: Form) -> tuple[Render, bytes | None]:
    """Return how to write a message, and the delimiter if nothing but payloads is written."""
    framing = choose_framing(form.framing, jsonl=form.jsonl, whole=form.raw)
    is_default = framing == Framing(Shape.DELIMITED) and form.framing.delimiter is None
    forms = {
        "--format": form.message_format is not None,
        "--to-dir": form.to_dir is not None,
        "a framing": not is_default,
    }
    if len(given := [one for one, is_given in forms.items() if is_given]) > 1:
        raise UsageError(f"only one form of output is possible: {' and '.join(given)}")
    escapes = env.streams.stdout_is_tty and not form.raw
    if form.message_format is not None:
        render = compile_format(form.message_format, for_terminal=escapes, has_keys=True)
        return render, None
    if form.to_dir is not None:
        return _file_writer(form.to_dir), None
    if framing.shape is Shape.JSONL:
        return (lambda received: write_envelope(received.facts, form.payload_encoding)), None
    # With escapes no payload contains a line feed, so there is no delimiter to search for.
    is_text = framing.shape in (Shape.DELIMITED, Shape.WHOLE) and not (is_default and escapes)
    return (
        lambda received: write_message(
            received.facts.stored if form.raw else received.facts.payload,
            framing,
            for_terminal=escapes,
        ),
        framing.delimiter if is_text else None,
    )


def _file_writer(directory: Path) -> Render:
    """Return a renderer that writes each message to its own file, and returns no bytes."""

    def write(received: Received) -> bytes:
        facts = received.facts
        name = f"{facts.partition.topic}_{facts.partition.name}_{facts.offset:020d}"
        if facts.inner or facts.next_offset == facts.offset:
            name += f".{facts.inner}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(facts.payload)
        return b""

    return write


def _filters(chosen: Chosen) -> list[Filter]:
    filters: list[Filter] = []
    if chosen.grep is not None:
        filters.append(grep(chosen.grep, ignore_case=chosen.ignore_case, invert=chosen.invert))
    elif chosen.ignore_case or chosen.invert:
        raise UsageError("-i and --invert say how --grep works, which is not given")
    filters += map(parse_where, chosen.where or ())
    if chosen.sample is not None or chosen.skip:
        take, of = parse_sample(chosen.sample or "1/1")
        filters.append(SampleFilter(skip=chosen.skip, take=take, of=of))
    return filters


def _payload_filter(chosen: Chosen) -> PayloadFilter | None:
    if chosen.grep_at != "broker":
        return None
    from broker.protocol.client_requests import MAX_PATTERN_BYTES, PayloadFilter

    if chosen.grep is None:
        raise UsageError("--grep-at says where --grep is matched, which is not given")
    pattern = chosen.grep.encode("utf-8", "surrogateescape")
    if len(pattern) > MAX_PATTERN_BYTES:
        raise UsageError(
            f"a broker takes a pattern of {MAX_PATTERN_BYTES} bytes, and --grep has {len(pattern)}",
            "--grep-at consumer takes any",
        )
    return PayloadFilter(pattern, ignore_case=chosen.ignore_case, invert=chosen.invert)


def _validate_exec(form: Form) -> None:
    """Refuse options for the form of output, as `--exec` gets bare payloads."""
    options = {
        "--jsonl": form.jsonl,
        "--raw": form.raw,
        "--format": form.message_format is not None,
        "--to-dir": form.to_dir is not None,
        "--unbuffered": form.unbuffered,
        "--no-final-delimiter": form.no_final_delimiter,
        "--strict-framing": form.strict_framing,
    }
    given = form.framing.names + [option for option, is_given in options.items() if is_given]
    if given:
        raise UsageError(f"{given[0]} cannot be used with --exec (the command gets the payload)")


def _validate_selection(
    env: Environment, topics: Sequence[str], options: ConsumeOptions, span: Span
) -> None:
    """Validate the options for topics, partitions and offsets, without or with a group."""
    include = options.reading.patterns.include
    if options.membership.group is None:
        if not topics and not include:
            raise UsageError(NO_TOPIC, "try: pylogctl topic list")
        return
    if options.reading.partition is not None:
        raise UsageError("--partition cannot be used with --group (the group assigns partitions)")
    if env.settings.brokers:
        brokers = ",".join(env.settings.brokers)
        raise UsageError(
            f"--group needs a ZooKeeper (-Z); there are only brokers by address ({brokers})"
        )
    if topics and include:
        raise UsageError("with --group either name topics or give --include, not both")
    ranges = [span.spec.default, *(offsets for _, offsets in span.spec.partitions)]
    if any(offsets.end is not None for offsets in ranges):
        raise UsageError("with --group an offset has no END; use -e to stop at the end")


class Request(NamedTuple):
    """All options of a run."""

    env: Environment  # with the addresses of `-X`
    topics: Sequence[str]
    options: ConsumeOptions
    span: Span
    plan: ConsumePlan
    config: ConsumerConfig
    group_pattern: str | None  # chooses topics if none is named; None without a group
    wait_s: float | None  # for topics that do not exist; None for no wait, or infinity
    execution: ExecOptions | None
