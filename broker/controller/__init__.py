"""The controller of a cluster: decides which replicas lead, and tells all brokers.

assignment.py     which brokers get the partitions of a topic, and the replicas of each
context.py        what the controller knows of its cluster
controller.py     the controller of a cluster: events in, states in the registry and pushes to
                  brokers out
deletions.py      topics that are deleted, and the logs of them that brokers still have
election.py       the strategies by which a leader is chosen, and the in-sync replicas that go
                  with it
leadership.py     who leads each partition: the best state that live brokers allow, and
                  elections on request
lost.py           partitions that brokers have logs of and the registry does not know: it has
                  lost its data
pushes.py         what brokers are to be told of decisions, collected until it is sent
reassignments.py  partitions that move to other replicas: the steps from the present to the
                  target
states.py         the states of partitions: decided, written to the registry, and noted
suspicion.py      when a broker may be taken for dead, before its session with ZooKeeper ends
topics.py         partitions that come into being: created, given replicas, added, or restored
"""
