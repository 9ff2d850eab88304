"""`pylogctl log`: dump, verify and recover segment files.

command.py   `pylogctl log`: dump, verify, compare, recover and replay segment files; move logs
compare.py   `pylogctl log compare`: the copies of a log against each other, byte by byte
document.py  the rows of `pylogctl log`, and the documents that show them
dump.py      reads the messages of segment files for `log dump`
move.py      `pylogctl log move`: has a running broker move a log to another of its data
             directories
records.py   reads the records of Kafka's segment files for `log dump`, and finds offsets in them
replay.py    `pylogctl log replay`: sends the messages of segment files and archives to a topic
"""
