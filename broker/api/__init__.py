"""The Python API behind `import pylogctl`: one client, verbs, values and errors with types.

It is built on the clients of the other folders, which keep Kafka 0.7's classes.

    access.py         what all calls of a client use: the cluster, connections, ZooKeeper, the time
                      limit
    changes.py        the state changes of a cluster, as an iterator
    client.py         the client: one object for a cluster, with a verb for each thing to do
    cluster_calls.py  the calls of a client on brokers and the cluster
    errors.py         the errors of the API: those of `broker.errors` under their public names, and
                      a few of its own
    group.py          a member of a consumer group, as an iterator of messages
    group_calls.py    the calls of a client on consumer groups and their offsets
    group_run.py      hands the messages of a group to a handler, by one thread or several; see
                      `Group.run`
    producer.py       a producer that queues messages, sends them by threads, and gives a delivery
                      for each call
    reader.py         reads topics from a start to a stop: messages, or batches of them as they are
                      in the log
    replica_calls.py  the calls of a client on replicas: elections of leaders, and moves to other
                      brokers
    schema_calls.py   the calls of a client on schemas: of subjects, their versions, and ids
    schema_producer.py  a producer of values, which a schema encodes
    setting_calls.py  the calls of a client on settings of topics and brokers
    topic_calls.py    the calls of a client on topics
    values.py         the values of the API: messages, batches, receipts, and the forms of arguments
"""
