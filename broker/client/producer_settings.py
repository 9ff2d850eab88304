"""What the texts of a producer's settings mean, for whoever makes producers."""

from __future__ import annotations

from broker.client.link import ReconnectRule
from broker.config import ProducerConfig
from broker.protocol.compression import Codec


def codec_of(config: ProducerConfig) -> Codec:
    """Return the codec a setting names, by number or by name."""
    return Codec(int(config.codec)) if config.codec.isdecimal() else Codec[config.codec.upper()]


def compressed_topics_of(config: ProducerConfig) -> list[str]:
    """Return the topics that are compressed; none stands for all."""
    return [topic.strip() for topic in config.compressed_topics.split(",") if topic.strip()]


def reconnect_rule_of(config: ProducerConfig) -> ReconnectRule:
    """Return when connections are made anew."""
    return ReconnectRule(config.reconnect_requests, config.reconnect_ms / 1000)
