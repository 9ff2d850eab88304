"""Measurements of load: messages sent or read, their times, and reports.

command.py    `pylogctl perf`: measures throughput and latency
consume.py    load of consumers: partitions read by several threads; every message is decoded
              and timed
document.py   the rows of `pylogctl perf` and their documents, and 0.7's CSV
e2e.py        end-to-end latency: another process sends at a fixed rate (`open_loop`), this one
              reads
measure.py    measurements of load: limits, latencies, threads, results, and the intervals shown
              meanwhile
open_loop.py  the sending process of `perf e2e`: an open loop that sends at a fixed rate
options.py    the options of `pylogctl perf`
produce.py    load of producers: batches generated or read from a file, sent from several
              threads and timed
run.py        runs the commands of `pylogctl perf`: validate the options, connect, measure, and
              report
"""
