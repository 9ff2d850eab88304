"""The partitioner, encoder and callbacks that a producer's properties name.

Source: Kafka 0.7 `partitioner.class`, `serializer.class`, `callback.handler`, `event.handler`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.errors import ConfigError
from broker.producer.config import ProducerConfig
from broker.producer.encoder import Encoder, bytes_encoder, json_encoder, text_encoder
from broker.producer.partitioner import PARTITIONERS, Partitioner

if TYPE_CHECKING:
    from broker.producer.callbacks import ProducerCallbacks

ENCODERS: dict[str, Encoder] = {
    "bytes": bytes_encoder,
    "text": text_encoder,
    "json": json_encoder,
    "kafka.serializer.StringEncoder": text_encoder,
}


def partitioner_of(
    config: ProducerConfig, setting: str = "partitioner.class"
) -> Partitioner | None:
    """Return the partitioner that the properties name, for errors by `setting`; None for none."""
    if (make := PARTITIONERS.get(config.partitioner)) is not None:
        return make()
    from broker.plugins import PARTITIONER, is_default, load  # late: few producers have plug-ins

    if is_default(PARTITIONER, config.partitioner):
        return None
    return load(PARTITIONER, setting, config.partitioner, known=PARTITIONERS)


def encoder_of(config: ProducerConfig) -> Encoder:
    """Return the encoder that the properties name."""
    if config.encoder in ENCODERS:
        return ENCODERS[config.encoder]
    from broker.plugins import ENCODER, is_default, load  # late: as above

    if is_default(ENCODER, config.encoder):
        return bytes_encoder
    return load(ENCODER, "serializer.class", config.encoder, known=ENCODERS)


def callbacks_of(config: ProducerConfig) -> ProducerCallbacks | None:
    """Return the callbacks and the event handler that the properties name; None without any."""
    from broker.plugins import CALLBACKS, EVENT_HANDLER, Plugin, is_default, load  # late: as above

    found: list[Plugin | None] = []
    for kind, setting, text, properties in (
        (CALLBACKS, "callback.handler", config.callback_handler, config.callback_properties),
        (EVENT_HANDLER, "event.handler", config.event_handler, config.event_properties),
    ):
        if is_default(kind, text):
            found.append(None)
        elif config.producer_type != "async":
            raise ConfigError(f"{setting}={text} needs producer.type=async")
        else:
            named = _properties(f"{setting}.props", properties)
            found.append(load(kind, setting, text, named))
    if not any(found):
        return None
    from broker.producer.callbacks import PluggedCallbacks  # late: as above

    return PluggedCallbacks(*found)


def _properties(setting: str, text: str) -> dict[str, str]:
    items = [one.partition("=") for one in filter(None, map(str.strip, text.split(",")))]
    for name, equals, _ in items:
        if not equals or not name.strip().isidentifier():
            raise ConfigError(f"{setting} is '{text}'; it must be NAME=VALUE,..")
    return {name.strip(): value.strip() for name, _, value in items}
