"""Telling everybody what became of queued messages: those who hold deliveries, and the reporter."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from broker.errors import BrokerError
from broker.producer.accumulator import Batch
from broker.producer.delivery import OnDelivery, Report, reports_of
from broker.protocol.codec import ENTRY_OVERHEAD_BYTES
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)


def settle(
    partition: TopicPartition,
    batch: Batch,
    base_offset: int,
    error: BrokerError | None,
    on_delivery: OnDelivery | None,
) -> None:
    """Settle the deliveries of a batch, and report on its messages.

    Args:
        partition: where they went.
        batch: knows whether it is one wrapper.
        base_offset: of its message set, -1 if unknown.
        error: why it was not delivered.
        on_delivery: told of each message; what it raises is logged.
    """
    deliveries, payloads = batch.deliveries, batch.payloads
    if error is not None or base_offset < 0 or batch.is_wrapped:
        for delivery in deliveries:
            delivery.settle(base_offset, error)
    else:
        offset = base_offset
        for payload, delivery in zip(payloads, deliveries, strict=True):
            delivery.settle(offset, None)
            offset += ENTRY_OVERHEAD_BYTES + len(payload)
    if on_delivery is not None and payloads:
        keys = [delivery.key for delivery in deliveries]
        is_wrapped = batch.is_wrapped
        report(
            on_delivery,
            reports_of(partition, payloads, keys, base_offset, is_wrapped=is_wrapped, error=error),
        )


def report(on_delivery: OnDelivery, reports: Sequence[Report]) -> None:
    """Hand reports over; a thread that sends goes on whatever becomes of them."""
    try:
        on_delivery(reports)
    except Exception:
        logger.exception("failure in the report on messages to %s", reports[0].partition)
