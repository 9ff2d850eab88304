"""Work on topics, groups, settings and brokers: for the client, and for the command line.

brokers.py           single brokers: found by id, their status, and an orderly stop
changes.py           the state-change logs of brokers: read from all of them, once or
                     repeatedly, in one order
cluster.py           the cluster as a whole: its brokers, how partitions are spread over them,
                     and health checks
cluster_keys.py      the key with which brokers prove that they are of a cluster: its
                     replacement while they run
copies.py            copies of a topic's messages to another topic, byte for byte
decommission.py      moves all replicas away from a broker, which may be dead, and tells which
                     partitions stay
group_changes.py     changes of groups in ZooKeeper: plans of offsets are applied, groups
                     deleted
group_plans.py       plans of changes to the offsets of groups
groups.py            a consumer group as ZooKeeper has it, read into plain values
lag.py               the lag of a group: its committed offsets compared with the ends of the
                     logs
log_moves.py         moves of a log to another data directory of the broker that has it, while
                     it is used
losses.py            what the registry remembers of topics, and brokers have no more: a disk was
                     replaced, or emptied
reassignment.py      moving partitions to other brokers: plans, their execution, progress and
                     end
rebalance.py         finds problems in the assignment of a group, and makes its members
                     rebalance
recovery.py          topics that ZooKeeper has lost: found by the logs that brokers have of
                     them, and restored
registry_nodes.py    trees of nodes in ZooKeeper: reading, exports, comparisons, and changes
                     with the way back
replicas.py          replicas of partitions: where they are, and elections of their leaders
rules.py             adds and removes rules of who may do what, and asks brokers by which ones
                     they judge
sampling.py          sampling messages of a partition, evenly spaced or at random
settings.py          settings of topics and brokers: whose they are, what brokers report, and
                     the values in effect
settings_changes.py  sets and unsets settings in ZooKeeper: validated first, written by version,
                     then awaited
topic_changes.py     creates topics and adds partitions to them: on brokers, by the controller,
                     by a setting
topic_deletion.py    deletes topics: their logs on brokers, and what ZooKeeper has of them
topics.py            topics and their partitions: sizes, leaders, replicas, offsets, segments,
                     number of messages
users.py             the users of a cluster in ZooKeeper: what checks their passwords, and never
                     those themselves
"""
