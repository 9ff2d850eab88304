"""How tables of Iceberg and Delta are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.errors import ConfigError
from broker.spark.tables import TableTarget


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("/data/web", "/data/web"),
        ("data/web", str(Path("data/web").absolute())),
        ("s3a://bucket/web", "s3a://bucket/web"),
        ("delta.`/data/web`", "/data/web"),
        ("lake.logs.web", None),
        ("lake.logs.`a/b`", None),
    ],
)
def test_table_when_named_by_a_path_then_statements_have_the_path(
    name: str, path: str | None
) -> None:
    target = TableTarget(name, "delta")

    assert target.path == path
    assert target.identifier == (name if path is None else f"delta.`{path}`")


@pytest.mark.parametrize("name", ["/data/web", "s3a://bucket/web", "delta.`/data/web`"])
def test_table_of_iceberg_when_named_by_a_path_then_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"a name in a catalog"):
        TableTarget(name, "iceberg")
