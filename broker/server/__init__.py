"""The broker process: one acceptor, N processors, and the handlers of requests.

broker.py              the start and stop of a broker; it stops in the reverse order of its
                       start
replication_status.py  replication in the broker's status: counts for monitoring, and the state
                       of each replica
status.py              STATUS: the state, the settings and the metrics of a broker, as one
                       document
"""
