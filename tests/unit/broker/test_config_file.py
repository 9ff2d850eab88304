from __future__ import annotations

import re
from pathlib import Path

import pytest

from broker.config import BrokerConfig, load_file
from broker.errors import ConfigError
from broker.properties import HOUR_MS, MINUTE_MS


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ('log.dir = "/data"', {"log.dir": "/data"}),
        ('log.dirs = ["/a", "/b"]', {"log.dirs": "/a,/b"}),
        (
            '[log]\ndir = "/data"\nretention.hours = 5',
            {"log.dir": "/data", "log.retention.hours": "5"},
        ),
        ("[log.retention]\nhours = 5", {"log.retention.hours": "5"}),
        ('"log.retention.hours" = 5', {"log.retention.hours": "5"}),
        ('brokerid = "3"', {"brokerid": "3"}),
        (
            "enable.this = true\nenable.that = false",
            {"enable.this": "true", "enable.that": "false"},
        ),
        ('topic.partition.count.map = "a:1,b:2"', {"topic.partition.count.map": "a:1,b:2"}),
        ("[topic.partition.count.map]\na = 1\nb = 2", {"topic.partition.count.map": "a:1,b:2"}),
        ('[topic.log.file.size]\n"a.b" = 1', {"topic.log.file.size": "a.b:1"}),
        ("topic.log.roll.hours = {a = 1}", {"topic.log.roll.hours": "a:1"}),
        ("[topic.log.roll.hours]", {"topic.log.roll.hours": ""}),
        ("# only a comment\n", {}),
    ],
)
def test_toml_when_loaded_then_tables_and_dotted_keys_spell_property_names(
    tmp_path: Path, text: str, properties: dict[str, str]
) -> None:
    assert load_file(write(tmp_path / "broker.toml", text)) == properties


def test_toml_when_a_name_starts_another_one_then_quoting_sets_both(tmp_path: Path) -> None:
    text = '"max.connections" = 10\n"max.connections.per.ip" = 2\n'

    config = BrokerConfig.from_properties(load_file(write(tmp_path / "broker.toml", text)))

    assert (config.max_connections, config.max_connections_per_ip) == (10, 2)


def test_toml_when_a_table_names_topics_by_the_property_of_08_then_it_is_one_property(
    tmp_path: Path,
) -> None:
    text = '[log.flush.interval.messages.per.topic]\n"a.b" = 5\n'

    config = BrokerConfig.from_properties(load_file(write(tmp_path / "broker.toml", text)))

    assert config.topic_flush_interval_messages == {"a.b": 5}


def test_toml_when_broken_then_config_error_names_file_and_line(tmp_path: Path) -> None:
    path = write(tmp_path / "broker.toml", "port = 1\nport = = 2\n")

    with pytest.raises(ConfigError, match=rf"{re.escape(str(path))}: .*line 2"):
        load_file(path)


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("port=1\nbrokerid=2", {"port": "1", "brokerid": "2"}),
        ("  port = 1  ", {"port": "1"}),
        ("# comment\n! comment\n\n   # comment\nport=1", {"port": "1"}),
        ("zk.connect=a:1,b:2/c=d", {"zk.connect": "a:1,b:2/c=d"}),
        ("hostname=", {"hostname": ""}),
        ("port=1\r\nbrokerid=2\r\n", {"port": "1", "brokerid": "2"}),
        ("hostname=a#b", {"hostname": "a#b"}),
        ("port=1\nport=2", {"port": "2"}),
        ("", {}),
    ],
)
def test_properties_when_loaded_then_comments_and_blanks_are_left_out(
    tmp_path: Path, text: str, properties: dict[str, str]
) -> None:
    assert load_file(write(tmp_path / "server.properties", text)) == properties


@pytest.mark.parametrize("line", ["port", "port: 1", "port 1"])
def test_properties_when_a_line_has_no_equals_sign_then_config_error_names_file_and_line(
    tmp_path: Path, line: str
) -> None:
    path = write(tmp_path / "server.properties", f"# first\n\n{line}\n")

    with pytest.raises(ConfigError, match=rf"{re.escape(str(path))}:3: '{line}' is not name=value"):
        load_file(path)


def test_properties_when_two_units_are_given_then_the_later_line_holds(tmp_path: Path) -> None:
    text = "log.roll.hours=2\nlog.roll.minutes=30\n"

    config = BrokerConfig.from_properties(load_file(write(tmp_path / "a.properties", text)))

    assert config.roll_ms == 30 * MINUTE_MS


def test_properties_when_written_like_07s_sample_then_set_what_they_say(
    tmp_path: Path,
) -> None:
    text = """
# The id of the broker. This must be set to a unique integer for each broker.
brokerid=0
#hostname=
port=9092
num.threads=8
socket.send.buffer=1048576
socket.receive.buffer=1048576
max.socket.request.bytes=104857600
log.dir=/tmp/kafka-logs
num.partitions=1
#topic.partition.count.map=topic1:3, topic2:4
log.flush.interval=10000
log.default.flush.interval.ms=1000
log.retention.hours=168
log.file.size=536870912
log.cleanup.interval.mins=1
zk.connect=localhost:2181
zk.connectiontimeout.ms=1000000
"""

    config = BrokerConfig.from_properties(load_file(write(tmp_path / "server.properties", text)))

    assert config == BrokerConfig(
        num_threads=8,
        socket_send_bytes=1_048_576,
        socket_receive_bytes=1_048_576,
        data_dirs=(Path("/tmp/kafka-logs"),),
        flush_interval_ms=1000,
        retention_ms=168 * HOUR_MS,
        segment_bytes=536_870_912,
        cleanup_interval_ms=MINUTE_MS,
        zookeeper="localhost:2181",
        zk_connection_timeout_ms=1_000_000,
    )


@pytest.mark.parametrize("name", ["missing.toml", "missing.properties"])
def test_file_when_missing_then_config_error_names_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=rf"cannot read configuration .*{name}: "):
        load_file(tmp_path / name)


@pytest.mark.parametrize("name", ["latin.toml", "latin.properties"])
def test_file_when_not_utf8_then_config_error_names_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"hostname=\xe9")

    with pytest.raises(ConfigError, match=f"cannot read configuration .*{name}: "):
        load_file(path)
