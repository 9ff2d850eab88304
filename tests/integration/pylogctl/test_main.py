"""The program as a process: fast paths, streams, signals, crashes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.protocol.codec import encode
from pylogctl import __version__
from tests.support.command_line import REPOSITORY, Invoke, Process, Spawn, process_environment

VERSION_LINE = f"pylogctl {__version__}\n".encode()


@pytest.fixture
def big_segment(tmp_path: Path) -> Path:
    """A segment file whose dump does not fit into a pipe."""
    path = tmp_path / "t_0" / "00000000000000000000.pylog"
    path.parent.mkdir()
    path.write_bytes(encode([b"x" * 100] * 5000))
    return path


def test_version_option_prints_one_line(run_process: Invoke) -> None:
    assert run_process("--version")[:3] == (0, VERSION_LINE, "")


def test_version_option_behind_a_command_is_the_same(run_process: Invoke) -> None:
    assert run_process("log", "verify", "--version").stdout == VERSION_LINE


@pytest.mark.parametrize(
    "args", [["--version"], ["version"], ["--help"], ["man"], ["completion", "bash"]]
)
def test_output_on_a_full_disk_is_told_in_one_line(run_process: Invoke, args: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        result = run_process(*args, stdout=full)
    assert result.status == 1
    assert result.stderr == "error: cannot write output: no space left on device\n"


@pytest.mark.parametrize(
    "args",
    [["-F", "%s\n"], *(["--output", name] for name in ("jsonl", "json", "csv", "plain", "name"))],
)
def test_dump_whose_reader_goes_away_ends_by_sigpipe_in_silence(
    spawn: Spawn, big_segment: Path, args: list[str]
) -> None:
    process = spawn("log", "dump", str(big_segment), *args)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(timeout=60) == -signal.SIGPIPE
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.parametrize("stream", ["<&-", ">&-", "2>&-"])
def test_closed_stream_never_shows_a_traceback(tmp_path: Path, stream: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m pylogctl version {stream}', sys.executable],
        cwd=REPOSITORY,
        env=process_environment(tmp_path, {}),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode == (1 if stream == ">&-" else 0)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"TERM": "dumb"},
        {"NO_COLOR": "1"},
        {"NO_COLOR": ""},
        {"LC_ALL": "C"},
        {"PYTHONIOENCODING": "ascii"},
        {"COLUMNS": "20"},
    ],
)
def test_listing_in_a_pipe_is_the_same_in_every_environment(
    run_process: Invoke, environment: dict[str, str]
) -> None:
    result = run_process("version", env=environment)
    assert result.status == 0
    assert result.stdout.split()[:3] == [b"COMPONENT", b"VERSION", b"pylogctl"]
    assert result.stderr == ""


def test_output_that_the_encoding_lacks_is_escaped(run_process: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "ü.pylog"
    path.write_bytes(encode(["é".encode()]))
    for encoding, shown in (("ascii", b"\\xe9"), ("utf-8", "é".encode())):
        environment = {"PYTHONIOENCODING": encoding}
        result = run_process("log", "dump", str(path), "--columns", "payload", env=environment)
        assert result.status == 0
        assert result.stdout == b"PAYLOAD\n" + shown + b"\n"


def _await_ready(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline()


_WAITER = """
import sys, time
from pylogctl import __main__
def wait(args):
    print("ready", flush=True)
    time.sleep(60)
__main__._run_command = wait
sys.argv = ["pylogctl", "x"]
__main__.main()
"""


@pytest.mark.parametrize(
    ("signum", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)],
)
def test_signal_ends_a_short_command_with_its_status(
    tmp_path: Path, signum: signal.Signals, status: int
) -> None:
    with Process(
        [sys.executable, "-c", _WAITER],
        cwd=REPOSITORY,
        env=process_environment(tmp_path, {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        _await_ready(process)
        process.send_signal(signum)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == status
    assert stderr == b""


_FAILS_TO_CLEAN_UP = """
import sys
from pylogctl import __main__
def end(args):
    try:
        __main__._raise_terminated(15, None)
    finally:
        raise ConnectionError("the other end is gone")
__main__._run_command = end
sys.argv = ["pylogctl", "x"]
__main__.main()
"""


def test_signal_when_the_cleaning_up_fails_then_is_still_what_ended_the_command(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FAILS_TO_CLEAN_UP],
        cwd=REPOSITORY,
        env=process_environment(tmp_path, {}),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (143, b"")


_CRASHER = """
import sys
from pylogctl import __main__
def crash(args):
    raise KeyError("x")
__main__._run_command = crash
sys.argv = ["pylogctl", *sys.argv[1:]]
__main__.main()
"""


@pytest.fixture
def run_crashing(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    def run(*args: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-c", _CRASHER, *args],
            cwd=REPOSITORY,
            env=process_environment(tmp_path, {}),
            capture_output=True,
            check=False,
            timeout=60,
        )

    return run


def test_bug_writes_a_crash_file_and_one_line(
    run_crashing: Callable[..., subprocess.CompletedProcess[bytes]], tmp_path: Path
) -> None:
    done = run_crashing("log", "verify")
    assert done.returncode == 70
    first, second = done.stderr.decode().splitlines()
    assert first.startswith("error: unexpected failure, a bug in pylogctl")
    (crash_file,) = (tmp_path / ".local/state/pylogctl").iterdir()
    assert str(crash_file) in second
    assert "Traceback" in crash_file.read_text()
    assert "['log', 'verify']" in crash_file.read_text()


def test_debug_shows_the_traceback(
    run_crashing: Callable[..., subprocess.CompletedProcess[bytes]],
) -> None:
    assert b"Traceback" in run_crashing("--debug").stderr


def test_error_with_json_output_is_an_object_as_well(run_process: Invoke) -> None:
    result = run_process("--output", "json", "log", "stat", "/no/such")
    assert result.status == 3
    text, data = result.stderr.splitlines()
    assert text == "error: '/no/such': no such file or directory"
    error = json.loads(data)["error"]
    assert (error["code"], error["exit"]) == ("ENOENT", 3)
    assert error["message"] == "'/no/such': no such file or directory"


def test_error_with_json_log_format_is_only_an_object(run_process: Invoke) -> None:
    result = run_process("consum", "--log-format", "json")
    assert json.loads(result.stderr)["error"]["exit"] == 2
