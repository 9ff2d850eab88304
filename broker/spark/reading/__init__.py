"""Reads of topics and segment files: planned on the driver, carried out by tasks.

`planner` resolves options to byte ranges (`ranges`) with brokers opened once, or `segment_logs`
without a broker; `loss` decides that messages are gone, and `ranges` that a topic is another one
than before. `task_reader` turns a range into Arrow batches, from a broker through `fetching`, and
`report` records what was left out. Only `batch_reader` and `stream_reader`, which Spark calls, need
PySpark.

    batch_reader.py   the batch reader: plans a read on the driver; each Spark partition is some
                      tasks of the plan
    cluster.py        the cluster that a job reads or writes: brokers or a ZooKeeper, opened once,
                      on the driver
    columns.py        what the readers of messages and of records share: settings, and columns with
                      one value
    decoding.py       decodes payloads by the schema whose id they start with, on executors
    fetching.py       fetches a range from its leader, and from the next leader if that one is lost
    loss.py           decides which requested messages are lost, and whether a read continues
                      without them
    planner.py        the plan of a read: options to byte ranges, cut into tasks, each with its
                      location
    ranges.py         byte ranges of partitions, how they are cut into tasks, and where a task finds
                      their bytes
    record_logs.py    logs made of Kafka's segment files, without a broker: their offsets, and the
                      parts of tasks
    record_reader.py  the reader of Kafka's records in segment files: a task's parts of files in,
                      Arrow batches out
    report.py         the report of bytes that a read left out
    segment_logs.py   logs made of segment files, without a broker: their partitions, offsets and
                      message boundaries
    stream_reader.py  the stream reader: micro-batches of byte ranges, whose ends are stored in the
                      checkpoint
    task_reader.py    the task reader: a range of bytes in, Arrow batches out
"""
