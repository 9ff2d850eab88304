"""The forms of messages in a pipe: framings, envelopes, format strings, filters.

envelope.py        messages as JSON objects (`--jsonl`), and the facts of a message that was
                   read
filters.py         filters of messages: `--grep`, `--where`, `--sample` and `--skip`
framing.py         framings of messages in a pipe: the options that choose one, escapes, and
                   writing
framing_reader.py  reads messages from a pipe, incrementally, in every framing of
                   `pylogctl.format.framing`
message_format.py  format strings for messages, such as `%t[%p] %o %s{hex}`
"""
