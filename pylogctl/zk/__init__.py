"""`pylogctl zk`: show the registry in ZooKeeper, or start a server.

changes.py   how the commands of `pylogctl zk` that write nodes plan, confirm, make and undo
             changes; the other side of a comparison
command.py   `pylogctl zk`: show and change nodes of ZooKeeper, or run an embedded server
document.py  the rows of `pylogctl zk` and their documents, and the values of known nodes as
             text
"""
