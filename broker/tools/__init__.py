"""Tools built of producers and consumers: mirrors, audits, the retry store.

audit.py            counts messages by topic and time window, publishes the counts, and compares
                    them
copying.py          copies message sets, unchanged, from partitions of a topic to partitions of
                    another one
mirror.py           mirrors topics of one cluster into another until it is told to stop
mirror_producer.py  sends message sets of one cluster to another, and tells which are
                    acknowledged
mirror_routes.py    target topics and partitions of mirrors and copies; sends no messages
retry.py            handles messages so that a failed one does not block those after it
schemas.py          the schemas of topics that are copied to another cluster, whose messages have
                    their ids
"""
