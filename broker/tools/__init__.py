"""Tools built of producers and consumers: mirrors, audits, the retry store."""
