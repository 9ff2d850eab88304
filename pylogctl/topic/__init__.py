"""`pylogctl topic`: list, describe, create, delete, count and sample topics.

changes.py      creates, alters and deletes topics, and renders that; with `--dry-run`, only the
                plan
command.py      `pylogctl topic`: the options of its commands
document.py     the rows of `pylogctl topic`, and the documents that show them
reads.py        the commands of `pylogctl topic` that only read: they ask brokers and render
replication.py  topics with replicas: the controller creates them, and adds partitions and
                replicas
"""
