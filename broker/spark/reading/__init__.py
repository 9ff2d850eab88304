"""Reads of topics and segment files: planned on the driver, carried out by tasks.

`planner` resolves options to byte ranges (`ranges`) with brokers opened once, or `segment_logs`
without a broker; `loss` decides that messages are gone, and `creations` that a topic is another one
than before. `task_reader` turns a range into Arrow batches, from a broker through `fetching`, and
`report` records what was left out. Only `batch_reader` and `stream_reader`, which Spark calls, need
PySpark.
"""
