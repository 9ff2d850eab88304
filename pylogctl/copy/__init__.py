"""`pylogctl copy`: messages from topic to topic.

command.py  `pylogctl copy`: the messages of a topic to another one, byte for byte
options.py  the options of `pylogctl copy`
run.py      runs `pylogctl copy`: plans the copy, copies, waits until consumers can read it, and
            verifies
"""
