"""`pylogctl web`: a JSON API and pages over a cluster."""
