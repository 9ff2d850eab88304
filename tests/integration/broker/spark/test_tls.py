"""The Spark data source over TLS, without Spark's JVM."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from broker.errors import ConfigError, TlsError
from broker.protocol.responses import BrokerAddress
from broker.security.client_security import ClientSecurity
from broker.server.broker import Broker
from broker.spark.options import ConnectionOptions, parse_read_options, parse_write_options
from broker.spark.writer import send_rows
from tests.support.certificates import Certificates
from tests.support.spark_rows import read, values


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


@pytest.fixture
def port(start_broker: Callable[..., Broker], certificates: Certificates) -> int:
    broker = start_broker(**certificates.settings(port=-1))
    (port,) = (one["port"] for one in broker.status()["listeners"])
    return int(port)


def test_rows_are_written_and_read_over_tls(port: int, certificates: Certificates) -> None:
    where = {"brokers": f"localhost:{port}", "tlsCa": str(certificates.ca_file)}
    rows = pa.RecordBatch.from_pydict({"value": [b"a", b"b"]})
    send_rows([rows], parse_write_options({**where, "topic": "t"}))
    assert values(read(subscribe="t", **where)) == [b"a", b"b"]


def test_executors_need_no_file_of_the_driver(port: int, certificates: Certificates) -> None:
    where = {"brokers": f"localhost:{port}", "tlsCa": str(certificates.ca_file), "subscribe": "t"}
    shipped = pickle.dumps(parse_read_options(where).connection)
    certificates.ca_file.unlink()
    connection = pickle.loads(shipped).connect(BrokerAddress(-1, "localhost", port))
    assert connection.hello() is not None
    connection.close()
    with pytest.raises(ConfigError, match=f"cannot read '{certificates.ca_file}'"):
        parse_read_options(where)


def test_secrets_are_in_no_text_of_options(port: int, certificates: Certificates) -> None:
    security = ClientSecurity.of_files(
        cert=certificates.certificate, key=certificates.key, user="alice", password="hunter2"
    )
    options = ConnectionOptions().secured(security)
    assert "hunter2" not in repr(options)
    assert "BEGIN" not in repr(options)
    found = parse_read_options(
        {"brokers": f"localhost:{port}", "subscribe": "t", **options.to_options()}
    )
    assert found.connection == options
    untrusting = ConnectionOptions(tls=True).connect(BrokerAddress(-1, "localhost", port))
    with pytest.raises(TlsError, match="trusted here"):
        untrusting.hello()
