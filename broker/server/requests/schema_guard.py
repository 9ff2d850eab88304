"""The contracts of topics: messages without a schema of the topic's subject are refused.

Before a set is appended its topic's settings say what is looked at: the id in front of each payload
(`id`), or also whether the rest decodes with that schema (`full`). A network thread looks at the
ids of small sets only, and of schemas that are known here; a worker does the rest, as it may have
to ask the registry. What followers copy is not looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import NamedTuple

from broker import errors
from broker.clock import Clock
from broker.config import BrokerConfig
from broker.protocol.codec import decode, decode_records
from broker.protocol.envelope import open_envelope
from broker.protocol.message_set import describe_fault, iter_messages
from broker.protocol.primitives import Buffer
from broker.schemas.payloads import Decoder, split
from broker.schemas.store import SchemaStore
from broker.schemas.values import RegisteredSchema, TopicContract, Validation
from broker.server.requests.validation import ValidationBudgetExceededError, ValidMessages
from broker.topic import FORMAT_KAFKA
from broker.topic_settings import TopicConfig, TopicOverrides, topic_config

_INLINE_BYTES = 16 << 10
_INLINE_MESSAGES = 500
_KNOWN_S = 10.0
"""How long a schema is used before the registry is asked for it again: it may be deleted there."""
_WAIT_S = 2.0
"""How long a set waits for the registry."""
_MAX_WORK_S = 20.0
"""The processor time for one set; hostile payloads and schemas are slow to decode."""
_MAX_KNOWN = 10_000
_MAX_ASKED = 100
_AT_ONCE = 10_000


class _Known(NamedTuple):
    schema: RegisteredSchema
    until_s: float


class _Subject:
    """The schemas of one subject that are known here; one worker decodes with them.

    A thread of its own asks the registry, as ZooKeeper may not answer for long. An id never gets
    another schema: what is known stays in use until the registry has answered again.
    """

    def __init__(self, name: str, parts: _Parts) -> None:
        self._name = name
        self._parts = parts
        self._known: dict[int, _Known] = {}
        self._asked: dict[int, Future[None]] = {}  # outstanding
        self.decoder = Decoder(self._find)

    def knows(self, schema_id: int) -> bool:
        """Return whether the subject was lately known to have a schema; asks again if it is due."""
        known = self._known.get(schema_id)
        if known is None:
            return False
        late_s = self._parts.clock.monotonic_s() - known.until_s
        if late_s > 0:
            self._ask(schema_id)
        return late_s < _KNOWN_S  # else nobody has used it for long, and it may be deleted

    def look_up(self, schema_id: int) -> None:
        """Wait a while for the registry to tell a schema, which is known then, or an error.

        Without an answer what is known stays so.
        """
        try:
            if len(self._asked) >= _MAX_ASKED:
                raise TimeoutError
            self._ask(schema_id).result(_WAIT_S if self._parts.is_answered else 0)
        except TimeoutError as error:
            self._parts.is_answered = False  # others do not wait
            if schema_id not in self._known:
                raise errors.SchemasUnavailableError(
                    f"the registry of schemas has not answered within {_WAIT_S:g} s"
                ) from error

    def _find(self, schema_id: int) -> RegisteredSchema:
        if (known := self._known.get(schema_id)) is None:
            raise errors.SchemasUnavailableError(f"schema {schema_id} has changed just now")
        return known.schema

    def _ask(self, schema_id: int) -> Future[None]:
        with self._parts.lock:
            if schema_id not in self._asked:
                self._asked[schema_id] = self._parts.thread.submit(self._learn, schema_id)
            return self._asked[schema_id]

    def _learn(self, schema_id: int) -> None:
        known, store = self._known.get(schema_id), self._parts.schemas()
        try:
            if schema_id not in store.versions(self._name).values():
                raise errors.UnknownSchemaError
            found = store.schema(schema_id)
        except errors.UnknownSchemaError as error:
            self._known.pop(schema_id, None)
            raise errors.SchemaMismatchError(f"the subject has no schema {schema_id}") from error
        except errors.SchemasUnavailableError:
            if known is None:
                raise
            found = known.schema
        finally:
            self._parts.is_answered = True
            with self._parts.lock:
                self._asked.pop(schema_id, None)
        is_replaced = known is not None and known.schema.text != found.text  # by an import
        if is_replaced or len(self._known) >= _MAX_KNOWN:
            self._known.clear()
            self.decoder = Decoder(self._find)
        self._known[schema_id] = _Known(found, self._parts.clock.monotonic_s() + _KNOWN_S)


class _Parts:
    """What all subjects share."""

    def __init__(self, schemas: Callable[[], SchemaStore], clock: Clock) -> None:
        self.schemas = schemas
        self.clock = clock
        self.lock = Lock()
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="schema-lookup")
        self.is_answered = True  # whether the registry has answered since somebody waited in vain


class SchemaGuard:
    """Refuses messages that break the contract of their topic; any thread.

    Args:
        schemas: returns the registry, which may take long to answer.
    """

    def __init__(self, schemas: Callable[[], SchemaStore], clock: Clock) -> None:
        self.contracts: Mapping[str, TopicContract] = {}
        """By topic, of those whose messages are looked at."""
        self._parts = _Parts(schemas, clock)
        self._subjects: dict[str, _Subject] = {}

    def reconfigure(self, config: BrokerConfig, overrides: Mapping[str, TopicOverrides]) -> None:
        """Use other settings from now on."""
        found = {
            topic: contract_of(topic_config(config, topic, one)) for topic, one in overrides.items()
        }
        self.contracts = {
            topic: one
            for topic, one in found.items()
            if one.subject and one.validation is not Validation.NONE
        }

    def check(
        self, topic: str, messages: ValidMessages, topic_format: str, *, is_worker: bool
    ) -> None:
        """Refuse a valid set that breaks its topic's contract, if there is one.

        Raises:
            SchemaMismatchError: a message breaks it; the text has its number.
            SchemasUnavailableError: the registry cannot be asked.
            ValidationBudgetExceededError: a worker must look at the set.
        """
        contract = self.contracts.get(topic)
        if contract is None:
            return
        buffer, count = messages
        if not is_worker and (
            contract.validation is Validation.FULL
            or len(buffer) > _INLINE_BYTES
            or count > _INLINE_MESSAGES
        ):
            raise ValidationBudgetExceededError
        end_s = time.thread_time() + _MAX_WORK_S
        payloads: Iterable[bytes | None]
        if topic_format == FORMAT_KAFKA:
            payloads = _values(buffer)
        elif count <= _AT_ONCE:
            payloads = (payload for _, _, payload in decode(buffer, 0)[0])
        else:  # as objects, small messages take ten times their bytes
            payloads = (one.payload for one in iter_messages(buffer, 0))
        for number, payload in enumerate(payloads, start=1):
            if payload is None:  # a tombstone, which breaks no contract
                continue
            try:
                if is_worker and time.thread_time() > end_s:
                    raise errors.SchemaMismatchError("it takes too long to look at: send less")
                self._check_payload(contract, payload, is_worker=is_worker)
            except errors.SchemaMismatchError as error:
                raise errors.SchemaMismatchError(
                    f"message {number} of {count} for topic '{topic}' breaks its contract "
                    f"(schema.subject={contract.subject}): {error}"
                ) from error
            except (errors.SchemasUnavailableError, errors.ConfigError) as error:
                raise errors.SchemasUnavailableError(
                    f"message {number} of {count} for topic '{topic}' cannot be looked at: {error}"
                ) from error

    def _check_payload(self, contract: TopicContract, payload: bytes, *, is_worker: bool) -> None:
        _, payload = open_envelope(payload)
        schema_id, _ = split(payload)
        subject = self._subjects.get(contract.subject)
        if subject is None:
            new = _Subject(contract.subject, self._parts)
            subject = self._subjects.setdefault(contract.subject, new)
        if not subject.knows(schema_id):
            if not is_worker:
                raise ValidationBudgetExceededError
            subject.look_up(schema_id)
        if contract.validation is Validation.FULL:
            subject.decoder.decode(payload)

    def stop(self) -> None:
        """Ask the registry for nothing more."""
        self._parts.thread.shutdown(wait=False, cancel_futures=True)


def _values(batches: Buffer) -> Iterator[bytes | None]:
    """Yield the values of valid batches."""
    rest = memoryview(batches)
    while rest:
        found = decode_records(rest, max_bytes=_AT_ONCE)
        if found.fault:
            raise errors.InvalidMessageError(describe_fault(found.fault, found.valid_bytes))
        yield from (one.value for one in found.records)
        rest = rest[found.valid_bytes :]


def contract_of(config: TopicConfig) -> TopicContract:
    """Return the contract that a topic's settings say."""
    validation = Validation(config.schema_validation)
    return TopicContract(config.schema_subject, validation, config.has_envelopes)
