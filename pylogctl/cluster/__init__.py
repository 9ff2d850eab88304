"""`pylogctl cluster`: brokers, leaders and replicas of the whole cluster.

changes.py   the state-change logs of brokers, read from them or from their files, and merged
command.py   `pylogctl cluster`: the options of its commands
document.py  rows of `pylogctl cluster`, and the documents that show them
recover.py   `pylogctl cluster recover`: shows topics that ZooKeeper has lost, asks, and has
             them restored
"""
