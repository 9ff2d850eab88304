"""Judges schemas in a process of its own, within bounds of time, memory, size and depth.

The checker of the `avro` package takes minutes for large schemas and recurses without a limit, so
a text is measured first, and the process that parses and compares it ends after `CPU_S`. Its
standard input is one request in JSON, its output one answer.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from broker import errors
from broker.schemas.values import Compatibility, SchemaType

MAX_TEXT_BYTES = 256 << 10
MAX_FIELDS = 2000
MAX_DEPTH = 100
CPU_S = 20
_WAIT_S = 3 * CPU_S
_MEMORY_BYTES = 1 << 30
_NOT_INSTALLED = 9
_MAX_REASONS = 20
_MAX_REASON_LENGTH = 1000  # two schemas without a common field would take all fields to say so
# a text without an end matches as well: its rest must not be searched from each quote again
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def normal_form(text: str) -> str:
    """Return the text of a schema without needless blanks, by which equal schemas are found.

    Raises:
        InvalidSchemaError: it is no JSON, too long, or nested too deeply.
    """
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_TEXT_BYTES:
        raise errors.InvalidSchemaError(
            f"the schema has {len(data)} bytes; the limit is {MAX_TEXT_BYTES}"
        )
    depth = 0
    for found in _BRACKETS.finditer(data):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(found[0], 0)
        if depth > MAX_DEPTH:
            raise errors.InvalidSchemaError(f"the schema is nested more than {MAX_DEPTH} deep")
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
        made = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        made.encode()
    except (ValueError, RecursionError) as error:
        raise errors.InvalidSchemaError(f"the schema is not JSON: {error}") from error
    if len(_objects(value)) > 4 * MAX_FIELDS or _count_fields(value) > MAX_FIELDS:
        raise errors.InvalidSchemaError(f"the schema has more than {MAX_FIELDS} fields")
    return made


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def digest(kind: SchemaType, text: str) -> str:
    """Return what is equal for schemas that differ in the order of attributes at most."""
    ordered = json.dumps(json.loads(text), sort_keys=True)
    return hashlib.sha256(f"{kind}\n{ordered}".encode()).hexdigest()


def _objects(value: Any) -> list[dict[str, Any]]:
    """Return all objects in a value of JSON."""
    found, left = [], [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            found.append(one)
            left += one.values()
        elif isinstance(one, list):
            left += one
    return found


def _count_fields(value: Any) -> int:
    """Return the number of fields, branches of unions and symbols: what checkers go through."""
    count = len(value) if isinstance(value, list) else 0
    for one in _objects(value):
        count += sum(len(part) for part in one.values() if isinstance(part, list))
        if isinstance(properties := one.get("properties"), dict):
            count += len(properties)
    return count


class Judge:
    """Runs one process at a time, which `stop` ends; for any thread."""

    def __init__(self) -> None:
        self._one_at_once = threading.Lock()
        self._lock = threading.Lock()  # of the next two
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """End the process that runs, and start no more."""
        with self._lock:
            self._is_stopped = True
            if self._process is not None:
                self._process.kill()

    def run(self, request: bytes) -> subprocess.CompletedProcess[bytes]:
        """Give a process a request; `TimeoutExpired` if it takes too long."""
        with self._one_at_once:
            with self._lock:
                if self._is_stopped:
                    raise errors.ShuttingDownError("the broker is shutting down")
                self._process = process = subprocess.Popen(
                    [sys.executable, "-P", "-m", __name__],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            with process:
                try:
                    output, log = process.communicate(request, timeout=_WAIT_S)
                finally:
                    process.kill()
                    with self._lock:
                        self._process = None
            if self._is_stopped:
                raise errors.ShuttingDownError("the broker is shutting down")
            return subprocess.CompletedProcess(process.args, process.returncode, output, log)


def judge(
    process: Judge,
    kind: SchemaType,
    text: str,
    level: Compatibility,
    earlier: Sequence[tuple[int, str]],
) -> list[str]:
    """Return why a schema does not fit earlier versions of its subject; nothing if it does.

    Args:
        process: runs it.
        kind: of this and the earlier ones.
        text: a normal form.
        level: the compatibility to hold.
        earlier: version and text of those to compare with.

    Raises:
        InvalidSchemaError: it is no schema, or takes too long.
        ConfigError: a package is not installed.
    """
    request = {"type": kind, "text": text, "level": level, "earlier": list(earlier)}
    try:
        ran = process.run(json.dumps(request).encode())
    except subprocess.TimeoutExpired:
        raise errors.InvalidSchemaError(f"the schema takes over {_WAIT_S}s to judge") from None
    if ran.returncode == _NOT_INSTALLED:
        raise errors.ConfigError(
            "schemas need packages that are not installed where the broker runs",
            hints=["pip install 'pylogctl[schemas]'"],
        )
    if ran.returncode < 0:
        raise errors.InvalidSchemaError(f"the schema takes over {CPU_S}s, or too much memory")
    try:
        answer: dict[str, Any] = json.loads(ran.stdout)
    except ValueError:
        last = ran.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise errors.InvalidSchemaError(f"the schema cannot be judged: {last}") from None
    if (invalid := answer.get("invalid")) is not None:
        raise errors.InvalidSchemaError(f"not a schema of {kind}: {invalid}")
    return list(answer["reasons"])


def main() -> None:
    """Answer the request on standard input."""
    _limit_self()
    request = json.loads(sys.stdin.buffer.read())
    try:
        if request["type"] == SchemaType.AVRO:
            reasons = list(_judge_avro(request))
        else:
            reasons = list(_judge_json(request))
        short = [
            one if len(one) <= _MAX_REASON_LENGTH else f"{one[:_MAX_REASON_LENGTH]}..."
            for one in reasons[:_MAX_REASONS]
        ]
        answer: dict[str, Any] = {"reasons": short}
    except _InvalidError as error:
        answer = {"invalid": str(error)}
    except ImportError:
        sys.exit(_NOT_INSTALLED)
    json.dump(answer, sys.stdout)


class _InvalidError(Exception):
    """A text is no schema."""


def _limit_self() -> None:
    import resource

    for limit, most in ((resource.RLIMIT_CPU, CPU_S), (resource.RLIMIT_AS, _MEMORY_BYTES)):
        _, hard = resource.getrlimit(limit)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.setrecursionlimit(20_000)  # each level of a schema takes some ten frames


def _judge_avro(request: dict[str, Any]) -> Iterator[str]:
    from avro.compatibility import (
        ReaderWriterCompatibilityChecker,
        SchemaCompatibilityType,
    )

    new = _parse_avro(request["text"])
    level = str(request["level"]).removesuffix("_TRANSITIVE")
    for version, text in request["earlier"]:
        old = _parse_avro(text)
        pairs = {
            "BACKWARD": [(new, old, f"it cannot read what version {version} wrote")],
            "FORWARD": [(old, new, f"version {version} cannot read what it writes")],
        }
        pairs["FULL"] = pairs["BACKWARD"] + pairs["FORWARD"]
        for reader, writer, text_of in pairs[level]:
            checker: Any = ReaderWriterCompatibilityChecker
            found = checker().get_compatibility(reader, writer)
            if found.compatibility is not SchemaCompatibilityType.compatible:
                places = sorted(_place(reader, one) for one in found.locations)
                where = ", ".join(places)
                # of a field that the writer lacks, the message is its name
                lacking = {one.rpartition("/")[2] for one in places}
                why = "; ".join(
                    f"field '{one}' has no default, and the writer lacks it"
                    if one in lacking
                    else one
                    for one in sorted(map(str, found.messages))
                )
                yield f"{text_of}: {why} (at {where})"


def _place(schema: Any, location: str) -> str:
    """Return a location of the checker with the names of fields: `/fields/1` is `/fields/b`."""
    names = []
    node = schema.to_json()
    for part in location.strip("/").split("/"):
        try:
            node = node[int(part)] if isinstance(node, list) else node[part]
        except (KeyError, IndexError, ValueError, TypeError):
            node = None
        names.append(node["name"] if isinstance(node, dict) and part.isdigit() else part)
    return "/" + "/".join(map(str, names))


def _parse_avro(text: str) -> Any:
    import warnings

    import avro.errors
    import avro.schema

    warnings.simplefilter("ignore")  # of logical types that it does not know
    try:
        parsed = avro.schema.parse(text)
    except (avro.errors.AvroException, RecursionError, TypeError, ValueError, KeyError) as error:
        raise _InvalidError(str(error) or type(error).__name__) from error
    except AttributeError as error:
        raise _InvalidError(f"malformed: {error}") from error
    for one in _objects(json.loads(text)):  # which the package does not look at
        fields = one.get("fields")
        for field in fields if isinstance(fields, list) else ():
            name = field.get("name") if isinstance(field, dict) else None
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise _InvalidError(f"'{name}' is no name of a field: letters, digits, '_'")
    import fastavro

    try:
        fastavro.parse_schema(json.loads(text))  # it reads and writes, so it must know the schema
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _InvalidError(str(error) or type(error).__name__) from error
    except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType) as error:
        raise _InvalidError(str(error)) from error
    return parsed


def _judge_json(request: dict[str, Any]) -> Iterator[str]:
    import jsonschema

    schema = json.loads(request["text"])
    try:
        jsonschema.validators.validator_for(
            schema, default=jsonschema.Draft202012Validator
        ).check_schema(schema)
    except (jsonschema.SchemaError, RecursionError, TypeError) as error:
        message = getattr(error, "message", str(error))
        raise _InvalidError(message) from error
    if request["earlier"]:
        yield (
            "whether schemas of JSON fit each other is not judged here; with compatibility NONE "
            "each is taken"
        )


if __name__ == "__main__":
    main()
