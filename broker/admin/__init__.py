"""Work on topics, groups, settings and brokers: for the client, and for the command line."""
