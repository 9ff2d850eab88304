"""The forms of messages in a pipe: framings, envelopes, format strings, filters."""
