"""`pylogctl schema`: the schemas of messages, which brokers keep by subject and version.

changes.py    registers and deletes schemas, and sets compatibility
command.py    `pylogctl schema`: the options of its commands
document.py   the rows that its commands write
reads.py      lists, shows and checks schemas
"""
