"""`pylogctl acl`: rules of who may do what."""
