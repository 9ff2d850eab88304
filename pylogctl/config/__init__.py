"""`pylogctl config`: settings of topics and brokers that change while brokers run.

changes.py    sets and unsets settings, and shows what has changed
command.py    `pylogctl config`: the options of its commands; `config show`
document.py   the rows of `pylogctl config`, and the documents that show them
reads.py      the topic or broker that a command is about, and its settings: stored, in effect,
              differing
"""
