"""Logs: segment files, and appending, reading, flushing, recovery and retention of them.

Knows message sets (through `broker.protocol`), but no sockets and no ZooKeeper.
"""
