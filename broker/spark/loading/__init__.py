"""The parts of a load: its `plan`, the `task` that turns a range into rows, and its `files`.

`output` makes loads atomic and keeps their manifests; `avro` decodes payloads. Needs no PySpark.

    avro.py    Avro payloads: a zero byte, the id of a schema in four bytes, and the record in
               binary
    dates.py   the time of a message in a format, and its day in a load: from a field, a pattern or
               the load
    files.py   the data files of loads: written by tasks, and joined where they are small
    output.py  the directory of loads: the data and offsets of a load become visible together
    plan.py    the plan of a load: its ranges, the earlier loads it retires, and missing partitions
    task.py    a task of a load: writes a byte range to files, and accounts for every byte
"""
