"""The Python API at a broker whose certificate its CA has not signed: an error at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

import pylogctl
from broker import Broker
from tests.support.certificates import Certificates

NO_TIMEOUT = 3600  # a call that is repeated does not end in the time of this test


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


@pytest.fixture
def address(start_broker: Callable[..., Broker], certificates: Certificates) -> str:
    broker = start_broker(**certificates.settings())
    port = next(one["port"] for one in broker.status()["listeners"] if one["tls"])
    return f"127.0.0.1:{port}"


def read(client: pylogctl.Client) -> object:
    return list(client.read("t", idle=0))


def produce(client: pylogctl.Client) -> object:
    with client.producer() as producer:
        producer.send("t", "x").result()
    return None


@pytest.mark.parametrize(
    "call",
    [lambda client: client.send("t", "x"), lambda client: client.topics(), read, produce],
    ids=["send", "topics", "read", "producer"],
)
def test_call_when_the_certificate_fails_then_raises_at_once_and_says_why(
    address: str, certificates: Certificates, tmp_path: Path, call: Callable[..., object]
) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)

    with (
        pytest.raises(pylogctl.TlsFailed, match="trusted here") as failure,
        pylogctl.connect(address, tls_ca=other, timeout=NO_TIMEOUT) as client,
    ):
        call(client)
    assert not failure.value.is_retriable
    assert isinstance(failure.value, pylogctl.Unreachable)
    assert isinstance(failure.value, ConnectionError)


def test_async_call_when_the_certificate_fails_then_raises_at_once_and_says_why(
    address: str, certificates: Certificates, tmp_path: Path
) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)

    async def send() -> None:
        async with await pylogctl.aconnect(address, tls_ca=other, timeout=NO_TIMEOUT) as client:
            await client.send("t", "x")

    with pytest.raises(pylogctl.TlsFailed, match="trusted here"):
        asyncio.run(send())


@pytest.mark.parametrize("call", [read, produce], ids=["read", "producer"])
def test_client_when_the_certificate_fails_later_then_raises_at_once(
    address: str, certificates: Certificates, tmp_path: Path, call: Callable[..., object]
) -> None:
    with pylogctl.connect(address, tls_ca=certificates.ca_file, timeout=NO_TIMEOUT) as client:
        client.send("t", "x")
        trustme.CA().cert_pem.write_to_path(certificates.ca_file)  # read again by new connections

        with pytest.raises(pylogctl.TlsFailed, match="trusted here"):
            call(client)
