"""Who may do what: identities, how they are proved, and what they may do.

client_security.py  how a client secures its connections: TLS, and the user that it logs in as
client_tls.py       TLS of clients: contexts made of files, the handshake, and a sentence for
                    each failure
cluster_keys.py     the keys of a cluster: what its brokers know and nobody else, as ZooKeeper
                    and a file keep them
cluster_proof.py    CLUSTER-SCRAM-SHA-256: two brokers prove to each other that they know a key
                    of the cluster
mechanisms.py       mechanisms of AUTHENTICATE: how a client proves who it is, and how a broker
                    finds out
principal.py        who sends requests on a connection
quotas.py           what a principal may use of a broker, as set in the node of a user or the
                    broker's properties
rules.py            rules: who may do what to which topic, group or to the cluster, as Kafka's
                    authorizer decides it
scram.py            SCRAM-SHA-256 (RFC 5802 and 7677): a password is proved, and never sent or
                    kept
subject.py          the user that a client's certificate names: its subject as text, and rules
                    that map it
tls.py              the broker's side of TLS: the context of its listeners, made anew when the
                    files change
users.py            the users of a cluster, as brokers know them: what checks the proof of a
                    password
warnings.py         what the settings of a broker allow, or never come to, that nobody can have
                    meant
"""
