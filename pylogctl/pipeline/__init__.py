"""`pylogctl pipeline`: load, query, compare and verify topics on Spark.

audit.py       runs `pipeline audit`: compares topics and loads of them with the counts of the
               producers
command.py     `pylogctl pipeline`: jobs on topics that run on Spark, or loads without it
document.py    the rows of plans, loads and audits of pipeline commands, and the documents that
               show them
jobs.py        runs `pipeline sql`, `window`, `join` and `verify`
latency.py     measures how long messages take from their producers to each stage: `pipeline
               latency`
load.py        runs `pipeline load` and `pipeline compact`; errors have the names of options
options.py     options that several pipeline commands share: input, events, targets, streams,
               Spark
reading.py     the input of a pipeline command: options to typed values, planned before Spark is
               started
results.py     output of pipeline jobs to standard output, a file, a table or a topic
spark.py       Spark sessions for commands: settings from options, failures as one-line errors
stream.py      streams of pipeline jobs: run a query, write its batches, and bind its checkpoint
               to it
table_file.py  tables in files of users: CSV, JSON or Parquet
"""
