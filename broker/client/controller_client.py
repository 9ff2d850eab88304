"""Requests to the controller of a cluster, whose address any broker knows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing

from broker import deadlines, errors
from broker.client.cluster import Connect
from broker.client.connection import FIRST_RESPONSE_S
from broker.ids import NO_CONTROLLER
from broker.protocol.client_requests import ClusterMetadataRequest
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.primitives import Reader
from broker.protocol.responses import BrokerAddress, ClusterMetadataResponse

_PAUSE_S = 0.2


def ask_controller(
    brokers: Sequence[BrokerAddress],
    connect: Connect,
    request: ExtensionRequest,
    *,
    timeout_s: float,
) -> Reader:
    """Send a request to the controller, once it is found, and return the body of its response.

    `NotControllerError` if no controller is found within `timeout_s`, as during an election. After
    `BrokerUnreachableError` the controller may have carried the request out.
    """
    deadline_s = time.monotonic() + timeout_s
    while True:
        try:
            with closing(connect(find_controller(brokers, connect))) as connection:
                try:
                    connection.connect()
                except errors.BrokerUnreachableError as error:
                    raise errors.NotControllerError(
                        f"the controller does not respond: {error}"
                    ) from error
                try:
                    return connection.call(request)
                except errors.BrokerUnreachableError as error:
                    raise errors.BrokerUnreachableError(
                        f"the controller may have done what it was asked for, or not: {error}"
                    ) from error
        except errors.NotControllerError:
            if time.monotonic() > deadline_s:
                raise
        deadlines.sleep(_PAUSE_S)


def find_controller(brokers: Sequence[BrokerAddress], connect: Connect) -> BrokerAddress:
    """Return the address of the controller; `NotControllerError` if the broker asked knows none."""
    metadata = cluster_metadata(brokers, connect, ())
    for one in metadata.brokers:
        if one.id == metadata.controller_id != NO_CONTROLLER:
            return one
    raise errors.NotControllerError(
        f"broker {metadata.broker_id} knows of no controller: an election may be under way, or "
        "the brokers use no ZooKeeper"
    )


def cluster_metadata(
    brokers: Sequence[BrokerAddress], connect: Connect, topics: tuple[str, ...] | None
) -> ClusterMetadataResponse:
    """Return the response of the first broker that responds; `topics` None means all."""
    return ClusterMetadataResponse.decode(ask_any(brokers, connect, ClusterMetadataRequest(topics)))


def ask_any(
    brokers: Sequence[BrokerAddress], connect: Connect, request: ExtensionRequest
) -> Reader:
    """Return the body of the response of the first broker that knows the request and responds.

    A refusal that a retry cannot help is raised at once.
    """
    last: errors.BrokerError = errors.BrokerUnreachableError("there is no broker to ask")
    give_up_s = time.monotonic() + FIRST_RESPONSE_S
    for index, broker in enumerate(brokers):
        try:
            with closing(connect(broker)) as connection:
                left_s = deadlines.left_s(min(connection.timeout_s, give_up_s - time.monotonic()))
                # a share of the time, as the next one may respond if this one hangs
                with deadlines.Limit(left_s / (len(brokers) - index)):
                    understands = connection.understands(type(request))
                if not understands:
                    raise errors.UnsupportedVersionError(f"{connection.name} knows only of itself")
                return connection.call(request)
        except errors.UnsupportedVersionError as error:
            last = error
        except errors.ServerError as error:
            if not error.is_retriable:  # others would answer the same
                raise
            last = error
        except errors.BrokerError as error:
            last = error
    raise last
