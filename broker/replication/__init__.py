"""Replication as pure state machines: leader, follower, and the changes between the two.

No socket, thread, file or clock: the broker drives them with real logs and requests, the
simulation (`tests/simulation/`) with models of both.
"""
