"""Asking a broker whether it is there."""

from __future__ import annotations

import time

from broker import errors
from broker.client.connection import Connection
from broker.cluster_state import Finding
from broker.protocol.client_requests import HelloRequest
from broker.protocol.replica_requests import ProbeBrokerRequest
from broker.server.cluster.live_brokers import LiveBrokers

_RETRY_S = 0.05
_MAX_TIMEOUT_S = 10.0


def probe(connection: Connection) -> Finding | None:
    """Ask a broker whether it is there; None if the connection is lost: ask again."""
    try:
        connection.call(HelloRequest())
    except errors.TlsError:  # a certificate is not accepted: so it is there
        connection.close()
    except errors.BrokerUnreachableError as error:
        connection.close()
        if isinstance(error.__cause__, TimeoutError):
            return Finding.SILENT
        return Finding.REFUSES if is_refused(error) else None
    except errors.RequestTimeoutError:
        connection.close()
        return Finding.SILENT
    except errors.BrokerError:  # it refuses this broker, or the request: so it is there
        connection.close()
    return Finding.ANSWERS


def is_refused(error: errors.BrokerError) -> bool:
    """Return whether nobody listens where a connection was tried."""
    return isinstance(error.__cause__, ConnectionRefusedError)


def probe_registered(brokers: LiveBrokers, request: ProbeBrokerRequest) -> Finding:
    """Ask a live broker anew, for another broker that misses it."""
    timeout_s = min(max(0.001, request.timeout_ms / 1000), _MAX_TIMEOUT_S)
    end_s = time.monotonic() + timeout_s
    connection = brokers.connect(request.probed_id, timeout_s=timeout_s)
    if connection is None or brokers.epoch_of(request.probed_id) != request.probed_epoch:
        raise errors.UnknownEpochError(f"broker {request.probed_id} is not known as registered so")
    try:
        while (finding := probe(connection)) is None and time.monotonic() < end_s:
            time.sleep(_RETRY_S)
    finally:
        connection.close()
    return Finding.SILENT if finding is None else finding
