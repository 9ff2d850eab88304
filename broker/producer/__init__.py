"""The producer: messages to topics, synchronous and asynchronous.

accumulator.py        queued messages of one broker, gathered in batches until a sender thread
                      takes them
broker_connection.py  the connection of a producer to one broker: found by its id at its present
                      address
broker_sender.py      one broker's share of a producer's work: requests in flight on one
                      connection, and 0.7
callbacks.py          callbacks of an asynchronous producer, and the events they may change at
                      each stage
config.py             the settings of a producer, under the property names of Kafka 0.7
delivery.py           the outcome of messages given to a producer: handles to ask, reports to a
                      callback
dispatcher.py         sends message sets to the leaders of their partitions, again until they
                      are acknowledged
encoder.py            encodes an application's messages as payloads, and payloads as message
                      sets
named.py              the partitioner, encoder and callbacks that a producer's properties name
partitioner.py        which partition a message goes to: partitioners, and the partitions they
                      choose from
parts.py              what all that sends the messages of one producer uses
producer.py           the producer: messages to topics, sent by the caller's thread or queued
                      and sent by others
producer_pool.py      the engine of an asynchronous producer: queues messages, sent by a thread
                      for each broker
records.py            records of a producer for topics of format `kafka`: their sizes, and their
                      sequence numbers
route.py              the routes of partitions' sets to their leaders: waiting sets, and when
                      they are sent again
sender_thread.py      a thread that sends the messages for one home's partitions: take, send,
                      report
settings.py           how a producer sends, encodes and queues: one value, which its parts hand
                      on as it is
stamper.py            puts envelopes in front of a producer's messages: time, host, and a
                      sequence for each topic
unclosed.py           the end of clients, producers and groups that a program drops, or leaves
                      open when it ends
written_ends.py       the ends of sets that brokers have acknowledged as written and not as
                      committed, by term
"""
