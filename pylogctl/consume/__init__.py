"""`pylogctl consume`: messages of topics to standard output.

command.py  `pylogctl consume`: messages of topics to standard output
exec.py     `consume --exec`: runs a command for each message, and keeps failed messages in a
            retry store
group.py    `pylogctl consume --group`: joins a group, reads the assigned partitions, commits,
            and leaves
options.py  the options of `pylogctl consume`; `plan` turns them into a request
output.py   writes the messages of partitions to standard output, or hands them to a command
plan.py     turns the options of `pylogctl consume` into a request: what to read, and how to
            write it
retry.py    `pylogctl retry`: lists and drains messages that `consume --retry-dir` kept after a
            failure
run.py      runs a request of `pylogctl consume`: alone, or as a member of a group
watch.py    what a user sees of `pylogctl consume` while it reads: how far it is, or why nothing
            comes
"""
