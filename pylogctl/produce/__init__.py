"""`pylogctl produce`: messages from standard input or files to a topic.

audit.py         `produce --audit`: counts confirmed messages, and publishes the counts beside
                 them
batcher.py       from input to batches, and the handling of messages that cannot be sent
broker_loss.py   handles the loss of a broker in `produce`: where messages go, and how long they
                 wait
command.py       `pylogctl produce`: messages from standard input or files to a topic
input_reader.py  reads standard input or files, one after another, and runs callbacks while
                 input is awaited
messages.py      turns an input into records, and each record into a message and its partition
options.py       the options of `pylogctl produce`; `plan` turns them into a plan
plan.py          the plan of `pylogctl produce`: its options as values, validated before a
                 connection is made
readback.py      reads sent messages back, and compares checksums
receipts.py      receipts: a line for each acknowledged message, by which a later run skips
                 confirmed messages
run.py           a run of `pylogctl produce`: connect, read, send, wait until all is readable,
                 verify, report
sender.py        sends batches through a producer, and counts the messages that are acknowledged
"""
