"""Turns the options of `pylogctl consume` into a request: what to read, and how to write it.

All options are validated here, before a connection is made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.failures import OnCorrupt
from pylogctl.cli.units import parse_duration_s
from pylogctl.format.envelope import PayloadEncoding, write_envelope
from pylogctl.format.filters import Filter, Sample, compile_grep, grep, parse_sample, parse_where
from pylogctl.format.framing import (
    NO_FRAMING,
    Framing,
    FramingChoice,
    Shape,
    choose_framing,
    write_message,
)
from pylogctl.format.message_format import Received, Render, compile_format

if TYPE_CHECKING:
    from broker.config import ConsumerConfig
    from broker.protocol.payload_filter import PayloadFilter
    from pylogctl.cli.offsets import Span
    from pylogctl.cli.selection import PartitionList
    from pylogctl.consume.exec import ExecOptions, Executor


@dataclass(frozen=True, slots=True)
class Plan:
    """How to write messages and when to end.

    Attributes:
        render: returns a message's bytes, delimiter included.
        delimiter: follows each payload, if nothing else is written; allows the fast path.
        filters: a message must pass all.
        max_messages: how many to write; None for all.
        on_corrupt: how to handle a corrupt message.
        unbuffered: flush after each message.
        final_delimiter: write the delimiter after the last message too.
        strict_framing: a payload that contains the delimiter is an error.
        idle_timeout_s: end after so long without a message.
        timeout_s: end after so long.
        group: the consumer group's name, for formats that show it; empty for none.
        executor: gets each message instead of standard output.
        payload_filter: applied by brokers; `filters` contains the same condition.
    """

    render: Render
    delimiter: bytes | None
    filters: Sequence[Filter] = ()
    max_messages: int | None = None
    on_corrupt: OnCorrupt = OnCorrupt.STOP
    unbuffered: bool = False
    final_delimiter: bool = True
    strict_framing: bool = False
    idle_timeout_s: float | None = None
    timeout_s: float | None = None
    group: str = ""
    executor: Executor | None = None
    payload_filter: PayloadFilter | None = None

    @property
    def is_plain(self) -> bool:
        """Return whether the messages of a chunk may be written together."""
        is_each_handled = self.filters or self.unbuffered or self.executor is not None
        return self.delimiter is not None and not is_each_handled


NO_TOPIC = "missing TOPIC (or --include RE; with --group all topics are consumed)"
PRETTY = "@full"
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code != 9}


@dataclass(frozen=True, slots=True)
class Shown:
    """The options for the form of output, of which at most one may be given."""

    framing: FramingChoice = NO_FRAMING
    jsonl: bool = False
    raw: bool = False
    message_format: str | None = None
    pretty: bool = False
    to_dir: Path | None = None
    payload_encoding: str = "auto"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The options for which messages are written, and how many."""

    max_messages: int | None = None
    grep: str | None = None
    ignore_case: bool = False
    invert: bool = False
    grep_at: str = "consumer"
    where: Sequence[str] = ()
    sample: str | None = None
    skip: int = 0


def make_plan(
    env: Environment,
    shown: Shown,
    chosen: Chosen,
    *,
    on_corrupt: str,
    unbuffered: bool,
    final_delimiter: bool,
    strict_framing: bool,
    idle_timeout: str | None,
    group: str = "",
) -> Plan:
    """Return how to write messages and when to end.

    Raises:
        UsageError: an option is malformed, or conflicts with another one.
        CliError: a format contains a field that is not stored.
    """
    render, delimiter = _rendering(env, shown)
    return Plan(
        render=render,
        delimiter=delimiter,
        filters=_filters(chosen),
        max_messages=chosen.max_messages,
        on_corrupt=OnCorrupt(on_corrupt),
        unbuffered=unbuffered or env.streams.stdout_is_tty,
        final_delimiter=final_delimiter,
        strict_framing=strict_framing,
        idle_timeout_s=None if idle_timeout is None else parse_duration_s(idle_timeout),
        timeout_s=env.settings.timeout_s,
        group=group,
        payload_filter=_payload_filter(chosen),
    )


def _rendering(env: Environment, shown: Shown) -> tuple[Render, bytes | None]:
    """Return how to write a message, and the delimiter if nothing but payloads is written."""
    framing = choose_framing(shown.framing, jsonl=shown.jsonl, whole=shown.raw)
    is_default = framing == Framing(Shape.DELIMITED) and shown.framing.delimiter is None
    forms = {
        "--format": shown.message_format is not None,
        "--pretty": shown.pretty,
        "--to-dir": shown.to_dir is not None,
        "a framing": not is_default,
    }
    if len(given := [form for form, is_given in forms.items() if is_given]) > 1:
        raise UsageError(f"only one form of output is possible: {' and '.join(given)}")
    if shown.message_format is not None or shown.pretty:
        return compile_format(PRETTY if shown.pretty else shown.message_format or ""), None
    if shown.to_dir is not None:
        return _file_writer(shown.to_dir), None
    if framing.shape is Shape.JSONL:
        encoding = PayloadEncoding(shown.payload_encoding)
        return (lambda received: write_envelope(received.facts, encoding)), None
    if is_default and env.streams.stdout_is_tty:
        return _for_terminal, None
    is_text = framing.shape in (Shape.DELIMITED, Shape.WHOLE)
    return (
        lambda received: write_message(received.facts.payload, framing),
        framing.delimiter if is_text else None,
    )


def _for_terminal(received: Received) -> bytes:
    """Return a payload as a line with control characters escaped."""
    text = received.facts.payload.decode("utf-8", "backslashreplace")
    return text.translate(_CONTROL).encode() + b"\n"


def _file_writer(directory: Path) -> Render:
    """Return a renderer that writes each message to a file of its own, and returns nothing."""

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
        pattern = compile_grep(chosen.grep, ignore_case=chosen.ignore_case)
        filters.append(grep(pattern, invert=chosen.invert))
    elif chosen.ignore_case or chosen.invert:
        raise UsageError("-i and --invert say how --grep works, which is not given")
    filters += map(parse_where, chosen.where)
    if chosen.sample is not None or chosen.skip:
        take, of = parse_sample(chosen.sample or "1/1")
        filters.append(Sample(skip=chosen.skip, take=take, of=of))
    return filters


def _payload_filter(chosen: Chosen) -> PayloadFilter | None:
    """Return the filter for brokers, None without `--grep-at broker`."""
    if chosen.grep_at != "broker":
        return None
    from broker.protocol.payload_filter import MAX_PATTERN_BYTES, PayloadFilter

    if chosen.grep is None:
        raise UsageError("--grep-at says where --grep is matched, which is not given")
    pattern = compile_grep(chosen.grep, ignore_case=chosen.ignore_case).pattern
    if len(pattern) > MAX_PATTERN_BYTES:
        raise UsageError(
            f"a broker takes a pattern of {MAX_PATTERN_BYTES} bytes, and --grep has {len(pattern)}",
            hints=["--grep-at consumer takes any"],
        )
    return PayloadFilter(pattern, ignore_case=chosen.ignore_case, invert=chosen.invert)


def validate_exec(shown: Shown, others: Mapping[str, bool]) -> None:
    """Validate that no option for the form of output is given, as `--exec` gets bare payloads.

    Args:
        shown: options for the form of output.
        others: further such options, and whether they are given.

    Raises:
        UsageError: one of them is given.
    """
    options = {
        "--jsonl": shown.jsonl,
        "--raw": shown.raw,
        "--format": shown.message_format is not None,
        "--pretty": shown.pretty,
        "--to-dir": shown.to_dir is not None,
        **others,
    }
    given = shown.framing.names + [option for option, is_given in options.items() if is_given]
    if given:
        raise UsageError(f"{given[0]} cannot be used with --exec (the command gets the payload)")


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """The options for a consumer group.

    `commit` is `auto`, `exit` or `none`; `default_offset`, `start` or `end`, is used where the
    group has no offset; `pattern` chooses topics if none is named.
    """

    group: str
    commit: str = "auto"
    commit_interval_ms: int = 10_000
    default_offset: str = "end"
    pattern: str = ".*"


def validate_selection(
    env: Environment,
    topics: Sequence[str],
    include: Sequence[str],
    partition: str | None,
    group: GroupOptions | None,
    span: Span,
) -> None:
    """Validate the options for topics, partitions and offsets, without or with a group.

    Raises:
        UsageError: neither a topic, a pattern nor a group is given, or an option conflicts with
            the group.
    """
    if group is None:
        if not topics and not include:
            raise UsageError(NO_TOPIC, hints=["try: pylogctl topic list"])
        return
    if partition is not None:
        raise UsageError("--partition cannot be used with --group (the group assigns partitions)")
    if env.settings.brokers:
        raise UsageError("--group needs a registry, and cannot be used with --broker")
    if topics and include:
        raise UsageError("with --group either name topics or give --include, not both")
    ranges = [span.spec.default, *(offsets for _, offsets in span.spec.partitions)]
    if any(offsets.end is not None for offsets in ranges):
        raise UsageError("with --group an offset has no END; use -e to stop at the end")


def group_pattern(include: Sequence[str], exclude: Sequence[str]) -> str:
    """Return the regular expression by which a group chooses topics; `.*` for all of them.

    Raises:
        UsageError: a pattern contains characters that 0.7's members of the group would change.
    """
    for pattern in (*include, *exclude):
        if re.search(r"[\s,]|^[\"']|[\"']$", pattern):
            raise UsageError(
                f"with --group a pattern has no blank, comma or quote at its ends: '{pattern}'"
            )
    wanted = "|".join(f"(?:{pattern})" for pattern in include) or ".*"
    if not exclude:
        return wanted
    return f"(?!(?:{'|'.join(exclude)})$)(?:{wanted})"


@dataclass(frozen=True, slots=True)
class Request:
    """All options of a run.

    `wait_s` is the longest wait for topics that do not exist: None for no wait, or infinity.
    """

    topics: Sequence[str]
    include: Sequence[str]
    exclude: Sequence[str]
    partitions: PartitionList | None
    span: Span
    plan: Plan
    config: ConsumerConfig
    group: GroupOptions | None = None
    wait_s: float | None = None
    strict_offset: bool = False
    one_by_one: bool = False
    execution: ExecOptions | None = None
