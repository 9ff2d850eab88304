"""Replication as pure state machines: leader, follower, and the changes between the two.

No socket, thread, file or clock: the broker drives them with real logs and requests, the
simulation (`tests/simulation/`) with models of both.

    follower.py     the follower of a partition: from where it fetches, and how it applies each
                    response
    leader.py       the leader of a partition: followers' progress, the high watermark, the in-sync
                    replicas
    replica_log.py  the log of a replica as the state machines of replication use it
    replicas.py     the replicas of a broker, the role of each, and which pushes of controllers they
                    accept
"""
