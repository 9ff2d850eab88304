"""Topics that are deleted and created again."""

from __future__ import annotations

from collections.abc import Sequence

from broker.client.connection import Connection
from broker.cluster_state import Creation
from broker.protocol.extension_requests import DeleteTopicRequest
from broker.protocol.responses import BrokerAddress
from broker.server.broker import Broker
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.creations import read_creations
from broker.zk.session import Session
from tests.support.spark_session import publish
from tests.support.waiting import wait_until


def create_again(broker: Broker, topic: str, payloads: Sequence[bytes]) -> None:
    """Delete a topic, and have messages in another one of its name."""
    connection = Connection(BrokerAddress(-1, "127.0.0.1", broker.port))
    connection.call(DeleteTopicRequest(topic))
    connection.close()
    publish(broker, topic, payloads)


def await_creation(
    session: Session | None, topic: str, *, other_than: Creation | None = None
) -> Creation | None:
    """Wait until broker 0 has recorded the creation of a topic, not a former one, and the topic.

    Without a session nothing is waited for.
    """
    if session is None:
        return None
    found: list[Creation] = []

    def is_recorded() -> bool:
        partition = TopicPartition(topic, 0, 0)
        present = read_creations(session, [partition]).of(partition)
        if present is None or present.id == "deleted":
            return False
        found.append(present)
        counts = paths.topic_broker(topic, 0)  # written after the creation
        return present != other_than and counts in session.get_many([counts])

    wait_until(is_recorded, f"the creation of '{topic}'")
    return found[-1]
