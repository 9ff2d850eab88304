"""Consumers: the simple consumer, and consumer groups that rebalance themselves.

arrivals.py          partitions that a reader without an end comes to read later: new ones, and
                     those that return
assignment.py        the assignment of a topic's partitions to the consumer threads of a group
boundaries.py        finds message boundaries and counts messages; for brokers that cannot, by
                     reading their log
chunk.py             chunks that fetchers deliver, and the messages of a group's streams
cluster_reader.py    reads partitions of a cluster from a start to an end, or forever
committer.py         assigned partitions, and commits of the positions that the application has
                     finished in them
config.py            the settings of a consumer, under the property names of Kafka 0.7
connector.py         the consumer connector: a member of a consumer group, and its streams of
                     messages
coordinator.py       the coordinator: a thread that rebalances a member's share of its group's
                     partitions
fetch_session.py     which ranges of one broker's partitions to request next, and the chunks in
                     its responses
fetcher.py           fetches partitions of one broker in the calling thread, one request ahead;
                     see `FetchSession`
fetcher_thread.py    threads that fetch ahead for a group's streams: one or `count` for each
                     broker
membership.py        a consumer group in ZooKeeper: subscriptions, members, owner nodes, and the
                     session's lease
offset_store.py      stores of a group's offsets: the interface, ZooKeeper as in 0.7, a file,
                     and SQLite
partition_reader.py  reads one partition: joins messages that were cut at the end of a chunk,
                     and stops at an end
placement.py         which broker serves each partition, since when it fails to, and when to try
                     again
simple_consumer.py   0.7's simple consumer: fetches from one broker at offsets given by the
                     caller
stream.py            a stream of a consumer group: the messages for one thread of the
                     application
"""
