"""Reading without Spark: a plan made and its tasks run one after the other, as rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from broker.spark.options import ReadOptions, parse_read_options
from broker.spark.reading.columns import TaskSettings
from broker.spark.reading.planner import ReadPlan, plan_read
from broker.spark.reading.task_reader import read_task
from broker.spark.schema import arrow_schema, full_schema

Row = dict[str, Any]


def parse(options: Mapping[str, str]) -> ReadOptions:
    return parse_read_options(options, is_stream=False)


def plan(options: Mapping[str, str]) -> ReadPlan:
    return plan_read(parse(options))


def settings_for(options: ReadOptions, *, has_records: bool = False) -> TaskSettings:
    return TaskSettings(arrow_schema(full_schema(options.crc, has_records=has_records)), options)


def run(made: ReadPlan, options: Mapping[str, str]) -> list[Row]:
    """Read what is planned."""
    settings = settings_for(parse(options), has_records=made.has_records)
    batches = [batch for task in made.tasks for batch in read_task(task, settings)]
    rows: list[Row] = pa.Table.from_batches(batches, settings.schema).to_pylist()
    return rows


def read(**options: str) -> list[Row]:
    return run(plan(options), options)


def values(rows: list[Row]) -> list[bytes]:
    return [row["value"] for row in rows]
