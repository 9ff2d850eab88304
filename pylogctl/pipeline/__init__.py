"""`pylogctl pipeline`: load, query, compare and verify topics on Spark."""
