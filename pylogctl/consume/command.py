"""`pylogctl consume`: messages of topics to standard output."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import ExitStatus
from pylogctl.cli.options import (
    ALL_TOPICS,
    BROKERS,
    PROPERTIES,
    REGISTRY,
    TIMEOUT,
    FetchSizeOption,
    MaxMessagesOption,
    MessageFormatOption,
    OptionalValue,
    PartitionsOption,
    TopicPatterns,
    accepts,
    offset_option,
    topic_patterns,
)
from pylogctl.cli.tree import Command, new_app
from pylogctl.cli.units import parse_duration_ms, parse_duration_s, parse_size
from pylogctl.consume.exec_options import EXECUTION, NO_COMMAND, ExecChoice
from pylogctl.format.framing import NO_FRAMING, WRITE_FRAMING, FramingChoice

if TYPE_CHECKING:
    from broker.config import ConsumerConfig

app = new_app()

FOR_EVER = "forever"
_PATTERNS = topic_patterns("Read every topic whose whole name matches (repeatable).")
_WAIT = OptionalValue(r"\d[\d.a-z]*", FOR_EVER)


@app.command("consume", cls=Command)
@accepts(
    *REGISTRY,
    *BROKERS,
    *PROPERTIES,
    *TIMEOUT,
    exits=(
        ExitStatus.FAILED,
        ExitStatus.NOT_FOUND,
        ExitStatus.PARTIAL,
        ExitStatus.TIMEOUT,
        ExitStatus.CORRUPT,
        ExitStatus.UNREACHABLE,
        ExitStatus.REMOTE,
        ExitStatus.UNSUPPORTED,
        ExitStatus.SIGPIPE,
    ),
    examples=(
        "pylogctl consume syslog --from-beginning",
        "pylogctl consume syslog -o @-10m:end --grep 'oom|segfault' -F '%t[%p] %o %s\\n'",
        "pylogctl consume syslog --from-beginning --grep oom --grep-at broker",
        "pylogctl consume --group g --from-beginning",
        "pylogctl consume bin --from-beginning -e -L | pylogctl produce bin-copy -L",
        "pylogctl consume t --from-beginning -e --jsonl | jq -r .payload | sort | uniq -c",
        "pylogctl consume orders --group billing --exec 'bill --at {offset}' --retry-dir failed",
    ),
    optional={"--wait-for-topic": _WAIT},
    dumps_properties=True,
)
def consume(  # the signature is the option table
    env: Environment,
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC]...", help="Topics to read.")
    ] = None,
    patterns: Annotated[TopicPatterns, _PATTERNS] = ALL_TOPICS,
    partition: PartitionsOption = None,
    offset: Annotated[
        list[str] | None,
        offset_option(
            "Where to start, and to end: START[:END]; see pylogctl-offsets(7). Default: end."
        ),
    ] = None,
    from_beginning: Annotated[
        bool,
        typer.Option("--from-beginning", help="Same as -o start.", rich_help_panel="Selection"),
    ] = False,
    group: Annotated[
        str | None,
        typer.Option(
            "-g",
            "--group",
            metavar="G",
            help="Share the topics with the other members of this group; all topics if none is "
            "named. Starts where the group is, unless -o says otherwise and it has no other "
            "member.",
            rich_help_panel="Selection",
        ),
    ] = None,
    default_offset: Annotated[
        Literal["start", "end"],
        typer.Option(
            "--default-offset",
            help="Where a group starts in a partition it has no offset of.",
            rich_help_panel="Selection",
        ),
    ] = "end",
    commit: Annotated[
        Literal["auto", "exit", "none"],
        typer.Option(
            "--commit",
            help="When the group's offsets are stored. None: a look that moves nothing.",
            rich_help_panel="Limits",
        ),
    ] = "auto",
    commit_interval: Annotated[
        str,
        typer.Option(
            "--commit-interval", metavar="DUR", help="For --commit auto.", rich_help_panel="Limits"
        ),
    ] = "10s",
    strict_offset: Annotated[
        bool,
        typer.Option(
            "--strict-offset",
            help="An offset out of range is an error, not moved into it, or to the start if a "
            "group had stored it.",
            rich_help_panel="Selection",
        ),
    ] = False,
    wait_for_topic: Annotated[
        str | None,
        typer.Option(
            "--wait-for-topic",
            metavar="[DUR]",
            help="Wait for a topic that does not exist yet.",
            rich_help_panel="Limits",
        ),
    ] = None,
    max_messages: MaxMessagesOption = None,
    exit_at_end: Annotated[
        bool,
        typer.Option(
            "-e",
            "--exit-at-end/--follow",
            "--no-follow/-f",
            help="Stop where each partition ended at the start. Default: --follow.",
            rich_help_panel="Limits",
        ),
    ] = False,
    idle_timeout: Annotated[
        str | None,
        typer.Option(
            "--idle-timeout",
            metavar="DUR",
            help="Stop when nothing came for so long; status 7 if -n is not reached.",
            rich_help_panel="Limits",
        ),
    ] = None,
    framing: Annotated[FramingChoice, WRITE_FRAMING] = NO_FRAMING,
    jsonl: Annotated[
        bool,
        typer.Option(
            "--jsonl", help="A JSON object each, with all that is known.", rich_help_panel="Output"
        ),
    ] = False,
    payload_encoding: Annotated[
        Literal["auto", "utf8", "base64", "hex"],
        typer.Option(
            "--payload-encoding",
            help="How --jsonl writes payloads. Auto: text if valid UTF-8, else base64.",
            rich_help_panel="Output",
        ),
    ] = "auto",
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Nothing between messages.", rich_help_panel="Output"),
    ] = False,
    message_format: MessageFormatOption = None,
    pretty: Annotated[
        bool,
        typer.Option("--pretty", help="A header line and the payload.", rich_help_panel="Output"),
    ] = False,
    to_dir: Annotated[
        Path | None,
        typer.Option(
            "--to-dir", metavar="DIR", help="A file for each message.", rich_help_panel="Output"
        ),
    ] = None,
    no_final_delimiter: Annotated[
        bool,
        typer.Option(
            "--no-final-delimiter",
            help="Delimiter between messages, not after each.",
            rich_help_panel="Output",
        ),
    ] = False,
    strict_framing: Annotated[
        bool,
        typer.Option(
            "--strict-framing",
            help="A payload that holds the delimiter is an error (status 8).",
            rich_help_panel="Output",
        ),
    ] = False,
    unbuffered: Annotated[
        bool,
        typer.Option(
            "-u", "--unbuffered", help="Flush after each message.", rich_help_panel="Output"
        ),
    ] = False,
    grep: Annotated[
        str | None,
        typer.Option(
            "--grep",
            metavar="RE",
            help="Only messages whose payload matches; -n counts those.",
            rich_help_panel="Selection",
        ),
    ] = None,
    ignore_case: Annotated[
        bool,
        typer.Option("-i", "--ignore-case", help="For --grep.", rich_help_panel="Selection"),
    ] = False,
    invert: Annotated[
        bool,
        typer.Option(
            "--invert", help="Only messages --grep does not match.", rich_help_panel="Selection"
        ),
    ] = False,
    grep_at: Annotated[
        Literal["consumer", "broker"],
        typer.Option(
            "--grep-at",
            help="Where --grep is matched. Broker: what does not match stays off the network; a "
            "broker that cannot match leaves it to the consumer.",
            rich_help_panel="Selection",
        ),
    ] = "consumer",
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="EXPR",
            help="Only messages for which this holds, such as size>1000 (repeatable).",
            rich_help_panel="Selection",
        ),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(
            "--sample",
            metavar="N/M",
            help="N of every M messages.",
            rich_help_panel="Selection",
        ),
    ] = None,
    skip: Annotated[
        int,
        typer.Option(
            "--skip",
            metavar="N",
            min=0,
            help="Leave out the first N messages.",
            rich_help_panel="Selection",
        ),
    ] = 0,
    execution: Annotated[ExecChoice, EXECUTION] = NO_COMMAND,
    order: Annotated[
        Literal["arrival", "partition"],
        typer.Option(
            "--order",
            help="As messages come, or one partition after another (needs an end).",
            rich_help_panel="Output",
        ),
    ] = "arrival",
    on_corrupt: Annotated[
        Literal["stop", "skip", "raw"],
        typer.Option(
            "--on-corrupt",
            help="Stop with status 8; leave out and end with 6; or write the stored bytes.",
            rich_help_panel="Limits",
        ),
    ] = "stop",
    fetch_size: FetchSizeOption = None,
    max_wait: Annotated[
        str | None,
        typer.Option(
            "--max-wait",
            metavar="DUR",
            help="How long a broker waits for new messages. Default: 500ms.",
            rich_help_panel="Connection",
        ),
    ] = None,
    socket_buffer: Annotated[
        str | None,
        typer.Option(
            "--socket-buffer",
            metavar="SIZE",
            help="Receive buffer of the socket. Default: the system's.",
            rich_help_panel="Connection",
        ),
    ] = None,
) -> None:
    """Read messages of topics to stdout.

    With --group several consumers share the topics: each partition is assigned to one of them.
    Offsets of written messages are committed, so that the next run continues there.

    With --exec nothing is written: a command gets each payload, and only messages that it handled,
    or that are kept in --retry-dir, are committed.

    Runs until interrupted unless an end is given. Payloads are written as they are, byte for byte;
    on a terminal control bytes are shown as escapes.
    """
    from pylogctl.cli import selection
    from pylogctl.cli.connections import with_addresses
    from pylogctl.cli.offsets import make_span, validate_order
    from pylogctl.consume import plan as consume_plan
    from pylogctl.consume import run

    config = _config(env, fetch_size, max_wait, socket_buffer)
    env = with_addresses(env, config)
    span = make_span(env, offset or (), from_beginning=from_beginning, exit_at_end=exit_at_end)
    member = None
    if group is not None:
        selection.validate_group_name(group)
        interval_ms = parse_duration_ms(commit_interval)
        pattern = consume_plan.group_pattern(patterns.include, patterns.exclude)
        member = consume_plan.GroupOptions(group, commit, interval_ms, default_offset, pattern)
    consume_plan.validate_selection(env, topics or (), patterns.include, partition, member, span)
    validate_order(order, span)
    shown = consume_plan.Shown(
        framing=framing,
        jsonl=jsonl,
        raw=raw,
        message_format=message_format,
        pretty=pretty,
        to_dir=to_dir,
        payload_encoding=payload_encoding,
    )
    executing = None
    if execution != NO_COMMAND:
        from pylogctl.consume.exec import make_exec_options  # late: the retry store's database

        executing = make_exec_options(execution, is_in_group=group is not None)
        others = {
            "--unbuffered": unbuffered,
            "--no-final-delimiter": no_final_delimiter,
            "--strict-framing": strict_framing,
        }
        consume_plan.validate_exec(shown, others)
    plan = consume_plan.make_plan(
        env,
        shown,
        consume_plan.Chosen(
            max_messages=max_messages,
            grep=grep,
            ignore_case=ignore_case,
            invert=invert,
            grep_at=grep_at,
            where=where or (),
            sample=sample,
            skip=skip,
        ),
        on_corrupt=on_corrupt,
        unbuffered=unbuffered,
        final_delimiter=not no_final_delimiter,
        strict_framing=strict_framing,
        idle_timeout=idle_timeout,
        group=group or "",
    )
    wait_s = None
    if wait_for_topic is not None:
        wait_s = math.inf if wait_for_topic == FOR_EVER else parse_duration_s(wait_for_topic)
    status = run.run(
        env,
        consume_plan.Request(
            topics=topics or (),
            include=patterns.include,
            exclude=patterns.exclude,
            partitions=None if partition is None else selection.parse_partition_list(partition),
            span=span,
            plan=plan,
            config=config,
            group=member,
            wait_s=wait_s,
            strict_offset=strict_offset,
            one_by_one=order == "partition",
            execution=executing,
        ),
    )
    if status:
        raise typer.Exit(status)


def _config(
    env: Environment, fetch_size: str | None, max_wait: str | None, socket_buffer: str | None
) -> ConsumerConfig:
    """Return the consumer's settings: `-X` properties, and the options on top."""
    from broker.config import ConsumerConfig
    from pylogctl.cli.properties import CONSUME, client_settings

    given = {
        "fetch.size": None if fetch_size is None else parse_size(fetch_size),
        "fetch.wait.max.ms": None if max_wait is None else parse_duration_ms(max_wait),
        "socket.buffersize": None if socket_buffer is None else parse_size(socket_buffer),
    }
    options = {name: None if value is None else str(value) for name, value in given.items()}
    return client_settings(env, CONSUME, ConsumerConfig, options)
