"""The Python API behind `import pylogctl`: one client, verbs, values and errors with types.

It is built on the clients of the other folders, which keep Kafka 0.7's classes.
"""
