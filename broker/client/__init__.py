"""How clients reach brokers: connections, the cluster, offsets listed by brokers.

backoff.py            how long clients wait before they ask again: the one policy after failures
                      that may pass
cluster.py            the brokers, topics and partitions of a cluster, read from ZooKeeper or
                      from brokers
connection.py         a connection to one broker: sends requests and receives responses, with
                      timeouts
controller_client.py  requests to the controller of a cluster, whose address any broker knows
counts.py             what clients count: plain numbers, which cost little and are added up when
                      a scrape comes
damage.py             whether a message that came damaged is read again, as another replica may
                      have an intact copy
list_offsets.py       lists offsets of partitions: log start, ends, segment starts, and message
                      boundaries
metrics.py            metrics of clients: their names and meanings, and how a registry of the
                      program collects them
read_replicas.py      which replica of each partition a consumer reads from: its leader, or an
                      in-sync follower
registry_cluster.py   the brokers, topics and partitions of a cluster, as registered in
                      ZooKeeper
schemas.py            the registry of schemas, asked through any broker; schemas are kept by id
selection.py          selection of topics and of their partitions; what is selected must exist
side.py               an open cluster as those who look at it, or change it, are given it
static_cluster.py     the brokers, topics and partitions of a cluster, read from listed brokers
topic_creation.py     creates topics without replicas on brokers, and waits until clients can
                      find them
watched_cluster.py    cluster metadata in memory, kept up to date by watches in ZooKeeper
"""
