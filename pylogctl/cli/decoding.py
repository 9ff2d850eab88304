"""Messages with schemas: `--decode` makes JSON of payloads, `produce --schema` payloads of JSON.

Schemas come from the brokers of the cluster; each is asked for once in a run, and so is an id that
there is no schema of.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from broker.errors import (
    BrokerError,
    PluginError,
    SchemaMismatchError,
    UnknownSchemaError,
    did_you_mean,
)
from broker.topic import TopicPartition
from broker.units import counted
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.failures import OnCorrupt
from pylogctl.cli.options import DecodeChoice

if TYPE_CHECKING:
    from broker.client.schemas import SchemaClient
    from broker.client.side import Side
    from broker.plugins import Plugin
    from broker.schemas.payloads import Decoder
    from broker.schemas.values import RegisteredSchema, SchemaType

Decode = Callable[[str, bytes], bytes]
"""Returns what is shown of a topic's payload; raises `SchemaMismatchError`."""
_MAX_NOTES = 5
_MAX_SCHEMA_BYTES = 1 << 20  # brokers take less


def check_decode(choice: DecodeChoice, *, takes_plugins: bool = False) -> None:
    """Raise a `UsageError` for options that no decoder is made of, before a connection is."""
    if choice.decode is None:
        if choice.reader is not None:
            raise UsageError("--reader says how --decode reads, which is not given")
    elif choice.decode != "auto":
        if choice.reader is not None:
            raise UsageError("--reader says how --decode auto reads")
        if not takes_plugins:
            hint = "valid: auto; plug-ins decode for consume, log dump and topic sample"
            raise UsageError(f"--decode {choice.decode} is not possible here", hint)
        _plugin(choice.decode)
    if choice.reader not in (None, "latest") and not choice.reader.isdecimal():
        raise UsageError(f"--reader '{choice.reader}' is no id of a schema", "valid: 7, latest")


def decoder_of(choice: DecodeChoice, side: Side | None, *, patience_s: float = 0.0) -> Decode:
    """Return the decoder that `--decode` names, which `check_decode` has accepted.

    Brokers that cannot tell a schema for the moment are asked again for `patience_s`.
    """
    if choice.decode not in (None, "auto"):
        return _by_plugin(_plugin(choice.decode))
    from broker.schemas.payloads import Decoder, remembering, to_json
    from broker.tools.schemas import client_of

    assert side is not None  # only plug-ins need none
    client = client_of(side)
    find = remembering(partial(_found, client, patience_s))
    decoders: dict[str, Decoder] = {}

    def decode(topic: str, payload: bytes) -> bytes:
        name = topic if choice.reader == "latest" else ""  # else one for all topics
        if name not in decoders:
            reader = None
            if choice.reader is not None:
                reader = latest_of(client, topic) if name else client.get(int(choice.reader))
            decoders[name] = Decoder(find, reader)
        return to_json(decoders[name].decode(payload))

    return decode


@cache
def _plugin(name: str) -> Plugin:
    """Return the plug-in that `--decode` names, made once in a run."""
    from broker.plugins import DECODER, installed, load  # late: few commands have plug-ins

    if ":" not in name:
        known = ["auto", *(one.name for one in installed(DECODER))]
        if name not in known:
            hints = (f"valid: {', '.join(known)}", "module:name is a plug-in")
            raise UsageError(f"no decoder '{name}'{did_you_mean(name, known)}", *hints)
    return load(DECODER, "--decode", name)


def _by_plugin(plugin: Plugin) -> Decode:
    from broker.schemas.payloads import to_json

    def shown(payload: bytes) -> bytes:
        value = plugin.target(payload)
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape")
        return value if isinstance(value, bytes) else to_json(value)

    return lambda _topic, payload: bytes(plugin.call(shown, payload))


def _found(client: SchemaClient, patience_s: float, schema_id: int) -> RegisteredSchema:
    from broker.client.backoff import waits_s

    end_s = time.monotonic() + patience_s
    for wait_s in waits_s():
        try:
            return client.get(schema_id)
        except BrokerError as error:
            if not error.is_retriable or time.monotonic() + wait_s > end_s:
                raise
        time.sleep(wait_s)
    raise AssertionError("waits have no end")


@contextmanager
def opened_decoding(env: Environment, choice: DecodeChoice) -> Iterator[Decoding | None]:
    """Open the cluster that has the schemas, and report after the block; None without `--decode`.

    The cluster is looked for when the block begins, and its brokers are asked for schemas only.
    """
    check_decode(choice, takes_plugins=True)
    if choice.decode is None:
        yield None
        return
    from pylogctl.cli.connections import open_for_requests

    with nullcontext() if choice.decode != "auto" else open_for_requests(env) as side:
        decoding = Decoding(env, decoder_of(choice, side))
        yield decoding
    decoding.report()


def carried_schemas(
    env: Environment, source: Side, target: Side, topics: Sequence[str], *, is_wanted: bool
) -> None:
    """Carry the schemas of topics to another cluster if `is_wanted`, else warn that they stay.

    With `--dry-run` nothing is registered.
    """
    from broker.tools.schemas import carry_schemas, client_of, contracts

    client = client_of(source)
    if is_wanted and not env.settings.dry_run:
        made = carry_schemas(client, client_of(target), topics)
        env.note(f"{counted(len(made), 'schema')} carried to the target, under their ids")
        return
    for topic, subject in {} if is_wanted else contracts(client, topics).items():
        env.warn(
            f"topic '{topic}' has schemas of subject '{subject}', whose ids mean nothing in the "
            "registry of the target; --schemas carries them"
        )


def latest_of(client: SchemaClient, topic: str) -> RegisteredSchema:
    """Return the latest schema of a topic's subject."""
    from broker.tools.schemas import subject_of

    subject = subject_of(client, topic)
    try:
        return client.version(subject)
    except UnknownSchemaError as error:
        raise CliError(
            ExitStatus.NOT_FOUND,
            f"topic '{topic}' has no schema: there is no subject '{subject}'",
            f"--schema FILE of produce, or: pylogctl schema add {subject} FILE",
            f"of another subject: pylogctl config set --topic {topic} schema.subject=SUBJECT",
            code="SCHEMA_NOT_FOUND",
        ) from error


@dataclass(eq=False)
class Decoding:
    """Decodes the messages of a run; those that cannot be are shown as they are, or left out.

    Attributes:
        on_failure: what becomes of such a message; `STOP` ends the run with status 8.
        count: such messages.
    """

    env: Environment
    decode: Decode
    on_failure: OnCorrupt = OnCorrupt.RAW
    count: int = field(default=0, init=False)

    def payload(self, partition: TopicPartition, offset: int, payload: bytes) -> bytes | None:
        """Return what is shown of a message; None if it is left out."""
        try:
            return self.decode(partition.topic, payload)
        except (SchemaMismatchError, PluginError) as error:
            problem = f"{partition}: the message at {offset} cannot be decoded: {error}"
            if self.on_failure is OnCorrupt.STOP:
                raise CliError(
                    ExitStatus.CORRUPT,
                    problem,
                    "--on-corrupt skip leaves it out, --on-corrupt raw shows it as it is",
                    code="UNDECODABLE",
                    details={"topic": partition.topic, "partition": partition.name}
                    | {"offset": offset},
                ) from error
            self.count += 1
            is_skipped = self.on_failure is OnCorrupt.SKIP
            if self.count <= _MAX_NOTES:
                self.env.warn(f"{problem}; {'left out' if is_skipped else 'shown as it is'}")
            elif self.count == _MAX_NOTES + 1:
                self.env.warn("more messages cannot be decoded: they are only counted")
            return None if is_skipped else payload

    def report(self) -> None:
        """End the command with PARTIAL if messages could not be decoded."""
        if self.count:
            self.env.leave_out(f"{counted(self.count, 'message')} could not be decoded")


def encoder_of(env: Environment, given: str, topic: str, side: Side) -> Callable[[bytes], bytes]:
    """Return a function that makes payloads of JSON by the schema that `--schema` names.

    `given` is `auto`, the id of a schema, or a file, which is registered unless it is.
    """
    from broker.schemas.payloads import Encoder, read_value
    from broker.tools.schemas import client_of, subject_of

    client = client_of(side)
    if given == "auto":
        schema = latest_of(client, topic)
    elif given.isdecimal():
        schema = client.get(int(given))
    else:
        schema = _registered(env, client, subject_of(client, topic), Path(given))
    env.trace(1, f"schema {schema.id}, version {schema.version} of '{schema.subject}'")
    encoder = Encoder(schema)
    return lambda text: encoder.encode(read_value(text))


def _registered(
    env: Environment, client: SchemaClient, subject: str, path: Path
) -> RegisteredSchema:
    from broker.schemas.values import RegisteredSchema

    with path.open("rb") as source:
        text, kind = read_schema(source, str(path))
    if not env.settings.dry_run:
        return client.register(subject, text, kind)
    try:
        return client.find(subject, text, kind)
    except UnknownSchemaError:
        return RegisteredSchema(0, kind, text, subject)


def read_schema(source: BinaryIO, name: str) -> tuple[str, SchemaType]:
    """Return the text of a schema, and its language: with the key `$schema` it is a JSON Schema."""
    from broker.json_fields import read_json
    from broker.schemas.values import SchemaType

    data = source.read(_MAX_SCHEMA_BYTES + 1)
    if len(data) > _MAX_SCHEMA_BYTES:
        raise UsageError(f"'{name}' is larger than a schema may be: {_MAX_SCHEMA_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")  # editors of Windows write a mark in front
    except UnicodeDecodeError as error:
        raise UsageError(f"'{name}' is no UTF-8: byte {error.start} is wrong") from error
    document = read_json(text)
    is_json = isinstance(document, dict) and "$schema" in document
    return text, SchemaType.JSON if is_json else SchemaType.AVRO
