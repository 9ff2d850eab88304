"""Options of `pylogctl perf`, and the payloads they stand for."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from broker.consumer.config import ConsumerConfig
from broker.errors import ArgumentError
from broker.producer.settings import codec_of
from broker.protocol.compression import Codec
from pylogctl.cli.environment import Environment, SharedOptions, Streams, UsageError
from pylogctl.cli.properties import PERF_PRODUCE
from pylogctl.perf.options import MeasureChoice
from pylogctl.perf.produce import (
    SizeRange,
    batches_of,
    make_batches,
    parse_sizes,
    read_batches,
)
from pylogctl.perf.run import idle_timeout_s_of, producer_config, validate_output


def _env(**settings: object) -> Environment:
    return Environment(Streams(None, io.BytesIO(), io.StringIO()), {}, SharedOptions(**settings))  # type: ignore[arg-type]  # test settings by name


@pytest.mark.parametrize(
    ("text", "sizes"),
    [(None, (100, 100)), ("7", (7, 7)), ("7..9", (7, 9)), ("1KiB..2KiB", (1024, 2048))],
)
def test_sizes_are_one_or_a_range(text: str | None, sizes: tuple[int, int]) -> None:
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize("text", ["9..7", "..", "7..", "x", "1..2..3"])
def test_sizes_that_are_neither_are_refused(text: str) -> None:
    with pytest.raises((ArgumentError, UsageError), match="not a size"):
        parse_sizes(text)


def test_made_up_batches_have_the_count_and_the_sizes_asked_for() -> None:
    batches = make_batches(SizeRange(3, 9), 7)
    assert {len(batch) for batch in batches} == {7}
    assert {len(payload) for batch in batches for payload in batch} == set(range(3, 10))


def test_made_up_payloads_are_printable_and_always_the_same() -> None:
    batches = make_batches(SizeRange(50, 50), 10)
    assert batches == make_batches(SizeRange(50, 50), 10)
    assert b"".join(b"".join(batch) for batch in batches).isalnum()


@pytest.mark.parametrize(("size", "batch_count"), [(0, 5), (1 << 25, 1), (10, 5000)])
def test_made_up_batches_are_at_least_one_whatever_the_size(size: int, batch_count: int) -> None:
    batches = make_batches(SizeRange(size, size), batch_count)
    assert len(batches) >= 1
    assert len(batches[0]) == batch_count


def test_batches_of_a_file_are_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\r\n\nb\xff\nlast")
    assert read_batches(path, 3) == [[b"a\r", b"", b"b\xff"], [b"last"]]


def test_batches_of_an_empty_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.touch()
    with pytest.raises(UsageError, match="is empty"):
        batches_of(None, path, 10)


def test_batches_of_size_and_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot go together"):
        batches_of("100", tmp_path / "lines", 10)


def test_there_is_always_a_limit() -> None:
    assert MeasureChoice().duration_s == 10
    assert MeasureChoice(messages=5).duration_s is None
    assert MeasureChoice(duration=60).duration_s == 60
    assert MeasureChoice(messages=5, duration=60).duration_s == 60


def test_idle_time_has_a_limit_unless_the_whole_run_has_one() -> None:
    assert idle_timeout_s_of(ConsumerConfig(), has_duration=False) == 5
    assert idle_timeout_s_of(ConsumerConfig(), has_duration=True) is None
    assert idle_timeout_s_of(ConsumerConfig(consumer_timeout_ms=2000), has_duration=True) == 2


def test_interval_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="above zero"):
        validate_output(_env(), MeasureChoice(interval=0), compat07=False)


def test_options_go_before_properties() -> None:
    env = _env(properties={"compression.codec": "gzip", "request.required.acks": "0"})
    config = producer_config(env, PERF_PRODUCE, codec="snappy")
    assert (codec_of(config), config.acks) == (Codec.SNAPPY, "0")


def test_codec_may_be_a_number_as_in_07() -> None:
    config = producer_config(_env(properties={"compression.codec": "2"}), PERF_PRODUCE, codec=None)
    assert codec_of(config) is Codec.SNAPPY


@pytest.mark.parametrize(
    "settings", [{"output": "json"}, {"columns": ("messages",)}, {"sort": "bytes"}]
)
def test_compat07_does_not_go_with_another_form(settings: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="--compat07"):
        validate_output(_env(**settings), MeasureChoice(), compat07=True)
