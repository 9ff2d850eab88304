"""Schemas: what a registry keeps by id, judges before it is kept, and reads payloads with.

values.py          schemas, their compatibility, and the contract of a topic
store.py           the registry of schemas: ids, subjects, versions; kept in a file
zookeeper_home.py  keeps the registry of schemas in ZooKeeper
judgement.py       judges schemas in a process of its own, within bounds
payloads.py        payloads with a schema: encoded, and decoded by the id in front
avro_values.py     values of Avro as JSON has them, and bounds of what is decoded
json_values.py     validates values by a JSON Schema, in bounded steps
"""
