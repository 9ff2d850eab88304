"""Topics in Spark: the data source `pylog`, and jobs made of it.

Nothing of the library imports this package, and it needs the extra `spark`. Start here:

    | module        | what                                                                        |
    | session       | `open_session`: a quiet Spark session for commands                          |
    | source        | `PylogDataSource`, the class Spark knows; `read_messages`, `stream_messages` |
    | options       | the options below, as values                                                |
    | schema        | the columns                                                                 |
    | load          | `run_load`: topics into files, each message once                            |
    | queries       | SQL on topics, as text or as the columns of their JSON                      |
    | extraction    | `events`: key and time out of payloads, by fields of JSON or a pattern      |
    | events        | counts of events per key in windows; joins with events or with a table      |
    | audit         | counts of messages in topics and loads, to compare with those of producers  |
    | verify        | segment files checked by all machines                                       |
    | jobs          | tasks with progress; `cause_of`: a failure in Spark as an error of ours     |

A batch read goes through `source` (options parsed), `batch_reader`, `planner` (ranges resolved and
cut with the cluster open once; `segment_logs` without a broker) and, on executors, `task_reader`,
which gets a `ranges.ReadTask` and gives Arrow batches. `stream_reader` plans each micro-batch, and
`writer` sends rows.

Options of a read; they mean what those of Spark's Kafka source mean, except that an offset is a
byte position and a partition is named `HOME-INDEX`:

    | option                   | default  | meaning                                                |
    | brokers                  |          | `HOST:PORT,..`; also as `kafka.bootstrap.servers`      |
    | zk                       |          | instead: ZooKeeper, `HOST:PORT[,..][/CHROOT]`          |
    | path (argument of load)  |          | instead: segment files, directories, patterns          |
    | subscribe                |          | topics, separated by commas                            |
    | subscribePattern         |          | instead: a regular expression for all of the name      |
    | assign                   |          | instead: `{"topic": ["0-0"]}`                          |
    | startingOffsets          | earliest | `earliest`, `latest`, `{"topic": {"0-0": 123}}` where  |
    |                          |          | -2 is earliest and -1 latest; streams: default latest  |
    | startingTimestamp        |          | milliseconds since 1970; as precise as segments are    |
    | startingOffsetsByTimestamp |        | `{"topic": {"0-0": MILLISECONDS}}`                     |
    | ending...                | latest   | the same three for where a batch ends                  |
    | failOnDataLoss           | true     | fail if messages asked for are gone; else report it    |
    | crc                      | fail     | how to treat damaged messages: fail, mark, skip, off   |
    | maxBytesPerTrigger       |          | the most of a micro-batch (and a message a partition)  |
    | maxBytesPerPartition     | 1g       | the most of a task                                     |
    | minPartitions            | 1        | how many tasks there are at least, if there is data    |
    | pushFilters              | false    | read less for filters on topic, partition and offset;  |
    |                          |          | needs `spark.sql.python.filterPushdown.enabled`        |
    | reportPath               |          | a directory for what was left out, as JSON             |
    | fetchSize                | 1m       | bytes to request at a time                             |
    | timeoutMs                | 30000    | how long to wait for a response                        |
    | connectTimeoutMs         | 5000     | how long to try to connect                             |

Options of a write, besides brokers, zk and the two timeouts:

    | option                   | default  | meaning                                                |
    | topic                    |          | where rows go; else their column `topic` says it       |
    | compression              | none     | none, gzip, snappy, lz4, zstd                          |
    | batchSize                | 256k     | bytes of payload in a message set                      |
    | retries                  | 3        | how often a set is sent again                          |
    | stagingPath              |          | a directory that all machines share, where tasks keep  |
    |                          |          | their messages until the driver sends those that count |

Rows have a column value, and may have topic, key (whose hash picks the partition) and partition
(`HOME-INDEX`); columns that reading gives besides are ignored.
"""
