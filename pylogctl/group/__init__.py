"""`pylogctl group`: look at, move and repair consumer groups.

changes.py       the work of the commands of `pylogctl group` that change groups in ZooKeeper
command.py       `pylogctl group`: the options of its commands
document.py      the rows of `pylogctl group`, and the documents that show them
offsets_file.py  files of offsets
options.py       the options that the work of commands gets as one value
reads.py         the commands of `pylogctl group` that only read: they render their results
"""
