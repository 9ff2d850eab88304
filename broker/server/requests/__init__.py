"""Requests of clients and brokers, carried out.

admin.py            our own requests about the broker and its topics: hello, metadata, offsets,
                    topics, shutdown
audit_log.py        the audit log: who was refused what, and who did what an administrator does,
                    as lines of JSON
authentication.py   the identity of a connection, and the exchange that changes it
broker_parts.py     the parts of a broker that requests are about, shared by the handlers of all
                    threads
client.py           who sends requests on one connection
control.py          requests between brokers and the controller: pushes to replicas, and
                    requests to the controller
creation_limits.py  how many topics clients may create: so many a second each, and so many
                    partitions in all
failure_delays.py   the wait after a failed login: longer for each failure of a user at an
                    address
fetch.py            every read of a log: 0.7's fetch, multifetch and offsets, and our reads that
                    can wait
filtered_read.py    filtered reads: they wait for messages as any read, then for the search of a
                    pattern in them
forwarder.py        requests of 0.7 on their way to the leader of a partition whose home this
                    broker is
freed_memory.py     returns freed memory to the system
handlers.py         dispatch: which handler a request goes to, and the outcome of an invalid one
judge.py            who may send which request, and about which topics: what each type needs,
                    and who decides it
metrics.py          counters of the threads that serve clients, and their metrics
outcomes.py         what becomes of requests: the outcomes of handlers, as the network takes
                    them
pattern_filter.py   filtering of logs for reads, on threads of their own, in turns by client
produce.py          every append to a log: 0.7's produce and multiproduce, and our publish
purgatory.py        responses on their way to a client, and the purgatory of those that are
                    delayed
read_loop.py        the loop of every read that may wait: consumers read up to the high
                    watermark, followers beyond
read_sessions.py    reads in sessions (`protocol/fetch_sessions.py`): only what may have news is
                    looked at
replica_reads.py    reads of followers: up to the log's end, many partitions a request, from the
                    page cache
schema_guard.py     the contracts of topics: messages without a schema of the topic's subject are
                    refused
schemas.py          requests about schemas: what each operation of the registry needs and gives
topic_creations.py  topics created by their first message, or by a client that is about to send
                    it
validation.py       validation of message sets before they are appended, within a budget for
                    each turn
"""
