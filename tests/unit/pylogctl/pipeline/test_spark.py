"""Spark sessions of commands: what is told of a failure, and which log file stays."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from broker.errors import BrokerError, InvalidMessageError
from broker.spark.session import SessionSettings
from pylogctl.cli.environment import Environment, Streams, UsageError
from pylogctl.pipeline.options import SparkChoice
from pylogctl.pipeline.spark import open_spark, parse_conf

pyspark_errors = pytest.importorskip("pyspark.errors")

ENV = Environment(Streams(None, io.BytesIO(), io.StringIO()), {})


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], list[Path]]:
    """Have sessions that only write a log; returns what there is of logs."""

    @contextmanager
    def opened(settings: SessionSettings) -> Iterator[object]:
        assert settings.log_path is not None
        settings.log_path.write_text("many words")
        has_ui = settings.conf.get("spark.ui.enabled") == "true"
        url = "http://127.0.0.1:4040" if has_ui else None
        yield SimpleNamespace(sparkContext=SimpleNamespace(uiWebUrl=url))

    monkeypatch.setattr("broker.spark.session.open_session", opened)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return lambda: sorted(tmp_path.glob("*.log"))


def fail(message: str, choice: SparkChoice) -> BrokerError:
    with pytest.raises(BrokerError) as caught, open_spark(ENV, choice):
        raise pyspark_errors.PySparkException(message)
    return caught.value


def test_log_when_all_went_well_then_is_gone(logs: Callable[[], list[Path]]) -> None:
    with open_spark(ENV, SparkChoice()):
        assert logs()
    assert not logs()


@pytest.mark.usefixtures("logs")
def test_ui_when_asked_for_then_its_address_is_said() -> None:
    stderr = io.StringIO()
    env = Environment(Streams(None, io.BytesIO(), stderr), {})

    with open_spark(env, SparkChoice(spark_conf=["spark.ui.enabled=true"])):
        assert "http://127.0.0.1:4040" in stderr.getvalue()


def test_failure_when_the_cause_is_ours_then_is_told_and_the_log_is_gone(
    logs: Callable[[], list[Path]],
) -> None:
    error = fail("x\npylogctl.CorruptMessage: events[0-0]: bad\n\tat y", SparkChoice())

    assert isinstance(error, InvalidMessageError)
    assert str(error) == "events[0-0]: bad"
    assert not logs()


def test_failure_when_it_is_spark_s_own_then_names_the_log(
    logs: Callable[[], list[Path]],
) -> None:
    error = fail("[NO_LUCK] today\n\tat y", SparkChoice())

    (log,) = logs()
    assert str(error) == f"[NO_LUCK] today; Spark's log is {log}"


def test_conf_when_malformed_then_is_refused() -> None:
    assert parse_conf(["spark.a=b=c"]) == {"spark.a": "b=c"}
    for text in ("spark.a", "=b"):
        with pytest.raises(UsageError, match="is not KEY=VALUE"):
            parse_conf([text])
