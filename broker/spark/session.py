"""A Spark session for commands: finds Java, logs to a file, and ends with its block.

    with open_session(SessionSettings(master="local[2,4]")) as spark:
        spark.read.format("pylog")...

Programs and notebooks with a session of their own only register the data source:
`spark.dataSource.register(PylogDataSource)`. PySpark is imported when a session is opened.

Executors that lack the package get it as a zip:

    spark.sparkContext.addPyFile(str(package_zip(Path("/tmp"))))  # before the data source is used

An installed package takes precedence, with its compiled codec. Elsewhere executors need Python,
PySpark and PyArrow (for Avro payloads also fastavro, for other compression than gzip also cramjam,
for patterns google-re2), and the codec runs in Python, as compiled modules cannot be loaded from a
zip.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.errors import ConfigError
from broker.spark.runtime.interruption import finished, make_interruptible
from broker.spark.runtime.requirements import MINIMUM_VERSION, make_java_home
from broker.spark.runtime.temporary import remove_old_logs, temporary_directory
from broker.zk.java import find_java

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_FAST_ARROW = "-Darrow.enable_unsafe_memory_access=true"
"""Arrow does not check bounds at each value of a batch; all batches come from this library."""
DEFAULT_MASTER = "local[*,4]"
"""All cores, and four attempts for each task; plain `local[*]` has only one."""
_END_S = 20.0
_LOG_NAME = re.compile(r"pylogctl-spark-([0-9]+)\.log", re.ASCII)
_LOG_KEPT_S = 86_400
_ACCUMULATORS = "AccumulatorServer"
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", _ACCUMULATORS)

_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd HH:mm:ss} %p %c{1}: %m%n%ex
"""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Settings of a new session.

    Attributes:
        master: `local[CORES,ATTEMPTS]`, or the address of a cluster.
        app_name: name of the application in Spark.
        driver_memory: heap of the driver's JVM, in which a local master also runs tasks.
        java_options: further options of that JVM, such as `-XX:TieredStopAtLevel=1`, with which
            short jobs take half the processor time, and long jobs more.
        conf: further Spark settings, which take precedence.
        log_path: Spark's log; None for `default_log_path`, removed unless the block fails.
    """

    master: str = DEFAULT_MASTER
    app_name: str = "pylogctl"
    driver_memory: str = "1g"
    java_options: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)
    log_path: Path | None = None

    @property
    def is_local(self) -> bool:
        """Return whether everything runs on this machine."""
        return self.master.startswith("local")

    @property
    def has_executors(self) -> bool:
        """Return whether tasks run in other processes than the driver's JVM."""
        return not self.is_local or self.master.startswith("local-cluster")


@contextmanager
def open_session(settings: SessionSettings | None = None) -> Iterator[SparkSession]:
    """Open a Spark session in which the data source `pylog` is registered.

    If the process has an active session, that is used unchanged, and left running.

    Raises:
        ConfigError: PySpark or a supported Java is missing, or Spark does not start.
    """
    spark = _active_session()
    from broker.spark.source import register  # late: it imports PySpark

    if spark is not None:
        register(spark)
        yield spark
        return
    settings = settings or SessionSettings()
    with ExitStack() as cleanup:
        directory = cleanup.enter_context(temporary_directory("pylogctl-spark-"))
        log_path = settings.log_path or default_log_path()
        cleanup.enter_context(_failures_logged(log_path))
        spark = _start(settings, directory, log_path, cleanup)
        if settings.has_executors:  # which may not have the package
            spark.sparkContext.addPyFile(str(package_zip(directory)))
        register(spark)
        yield spark
        if settings.log_path is None:
            cleanup.callback(log_path.unlink, missing_ok=True)


def _active_session() -> SparkSession | None:
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ConfigError("PySpark is not installed; try: pip install 'pylogctl[spark]'") from error
    active = SparkSession.getActiveSession()
    if active is None and SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()  # a session is active in one thread only
    return active


def default_log_path() -> Path:
    """Return the path of this process's Spark log, if no other path is set.

    The log is kept if Spark fails. Those of processes that ended are removed a day after they were
    written.
    """
    parent = Path(tempfile.gettempdir())
    remove_old_logs(_LOG_NAME, parent, _LOG_KEPT_S)
    return parent / f"pylogctl-spark-{os.getpid()}.log"


def _start(
    settings: SessionSettings, directory: Path, log_path: Path, cleanup: ExitStack
) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    java = find_java(minimum_version=MINIMUM_VERSION)
    cleanup.enter_context(
        _environment(
            JAVA_HOME=str(make_java_home(java, directory / "java")),
            PYSPARK_PYTHON=os.environ.get("PYSPARK_PYTHON", sys.executable),
        )
    )
    if settings.is_local and "SPARK_LOCAL_IP" not in os.environ:  # else others reach its UI
        cleanup.enter_context(_environment(SPARK_LOCAL_IP="127.0.0.1"))
    conf = SparkConf(loadDefaults=False)
    for name, value in _conf_of(settings, directory).items():
        conf.set(name, value)
    try:
        gateway = _launch_jvm(conf, log_path)
        cleanup.callback(_end_jvm, gateway)
        before = signal.getsignal(signal.SIGINT)
        try:
            context = SparkContext(conf=conf, gateway=gateway)
        finally:  # PySpark installs a handler that calls the JVM, which may be busy
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, before)
    except PySparkException as error:
        raise ConfigError(
            f"Spark does not start with Java {java.version} ({java.executable}); "
            f"its log is {log_path}"
        ) from error
    context._accumulatorServer.handle_error = _log_broken_connection  # type: ignore[method-assign]
    spark = SparkSession.builder.getOrCreate()
    cleanup.callback(_stop, spark)
    return spark


def _log_broken_connection(request: Any, client_address: Any) -> None:
    """Log the exception being handled, by which a connection of the JVM for accumulators broke."""
    logger = logging.getLogger(_ACCUMULATORS)
    logger.error("connection of %s broke", client_address, exc_info=sys.exc_info())


def _stop(spark: SparkSession) -> None:
    """End the jobs of a session, and the session."""
    from py4j.protocol import Py4JError

    # the signal that ends this process may have ended the JVM, too
    with suppress(Py4JError, ConnectionError), warnings.catch_warnings(action="ignore"):
        spark.stop()


@contextmanager
def _failures_logged(log_path: Path) -> Iterator[None]:
    """Redirect the logs of PySpark and Py4J to the file until the block ends.

    PySpark would log failed queries to standard error in addition to raising exceptions, and its
    server of accumulators that a JVM which is ended hangs up; Py4J the call that Ctrl-C interrupts.
    """
    from pyspark.logger import PySparkLogger

    log = logging.FileHandler(log_path)

    def is_of_others(record: logging.LogRecord) -> bool:
        if record.name not in _LOGGERS and Path(record.pathname).parent.name != "py4j":
            return True
        log.handle(record)
        return False

    # no handlers and `propagate`: PySpark's loggers format handlers added by others, too
    redirected = [logging.root, *map(PySparkLogger.getLogger, _LOGGERS)]
    for one in redirected:
        one.addFilter(is_of_others)
    try:
        yield
    finally:
        for one in redirected:
            one.removeFilter(is_of_others)
        log.close()


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Set environment variables until the block ends."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _conf_of(settings: SessionSettings, directory: Path) -> dict[str, str]:
    log4j = directory / "log4j2.properties"
    log4j.write_text(_LOG4J)
    temporary = directory / "tmp"
    temporary.mkdir()
    java_options = (
        f"-Dlog4j2.configurationFile=file:{log4j}",
        f"-Djava.io.tmpdir={temporary}",
        "-XX:+UseSerialGC",
        _FAST_ARROW,
        settings.java_options,
    )
    conf = {
        "spark.master": settings.master,
        "spark.app.name": settings.app_name,
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.defaultJavaOptions": " ".join(java_options),
        "spark.executor.defaultJavaOptions": _FAST_ARROW,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        # the default, INT96, becomes nanoseconds in other programs, which Spark cannot read
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }
    if settings.is_local:
        conf |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(directory / "local"),
            "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
        }
    return conf | dict(settings.conf)


def _launch_jvm(conf: SparkConf, log_path: Path) -> JavaGateway:
    """Start a JVM whose output goes to a file, and return a gateway to it."""
    from pyspark import java_gateway

    launch: Callable[..., JavaGateway] = java_gateway.launch_gateway
    with log_path.open("ab") as log:
        gateway = finished(lambda: launch(conf, {"stdout": log, "stderr": log}), _end_jvm)
    make_interruptible(gateway, _activate)
    return gateway


def _activate() -> None:
    """Make the session of this process active on a new JVM thread, as writers require."""
    from py4j.protocol import Py4JError
    from pyspark.sql import SparkSession

    spark = SparkSession._instantiatedSession
    if spark is None or spark._jvm is None:
        return
    with suppress(Py4JError):  # if the JVM is gone, the next call reports it
        sessions = getattr(spark._jvm, "org.apache.spark.sql.classic.SparkSession")
        sessions.setActiveSession(spark._jsparkSession)


def _end_jvm(gateway: JavaGateway) -> None:
    """End the JVM, which a stopped session would leave running."""
    from pyspark import SparkContext

    process: subprocess.Popen[bytes] = gateway.proc
    with suppress(OSError):
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    assert process.stdin is not None
    process.stdin.close()  # the JVM watches it to find out that this process is gone
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


_SUFFIXES = {".py", ".pyi"}
_PREFER_INSTALLED = """

def _prefer_installed() -> None:
    import sys
    from importlib.machinery import PathFinder
    from pathlib import Path

    archive = str(Path(__file__).parents[1])
    found = PathFinder.find_spec(__name__, [one for one in sys.path if one != archive])
    if found is not None and found.origin is not None:
        __path__[:] = list(found.submodule_search_locations or ())


_prefer_installed()
"""  # Spark puts the zip before all installed packages


def package_zip(directory: Path) -> Path:
    """Write the package `broker` to a zip file in a directory, and return its path."""
    top = Path(__file__).parents[1]
    preferring = (top / "__init__.py").read_text() + _PREFER_INSTALLED
    path = directory / "pylogctl.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in sorted(top.rglob("*")):
            if source == top / "__init__.py":
                archive.writestr(f"{top.name}/__init__.py", preferring)
            elif source.suffix in _SUFFIXES:
                archive.write(source, source.relative_to(top.parent))
    return path
