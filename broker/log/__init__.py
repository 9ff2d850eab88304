"""Files and offsets: logs made of segment files, their flushing, recovery and retention.

Knows message sets (through `broker.protocol`), never requests, sockets or ZooKeeper.
"""
