"""samsa, pykafka and brod behind the command line that all peers of the interop tests have.

For Python 2.7: these clients were written for it. The first argument names the client.
"""

from __future__ import print_function

import os
import site
import sys
import threading

site.addsitedir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))


def read_lines():
    return [line.rstrip("\n") for line in sys.stdin]


def show(text):
    sys.stdout.write(str(text) + "\n")
    sys.stdout.flush()


class Samsa(object):
    """Disqus's client for 0.7, with ZooKeeper and consumer groups of its own kind."""

    def client(self, host, port):
        from samsa.client import Client
        from samsa.handlers import ThreadingHandler

        return Client(host, ThreadingHandler(), port=int(port))

    def cluster(self, zookeeper):
        from kazoo.client import KazooClient
        from samsa.cluster import Cluster

        session = KazooClient(zookeeper)
        session.start()
        return Cluster(session)

    def produce(self, host, port, topic, partition):
        client = self.client(host, port)
        client.produce(topic, int(partition), read_lines(), version=1)
        self.settle(client)

    def produce_magic0(self, host, port, topic, partition):
        client = self.client(host, port)
        client.produce(topic, int(partition), read_lines(), version=0)
        self.settle(client)

    def multiproduce(self, host, port, topic, *partitions):
        client = self.client(host, port)
        lines = read_lines()
        client.multiproduce([(topic, int(one), lines) for one in partitions], version=1)
        self.settle(client)

    def settle(self, client):
        """Have all sent: requests are queued, and answered in order."""
        client.offsets("settle", 0, -1, 1)

    def fetch(self, host, port, topic, partition, offset):
        for message in self.client(host, port).fetch(topic, int(partition), int(offset), 1 << 20):
            show("%d %s" % (message.next_offset, message.payload))

    def multifetch(self, host, port, topic, *pairs):
        requests = [
            (topic, int(pairs[i]), int(pairs[i + 1]), 1 << 20) for i in range(0, len(pairs), 2)
        ]
        for answer in self.client(host, port).multifetch(requests):
            for message in answer:
                show("%d %s" % (message.next_offset, message.payload))
            show("--")

    def offsets(self, host, port, topic, partition, time, count):
        for offset in self.client(host, port).offsets(topic, int(partition), int(time), int(count)):
            show(offset)

    def produce_zk(self, zookeeper, topic):
        target = self.cluster(zookeeper).topics[topic]
        for line in read_lines():
            target.publish(line)
        for partition in target.partitions:
            partition.latest_offset()  # answered after all that was published before

    def join(self, zookeeper, group, topic):
        consumer = (
            self.cluster(zookeeper)
            .topics[topic]
            .subscribe(group, backoff_increment=0, offset_reset="earliest")
        )
        ended = threading.Event()
        reader = threading.Thread(target=lambda: (read_lines(), ended.set()))
        reader.daemon = True
        reader.start()
        while not ended.is_set():
            payload = consumer.next_message(timeout=0.1)
            if payload is not None:
                show(payload)
                consumer.commit_offsets()
        consumer.stop_partitions()
        consumer.cluster.zookeeper.stop()


class PyKafka(object):
    """The first pykafka, by Dan Sully: 0.6's messages, no ZooKeeper."""

    def produce(self, host, port, topic, partition):
        import kafka.message
        import kafka.producer

        producer = kafka.producer.Producer(topic, int(partition), host, int(port))
        producer.send([kafka.message.Message(line) for line in read_lines()])
        producer.disconnect()

    def fetch(self, host, port, topic, partition, offset):
        import kafka.consumer
        import kafka.message  # noqa: F401  # the consumer forgets to import it

        consumer = kafka.consumer.Consumer(topic, int(partition), host, int(port))
        consumer.offset = int(offset)
        for message in consumer.consume():
            show(message.payload)


class Brod(object):
    """Datadog's client: 0.6's messages, and consumer groups that own nothing."""

    def produce(self, host, port, topic, partition):
        from brod.blocking import Kafka

        Kafka(host, int(port)).produce(topic, read_lines(), int(partition))

    def fetch(self, host, port, topic, partition, offset):
        from brod.blocking import Kafka

        for place, payload in Kafka(host, int(port)).fetch(topic, int(offset), int(partition)):
            show("%d %s" % (place, payload))

    def offsets(self, host, port, topic, partition, time, count):
        from brod.blocking import Kafka

        for one in Kafka(host, int(port)).offsets(topic, int(time), int(count), int(partition)):
            show(one)

    def produce_zk(self, zookeeper, topic):
        from brod.zk import ZKProducer

        producer = ZKProducer(zookeeper, topic)
        for line in read_lines():
            producer.send([line])

    def join(self, zookeeper, group, topic):
        from brod.zk import ZKConsumer

        consumer = ZKConsumer(zookeeper, group, topic)
        ended = threading.Event()
        reader = threading.Thread(target=lambda: (read_lines(), ended.set()))
        reader.daemon = True
        reader.start()
        while not ended.wait(0.05):
            for message_set in consumer.fetch():
                for payload in message_set.messages:
                    show(payload)
        consumer.close()


CLIENTS = {"samsa": Samsa, "pykafka": PyKafka, "brod": Brod}

if __name__ == "__main__":
    client, action = sys.argv[1:3]
    getattr(CLIENTS[client](), action.replace("-", "_"))(*sys.argv[3:])
