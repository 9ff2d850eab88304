"""How messages look in a pipe: framings, envelopes, format strings, filters."""
