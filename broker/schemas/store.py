"""The registry of schemas: subjects with versions, and ids that never change their meaning.

All is kept as small documents by key: the registry itself, each subject, each schema by id, and
the id of each schema by digest. A home keeps the documents and makes each change as a whole, if the
registry is as it was read; else the change is thought through again.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from broker import errors
from broker.files import reason_of, write_atomically
from broker.schemas import judgement
from broker.schemas.values import Compatibility, RegisteredSchema, SchemaType

_T = TypeVar("_T")
Document = Mapping[str, Any]
ROOT = ""
_ATTEMPTS = 20
_KEPT = 1000  # schemas in memory
_KEPT_S = 30.0  # for then an import of other nodes shows
MAX_SUBJECT_LENGTH = 255


class ChangedMeanwhileError(Exception):
    """Another client has changed the registry since it was read."""


class Home(Protocol):
    """Where the documents of a registry are; methods raise `SchemasUnavailableError`."""

    def read(self, key: str) -> Document | None:
        """Return a document; None if there is none."""

    def read_all(self, kind: str) -> dict[str, Document]:
        """Return all documents of a kind by name, sorted."""

    def begin(self) -> tuple[Document | None, object]:
        """Return the document of the registry, and what stands for its state in `commit`."""

    def commit(self, documents: Mapping[str, Document], state: object) -> None:
        """Write documents as a whole, `ROOT` among them, if the registry is in a state.

        Raises:
            ChangedMeanwhileError: it is not.
        """


class FileHome:
    """Keeps all documents in one file, for a broker without ZooKeeper."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._documents: dict[str, Document] | None = None

    def _load(self) -> dict[str, Document]:
        if self._documents is None:
            try:
                found = json.loads(self._path.read_bytes())
                if not isinstance(found, dict) or not all(
                    isinstance(one, dict) for one in found.values()
                ):
                    raise ValueError("it is no object of objects")
            except FileNotFoundError:
                found = {}
            except OSError as error:
                raise errors.SchemasUnavailableError(
                    f"cannot read {self._path}: {reason_of(error)}"
                ) from error
            except ValueError as error:
                raise errors.SchemasUnavailableError(
                    f"{self._path} is damaged: {error}; restore it, or copy the schemas from "
                    "another registry"
                ) from error
            self._documents = found
        return self._documents

    def read(self, key: str) -> Document | None:
        """See `Home.read`."""
        with self._lock:
            return self._load().get(key)

    def read_all(self, kind: str) -> dict[str, Document]:
        """See `Home.read_all`."""
        with self._lock:
            found = sorted(self._load().items())
        return {key[len(kind) :]: one for key, one in found if key.startswith(kind)}

    def begin(self) -> tuple[Document | None, object]:
        """See `Home.begin`."""
        root = self.read(ROOT)
        return root, root

    def commit(self, documents: Mapping[str, Document], state: object) -> None:
        """See `Home.commit`."""
        with self._lock:
            found = self._load()
            if found.get(ROOT) is not state:
                raise ChangedMeanwhileError
            after = {**found, **documents}
            try:
                write_atomically(self._path, json.dumps(after, ensure_ascii=False).encode())
            except OSError as error:
                self._documents = None  # either version may be there
                raise errors.SchemasUnavailableError(
                    f"cannot write {self._path}: {reason_of(error)}"
                ) from error
            self._documents = after


SUBJECTS, IDS, DIGESTS = "subjects/", "ids/", "digests/"


class SchemaStore:
    """The registry of schemas of a cluster, or of a broker without ZooKeeper; for any thread.

    All methods may take as long as its home, or a judgement; they raise `SchemasUnavailableError`
    if the home cannot be reached, `UnknownSchemaError` for what is not there, and
    `InvalidSchemaError` for a text or the name of a subject.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._schemas: OrderedDict[int, tuple[RegisteredSchema, float]] = OrderedDict()
        self._lock = threading.Lock()  # of `_schemas`
        self._judge_process = judgement.Judge()

    def stop(self) -> None:
        """Judge nothing any more."""
        self._judge_process.stop()

    def schema(self, schema_id: int) -> RegisteredSchema:
        """Return the schema of an id, also of a deleted version."""
        now_s = time.monotonic()
        with self._lock:
            found, read_s = self._schemas.get(schema_id, (None, 0.0))
        if found is not None and now_s - read_s < _KEPT_S:
            return found
        document = self._home.read(f"{IDS}{schema_id}")
        if document is None:
            raise errors.UnknownSchemaError(f"there is no schema {schema_id}")
        found = RegisteredSchema(schema_id, SchemaType(document["type"]), document["text"])
        with self._lock:
            self._schemas[schema_id] = (found, now_s)
            if len(self._schemas) > _KEPT:
                self._schemas.popitem(last=False)
        return found

    def subjects(self) -> list[str]:
        """Return the subjects that have versions, sorted."""
        found = self._home.read_all(SUBJECTS)
        return [name for name, subject in found.items() if subject["versions"]]

    def _subject(self, name: str) -> Document:
        found = self._home.read(f"{SUBJECTS}{name}")
        return found or {"versions": {}, "deleted": {}, "next": 1, "compatibility": None}

    def versions(self, subject: str) -> dict[int, int]:
        """Return the ids of a subject's versions, in their order."""
        found = _numbers(self._subject(subject)["versions"])
        if not found:
            raise errors.UnknownSchemaError(f"there is no subject '{subject}'")
        return found

    def ids_of(self, subject: str) -> frozenset[int]:
        """Return the ids of all versions of a subject, deleted ones too; none if there is none."""
        return _ids_of(self._subject(subject))

    def version(self, subject: str, number: int | None = None) -> RegisteredSchema:
        """Return one version of a subject, by default the latest."""
        found = self.versions(subject)
        number = max(found) if number is None else number
        if number not in found:
            raise errors.UnknownSchemaError(f"subject '{subject}' has no version {number}")
        return self.schema(found[number])._replace(subject=subject, version=number)

    def find(self, subject: str, text: str, kind: SchemaType) -> RegisteredSchema:
        """Return the version of a subject that has a text."""
        versions = self.versions(subject)
        known = self._id_of(kind, judgement.normal_form(text))
        for number, schema_id in versions.items():
            if schema_id == known:
                return self.schema(known)._replace(subject=subject, version=number)
        raise errors.UnknownSchemaError(f"no version of subject '{subject}' is this schema")

    def same_ids(self, schema_id: int) -> list[RegisteredSchema]:
        """Return the versions of all subjects that have an id."""
        schema = self.schema(schema_id)
        return [
            schema._replace(subject=subject, version=number)
            for subject, found in self._home.read_all(SUBJECTS).items()
            for number, one in _numbers(found["versions"]).items()
            if one == schema_id
        ]

    def subjects_of(self, schema_id: int) -> list[str]:
        """Return the subjects that have, or had, an id."""
        found = self._home.read_all(SUBJECTS)
        return [name for name, subject in found.items() if schema_id in _ids_of(subject)]

    def _id_of(self, kind: SchemaType, text: str) -> int | None:
        found = self._home.read(f"{DIGESTS}{judgement.digest(kind, text)}")
        return None if found is None else int(found["id"])

    def compatibility(self, subject: str = "") -> Compatibility:
        """Return the level that a subject's next version must hold; "" is the registry's."""
        own = self._subject(subject)["compatibility"] if subject else None
        root = self._home.read(ROOT) or {}
        return Compatibility(own or root.get("compatibility") or Compatibility.BACKWARD)

    def own_compatibility(self, subject: str) -> Compatibility | None:
        """Return the level that a subject has of its own; None if it has the registry's."""
        own = self._subject(subject)["compatibility"]
        return None if own is None else Compatibility(own)

    def check(
        self, subject: str, text: str, kind: SchemaType, number: int | None = None
    ) -> list[str]:
        """Return why a schema cannot be the next version of a subject; nothing if it can.

        With a number it is held against that version only.
        """
        text = judgement.normal_form(text)
        known = _numbers(self._subject(subject)["versions"])
        if number is not None and number not in known:
            raise errors.UnknownSchemaError(f"subject '{subject}' has no version {number}")
        return self._judge(subject, kind, text, known, self.compatibility(subject), number)

    def _judge(
        self,
        subject: str,
        kind: SchemaType,
        text: str,
        versions: Mapping[int, int],
        level: Compatibility,
        number: int | None = None,
    ) -> list[str]:
        if level is Compatibility.NONE:
            numbers: Iterable[int] = ()
        elif number is not None:
            numbers = (number,)
        else:
            numbers = sorted(versions, reverse=True)
            numbers = numbers if level.endswith("TRANSITIVE") else numbers[:1]
        earlier = [(one, self.schema(versions[one])) for one in numbers]
        for version, schema in earlier:
            if schema.type is not kind:
                return [f"version {version} of '{subject}' is of {schema.type}, this is of {kind}"]
        texts = [(one, old.text) for one, old in earlier]
        return judgement.judge(self._judge_process, kind, text, level, texts)

    def register(
        self, subject: str, text: str, kind: SchemaType, *, schema_id: int = 0
    ) -> RegisteredSchema:
        """Add a version to a subject, unless it has the schema; return it.

        Args:
            subject: its name.
            text: JSON.
            kind: its language.
            schema_id: for a copy of another registry: the id to keep, and the schema is not judged
                by those before it. 0 for the next one.

        Raises:
            IncompatibleSchemaError: it does not fit the versions before it.
            SchemaIdTakenError: another schema has the id, or this one another id.
        """
        _check_subject(subject)
        text = judgement.normal_form(text)
        judged: set[tuple[object, ...]] = set()

        def think(root: Document) -> tuple[RegisteredSchema, dict[str, Document]]:
            found = self._subject(subject)
            versions = _numbers(found["versions"])
            known = self._id_of(kind, text)
            self._check_id(schema_id, known)
            for number, one in versions.items():
                if one == known:
                    kept = self.schema(known)
                    return kept._replace(subject=subject, version=number), {}
            level = Compatibility(
                found["compatibility"] or root.get("compatibility") or Compatibility.BACKWARD
            )
            level = Compatibility.NONE if schema_id else level
            basis = (level, *versions.items())
            if basis not in judged:
                if reasons := self._judge(subject, kind, text, versions, level):
                    raise errors.IncompatibleSchemaError(
                        f"the schema does not fit subject '{subject}' ({level}):\n"
                        + "\n".join(reasons)
                    )
                judged.add(basis)
            given = schema_id or known or self._free_id(root)
            number = int(found["next"])
            made: dict[str, Document] = {
                ROOT: {**root, "next_id": max(int(root.get("next_id", 1)), given + 1)},
                f"{SUBJECTS}{subject}": {
                    **found,
                    "versions": {**found["versions"], str(number): given},
                    "next": number + 1,
                },
            }
            if known is None:
                made[f"{IDS}{given}"] = {"type": kind, "text": text}
                made[f"{DIGESTS}{judgement.digest(kind, text)}"] = {"id": given}
            kept = RegisteredSchema(given, kind, text) if known is None else self.schema(known)
            return kept._replace(subject=subject, version=number), made

        return self._change(think)

    def _free_id(self, root: Document) -> int:
        found = int(root.get("next_id", 1))
        # an import of an older export leaves later ids, which messages in logs have
        while self._home.read(f"{IDS}{found}") is not None:
            found += 1
        return found

    def _check_id(self, schema_id: int, known: int | None) -> None:
        if not schema_id or known == schema_id:
            return
        if known is not None:
            raise errors.SchemaIdTakenError(
                f"the schema is here with id {known}, so it cannot keep id {schema_id}"
            )
        if self._home.read(f"{IDS}{schema_id}") is not None:
            raise errors.SchemaIdTakenError(f"another schema has id {schema_id} here")

    def delete(self, subject: str, number: int | None = None) -> dict[int, int]:
        """Delete a subject, or one version of it; return the ids of the deleted versions.

        Schemas stay readable by id, and neither ids nor numbers of versions are given again.
        """

        def think(root: Document) -> tuple[dict[int, int], dict[str, Document]]:
            found = self._subject(subject)
            versions = self.versions(subject)
            if number is not None and number not in versions:
                raise errors.UnknownSchemaError(f"subject '{subject}' has no version {number}")
            gone = {one: versions[one] for one in versions if number in (None, one)}
            kept = {str(one): versions[one] for one in versions if one not in gone}
            changed = {
                **found,
                "versions": kept,
                "deleted": {**found["deleted"], **{str(one): id for one, id in gone.items()}},
                "compatibility": found["compatibility"] if kept else None,
            }
            return gone, {ROOT: root, f"{SUBJECTS}{subject}": changed}

        return self._change(think)

    def set_compatibility(self, subject: str, level: Compatibility | None) -> None:
        """Set the level of a subject, None for the registry's; of the registry with ""."""

        def think(root: Document) -> tuple[None, dict[str, Document]]:
            if not subject:
                return None, {ROOT: {**root, "compatibility": level}}
            found = {**self._subject(subject), "compatibility": level}
            return None, {ROOT: root, f"{SUBJECTS}{subject}": found}

        if subject:
            _check_subject(subject)
        self._change(think)

    def _change(self, think: Callable[[Document], tuple[_T, Mapping[str, Document]]]) -> _T:
        """Make a change that is thought through again whenever another one came first."""
        for _ in range(_ATTEMPTS):
            root, state = self._home.begin()
            result, documents = think(root or {})
            if not documents:
                return result
            try:
                self._home.commit({**documents, ROOT: {**documents[ROOT]}}, state)
            except ChangedMeanwhileError:
                continue
            return result
        raise errors.SchemasUnavailableError(
            f"others have changed the registry of schemas {_ATTEMPTS} times meanwhile; try again"
        )


def _ids_of(subject: Document) -> frozenset[int]:
    return frozenset([*subject["versions"].values(), *subject["deleted"].values()])


def _numbers(versions: Mapping[str, int]) -> dict[int, int]:
    return {int(one): versions[one] for one in sorted(versions, key=int)}


def _check_subject(name: str) -> None:
    if not name or len(name.encode()) > MAX_SUBJECT_LENGTH or not name.isprintable():
        raise errors.InvalidSchemaError(
            f"{name[:40]!r} is no name of a subject: 1 to {MAX_SUBJECT_LENGTH} printable characters"
        )
