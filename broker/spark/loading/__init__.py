"""The parts of a load: its `plan`, the `task` that turns a range into rows, and its `files`.

`output` makes loads atomic and keeps their manifests; `avro` decodes payloads. Needs no PySpark.
"""
