"""Tables of Iceberg and Delta as outputs, by Spark's own writers.

    target = TableTarget("lake.logs.web", "iceberg")
    check_table(spark, target)
    append_rows(table, target)

Their packages are not part of Spark: `spark.jars.packages` brings them, and other settings name the
catalogs. A commit of either format has all rows of a write or none; it may have a note, from which
a load knows its offsets. What the JVM throws is raised as a `BrokerError`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from broker.errors import BrokerError, ConfigError, OutputConflictError, QueryError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from py4j.protocol import Py4JJavaError
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

TableFormat = Literal["iceberg", "delta"]


class _Package(NamedTuple):
    """A package for Spark; `releases` are the newest ones tested, by the version of Spark."""

    name: str
    catalog: str
    coordinates: str
    releases: Mapping[str, str]


_DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_PACKAGES = {
    "iceberg": _Package(
        "Iceberg",
        "org.apache.iceberg.spark.SparkCatalog",
        "org.apache.iceberg:iceberg-spark-runtime-{spark}_2.13:{release}",
        {"4.1": "1.12.0"},
    ),
    "delta": _Package(
        "Delta",
        _DELTA_CATALOG,
        "io.delta:delta-spark_{spark}_2.13:{release}",
        {"4.1": "4.4.0", "4.2": "4.4.0"},
    ),
}
_SESSION_CATALOG = "spark_catalog"
_DELTA_PATH = re.compile("delta\\.`([^`]+)`", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_OTHER_VERSION = (
    "NoSuchMethodError", "NoSuchFieldError", "NoClassDefFoundError", "AbstractMethodError",
    "IncompatibleClassChangeError",
)  # fmt: skip
"""Errors of the JVM if a package is made for another version of Spark."""
_CONFLICTS = ("ConcurrentTransactionException", "conflicting files", "CommitFailedException")


@dataclass(frozen=True, slots=True)
class TableTarget:
    """A table; made with the format if it does not exist."""

    name: str  # as in Spark's SQL, such as `lake.logs.web`, or the path of a table of Delta
    table_format: TableFormat

    def __post_init__(self) -> None:
        if self.table_format == "iceberg" and self.path is not None:
            raise ConfigError(
                f"'{self.name}' is a path: a table of Iceberg has a name in a catalog, such as "
                "lake.logs.web"
            )

    @property
    def path(self) -> str | None:
        """Return the path of the table, absolute if it has no scheme; None if it has a name."""
        if found := _DELTA_PATH.fullmatch(self.name):
            return found[1]
        if "/" not in self.name or "`" in self.name:
            return None
        return self.name if _SCHEME.match(self.name) else str(Path(self.name).absolute())

    @property
    def identifier(self) -> str:
        """Return the name of the table in statements of SQL."""
        return self.name if self.path is None else f"delta.`{self.path}`"


def session_conf(table_format: TableFormat) -> dict[str, str]:
    """Return the settings that a session needs at its start, beside those of catalogs."""
    if table_format == "iceberg":
        return {}
    return {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        f"spark.sql.catalog.{_SESSION_CATALOG}": _DELTA_CATALOG,
    }


def check_table(spark: SparkSession, target: TableTarget) -> None:
    """Validate that a session can write a table, and that the table outlives the session."""
    package = _PACKAGES[target.table_format]
    assert spark._jvm is not None
    if not spark._jvm.org.apache.spark.util.Utils.classIsLoadable(package.catalog):
        raise ConfigError(
            f"the package of {package.name} is missing: {_how_to_get(package, spark)}"
        )
    if target.path is None and _is_in_memory(spark, target):
        raise ConfigError(
            f"'{target.name}' is in the catalog '{_SESSION_CATALOG}', which would be lost with "
            "this session: name a catalog of --spark-conf spark.sql.catalog.CATALOG=CLASS"
            + (", or the path of the table" if target.table_format == "delta" else "")
        )


def _how_to_get(package: _Package, spark: SparkSession) -> str:
    version = ".".join(spark.version.split(".")[:2])
    first = ""
    if version not in package.releases:
        known = max(package.releases)
        first = f"none is known for Spark {version}; with pip install 'pyspark=={known}.*', "
        version = known
    coordinates = package.coordinates.format(spark=version, release=package.releases[version])
    return f"{first}add --spark-conf spark.jars.packages={coordinates}"


def _is_in_memory(spark: SparkSession, target: TableTarget) -> bool:
    first = _parts(spark, target)[0]
    if spark.conf.get(f"spark.sql.catalog.{first}", "") and first != _SESSION_CATALOG:
        return False
    if spark.conf.get("spark.sql.defaultCatalog", _SESSION_CATALOG) != _SESSION_CATALOG:
        return False
    # other catalogs of this name have a store of their own
    catalog = spark.conf.get(f"spark.sql.catalog.{_SESSION_CATALOG}", "")
    is_kept = catalog not in ("", "builtin", _DELTA_CATALOG)
    return not is_kept and spark.conf.get("spark.sql.catalogImplementation") == "in-memory"


def _parts(spark: SparkSession, target: TableTarget) -> list[str]:
    with _causes(spark, target):
        parser = spark._jsparkSession.sessionState().sqlParser()
        found = parser.parseMultipartIdentifier(target.name)
    return [str(found.apply(number)) for number in range(found.size())]


def table_exists(spark: SparkSession, target: TableTarget) -> bool:
    """Return whether a table exists."""
    with _causes(spark, target):
        if target.path is None:
            return spark.catalog.tableExists(target.identifier)
        assert spark._jvm is not None
        tables = spark._jvm.io.delta.tables.DeltaTable
        return bool(tables.isDeltaTable(spark._jsparkSession, target.path))


def make_table(
    spark: SparkSession, target: TableTarget, schema: StructType, partitioned_by: str = ""
) -> None:
    """Make a table without rows unless it exists; `partitioned_by`: columns, with commas."""
    columns = schema.fromJson(schema.jsonValue())
    for field in columns:
        field.nullable = True
    clause = f" PARTITIONED BY ({partitioned_by})" if partitioned_by else ""
    with _causes(spark, target):
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {target.identifier} ({columns.toDDL()}) "
            f"USING {target.table_format}{clause}"
        )


def append_rows(table: DataFrame, target: TableTarget) -> None:
    """Append the rows of a batch to a table, in one commit or not; a missing table is made."""
    spark = table.sparkSession
    make_table(spark, target, table.schema)
    try:
        with _causes(spark, target):
            table.writeTo(target.identifier).append()
    except QueryError as error:
        with _causes(spark, target):
            columns = spark.table(target.identifier).columns
        known = {name.lower() for name in columns}
        if unknown := [f"'{name}'" for name in table.columns if name.lower() not in known]:
            raise QueryError(  # Delta does not name them
                f"the table {target.name} has no column {', '.join(unknown)}; "
                f"it has: {', '.join(columns)}"
            ) from error
        raise


def start_stream(
    spark: SparkSession, writer: DataStreamWriter, target: TableTarget, schema: StructType
) -> StreamingQuery:
    """Start a query that appends each of its batches to a table, once, in one commit.

    Both formats keep the id and the last batch of a query in their commits, so a batch that is run
    again after a kill is not appended again, as long as the query has its checkpoint.
    """
    make_table(spark, target, schema)
    writer = writer.format(target.table_format).outputMode("append")
    with _causes(spark, target):
        return writer.toTable(target.name) if target.path is None else writer.start(target.path)


_NOTE = "pylogctl.load"
_APPLICATION = "pylogctl.load"  # Delta commits each version of an application once


class Commits(NamedTuple):
    """The newest load that the commits of a table record, and if the table was restored since."""

    last_note: str | None  # text of the newest commit with one; None if no kept commit has one
    is_restored: bool  # the table was set back since; its rows are not those of that commit
    base: str | None  # the commit that `append_once` compares the table with


def read_commits(spark: SparkSession, target: TableTarget) -> Commits:
    """Read the commits that a table keeps."""
    read = _iceberg_commits if target.table_format == "iceberg" else _delta_commits
    with _causes(spark, target):
        return read(spark, target)


def _iceberg_commits(spark: SparkSession, target: TableTarget) -> Commits:
    spark.catalog.refreshTable(target.identifier)
    newest = spark.sql(
        f"SELECT snapshot_id FROM {target.identifier}.history ORDER BY made_current_at DESC LIMIT 1"
    ).collect()
    noted = spark.sql(
        f"SELECT max_by(s.summary['{_NOTE}'], s.committed_at) AS note "
        f"FROM {target.identifier}.snapshots s JOIN {target.identifier}.history h "
        "ON s.snapshot_id = h.snapshot_id "
        f"WHERE h.is_current_ancestor AND s.summary['{_NOTE}'] IS NOT NULL"
    ).collect()
    return Commits(noted[0].note, False, str(newest[0].snapshot_id) if newest else None)


def _delta_commits(spark: SparkSession, target: TableTarget) -> Commits:
    from pyspark.sql import functions as fn

    is_load = fn.col("userMetadata").startswith(f'{{"{_NOTE}"')
    version = fn.col("version")
    (found,) = (
        spark.sql(f"DESCRIBE HISTORY {target.identifier}")
        .select(
            fn.max_by(fn.when(is_load, fn.col("userMetadata")), fn.when(is_load, version)),
            fn.max(fn.when(is_load, version)),
            fn.max(fn.when(fn.col("operation") == "RESTORE", version)),
        )
        .collect()
    )
    note, noted, restored = found
    is_restored = restored is not None and (noted is None or restored > noted)
    return Commits(note and json.dumps(json.loads(note)[_NOTE]), is_restored, None)


def append_once(
    table: DataFrame, target: TableTarget, number: int, note: str, base: str | None
) -> None:
    """Append the rows of a load and a note to a table in one commit, unless it has the load.

    Each row has `number`, which is greater than that of all loads before, in its column `load`. The
    note is JSON; `base` is of the `Commits` that the number was chosen by. If another load was
    committed since, the table has none of the rows.
    """
    from pyspark.sql import functions as fn

    writer = table.writeTo(target.identifier)
    with _causes(table.sparkSession, target):
        if target.table_format == "delta":
            writer.options(
                txnAppId=_APPLICATION, txnVersion=str(number), userMetadata=f'{{"{_NOTE}":{note}}}'
            ).append()
            return
        # An append of Iceberg succeeds whatever else was committed. Replacing the rows of this
        # load, of which there are none, fails if a commit since `base` has added some.
        writer.option(f"snapshot-property.{_NOTE}", note)
        writer.option("isolation-level", "serializable")
        if base is not None:
            writer.option("validate-from-snapshot-id", base)
        writer.overwrite(fn.col("load") == number)


@contextmanager
def _causes(spark: SparkSession, target: TableTarget) -> Iterator[None]:
    """Raise a `BrokerError` for an exception of Spark or of the package of the format."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from broker.spark.jobs import cause_of

    try:
        yield
    except Py4JJavaError as error:
        raise _cause_in_package(error, spark, target) or cause_of(error) from error
    except PySparkException as error:
        raise cause_of(error) from error


def _cause_in_package(
    error: Py4JJavaError, spark: SparkSession, target: TableTarget
) -> BrokerError | None:
    package = _PACKAGES[target.table_format]
    thrown: JavaObject | None = error.java_exception
    while thrown is not None:
        text = str(thrown.toString())
        if any(name in text for name in _CONFLICTS):
            return OutputConflictError(
                f"another load into {target.name} was committed at the same time, and this one was "
                "not; run it again"
            )
        if text.partition(":")[0].endswith(_OTHER_VERSION):
            return ConfigError(
                f"the package of {package.name} is not for Spark {spark.version}: "
                f"{_how_to_get(package, spark)} ({text.partition(chr(10))[0]})"
            )
        thrown = thrown.getCause()
    return None
