"""Ids that stand for none, in requests, in ZooKeeper and in memory.

They are apart from what they belong to, as clients need no more of it than these.
"""

NO_LEADER = -1  # no replica that may lead is alive
NO_CONTROLLER = -1  # there is none, or none is known
NO_EPOCH = -1  # of a log in which no leader epoch has begun, or a partition without replication
