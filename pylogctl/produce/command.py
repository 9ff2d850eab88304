"""`pylogctl produce`: messages from standard input or files to a topic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import ExitStatus
from pylogctl.cli.options import (
    BROKERS,
    DRY_RUN,
    PROGRESS,
    PROPERTIES,
    REGISTRY,
    SUMMARY,
    TIMEOUT,
    CodecOption,
    MaxMessagesOption,
    RateOption,
    VerifyOption,
    accepts,
)
from pylogctl.cli.tree import Command, new_app
from pylogctl.format.framing import NO_FRAMING, READ_FRAMING, FramingChoice
from pylogctl.produce.audit_options import AUDIT, NO_AUDIT, AuditChoice

if TYPE_CHECKING:
    from pylogctl.produce.run import Outcome

app = new_app()


@app.command("produce", cls=Command)
@accepts(
    *SUMMARY,
    *REGISTRY,
    *BROKERS,
    *PROPERTIES,
    *TIMEOUT,
    *PROGRESS,
    *DRY_RUN,
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
        "printf 'a\\nb\\nc\\n' | pylogctl produce t",
        "journalctl -f | pylogctl produce syslog --rate 5000/s",
        "pylogctl consume bin --from-beginning -e -L | pylogctl produce bin-copy -L",
        "pylogctl produce logs --verify --output json access.log error.log",
        "pylogctl produce orders --audit audit --time-field .ts < orders.jsonl",
    ),
    dumps_properties=True,
)
def produce(  # the signature is the option table
    env: Environment,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Topic to write to.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Input, in order; - is stdin. Default: stdin."),
    ] = None,
    framing: Annotated[FramingChoice, READ_FRAMING] = NO_FRAMING,
    jsonl: Annotated[
        bool,
        typer.Option(
            "--jsonl",
            help="A JSON object each, as consume --jsonl writes it.",
            rich_help_panel="Input",
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Refuse unknown fields of --jsonl.", rich_help_panel="Input"),
    ] = False,
    whole: Annotated[
        bool,
        typer.Option("--whole", help="All of the input is one message.", rich_help_panel="Input"),
    ] = False,
    each_file: Annotated[
        bool, typer.Option("--each-file", help="Each FILE is one message.", rich_help_panel="Input")
    ] = False,
    csv_column: Annotated[
        str | None,
        typer.Option(
            "--csv-column",
            metavar="NAME",
            help="One column of CSV with a header line.",
            rich_help_panel="Input",
        ),
    ] = None,
    skip_empty: Annotated[
        bool,
        typer.Option(
            "--skip-empty", help="Leave out messages without a byte.", rich_help_panel="Input"
        ),
    ] = False,
    template: Annotated[
        bool,
        typer.Option(
            "--template",
            help="Replace {i} {now} {uuid} {rand:16} in messages.",
            rich_help_panel="Input",
        ),
    ] = False,
    on_error: Annotated[
        Literal["stop", "skip"],
        typer.Option(
            "--on-error",
            help="At a message that cannot be sent: stop, or leave it out and end with 6.",
            rich_help_panel="Input",
        ),
    ] = "stop",
    partition: Annotated[
        str | None,
        typer.Option(
            "-p",
            "--partition",
            metavar="P",
            help="Write to this one: 0, or 2-0 (broker-partition).",
            rich_help_panel="Selection",
        ),
    ] = None,
    partitioner: Annotated[
        Literal["sticky", "random", "round-robin", "hash"] | None,
        typer.Option(
            "--partitioner",
            help="How partitions are chosen; sticky: one for the run, which keeps the order. "
            "Default: sticky, hash with a key.",
            rich_help_panel="Selection",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "-k",
            "--key",
            metavar="STR",
            help="Key of all messages; chooses the partition, is not stored.",
            rich_help_panel="Selection",
        ),
    ] = None,
    key_delimiter: Annotated[
        str | None,
        typer.Option(
            "-K",
            "--key-delimiter",
            metavar="STR",
            help="A key stands before the first STR of each message; it chooses the partition and "
            "is not stored.",
            rich_help_panel="Selection",
        ),
    ] = None,
    keep_partition: Annotated[
        bool,
        typer.Option(
            "--keep-partition",
            help="The partition each --jsonl object names.",
            rich_help_panel="Selection",
        ),
    ] = False,
    codec: CodecOption = None,
    batch_messages: Annotated[
        int | None,
        typer.Option(
            "--batch-messages",
            metavar="N",
            min=1,
            help="Messages of a request at most. Default: as many as --batch-bytes holds.",
            rich_help_panel="Limits",
        ),
    ] = None,
    batch_bytes: Annotated[
        str | None,
        typer.Option(
            "--batch-bytes",
            metavar="SIZE",
            help="Size of a request at most, unless one message is larger. Default: 512KiB.",
            rich_help_panel="Limits",
        ),
    ] = None,
    linger: Annotated[
        str | None,
        typer.Option(
            "--linger",
            metavar="DUR",
            help="How long a message waits for more. Default: 5ms, 0 from a terminal.",
            rich_help_panel="Limits",
        ),
    ] = None,
    sync: Annotated[
        bool,
        typer.Option(
            "--sync", help="One request per message, one after another.", rich_help_panel="Limits"
        ),
    ] = False,
    max_messages: MaxMessagesOption = None,
    rate: RateOption = None,
    max_size: Annotated[
        str | None,
        typer.Option(
            "--max-size",
            metavar="SIZE",
            help="Largest message; brokers have their own limit. Default: 1000000.",
            rich_help_panel="Limits",
        ),
    ] = None,
    no_barrier: Annotated[
        bool,
        typer.Option(
            "--no-barrier",
            help="End without waiting until all can be read: faster, but a crash of the machine "
            "can lose it and a consumer may not see it yet.",
            rich_help_panel="Output",
        ),
    ] = False,
    verify: VerifyOption = False,
    tee: Annotated[
        bool,
        typer.Option("--tee", help="Copy accepted input to stdout.", rich_help_panel="Output"),
    ] = False,
    receipt: Annotated[
        Path | None,
        typer.Option(
            "--receipt",
            metavar="FILE",
            help="Write a JSON line for each message that is safe on disk.",
            rich_help_panel="Output",
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="FILE",
            help="Leave out what this receipt says is sent already.",
            rich_help_panel="Input",
        ),
    ] = None,
    audit: Annotated[AuditChoice, AUDIT] = NO_AUDIT,
) -> None:
    """Write messages from stdin or files to a topic.

    Each line is a message, byte for byte, unless a framing says otherwise. Status 0 means that
    consumers can read all of it.
    """
    from pylogctl.produce import plan as plans
    from pylogctl.produce.run import run

    plan = plans.make_plan(
        env,
        topic,
        plans.Input(
            files=files or (),
            framing=framing,
            jsonl=jsonl,
            strict=strict,
            whole=whole,
            each_file=each_file,
            csv_column=csv_column,
            skip_empty=skip_empty,
            template=template,
            max_messages=max_messages,
            skips_errors=on_error == "skip",
        ),
        plans.Target(
            partition=partition,
            partitioner=partitioner,
            key=key,
            key_delimiter=key_delimiter,
            keep_partition=keep_partition,
        ),
        plans.Sending(
            codec=codec,
            batch_messages=batch_messages,
            batch_bytes=batch_bytes,
            linger=linger,
            sync=sync,
            rate=rate,
            max_size=max_size,
            barrier=not no_barrier,
        ),
        plans.Records(verify=verify, tee=tee, receipt=receipt, resume=resume, audit=audit),
    )
    outcome = run(env, plan)
    _report(env, topic, outcome)
    if outcome.status:
        raise typer.Exit(outcome.status)


def _report(env: Environment, topic: str, outcome: Outcome) -> None:
    """Write the summary: as a document to stdout if one was asked for, else as a note."""
    from pylogctl.cli.render import render
    from pylogctl.produce.run import DOCUMENT, summary_record, summary_text

    dry_run = env.settings.dry_run
    if env.settings.output is None:
        env.note(summary_text(topic, outcome, dry_run=dry_run))
    else:
        render(env, DOCUMENT, [summary_record(topic, outcome, dry_run=dry_run)])
