"""What an embedded ZooKeeper server is started with: jars, settings, command line."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from broker.errors import ConfigError
from broker.zk.java import Java

SNAPSHOT_DIRECTORY = "data"

# Relative paths, as the server runs in its data directory: a properties file could not hold
# every path as it is.
_CONFIG_FILE = "./zoo.cfg"
_LOGGING_FILE = "./log4j2.properties"

_MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

_JARS = (
    "zookeeper",
    "zookeeper-jute",
    "slf4j-api",
    "log4j-api",
    "log4j-core",
    "log4j-slf4j2-impl",
    "metrics-core",
    "snappy-java",
    "jackson-annotations",
    "jackson-core",
    "jackson-databind",
    "commons-io",
    "commons-cli",
    "netty-buffer",
    "netty-codec",
    "netty-codec-base",
    "netty-common",
    "netty-handler",
    "netty-resolver",
    "netty-transport",
)

_JVM_FLAGS = (
    "-Xmx64m",
    "-Xms16m",
    "-Xss256k",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:MaxMetaspaceSize=64m",
    "-XX:ReservedCodeCacheSize=24m",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Xshare:auto",
)

_LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1}: %m%n%throwable{short}
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""


def find_jars() -> list[Path]:
    """Return the ZooKeeper server's jars among those that come with PySpark.

    Raises:
        ConfigError: PySpark is not installed, or lacks one of them.
    """
    # Not imported: that takes a second.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(
            "the embedded ZooKeeper needs PySpark's jars: `pip install 'pylogctl[spark]'`, "
            "or name a ZooKeeper server to use"
        )
    directory = Path(spec.submodule_search_locations[0], "jars")
    return [_find_jar(directory, name) for name in _JARS]


def _find_jar(directory: Path, name: str) -> Path:
    found = sorted(directory.glob(f"{name}-[0-9]*.jar"))
    if not found:
        raise ConfigError(f"{directory} has no {name} jar, which the embedded ZooKeeper needs")
    return found[-1]


def server_command(java: Java, jars: list[Path]) -> list[str]:
    """Return the command line that runs the server in its data directory."""
    class_path = os.pathsep.join(str(jar) for jar in jars)
    logging_flag = f"-Dlog4j2.configurationFile={_LOGGING_FILE}"
    flags = [*_JVM_FLAGS, logging_flag, "-cp", class_path]
    return [str(java.executable), *flags, _MAIN_CLASS, _CONFIG_FILE]


def write_settings(data_dir: Path, *, host: str, port: int, tick_ms: int, is_durable: bool) -> None:
    """Write the server's configuration files.

    Args:
        data_dir: its data directory.
        host: the address to listen on.
        port: the port to listen on, not 0.
        tick_ms: ZooKeeper's unit of time; sessions time out after 2 to 20 of them.
        is_durable: fsync each write before it is acknowledged.
    """
    settings = {
        "dataDir": f"./{SNAPSHOT_DIRECTORY}",
        "clientPort": port,
        "clientPortAddress": host,
        "tickTime": tick_ms,
        "maxClientCnxns": 0,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "ruok,srvr,mntr,conf",
        "autopurge.snapRetainCount": 3,
        "autopurge.purgeInterval": 1,
        "preAllocSize": 64,  # KB; the default grows each log file by 64 MB at a time
        "forceSync": "yes" if is_durable else "no",
    }
    lines = (f"{name}={value}\n" for name, value in settings.items())
    (data_dir / _CONFIG_FILE).write_text("".join(lines))
    (data_dir / _LOGGING_FILE).write_text(_LOGGING)
