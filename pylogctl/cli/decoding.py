"""Messages with schemas: `--decode` makes JSON of payloads, `produce --schema` payloads of JSON.

Schemas come from the brokers of the cluster; each is asked for once in a run, and so is an id that
there is no schema of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from broker.errors import SchemaMismatchError, UnknownSchemaError
from broker.topic import TopicPartition
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.failures import OnCorrupt
from pylogctl.cli.options import DecodeChoice

if TYPE_CHECKING:
    from broker.client.schemas import SchemaClient
    from broker.client.side import Side
    from broker.schemas.payloads import Decoder
    from broker.schemas.values import RegisteredSchema

Decode = Callable[[str, bytes], bytes]
"""Returns what is shown of a topic's payload; raises `SchemaMismatchError`."""
_MAX_NOTES = 5


def check_decode(choice: DecodeChoice) -> None:
    """Raise a `UsageError` for options that no decoder is made of, before a connection is."""
    if choice.decode is None:
        if choice.reader is not None:
            raise UsageError("--reader says how --decode reads, which is not given")
    elif choice.decode != "auto":
        raise UsageError(f"no decoder '{choice.decode}'", "valid: auto")
    if choice.reader not in (None, "latest") and not choice.reader.isdecimal():
        raise UsageError(f"--reader '{choice.reader}' is no id of a schema", "valid: 7, latest")


def decoder_of(choice: DecodeChoice, side: Side) -> Decode:
    """Return the decoder that `--decode` names, which `check_decode` has accepted."""
    from broker.client.schemas import SchemaClient
    from broker.schemas.payloads import Decoder, remembering, to_json

    client = SchemaClient(side.cluster, side.connect)
    find = remembering(client.get)
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


@contextmanager
def opened_decoding(env: Environment, choice: DecodeChoice) -> Iterator[Decoding | None]:
    """Open the cluster that has the schemas, and report after the block; None without `--decode`.

    The cluster is looked for when the block begins, and its brokers are asked for schemas only.
    """
    check_decode(choice)
    if choice.decode is None:
        yield None
        return
    from pylogctl.cli.connections import open_for_requests

    with open_for_requests(env) as side:
        decoding = Decoding(env, decoder_of(choice, side))
        yield decoding
    decoding.report()


def subject_of(client: SchemaClient, topic: str) -> str:
    """Return the subject of a topic's contract, or the one that Confluent's clients take."""
    return client.contract(topic).subject or f"{topic}-value"


def latest_of(client: SchemaClient, topic: str) -> RegisteredSchema:
    """Return the latest schema of a topic's subject."""
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
        except SchemaMismatchError as error:
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
            what = "1 message" if self.count == 1 else f"{self.count} messages"
            self.env.leave_out(f"{what} could not be decoded")


def encoder_of(env: Environment, given: str, topic: str, side: Side) -> Callable[[bytes], bytes]:
    """Return a function that makes payloads of JSON by the schema that `--schema` names.

    `given` is `auto`, the id of a schema, or a file, which is registered unless it is.
    """
    from broker.client.schemas import SchemaClient
    from broker.schemas.payloads import Encoder, read_value

    client = SchemaClient(side.cluster, side.connect)
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
    from broker.json_fields import read_json
    from broker.schemas.values import RegisteredSchema, SchemaType

    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"'{path}' is not UTF-8") from error
    document = read_json(text)
    is_json = isinstance(document, dict) and "$schema" in document
    kind = SchemaType.JSON if is_json else SchemaType.AVRO
    if not env.settings.dry_run:
        return client.register(subject, text, kind)
    try:
        return client.find(subject, text, kind)
    except UnknownSchemaError:
        return RegisteredSchema(0, kind, text, subject)
