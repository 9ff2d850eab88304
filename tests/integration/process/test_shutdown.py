from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from broker.protocol.codec import encode
from broker.protocol.extension_requests import ShutdownRequest
from broker.protocol.layouts import DATA
from broker.protocol.requests import ProduceRequest
from broker.protocol.responses import decode_read_response
from tests.integration.broker.server.peer import read_request
from tests.integration.process.broker_process import StartError
from tests.integration.process.conftest import ProcessFactory
from tests.support.waiting import wait_until

ONE = encode([b"one message"])
MARKER = ".pylog_clean_shutdown"
NEVER_FLUSH = ("-X", "log.default.flush.interval.ms=3600000")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_when_data_is_unflushed_then_flushed_marked_and_exit_0(
    number: signal.Signals, start_process: ProcessFactory
) -> None:
    process = start_process(*NEVER_FLUSH)
    with process.peer() as peer:
        peer.send(*[ProduceRequest("events", 0, ONE)] * 100)
        assert peer.status()["bytes"] == 100 * len(ONE)
        process.signal(number)
        assert process.wait() == 0
        assert peer.is_closed()
    assert (process.data / MARKER).exists()
    again = start_process()
    with again.peer() as peer:
        assert peer.fetch("events", 0) == (0, ONE * 100)
        assert peer.status()["clean_start"] is True


def test_signal_when_reads_are_parked_then_answered_and_ended_at_once(
    start_process: ProcessFactory,
) -> None:
    process = start_process()
    with process.peer() as peer:
        peer.publish("events", ONE)
        peer.send_extension(read_request("events", len(ONE), max_wait_ms=600_000))
        with process.peer() as other:
            wait_until(lambda: other.status()["metrics"]["Purgatory"]["Waiting"] > 0, "the wait")
        process.signal(signal.SIGTERM)
        (part,) = decode_read_response(peer.receive_extension())
        assert (part.error, part.message_set) == (0, b"")
        assert process.wait() == 0


def test_shutdown_request_when_sent_then_answered_after_the_marker_and_exit_0(
    start_process: ProcessFactory,
) -> None:
    process = start_process()
    with process.peer() as peer:
        peer.publish("events", ONE)
        steps = json.loads(DATA.decode(peer.call(ShutdownRequest(force=True))))
        assert (process.data / MARKER).exists()
        assert [one["step"] for one in steps][-3:] == ["close logs", "checkpoint", "marker"]
        assert peer.is_closed()
    assert process.wait() == 0


def refusal(start_process: ProcessFactory, *arguments: str, **where: Path) -> StartError:
    with pytest.raises(StartError) as raised:
        start_process(*arguments, **where)
    return raised.value


def test_start_when_directory_is_in_use_then_exit_4_and_names_the_holder(
    start_process: ProcessFactory,
) -> None:
    first = start_process()
    error = refusal(start_process, "--id", "1")
    assert error.status == 4
    assert f"in use by process {first.pid} (broker 0)" in error.output
    with first.peer() as peer:
        assert peer.publish("events", ONE).error == 0


def test_start_when_directory_is_of_another_broker_then_exit_4_and_names_it(
    start_process: ProcessFactory,
) -> None:
    first = start_process("--id", "7")
    first.signal(signal.SIGTERM)
    assert first.wait() == 0
    error = refusal(start_process, "--id", "8")
    assert error.status == 4
    assert "belongs to broker 7, not to broker 8" in error.output


def test_start_when_holder_was_killed_then_directory_is_free(
    start_process: ProcessFactory,
) -> None:
    start_process().kill()
    start_process()


def test_start_when_port_is_taken_then_says_so_and_marks_nothing_wrong(
    start_process: ProcessFactory, tmp_path: Path
) -> None:
    first = start_process()
    error = refusal(start_process, "--port", str(first.port), data=tmp_path / "other")
    assert error.status != 0
    assert f"cannot listen on 127.0.0.1:{first.port}: address already in use" in error.output
    start_process(data=tmp_path / "other")


def test_start_when_data_directory_is_a_file_then_says_so(
    start_process: ProcessFactory, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    error = refusal(start_process, data=tmp_path / "file")
    assert error.status == 9
    assert f"cannot write to data directory {tmp_path / 'file'}" in error.output


def test_process_when_clients_come_and_go_then_keeps_no_descriptor(
    start_process: ProcessFactory,
) -> None:
    process = start_process()
    with process.peer() as peer:
        peer.publish("events", ONE)
        before = process.descriptor_count()
        for number in range(50):
            with process.peer() as other:
                other.fetch("events", 0)
                if number % 2:
                    other.send_bytes(b"\xff" * 8)
        wait_until(lambda: process.descriptor_count() <= before, "the end of the descriptors")
