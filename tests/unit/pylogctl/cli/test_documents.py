"""Every document a command writes, as programs rely on it."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import pylogctl
from pylogctl.cli.columns import Document


def _documents() -> list[Document]:
    found: dict[int, Document] = {}
    for module in pkgutil.walk_packages(pylogctl.__path__, "pylogctl."):
        if module.name != "pylogctl.__main__":
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, Document):
                    found[id(value)] = value
    return list(found.values())


DOCUMENTS = _documents()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.schema)
def test_document_has_a_numbered_schema_and_described_columns(document: Document) -> None:
    assert re.fullmatch(r"[a-z]+(\.[a-z0-9-]+)*/\d+", document.schema)
    names = [column.name for column in document.columns]
    assert len(set(names)) == len(names)
    for column in document.columns:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", column.name)
        assert column.doc
        assert not column.doc.endswith(".")
    assert any(column.shown for column in document.columns)


def test_a_schema_names_one_set_of_fields() -> None:
    fields: dict[str, set[str]] = {}
    for document in DOCUMENTS:
        names = {column.name for column in document.columns}
        assert fields.setdefault(document.schema, names) == names, document.schema
