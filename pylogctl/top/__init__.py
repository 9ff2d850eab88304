"""`pylogctl top`: a live view of a cluster.

command.py   `pylogctl top`: its options
document.py  the rows of the views of `pylogctl top`, and the documents that show them
keys.py      the keys of `pylogctl top`: read from the bytes of a terminal, and what they change
looks.py     asks brokers and ZooKeeper for what `pylogctl top` shows, each look in a thread of
             its own
run.py       `pylogctl top` at work: on a terminal until it is ended, or as a number of looks
             for scripts
screen.py    the screen of `pylogctl top`: lines of text, from what is known and what a user has
             chosen
state.py     what is known of a cluster by the last looks at it, and what has changed between
             them
views.py     the views of `pylogctl top`: the rows of each, from what is known
"""
